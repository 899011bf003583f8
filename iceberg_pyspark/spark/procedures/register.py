"""The procedures that add existing tables or files."""

from __future__ import annotations

from iceberg_pyspark.spark.procedures.adoption import folder_source, table_source
from iceberg_pyspark.spark.procedures.definition import (
    DRY_RUN,
    Column,
    Procedure,
    ProcedureRun,
    Row,
)
from iceberg_pyspark.sql_text.names import parse_levels

_COUNT = Column(type="long", is_nullable=True)
_TOTALS = {"total_records_count": "total-records", "total_data_files_count": "total-data-files"}


def _register_table(run: ProcedureRun) -> tuple[Row, ...]:
    table = run.catalog.register_table(
        run.identifier, run.required("metadata_file"), dry_run=run.is_dry
    )
    snapshot = table.metadata.current_snapshot
    if snapshot is None:
        return ((None, None, None),)
    totals = (snapshot.summary.get(name) for name in _TOTALS.values())
    return ((snapshot.snapshot_id, *(None if t is None else int(t) for t in totals)),)


def _add_files(run: ProcedureRun) -> tuple[Row, ...]:
    levels = parse_levels(run.required("source_table"))
    source = folder_source(levels) or table_source(run.spark, levels)[1]
    # add_files always looks for files that the table already has, whatever check_duplicate_files
    # says, and it chooses its own parallelism.
    result = run.table.add_files(
        source.location,
        file_format=source.file_format,
        partition_filter=run.given_arguments.get("partition_filter"),
        partitions=source.partitions,
        nested_folders=not source.is_table,
        dry_run=run.is_dry,
        progress=run.progress,
    )
    return ((result.added_files_count, result.changed_partition_count),)


ADD_FILES = Procedure(
    name="add_files",
    description="Makes files that are there a part of the table, without a copy",
    required={"table": "string", "source_table": "string"},
    optional={
        "partition_filter": "map<string,string>",
        "check_duplicate_files": "boolean",
        "parallelism": "int",
        DRY_RUN: "boolean",
    },
    columns={
        "added_files_count": Column(type="long"),
        "changed_partition_count": _COUNT,
    },
    run=_add_files,
    changes_rows=True,
)

REGISTER_TABLE = Procedure(
    name="register_table",
    description="Adopts the table of a metadata file",
    required={"table": "string", "metadata_file": "string"},
    optional={DRY_RUN: "boolean"},
    columns={"current_snapshot_id": _COUNT, **dict.fromkeys(_TOTALS, _COUNT)},
    run=_register_table,
)
