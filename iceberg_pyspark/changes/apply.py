"""Applies updates to table metadata.

Specification, "Table Metadata" and its parts, of which schemas, specs and sort orders are in
`apply_schemas.py`. Each update sees the result of the earlier ones. `changes.py` checks
whether the updates may be applied; `schema_changes.py`, `snapshot_changes.py` and others create
them. Catalogs that write metadata call `apply_updates`, which checks the whole at the end, and sets
its time and logs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from iceberg_pyspark.changes import apply_schemas
from iceberg_pyspark.changes import changes as ch
from iceberg_pyspark.changes.changes import SetSnapshotRef
from iceberg_pyspark.changes.compatibility import (
    check_encryption,
    check_may_change,
    check_partition_source,
    check_sort_order,
    set_location,
    with_schemes,
)
from iceberg_pyspark.changes.metadata_builder import (
    NO_ID,
    UNSET_VERSION,
    MetadataBuilder,
    empty_metadata,
)
from iceberg_pyspark.errors import CommitConflictError, InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.spec.json_fields import MAX_INT32, MAX_INT64
from iceberg_pyspark.spec.metadata_columns import ROW_LINEAGE_VERSION
from iceberg_pyspark.spec.relative_paths import RELATIVE_PATHS_VERSION, older_path
from iceberg_pyspark.spec.snapshots import MAIN, MetadataLogEntry, Snapshot, SnapshotLogEntry
from iceberg_pyspark.spec.statistics import PartitionStatisticsFile, StatisticsFile
from iceberg_pyspark.spec.table_metadata import WRITABLE_FORMAT_VERSIONS, TableMetadata
from iceberg_pyspark.spec.table_properties import (
    METADATA_PREVIOUS_VERSIONS_MAX,
    RESERVED_PROPERTIES,
    ROOT_MANIFESTS,
)


def finished_metadata(
    builder: MetadataBuilder, base: TableMetadata | None, previous_metadata_location: str | None
) -> TableMetadata:
    """Return the metadata after all updates; `base` is None if the updates create the table."""
    m = builder.metadata
    if base is None:
        _check_complete(m)
    elif base.table_uuid is None and m.table_uuid is None and m.format_version >= 2:
        raise InvalidRequestError("a table needs a UUID since format version 2: assign one")
    check_encryption(base, m.format_version, m.properties)
    _check_defaults(m, base)
    _check_numbers(m)
    added_at_ms = [
        s.timestamp_ms for s in m.snapshots if s.snapshot_id in builder.added_snapshot_ids
    ]
    # The time never goes backwards: readers refuse metadata that is older than its own logs.
    updated_ms = max(
        [
            builder.now_ms if not added_at_ms else max(added_at_ms),
            base.last_updated_ms if base else 0,
            *(e.timestamp_ms for e in m.snapshot_log[-1:]),
        ]
    )
    return replace(
        m,
        last_updated_ms=updated_ms,
        snapshot_log=_without_intermediate(builder),
        metadata_log=_metadata_log(m, base, previous_metadata_location),
    )


def _check_complete(m: TableMetadata) -> None:
    missing = [
        name
        for name, absent in (
            ("format version", m.format_version == UNSET_VERSION),
            ("UUID", m.table_uuid is None),
            ("location", not m.location),
            ("current schema", m.current_schema_id == NO_ID),
            ("default partition spec", m.default_spec_id == NO_ID),
            ("default sort order", m.default_sort_order_id == NO_ID),
        )
        if absent
    ]
    if missing:
        raise InvalidRequestError(f"a new table needs a {', a '.join(missing)}")


def _check_numbers(m: TableMetadata) -> None:
    """Refuse a number above the highest possible one, which no reader could load.

    Only damaged metadata comes near these limits.
    """
    for name, number, highest in (
        ("last-sequence-number", m.last_sequence_number, MAX_INT64),
        ("next-row-id", m.next_row_id, MAX_INT64),
        ("last-column-id", m.last_column_id, MAX_INT32),
        ("last-partition-id", m.last_partition_id, MAX_INT32),
        ("schema-id", max((s.schema_id for s in m.schemas), default=0), MAX_INT32),
        ("spec-id", max((s.spec_id for s in m.partition_specs), default=0), MAX_INT32),
        ("order-id", max((o.order_id for o in m.sort_orders), default=0), MAX_INT32),
    ):
        if number > highest:
            raise InvalidMetadataError(
                f"table {m.location}: {name} would be {number}, and {highest} is the highest there "
                "is; the table's metadata is damaged"
            )


def _check_defaults(m: TableMetadata, base: TableMetadata | None) -> None:
    """Check that schema, spec and sort order fit together, if this commit changed one of them."""
    if base is not None and (
        m.current_schema_id == base.current_schema_id
        and m.default_spec_id == base.default_spec_id
        and m.default_sort_order_id == base.default_sort_order_id
        and m.format_version == base.format_version
    ):
        return
    for f in m.default_spec.fields:
        check_partition_source(f, m.current_schema)
    check_sort_order(m.default_sort_order, m.current_schema)


def _without_intermediate(builder: MetadataBuilder) -> tuple[SnapshotLogEntry, ...]:
    """Return the snapshot log without snapshots that were current only within this commit."""
    m = builder.metadata
    if len(builder.added_snapshot_ids) < 2:
        return m.snapshot_log
    return tuple(
        e
        for e in m.snapshot_log
        if e.snapshot_id not in builder.added_snapshot_ids or e.snapshot_id == m.current_snapshot_id
    )


def _metadata_log(
    m: TableMetadata, base: TableMetadata | None, previous_location: str | None
) -> tuple[MetadataLogEntry, ...]:
    if base is None or previous_location is None:
        return m.metadata_log
    if m.format_version >= RELATIVE_PATHS_VERSION:
        previous_location = older_path(previous_location, m.location)
    entry = MetadataLogEntry(metadata_file=previous_location, timestamp_ms=base.last_updated_ms)
    keep = max(1, METADATA_PREVIOUS_VERSIONS_MAX.of(m.properties))
    return (*m.metadata_log, entry)[-keep:]


def apply_updates(
    metadata: TableMetadata | None,
    updates: Sequence[ch.TableUpdate],
    *,
    now_ms: int,
    previous_metadata_location: str | None,
) -> TableMetadata:
    """Return the metadata after the updates, or `metadata` itself when they change nothing.

    If `metadata` is None, the updates create a new table. `previous_metadata_location` is the file
    that `metadata` was read from; it becomes an entry of the metadata log. Raises
    `InvalidRequestError` for an update that can never be applied, and `CommitConflictError` for a
    snapshot that another commit has overtaken.
    """
    if metadata is not None:
        check_may_change(metadata)
    base = metadata if metadata is not None else empty_metadata(now_ms)
    builder = MetadataBuilder(metadata=base, now_ms=now_ms)
    for update in updates:
        _apply(builder, update)
    if builder.metadata is base and metadata is not None:
        return metadata
    return finished_metadata(builder, metadata, previous_metadata_location)


def _apply(builder: MetadataBuilder, update: ch.TableUpdate) -> None:
    match update:
        case ch.AssignUUID(uuid=uuid):
            _assign_uuid(builder, uuid)
        case ch.UpgradeFormatVersion(format_version=version):
            _upgrade(builder, version)
        case ch.AddSchema():
            apply_schemas.add_schema(builder, update)
        case ch.SetCurrentSchema(schema_id=schema_id):
            apply_schemas.set_current_schema(builder, schema_id)
        case ch.AddPartitionSpec(spec=spec):
            apply_schemas.add_spec(builder, spec)
        case ch.SetDefaultSpec(spec_id=spec_id):
            apply_schemas.set_default_spec(builder, spec_id)
        case ch.AddSortOrder(sort_order=order):
            apply_schemas.add_sort_order(builder, order)
        case ch.SetDefaultSortOrder(order_id=order_id):
            apply_schemas.set_default_sort_order(builder, order_id)
        case ch.RemoveSchemas(schema_ids=ids):
            apply_schemas.remove_schemas(builder, ids)
        case ch.RemovePartitionSpecs(spec_ids=ids):
            apply_schemas.remove_specs(builder, ids)
        case ch.AddEncryptionKey(key=key):
            keys = builder.metadata.encryption_keys
            if all(key["key-id"] != k["key-id"] for k in keys):
                builder.change(encryption_keys=(*keys, key))
        case ch.AddSnapshot(snapshot=snapshot):
            _add_snapshot(builder, snapshot)
        case ch.SetSnapshotRef():
            _set_snapshot_ref(builder, update)
        case ch.RemoveSnapshotRef(name=name):
            _remove_snapshot_ref(builder, name)
        case ch.RemoveSnapshots(snapshot_ids=ids):
            _remove_snapshots(builder, ids)
        case ch.SetStatistics(statistics=statistics):
            _set_statistics(builder, statistics)
        case ch.RemoveStatistics(snapshot_id=snapshot_id):
            _remove_statistics(builder, snapshot_id)
        case ch.SetPartitionStatistics(partition_statistics=statistics):
            _set_statistics(builder, statistics)
        case ch.RemovePartitionStatistics(snapshot_id=snapshot_id):
            _remove_partition_statistics(builder, snapshot_id)
        case ch.SetLocation(location=location):
            set_location(builder, location)
        case ch.SetProperties(updates=updates):
            settable = {k: v for k, v in updates.items() if k not in RESERVED_PROPERTIES}
            builder.change(properties={**builder.metadata.properties, **settable})
        case ch.RemoveProperties(removals=removals):
            properties = builder.metadata.properties
            builder.change(properties={k: v for k, v in properties.items() if k not in removals})
        case _:
            raise InvalidRequestError(f"unknown table update {type(update).__name__}")


def _assign_uuid(builder: MetadataBuilder, uuid: str) -> None:
    current = builder.metadata.table_uuid
    if current is not None and current.lower() != uuid.lower():
        raise CommitConflictError(
            f"the table now has UUID {current} and cannot get {uuid}; refresh and retry"
        )
    if current is None:
        builder.metadata = replace(builder.metadata, table_uuid=uuid)


def _upgrade(builder: MetadataBuilder, version: int) -> None:
    current = builder.metadata.format_version
    if version not in WRITABLE_FORMAT_VERSIONS:
        raise InvalidRequestError(
            f"cannot write format version {version}: 1 to 4 are written here; choose one of these"
        )
    if version < current:
        raise InvalidRequestError(
            f"cannot lower the format version from {current} to {version}; an upgrade cannot be "
            "undone"
        )
    if version == current:
        return
    if current < ROW_LINEAGE_VERSION:
        # Existing rows have no row ids; the first snapshot after the upgrade assigns ids to them.
        builder.change(next_row_id=0)
    builder.change(format_version=version)
    if version >= RELATIVE_PATHS_VERSION:
        builder.metadata = with_schemes(builder.metadata)
        builder.change(properties={**builder.metadata.properties, ROOT_MANIFESTS.name: "true"})


F = TypeVar("F", StatisticsFile, PartitionStatisticsFile)


def _add_snapshot(builder: MetadataBuilder, snapshot: Snapshot) -> None:
    """Add a snapshot; its sequence number must be above the table's last, its row ids unused."""
    m = builder.metadata
    if not (m.schemas and m.partition_specs and m.sort_orders):
        raise InvalidRequestError("a snapshot needs a schema, a partition spec and a sort order")
    if snapshot.snapshot_id in m.snapshot_by_id:
        raise InvalidRequestError(f"snapshot {snapshot.snapshot_id} is already in the table")
    if snapshot.schema_id is not None and snapshot.schema_id not in m.schema_by_id:
        raise InvalidRequestError(
            f"snapshot {snapshot.snapshot_id} refers to schema {snapshot.schema_id}, which the "
            "table does not have"
        )
    next_row_id = m.next_row_id
    if m.format_version >= 2:
        if snapshot.manifest_list is None and snapshot.root_manifest is None:
            raise InvalidRequestError("a snapshot needs a manifest list from format version 2 on")
        if snapshot.root_manifest is not None and m.format_version < RELATIVE_PATHS_VERSION:
            raise InvalidRequestError(
                f"snapshot {snapshot.snapshot_id} has a root manifest, which tables of format "
                f"version {m.format_version} do not have"
            )
        if snapshot.sequence_number <= m.last_sequence_number:
            raise CommitConflictError(
                f"snapshot {snapshot.snapshot_id} has sequence number {snapshot.sequence_number}, "
                f"the table is at {m.last_sequence_number}; refresh and retry"
            )
    if m.format_version >= 3:
        next_row_id = _next_row_id(m, snapshot)
    builder.added_snapshot_ids.add(snapshot.snapshot_id)
    builder.metadata = replace(
        m,
        snapshots=(*m.snapshots, snapshot),
        last_sequence_number=snapshot.sequence_number if m.format_version >= 2 else 0,
        last_updated_ms=max(m.last_updated_ms, snapshot.timestamp_ms),
        next_row_id=next_row_id,
    )


