"""The procedures that rewrite data files, delete files and manifests.

The procedure that writes the metadata for a copy of a table.
"""

from __future__ import annotations

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.procedures.definition import (
    DRY_RUN,
    Column,
    Procedure,
    ProcedureRun,
    Row,
)
from iceberg_pyspark.spark.write.executors import Executors, has_executors
from iceberg_pyspark.spec.property_types import BoolProperty
from iceberg_pyspark.table.maintenance.rewrites.rewrite_deletes import RewrittenDeleteFiles

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


USE_EXECUTORS = BoolProperty("use-executors", False)
"""Whether executors write the files; by default, unless the master is `local` or `local[...]`."""

_DATA_FILE_COUNTS = {
    "rewritten_data_files_count": Column(type="integer"),
    "added_data_files_count": Column(type="integer"),
    "rewritten_bytes_count": Column(type="long"),
    "failed_data_files_count": Column(type="integer"),
    "removed_delete_files_count": Column(type="integer"),
}

_DELETE_FILE_COUNTS = {
    "rewritten_delete_files_count": Column(type="integer"),
    "added_delete_files_count": Column(type="integer"),
    "rewritten_bytes_count": Column(type="long"),
    "added_bytes_count": Column(type="long"),
}

_MANIFEST_COUNTS = ("rewritten_manifests_count", "added_manifests_count")


def _rewrite_data_files(run: ProcedureRun) -> tuple[Row, ...]:
    arguments = dict(run.given_arguments)
    options = dict(arguments.pop("options", {}))
    context = run.spark.sparkContext
    on_executors = options.pop(USE_EXECUTORS.name, None)
    if on_executors is None:
        on_executors = "true" if has_executors(context) else "false"
    if (problem := USE_EXECUTORS.problem(on_executors)) is not None:
        raise InvalidRequestError(
            f"rewrite_data_files: {USE_EXECUTORS.name}={on_executors} {problem}"
        )
    runner = Executors(context) if USE_EXECUTORS.of({USE_EXECUTORS.name: on_executors}) else None
    result = run.maintenance.rewrite_data_files(**arguments, options=options, runner=runner)
    run.show_groups(result.groups)
    return (tuple(getattr(result, name) for name in _DATA_FILE_COUNTS),)


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
        DRY_RUN: "boolean",
    },
    columns=_DATA_FILE_COUNTS,
    run=_rewrite_data_files,
)


def _row_of_deletes(result: RewrittenDeleteFiles) -> tuple[Row, ...]:
    return (tuple(getattr(result, name) for name in _DELETE_FILE_COUNTS),)


def _rewrite_position_delete_files(run: ProcedureRun) -> tuple[Row, ...]:
    return _row_of_deletes(run.maintenance.rewrite_position_delete_files(**run.given_arguments))


def _rewrite_equality_deletes(run: ProcedureRun) -> tuple[Row, ...]:
    return _row_of_deletes(run.maintenance.rewrite_equality_deletes(**run.given_arguments))


REWRITE_POSITION_DELETE_FILES = Procedure(
    name="rewrite_position_delete_files",
    description="Writes position delete files as fewer, or as deletion vectors",
    required={"table": "string"},
    optional={"options": "map<string,string>", "where": "string", DRY_RUN: "boolean"},
    columns=_DELETE_FILE_COUNTS,
    run=_rewrite_position_delete_files,
)

REWRITE_EQUALITY_DELETES = Procedure(
    name="rewrite_equality_deletes",
    description="Deletes by position what equality deletes delete, and removes them",
    required={"table": "string"},
    optional={DRY_RUN: "boolean"},
    columns=_DELETE_FILE_COUNTS,
    run=_rewrite_equality_deletes,
)
"""A procedure that the JVM connector does not have."""


def _rewrite_manifests(run: ProcedureRun) -> tuple[Row, ...]:
    result = run.maintenance.rewrite_manifests(**run.given_arguments)
    return (tuple(getattr(result, name) for name in _MANIFEST_COUNTS),)


REWRITE_MANIFESTS = Procedure(
    name="rewrite_manifests",
    description="Writes manifests anew, each with the files of few partitions",
    required={"table": "string"},
    optional={
        "use_caching": "boolean",
        "spec_id": "int",
        "sort_by": "array<string>",
        DRY_RUN: "boolean",
    },
    columns=dict.fromkeys(_MANIFEST_COUNTS, Column(type="integer")),
    run=_rewrite_manifests,
)
