"""The procedure that writes the metadata for a copy of a table."""

from __future__ import annotations

from iceberg_pyspark.spark.procedures.definition import (
    DRY_RUN,
    Column,
    Procedure,
    ProcedureRun,
    Row,
)

_NO_LIST = "N/A"


def _rewrite_table_path(run: ProcedureRun) -> tuple[Row, ...]:
    result = run.maintenance.rewrite_table_path(**run.given_arguments)
    return (
        (
            result.latest_version,
            result.file_list_location or _NO_LIST,
            result.rewritten_manifest_file_paths_count,
            result.rewritten_delete_file_paths_count,
        ),
    )


REWRITE_TABLE_PATH = Procedure(
    name="rewrite_table_path",
    description="Writes a table's metadata with other paths, and a list of what to copy",
    required={"table": "string", "source_prefix": "string", "target_prefix": "string"},
    optional={
        "start_version": "string",
        "end_version": "string",
        "staging_location": "string",
        "create_file_list": "boolean",
        DRY_RUN: "boolean",
    },
    columns={
        "latest_version": Column(type="string", is_nullable=True),
        "file_list_location": Column(type="string", is_nullable=True),
        "rewritten_manifest_file_paths_count": Column(type="integer", is_nullable=True),
        "rewritten_delete_file_paths_count": Column(type="integer", is_nullable=True),
    },
    run=_rewrite_table_path,
)
