"""The procedures that rewrite delete files."""

from __future__ import annotations

from iceberg_pyspark.spark.procedures.definition import (
    DRY_RUN,
    Column,
    Procedure,
    ProcedureRun,
    Row,
)
from iceberg_pyspark.table.rewrites.rewrite_deletes import RewrittenDeleteFiles

_COUNTS = {
    "rewritten_delete_files_count": Column(type="integer"),
    "added_delete_files_count": Column(type="integer"),
    "rewritten_bytes_count": Column(type="long"),
    "added_bytes_count": Column(type="long"),
}


def _row(result: RewrittenDeleteFiles) -> tuple[Row, ...]:
    return (tuple(getattr(result, name) for name in _COUNTS),)


def _rewrite_position_delete_files(run: ProcedureRun) -> tuple[Row, ...]:
    return _row(run.maintenance.rewrite_position_delete_files(**run.given_arguments))


def _rewrite_equality_deletes(run: ProcedureRun) -> tuple[Row, ...]:
    return _row(run.maintenance.rewrite_equality_deletes(**run.given_arguments))


REWRITE_POSITION_DELETE_FILES = Procedure(
    name="rewrite_position_delete_files",
    description="Writes position delete files as fewer, or as deletion vectors",
    required={"table": "string"},
    optional={"options": "map<string,string>", "where": "string", DRY_RUN: "boolean"},
    columns=_COUNTS,
    run=_rewrite_position_delete_files,
)

REWRITE_EQUALITY_DELETES = Procedure(
    name="rewrite_equality_deletes",
    description="Deletes by position what equality deletes delete, and removes them",
    required={"table": "string"},
    optional={DRY_RUN: "boolean"},
    columns=_COUNTS,
    run=_rewrite_equality_deletes,
)
"""A procedure that the JVM connector does not have."""
