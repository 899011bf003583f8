"""Finds metadata tables by name: `files`, `snapshots`, `partitions` and Java's other tables.

`db.events.files` is such a name in Spark SQL and in the data source, and `/path/to/events#files`
for a table at a path. If a real table has this name, it takes precedence.

The module of a metadata table is imported when the table is read.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.hadoop.path_tables import path_identifier
from iceberg_pyspark.errors import IcebergError, InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.spec.manifests import ManifestContent
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.metadata_tables import snapshots_table
from iceberg_pyspark.table.metadata_tables.rows import (
    KnownRows,
    MetadataTable,
    MetadataTableReader,
    arrow_of_rows,
)
from iceberg_pyspark.table.reading.snapshot_selection import (
    SnapshotSelector,
    select_snapshot,
    snapshots_between,
)

if TYPE_CHECKING:
    from iceberg_pyspark.expressions.predicates import Predicate
    from iceberg_pyspark.table.metadata_tables.changes_table import ChangeForm, ChangePlan
    from iceberg_pyspark.table.metadata_tables.entry_values import WrittenTypes

_OF_ONE_SNAPSHOT = (
    "entries",
    "files",
    "data_files",
    "delete_files",
    "manifests",
    "partitions",
    "position_deletes",
)
_OF_ALL_SNAPSHOTS = (
    "all_entries",
    "all_files",
    "all_data_files",
    "all_delete_files",
    "all_manifests",
    "history",
    "metadata_log_entries",
    "refs",
    "snapshots",
)
CHANGES = "changes"
METADATA_TABLES = (*_OF_ONE_SNAPSHOT, *_OF_ALL_SNAPSHOTS, CHANGES)
"""The names of metadata tables, in lower case; a name is accepted in any case."""

_CONTENT_OF_FILES = {
    "files": None,
    "data_files": ManifestContent.DATA,
    "delete_files": ManifestContent.DELETES,
}


def table_of_metadata_table(identifier: TableIdentifier) -> tuple[TableIdentifier, str] | None:
    """Return the table and the metadata table that a name denotes, or None for other names.

    Call this only if no table has the name.
    """
    if not identifier.namespace:
        path, mark, name = identifier.name.rpartition("#")
        metadata_name = _metadata_table_name(name)
        return (path_identifier(path), metadata_name) if mark and path and metadata_name else None
    metadata_name = _metadata_table_name(identifier.name)
    if metadata_name is None or len(identifier.namespace) < 2:
        return None
    *levels, table = identifier.namespace
    return TableIdentifier(namespace=tuple(levels), name=table), metadata_name


def _metadata_table_name(name: str) -> str | None:
    return name.lower() if name.lower() in METADATA_TABLES else None


def _refusal_of(selector: SnapshotSelector | None) -> type[IcebergError]:
    """Return the class of the refusal of a selector, which is Java's class too."""
    is_range = selector is not None and selector.is_incremental
    return UnsupportedFeatureError if is_range else InvalidRequestError


def metadata_table(
    loaded_table: LoadedTable, io: FileIO, name: str, *, selector: SnapshotSelector | None = None
) -> MetadataTable:
    """Return a metadata table; `selector` chooses the snapshot for those that show one snapshot."""
    metadata_name = _metadata_table_name(name)
    if metadata_name is None:
        raise InvalidRequestError(
            f"table {loaded_table.identifier} has no metadata table '{name}'; there are: "
            f"{', '.join(sorted(METADATA_TABLES))}"
        )
    full_name = f"{loaded_table.identifier}.{metadata_name}"
    metadata = loaded_table.metadata
    if metadata_name in _OF_ALL_SNAPSHOTS:
        if selector not in (None, SnapshotSelector()):
            raise _refusal_of(selector)(
                f"{full_name} shows the whole table and takes no snapshot, branch, tag or time; "
                f"leave it out, or read one of {', '.join(_OF_ONE_SNAPSHOT)}"
            )
        snapshots = tuple(metadata.snapshots)
    elif metadata_name == CHANGES:
        snapshots = changing_snapshots(loaded_table, selector)
    else:
        if selector is not None and selector.is_incremental:
            raise _refusal_of(selector)(
                f"{full_name} shows one snapshot, not what was appended between two; leave the "
                "start and the end out, or read the table itself"
            )
        snapshot = select_snapshot(metadata, selector or SnapshotSelector()).snapshot
        snapshots = () if snapshot is None else (snapshot,)
    schema, reader, plan = _parts(metadata_name, loaded_table, io, snapshots)
    hidden_schema = Schema(fields=())
    if metadata_name == CHANGES:
        from iceberg_pyspark.table.metadata_tables.changes_table import hidden_of_changes

        hidden_schema = hidden_of_changes(metadata)
    return MetadataTable(
        name=full_name, schema=schema, reader=reader, io=io, plan=plan, hidden=hidden_schema
    )


def plan_of_changes(
    loaded_table: LoadedTable,
    io: FileIO,
    *,
    selector: SnapshotSelector | None = None,
    predicate: Predicate,
    of_changes: Predicate,
    form: ChangeForm,
) -> ChangePlan:
    """Return the plan of the metadata table `changes`; see `ChangePlan` for the predicates."""
    from iceberg_pyspark.table.metadata_tables.changes_table import ChangePlan

    return ChangePlan(
        io,
        loaded_table.metadata,
        str(loaded_table.identifier),
        changing_snapshots(loaded_table, selector),
        predicate=predicate,
        of_changes=of_changes,
        form=form,
    )


