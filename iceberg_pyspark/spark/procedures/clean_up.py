"""The procedures that remove unneeded files."""

from __future__ import annotations

from pyspark.sql import SparkSession

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.procedures.definition import (
    DRY_RUN,
    Column,
    Procedure,
    ProcedureRun,
    Row,
)
from iceberg_pyspark.table.maintenance.removal.orphan_files import Inventory

_COUNT = Column(type="long", is_nullable=True)
_COUNTS = (
    "deleted_data_files_count",
    "deleted_position_delete_files_count",
    "deleted_equality_delete_files_count",
    "deleted_manifest_files_count",
    "deleted_manifest_lists_count",
    "deleted_statistics_files_count",
)


def _expire_snapshots(run: ProcedureRun) -> tuple[Row, ...]:
    result = run.maintenance.expire_snapshots(**run.given_arguments)
    return (tuple(getattr(result, name) for name in _COUNTS),)


def _remove_orphan_files(run: ProcedureRun) -> tuple[Row, ...]:
    arguments = dict(run.given_arguments)
    if (view := arguments.pop("file_list_view", None)) is not None:
        arguments["inventory"] = _inventory(run.spark, view)
    for name in ("prefix_listing", "stream_results"):
        # These arguments choose how to list files and return results; here there is only one way.
        arguments.pop(name, None)
    if "prefix_mismatch_mode" in arguments:
        arguments["prefix_mismatch_mode"] = str(arguments["prefix_mismatch_mode"]).lower()
    result = run.maintenance.remove_orphan_files(**arguments)
    return tuple((location,) for location in result.orphan_file_locations)


def _inventory(spark: SparkSession, view: str) -> Inventory:
    """Return a function that yields the files in a view; each call reads the view again."""
    files = spark.table(view)
    types = {f.name: f.dataType.simpleString() for f in files.schema.fields}
    if types.get("file_path") != "string" or types.get("last_modified") != "timestamp":
        column_list = ", ".join(f"{name} {type_}" for name, type_ in types.items())
        raise InvalidRequestError(
            f"remove_orphan_files: file_list_view {view} must have the columns file_path STRING "
            f"and last_modified TIMESTAMP; it has {column_list}"
        )
    listing = files.where("file_path IS NOT NULL").selectExpr(
        "file_path", "unix_millis(last_modified) AS modified_ms"
    )
    return lambda: ((row.file_path, row.modified_ms) for row in listing.toLocalIterator())


EXPIRE_SNAPSHOTS = Procedure(
    name="expire_snapshots",
    description="Removes old snapshots, and the files that only they need",
    required={"table": "string"},
    optional={
        "older_than": "timestamp",
        "retain_last": "int",
        "max_concurrent_deletes": "int",
        "stream_results": "boolean",
        "snapshot_ids": "array<bigint>",
        "clean_expired_metadata": "boolean",
        DRY_RUN: "boolean",
    },
    columns=dict.fromkeys(_COUNTS, _COUNT),
    run=_expire_snapshots,
)

REMOVE_ORPHAN_FILES = Procedure(
    name="remove_orphan_files",
    description="Removes old files of a table's folder that the table does not need",
    required={"table": "string"},
    optional={
        "older_than": "timestamp",
        "location": "string",
        DRY_RUN: "boolean",
        "max_concurrent_deletes": "int",
        "file_list_view": "string",
        "equal_schemes": "map<string,string>",
        "equal_authorities": "map<string,string>",
        "prefix_mismatch_mode": "string",
        "prefix_listing": "boolean",
        "stream_results": "boolean",
    },
    columns={"orphan_file_location": Column(type="string")},
    run=_remove_orphan_files,
)
