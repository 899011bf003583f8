"""Declares each procedure once, for CALL, Python, `iceberg-py maintain` and `jobs/maintain.py`.

CALL and the command lines are made of these declarations; methods in Python have typed signatures
of their own, which tests compare with them. Only modules that import fast are needed here, because
`iceberg-py --help` shows the texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from iceberg_pyspark.table.maintenance.procedure_parts import (
    DRY_RUN,
    Column,
    Interface,
    Parameter,
    Procedure,
)

PrefixMismatchMode: TypeAlias = Literal["error", "ignore", "delete"]


def _required(name: str, type_: str, help_: str, interface: Interface = Interface.ALL) -> Parameter:
    return Parameter(name, type_, help_, is_required=True, interface=interface)


def _without_effect(name: str, type_: str, reason: str) -> Parameter:
    return Parameter(
        name, type_, f"Without effect: {reason}.", interface=Interface.CALL_WITHOUT_EFFECT
    )


_INT = Column("integer")
_LONG = Column("long")
_LONG_OR_NULL = Column("long", is_nullable=True)
_TEXT = Column("string")
_TEXT_OR_NULL = Column("string", is_nullable=True)

_TABLE = _required(
    "table", "string", "The table's name, such as db.table; without Spark also its path."
)
_DRY_RUN = Parameter(
    DRY_RUN,
    "boolean",
    "Count what the procedure would do, without doing it.",
    default=False,
    option="plan",
)
_THREADS = Parameter(
    "max_concurrent_deletes", "int", "Delete files with this number of threads. Default: 16."
)
_CHOSEN_SNAPSHOT = Parameter(
    "snapshot_id", "bigint", "Use this snapshot. Default: the current snapshot."
)
_WHERE = Parameter(
    "where", "string", "Rewrite only files that may contain rows that match this condition."
)
_OPTIONS = Parameter(
    "options", "map<string,string>", "Set options, such as min-input-files=2.", option="option"
)
_PARALLELISM = _without_effect("parallelism", "int", "the number of threads is chosen")
_STREAM_RESULTS = _without_effect(
    "stream_results", "boolean", "files are never collected in memory"
)
_PROPERTIES = Parameter(
    "properties", "map<string,string>", "Set properties of the new table.", option="table-property"
)
_IGNORE_MISSING_FILES = Parameter(
    "ignore_missing_files", "boolean", "Skip folders that do not exist.", default=False
)

EXPIRE_SNAPSHOTS = Procedure(
    name="expire_snapshots",
    help="Remove old snapshots, branches and tags, and the files that only they need.",
    parameters=(
        _TABLE,
        Parameter(
            "older_than",
            "timestamp",
            "Expire snapshots before this time, such as 2026-01-31T12:00:00+01:00.",
        ),
        Parameter("retain_last", "int", "Keep at least this number of snapshots of each branch."),
        _THREADS,
        _STREAM_RESULTS,
        Parameter(
            "snapshot_ids",
            "array<bigint>",
            "Expire these snapshots regardless of their age.",
            option="snapshot-id",
        ),
        Parameter(
            "clean_expired_metadata",
            "boolean",
            "Also remove unused schemas and partition specs.",
            default=False,
        ),
        _DRY_RUN,
    ),
    columns={
        "deleted_data_files_count": _LONG_OR_NULL,
        "deleted_position_delete_files_count": _LONG_OR_NULL,
        "deleted_equality_delete_files_count": _LONG_OR_NULL,
        "deleted_manifest_files_count": _LONG_OR_NULL,
        "deleted_manifest_lists_count": _LONG_OR_NULL,
        "deleted_statistics_files_count": _LONG_OR_NULL,
    },
)

REMOVE_ORPHAN_FILES = Procedure(
    name="remove_orphan_files",
    help="Delete old files in the table's folder that the table does not need.",
    parameters=(
        _TABLE,
        Parameter(
            "older_than",
            "timestamp",
            "Delete only files last changed before this time. Default: three days ago.",
        ),
        Parameter("location", "string", "Search only this folder of the table's folder."),
        _DRY_RUN,
        _THREADS,
        Parameter(
            "file_list_view",
            "string",
            "Use the list of all files in this view instead of a listing; its columns are "
            "file_path STRING and last_modified TIMESTAMP.",
            interface=Interface.SPARK,
        ),
        Parameter(
            "equal_schemes",
            "map<string,string>",
            "Treat these schemes as one, such as s3a,s3n=s3.",
            option="equal-scheme",
            metavar="NAMES=NAME",
        ),
        Parameter(
            "equal_authorities",
            "map<string,string>",
            "Treat these buckets or hosts as one, such as b1,b2=b.",
            option="equal-authority",
            metavar="NAMES=NAME",
        ),
        Parameter(
            "prefix_mismatch_mode",
            "string",
            "Choose what happens if a file differs from a needed file only in its scheme, bucket "
            "or host: stop with an error, ignore it (keep the file), or delete it.",
            default="error",
            choices=get_args(PrefixMismatchMode),
        ),
        _without_effect("prefix_listing", "boolean", "there is one way to list files"),
        _STREAM_RESULTS,
        Parameter(
            "inventory",
            "string",
            "Use this list of all files in the folder instead of a listing: a Parquet or CSV file "
            "with the columns file_path and last_modified.",
            metavar="FILE",
            interface=Interface.NO_CALL,
        ),
    ),
    columns={"orphan_file_location": _TEXT},
)

REWRITE_DATA_FILES = Procedure(
    name="rewrite_data_files",
    help="Rewrite small files, and files with many deleted rows; the rows stay the same.",
    parameters=(
        _TABLE,
        Parameter("strategy", "string", "Rewrite files with this strategy: binpack or sort."),
        Parameter(
            "sort_order",
            "string",
            "Sort rows in this order, such as 'day, id DESC', 'zorder(a, b)' or 'hilbert(a, b)'.",
        ),
        _OPTIONS,
        _WHERE,
        Parameter("branch", "string", "Rewrite the files of this branch.", default="main"),
        _DRY_RUN,
    ),
    columns={
        "rewritten_data_files_count": _INT,
        "added_data_files_count": _INT,
        "rewritten_bytes_count": _LONG,
        "failed_data_files_count": _INT,
        "removed_delete_files_count": _INT,
    },
)

_DELETE_FILE_COUNTS = {
    "rewritten_delete_files_count": _INT,
    "added_delete_files_count": _INT,
    "rewritten_bytes_count": _LONG,
    "added_bytes_count": _LONG,
}

REWRITE_POSITION_DELETE_FILES = Procedure(
    name="rewrite_position_delete_files",
    help="Rewrite position delete files, from version 3 on as deletion vectors.",
    parameters=(_TABLE, _OPTIONS, _WHERE, _DRY_RUN),
    columns=_DELETE_FILE_COUNTS,
)

REWRITE_EQUALITY_DELETES = Procedure(
    name="rewrite_equality_deletes",
    help="Replace equality deletes by position deletes of the same rows.",
    parameters=(_TABLE, _DRY_RUN),
    columns=_DELETE_FILE_COUNTS,
)
"""A procedure that the JVM connector does not have."""

REWRITE_MANIFESTS = Procedure(
    name="rewrite_manifests",
    help="Rewrite manifests, so that each has the files of few partitions.",
    parameters=(
        _TABLE,
        _without_effect("use_caching", "boolean", "entries are kept on disk"),
        Parameter(
            "spec_id",
            "int",
            "Rewrite manifests of this partition spec. Default: the table's current spec.",
        ),
        Parameter(
            "sort_by",
            "array<string>",
            "Sort entries by these partition fields. Default: all fields, in their order.",
        ),
        _DRY_RUN,
    ),
    columns={"rewritten_manifests_count": _INT, "added_manifests_count": _INT},
)

REWRITE_TABLE_PATH = Procedure(
    name="rewrite_table_path",
    help="Write metadata for a copy of the table elsewhere, and a list of files to copy.",
    parameters=(
        _TABLE,
        _required("source_prefix", "string", "The prefix of the table's paths."),
        _required("target_prefix", "string", "The prefix of the same paths in the copy."),
        Parameter(
            "start_version", "string", "The name of a metadata file whose files are already copied."
        ),
        Parameter(
            "end_version",
            "string",
            "The name of the last metadata file to copy. Default: the current one.",
        ),
        Parameter(
            "staging_location",
            "string",
            "Write new files to this folder. Default: a folder beside the table's metadata.",
        ),
        Parameter(
            "create_file_list", "boolean", "Also write the list of files to copy.", default=True
        ),
        _DRY_RUN,
    ),
    columns={
        "latest_version": _TEXT_OR_NULL,
        "file_list_location": _TEXT_OR_NULL,
        "rewritten_manifest_file_paths_count": Column("integer", is_nullable=True),
        "rewritten_delete_file_paths_count": Column("integer", is_nullable=True),
    },
)

COMPUTE_TABLE_STATS = Procedure(
    name="compute_table_stats",
    help="Count the distinct values of columns, which helps to plan joins.",
    parameters=(
        _TABLE,
        _CHOSEN_SNAPSHOT,
        Parameter(
            "columns",
            "array<string>",
            "Count the values of these columns. Default: all columns.",
            option="column",
        ),
        _DRY_RUN,
    ),
    columns={"statistics_file": _TEXT_OR_NULL},
)

COMPUTE_PARTITION_STATS = Procedure(
    name="compute_partition_stats",
    help="Count rows, files and deletes of each partition.",
    parameters=(_TABLE, _CHOSEN_SNAPSHOT, _DRY_RUN),
    columns={"partition_statistics_file": _TEXT_OR_NULL},
)

ADD_FILES = Procedure(
    name="add_files",
    help="Add existing files to the table, without copying them.",
    parameters=(
        _TABLE,
        _required(
            "source",
            "string",
            "A folder with files, or one file; in the job also a table of Spark's own catalog.",
            Interface.NO_CALL,
        ),
        _required(
            "source_table",
            "string",
            "A table of Spark's own catalog, or the files of a folder: `parquet`.`/folder`.",
            Interface.CALL,
        ),
        Parameter(
            "partition_filter",
            "map<string,string>",
            "Add only files of these partition values.",
            metavar="COLUMN=VALUE",
        ),
        _without_effect(
            "check_duplicate_files", "boolean", "files that the table has are always refused"
        ),
        _PARALLELISM,
        Parameter(
            "file_format",
            "string",
            "The format of the files.",
            default="parquet",
            choices=("parquet", "avro", "orc"),
            interface=Interface.NO_CALL,
        ),
        _DRY_RUN,
    ),
    columns={"added_files_count": _LONG, "changed_partition_count": _LONG_OR_NULL},
    changes_rows=True,
)

MAINTENANCE = (
    EXPIRE_SNAPSHOTS,
    REMOVE_ORPHAN_FILES,
    REWRITE_DATA_FILES,
    REWRITE_MANIFESTS,
    REWRITE_POSITION_DELETE_FILES,
    REWRITE_EQUALITY_DELETES,
    REWRITE_TABLE_PATH,
    ADD_FILES,
    COMPUTE_TABLE_STATS,
    COMPUTE_PARTITION_STATS,
)
"""The procedures of `iceberg-py maintain`: methods of `table.maintenance()`, and `add_files`."""

REGISTER_TABLE = Procedure(
    name="register_table",
    help="Register an existing metadata file as a table.",
    parameters=(
        _TABLE,
        _required("metadata_file", "string", "The table's newest metadata file."),
        _DRY_RUN,
    ),
    columns={
        "current_snapshot_id": _LONG_OR_NULL,
        "total_records_count": _LONG_OR_NULL,
        "total_data_files_count": _LONG_OR_NULL,
    },
)

SNAPSHOT = Procedure(
    name="snapshot",
    help="Create a table with the files of one of Spark's own tables, which does not change.",
    parameters=(
        _required("source_table", "string", "A table of Spark's own catalog."),
        _TABLE,
        Parameter("location", "string", "Store the table here, outside of the source's folder."),
        _PROPERTIES,
        _PARALLELISM,
        _IGNORE_MISSING_FILES,
        _DRY_RUN,
    ),
    columns={"imported_files_count": _LONG},
)

MIGRATE = Procedure(
    name="migrate",
    help="Replace one of Spark's own tables by an Iceberg table with the same files.",
    parameters=(
        _TABLE,
        _PROPERTIES,
        Parameter(
            "drop_backup",
            "boolean",
            "Remove the source from Spark's catalog; its files stay.",
            default=False,
        ),
        Parameter(
            "backup_table_name",
            "string",
            "Rename the source to this name. Default: its name with _BACKUP_ at the end.",
        ),
        _PARALLELISM,
        _IGNORE_MISSING_FILES,
        _DRY_RUN,
    ),
    columns={"migrated_files_count": _LONG},
)

_SNAPSHOT_ID = _required("snapshot_id", "bigint", "The id of the snapshot.")
_FROM_AND_TO = {"previous_snapshot_id": _LONG, "current_snapshot_id": _LONG}
_PICKED = {"source_snapshot_id": _LONG, "current_snapshot_id": _LONG}

ROLLBACK_TO_SNAPSHOT = Procedure(
    name="rollback_to_snapshot",
    help="Point main back at one of its ancestors.",
    parameters=(_TABLE, _SNAPSHOT_ID),
    columns=_FROM_AND_TO,
    changes_rows=True,
)

ROLLBACK_TO_TIMESTAMP = Procedure(
    name="rollback_to_timestamp",
    help="Point main back at its newest ancestor before a time.",
    parameters=(
        _TABLE,
        _required("timestamp", "timestamp", "The time, such as 2026-01-31T12:00:00+01:00."),
    ),
    columns=_FROM_AND_TO,
    changes_rows=True,
)

SET_CURRENT_SNAPSHOT = Procedure(
    name="set_current_snapshot",
    help="Point main at any snapshot of the table.",
    parameters=(
        _TABLE,
        Parameter("snapshot_id", "bigint", "The id of the snapshot, or give a ref."),
        Parameter("ref", "string", "A branch or tag that points at the snapshot."),
    ),
    columns={"previous_snapshot_id": _LONG_OR_NULL, "current_snapshot_id": _LONG},
    changes_rows=True,
)

CHERRYPICK_SNAPSHOT = Procedure(
    name="cherrypick_snapshot",
    help="Apply the changes of a snapshot to main.",
    parameters=(_TABLE, _SNAPSHOT_ID),
    columns=_PICKED,
    changes_rows=True,
)

PUBLISH_CHANGES = Procedure(
    name="publish_changes",
    help="Apply the changes of the snapshot that was staged with a wap.id to main.",
    parameters=(_TABLE, _required("wap_id", "string", "The wap.id of the snapshot.")),
    columns=_PICKED,
    changes_rows=True,
)

FAST_FORWARD = Procedure(
    name="fast_forward",
    help="Move a branch forward to the snapshot of another branch or tag.",
    parameters=(
        _TABLE,
        _required("branch", "string", "The branch to move."),
        _required("to", "string", "The other branch or tag."),
    ),
    columns={"branch_updated": _TEXT, "previous_ref": _LONG_OR_NULL, "updated_ref": _LONG},
    changes_rows=True,
)

ANCESTORS_OF = Procedure(
    name="ancestors_of",
    help="List a snapshot and its ancestors, newest first.",
    parameters=(_TABLE, _CHOSEN_SNAPSHOT),
    columns={"snapshot_id": _LONG_OR_NULL, "timestamp": _LONG_OR_NULL},
)

CREATE_CHANGELOG_VIEW = Procedure(
    name="create_changelog_view",
    help="Create a temporary view of how rows changed between snapshots.",
    parameters=(
        _TABLE,
        Parameter(
            "changelog_view",
            "string",
            "The name of the view. Default: the table's name with _changes at the end.",
        ),
        Parameter(
            "options",
            "map<string,string>",
            "Read options that select snapshots, such as start-snapshot-id, or a branch.",
        ),
        Parameter(
            "compute_updates",
            "boolean",
            "Combine a delete and an insert of one row to an update. Default: if identifier "
            "columns are given.",
        ),
        Parameter(
            "identifier_columns",
            "array<string>",
            "Match rows by these columns. Default: the schema's identifier fields, or row ids.",
        ),
        Parameter(
            "net_changes", "boolean", "Leave out changes that later changes undo.", default=False
        ),
    ),
    columns={"changelog_view": _TEXT},
)

PROCEDURES: Mapping[str, Procedure] = {
    procedure.name: procedure
    for procedure in sorted(
        (
            *MAINTENANCE,
            REGISTER_TABLE,
            SNAPSHOT,
            MIGRATE,
            ROLLBACK_TO_SNAPSHOT,
            ROLLBACK_TO_TIMESTAMP,
            SET_CURRENT_SNAPSHOT,
            CHERRYPICK_SNAPSHOT,
            PUBLISH_CHANGES,
            FAST_FORWARD,
            ANCESTORS_OF,
            CREATE_CHANGELOG_VIEW,
        ),
        key=lambda procedure: procedure.name,
    )
}
"""All procedures by name; CALL has them all."""
