"""What writes data files anew."""

from __future__ import annotations

from iceberg_pyspark.spark.procedures.definition import Column, Procedure, ProcedureRun, Row

_COUNTS = {
    "rewritten_data_files_count": Column(type="integer"),
    "added_data_files_count": Column(type="integer"),
    "rewritten_bytes_count": Column(type="long"),
    "failed_data_files_count": Column(type="integer"),
    "removed_delete_files_count": Column(type="integer"),
}


def _rewrite_data_files(run: ProcedureRun) -> tuple[Row, ...]:
    done = run.table.maintenance().rewrite_data_files(**run.given)
    return (tuple(getattr(done, name) for name in _COUNTS),)


REWRITE_DATA_FILES = Procedure(
    name="rewrite_data_files",
    description="Writes small files, and files with many deleted rows, anew",
    required={"table": "string"},
    optional={
        "strategy": "string",
        "sort_order": "string",
        "options": "map<string,string>",
        "where": "string",
        "branch": "string",
    },
    columns=_COUNTS,
    run=_rewrite_data_files,
)