def _next_row_id(m: TableMetadata, snapshot: Snapshot) -> int:
    """Return the table's `next-row-id` after the snapshot (specification, "Row Lineage")."""
    if snapshot.first_row_id is None or snapshot.added_rows is None:
        raise InvalidRequestError(
            f"snapshot {snapshot.snapshot_id} needs first-row-id and added-rows since version 3"
        )
    if snapshot.added_rows < 0:
        raise InvalidRequestError(f"added-rows must not be negative: {snapshot.added_rows}")
    if snapshot.first_row_id < m.next_row_id:
        raise CommitConflictError(
            f"snapshot {snapshot.snapshot_id} assigns row ids from {snapshot.first_row_id}, "
            f"the table is at {m.next_row_id}; refresh and retry"
        )
    return snapshot.first_row_id + snapshot.added_rows


def _set_snapshot_ref(builder: MetadataBuilder, update: SetSnapshotRef) -> None:
    """Set a branch or tag; the branch `main` moves the current snapshot."""
    m, name, ref = builder.metadata, update.name, update.ref
    if m.refs.get(name) == ref:
        return
    if ref.snapshot_id not in m.snapshot_by_id:
        raise InvalidRequestError(
            f"cannot set {ref.type} '{name}' to snapshot {ref.snapshot_id}: it is not in the table"
        )
    if ref.type == "tag" and (
        ref.min_snapshots_to_keep is not None or ref.max_snapshot_age_ms is not None
    ):
        raise InvalidRequestError(
            f"tag '{name}' cannot have min-snapshots-to-keep or max-snapshot-age-ms; only branches "
            "can"
        )
    refs = {**m.refs, name: ref}
    if name != MAIN:
        builder.metadata = replace(m, refs=refs)
        return
    if ref.type != "branch":
        raise InvalidRequestError(f"'{MAIN}' must be a branch")
    log = m.snapshot_log
    if ref.snapshot_id != m.current_snapshot_id:
        is_new = ref.snapshot_id in builder.added_snapshot_ids
        at_ms = m.snapshot_by_id[ref.snapshot_id].timestamp_ms if is_new else builder.now_ms
        # The log is sorted by time: a writer whose clock is behind must not break time travel.
        at_ms = max([at_ms, *(e.timestamp_ms for e in log[-1:])])
        log = (*log, SnapshotLogEntry(snapshot_id=ref.snapshot_id, timestamp_ms=at_ms))
    builder.metadata = replace(m, refs=refs, current_snapshot_id=ref.snapshot_id, snapshot_log=log)