def changing_snapshots(
    loaded_table: LoadedTable, selector: SnapshotSelector | None
) -> tuple[Snapshot, ...]:
    """Return the snapshots whose changes are read, the newest first.

    Raise `UnsupportedFeatureError` if only the catalog's server may plan scans of the table.
    """
    if loaded_table.plan_scan is not None:
        raise UnsupportedFeatureError(
            f"{loaded_table.identifier}.{CHANGES}: the catalog's server plans scans of the table, "
            "and may leave out rows of its files; set scan-planning-mode to client on the server "
            "or for the catalog to read changes"
        )
    return snapshots_between(loaded_table.metadata, selector or SnapshotSelector())


_Parts: TypeAlias = tuple[Schema, MetadataTableReader, Callable[[], Sequence[Any]]]


def _parts(
    name: str, loaded_table: LoadedTable, io: FileIO, snapshots: Sequence[Snapshot]
) -> _Parts:
    metadata = loaded_table.metadata
    match name.removeprefix("all_"):
        case "files" | "data_files" | "delete_files" | "entries" as kind:
            from iceberg_pyspark.table.metadata_tables.entry_values import WrittenTypes
            from iceberg_pyspark.table.metadata_tables.files_table import (
                EntryRows,
                entries_schema,
                files_schema,
                plan_manifests,
            )

            as_entries = kind == "entries"
            schema = entries_schema(metadata) if as_entries else files_schema(metadata)
            entry_rows = EntryRows(
                schema=schema,
                table_schema=metadata.current_schema,
                written_types=WrittenTypes.of(metadata),
                as_entries=as_entries,
            )
            return (
                schema,
                entry_rows,
                partial(plan_manifests, io, snapshots, _CONTENT_OF_FILES.get(kind)),
            )
        case "manifests":
            from iceberg_pyspark.table.metadata_tables.entry_values import WrittenTypes
            from iceberg_pyspark.table.metadata_tables.manifests_table import (
                ManifestRows,
                manifests_schema,
            )

            schema = manifests_schema(of_all_snapshots=name.startswith("all_"))
            written_types = WrittenTypes.of(metadata)
            manifest_rows = ManifestRows(
                schema=schema,
                written_types=written_types,
                schema_of=_schemas_of(metadata, written_types),
            )
            return schema, manifest_rows, partial(list, snapshots)
        case "partitions":
            from iceberg_pyspark.table.metadata_tables.entry_values import WrittenTypes
            from iceberg_pyspark.table.metadata_tables.partitions import (
                PartitionRows,
                partitions_schema,
            )

            schema = partitions_schema(metadata)
            commit_times_ms = {s.snapshot_id: s.timestamp_ms for s in metadata.snapshots}
            partition_rows = PartitionRows(
                schema=schema,
                written_types=WrittenTypes.of(metadata),
                committed_at_ms=commit_times_ms,
            )
            return schema, partition_rows, partial(list, snapshots)
        case "position_deletes":
            from iceberg_pyspark.table.metadata_tables.position_deletes_table import (
                PositionDeleteRows,
                plan_position_deletes,
                position_deletes_schema,
            )

            delete_rows = PositionDeleteRows(table=str(loaded_table.identifier))
            return (
                position_deletes_schema(metadata),
                delete_rows,
                partial(plan_position_deletes, io, metadata, snapshots),
            )
        case "changes":
            from iceberg_pyspark.table.metadata_tables.changes_table import (
                ChangePlan,
                ChangeRows,
                changes_schema,
            )
            from iceberg_pyspark.table.reading.table_scan import scan_table

            table = str(loaded_table.identifier)
            schema = changes_schema(metadata)
            change_rows = ChangeRows(context=scan_table(table, metadata, io).context)

            def plan_changes() -> Sequence[Any]:
                return ChangePlan(io, metadata, table, snapshots).change_tasks()

            return schema, change_rows, plan_changes
        case "snapshots":
            return _known_rows(snapshots_table.SNAPSHOTS, snapshots_table.snapshot_rows(metadata))
        case "history":
            return _known_rows(snapshots_table.HISTORY, snapshots_table.history_rows(metadata))
        case "refs":
            return _known_rows(snapshots_table.REFS, snapshots_table.ref_rows(metadata))
        case _:
            log_rows = snapshots_table.metadata_log_rows(loaded_table)
            return _known_rows(snapshots_table.METADATA_LOG_ENTRIES, log_rows)


def _schemas_of(metadata: TableMetadata, written_types: WrittenTypes) -> Mapping[int, Schema]:
    if not written_types.is_retyped:
        return {}
    return {
        s.snapshot_id: metadata.schema_by_id[s.schema_id]
        for s in metadata.snapshots
        if s.schema_id is not None and s.schema_id in metadata.schema_by_id
    }


def _known_rows(schema: Schema, rows: Iterable[Mapping[str, Any]]) -> _Parts:
    table = arrow_of_rows(schema, rows)
    return schema, KnownRows(schema=schema), lambda: [table]
