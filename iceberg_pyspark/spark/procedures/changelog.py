"""The procedure that creates a view of changed rows."""

from __future__ import annotations

from iceberg_pyspark.spark.changelog.view import PROCEDURE, Changelog, changes_of_catalog, view_name
from iceberg_pyspark.spark.procedures.definition import Column, Procedure, ProcedureRun, Row


def _create_changelog_view(run: ProcedureRun) -> tuple[Row, ...]:
    arguments = dict(run.given_arguments)
    name = view_name(arguments.pop("changelog_view", None), run.identifier.name)
    identifier = run.identifier
    levels = (run.catalog.name, *identifier.levels)
    read = changes_of_catalog(run.spark, levels)
    table = run.table
    changelog = Changelog(**arguments).of(
        str(identifier), table.metadata, read, case_sensitive=table.case_sensitive
    )
    changelog.createOrReplaceTempView(name)
    return ((name,),)


CREATE_CHANGELOG_VIEW = Procedure(
    name=PROCEDURE,
    description="Makes a temporary view of how rows changed between snapshots",
    required={"table": "string"},
    optional={
        "changelog_view": "string",
        "options": "map<string,string>",
        "compute_updates": "boolean",
        "identifier_columns": "array<string>",
        "net_changes": "boolean",
    },
    columns={"changelog_view": Column(type="string")},
    run=_create_changelog_view,
)