def _remove_snapshot_ref(builder: MetadataBuilder, name: str) -> None:
    """Remove a branch or tag."""
    m = builder.metadata
    if name not in m.refs:
        return
    refs = {n: r for n, r in m.refs.items() if n != name}
    current = None if name == MAIN else m.current_snapshot_id
    builder.metadata = replace(m, refs=refs, current_snapshot_id=current)


def _remove_snapshots(builder: MetadataBuilder, snapshot_ids: Collection[int]) -> None:
    """Remove snapshots with their references, statistics and history."""
    m = builder.metadata
    removed_ids = m.snapshot_by_id.keys() & set(snapshot_ids)
    if not removed_ids:
        return
    if m.current_snapshot_id in removed_ids:
        raise InvalidRequestError(
            f"cannot remove snapshot {m.current_snapshot_id}: branch '{MAIN}' points at it; let "
            "the branch point at another snapshot first"
        )
    log: list[SnapshotLogEntry] = []
    for entry in m.snapshot_log:
        if entry.snapshot_id in removed_ids:
            # A gap would let time travel return the wrong snapshot, so the history starts after the
            # gap.
            log.clear()
        else:
            log.append(entry)
    builder.metadata = replace(
        m,
        snapshots=tuple(s for s in m.snapshots if s.snapshot_id not in removed_ids),
        refs={n: r for n, r in m.refs.items() if r.snapshot_id not in removed_ids},
        snapshot_log=tuple(log),
        statistics=tuple(s for s in m.statistics if s.snapshot_id not in removed_ids),
        partition_statistics=tuple(
            s for s in m.partition_statistics if s.snapshot_id not in removed_ids
        ),
    )


