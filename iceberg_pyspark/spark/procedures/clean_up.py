"""What removes files that nobody needs."""

from __future__ import annotations

from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spark.procedures.definition import Column, Procedure, ProcedureRun, Row

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
    done = run.maintenance.expire_snapshots(**run.given)
    return (tuple(getattr(done, name) for name in _COUNTS),)


def _remove_orphan_files(run: ProcedureRun) -> tuple[Row, ...]:
    given = dict(run.given)
    if "file_list_view" in given:
        raise UnsupportedFeatureError(
            "remove_orphan_files: file_list_view is not supported yet; leave it out, and the "
            "table's folder is listed"
        )
    for name in ("prefix_listing", "stream_results"):
        # how files are listed and results kept, of which there is one way here
        given.pop(name, None)
    if "prefix_mismatch_mode" in given:
        given["prefix_mismatch_mode"] = str(given["prefix_mismatch_mode"]).lower()
    done = run.maintenance.remove_orphan_files(**given)
    return tuple((location,) for location in done.orphan_file_locations)


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
        "dry_run": "boolean",
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
