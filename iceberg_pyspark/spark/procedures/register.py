"""What adopts a table, or files, that are there already."""

from __future__ import annotations

from typing import cast, get_args

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.procedures.definition import Column, Procedure, ProcedureRun, Row
from iceberg_pyspark.spec.manifests import DataFileFormat
from iceberg_pyspark.sql_text.names import parse_levels

_COUNT = Column(type="long", is_nullable=True)
_TOTALS = {"total_records_count": "total-records", "total_data_files_count": "total-data-files"}


def _register_table(run: ProcedureRun) -> tuple[Row, ...]:
    table = run.catalog.register_table(run.identifier, run.required("metadata_file"))
    snapshot = table.metadata.current_snapshot
    if snapshot is None:
        return ((None, None, None),)
    totals = (snapshot.summary.get(name) for name in _TOTALS.values())
    return ((snapshot.snapshot_id, *(None if t is None else int(t) for t in totals)),)


def _add_files(run: ProcedureRun) -> tuple[Row, ...]:
    source = run.required("source_table")
    file_format, *path = parse_levels(source)
    if file_format.lower() not in get_args(DataFileFormat) or len(path) != 1:
        raise InvalidRequestError(
            f"add_files: source_table {source} names no files; write `parquet`.`/folder`, with one "
            f"of the formats {', '.join(get_args(DataFileFormat))}"
        )
    # the kernel looks for files that the table has already, whatever check_duplicate_files says,
    # and parallelism is its matter
    added = run.table.add_files(
        path[0],
        file_format=cast("DataFileFormat", file_format.lower()),
        partition_filter=run.given.get("partition_filter"),
    )
    return ((added.added_files_count, added.changed_partition_count),)


ADD_FILES = Procedure(
    name="add_files",
    description="Makes files that are there a part of the table, without a copy",
    required={"table": "string", "source_table": "string"},
    optional={
        "partition_filter": "map<string,string>",
        "check_duplicate_files": "boolean",
        "parallelism": "int",
    },
    columns={
        "added_files_count": Column(type="long"),
        "changed_partition_count": _COUNT,
    },
    run=_add_files,
)

REGISTER_TABLE = Procedure(
    name="register_table",
    description="Adopts the table of a metadata file",
    required={"table": "string", "metadata_file": "string"},
    optional={},
    columns={"current_snapshot_id": _COUNT, **dict.fromkeys(_TOTALS, _COUNT)},
    run=_register_table,
)