def _set_statistics(
    builder: MetadataBuilder, file: StatisticsFile | PartitionStatisticsFile
) -> None:
    """Set the statistics file, or the partition statistics file, of a snapshot."""
    m = builder.metadata
    m.snapshot(file.snapshot_id)
    if isinstance(file, StatisticsFile):
        files = _of_other_snapshots(m.statistics, file.snapshot_id)
        builder.metadata = replace(m, statistics=(*files, file))
    else:
        others = _of_other_snapshots(m.partition_statistics, file.snapshot_id)
        builder.metadata = replace(m, partition_statistics=(*others, file))


def _remove_statistics(builder: MetadataBuilder, snapshot_id: int) -> None:
    """Remove the statistics file of a snapshot."""
    builder.change(statistics=_of_other_snapshots(builder.metadata.statistics, snapshot_id))


def _remove_partition_statistics(builder: MetadataBuilder, snapshot_id: int) -> None:
    """Remove the partition statistics file of a snapshot."""
    files = _of_other_snapshots(builder.metadata.partition_statistics, snapshot_id)
    builder.change(partition_statistics=files)


def _of_other_snapshots(files: Iterable[F], snapshot_id: int) -> tuple[F, ...]:
    return tuple(f for f in files if f.snapshot_id != snapshot_id)
