"""Apply updates to table metadata: the one place where a change becomes the next metadata.

Specification, "Table Metadata" and its parts. Every update sees what the ones before it did.
Whether the changes may be applied to this metadata at all is `requirements.py`; which changes an
operation needs is decided by its own module (`schema_changes.py`, `snapshot_changes.py`, ...).
Catalogs that own their metadata call `apply_updates`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from iceberg_pyspark.commits.compatibility import (
    check_partition_source,
    check_schema,
    check_sort_order,
    check_spec,
)
from iceberg_pyspark.commits.updates import (
    LAST_ADDED,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUUID,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    TableUpdate,
    UpgradeFormatVersion,
)
from iceberg_pyspark.errors import (
    CommitConflictError,
    InvalidMetadataError,
    InvalidRequestError,
)
from iceberg_pyspark.spec.json_fields import MAX_INT32, MAX_INT64
from iceberg_pyspark.spec.properties import METADATA_PREVIOUS_VERSIONS_MAX, RESERVED_PROPERTIES
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import MAIN, MetadataLogEntry, Snapshot, SnapshotLogEntry
from iceberg_pyspark.spec.sorting import UNSORTED, SortOrder
from iceberg_pyspark.spec.table_metadata import SUPPORTED_FORMAT_VERSIONS, TableMetadata

NO_ID = -1
_UNSET_VERSION = 0


@dataclass(slots=True)
class _Commit:
    """The metadata in the making, and what this commit has added so far."""

    metadata: TableMetadata
    now_ms: int
    last_added_schema_id: int | None = None
    last_added_spec_id: int | None = None
    last_added_order_id: int | None = None
    added_snapshot_ids: set[int] = field(default_factory=set)


def apply_updates(
    metadata: TableMetadata | None,
    updates: Sequence[TableUpdate],
    *,
    now_ms: int,
    previous_metadata_location: str | None,
) -> TableMetadata:
    """The metadata after the updates; the very object given when they change nothing.

    `metadata` None creates a table from its updates alone. `previous_metadata_location` is where
    the given metadata was read from and becomes an entry of the metadata log. What can never be
    applied is an `InvalidRequestError`; a snapshot overtaken by another commit is a
    `CommitConflictError`.
    """
    base = metadata if metadata is not None else _empty_metadata(now_ms)
    commit = _Commit(metadata=base, now_ms=now_ms)
    for update in updates:
        _apply(commit, update)
    if commit.metadata is base and metadata is not None:
        return metadata
    return _finish(commit, metadata, previous_metadata_location)


def _empty_metadata(now_ms: int) -> TableMetadata:
    return TableMetadata(
        format_version=_UNSET_VERSION,
        table_uuid=None,
        location="",
        last_updated_ms=now_ms,
        last_column_id=0,
        schemas=(),
        current_schema_id=NO_ID,
        partition_specs=(),
        default_spec_id=NO_ID,
        last_partition_id=999,
        sort_orders=(),
        default_sort_order_id=NO_ID,
    )


def _apply(c: _Commit, update: TableUpdate) -> None:
    m = c.metadata
    match update:
        case AssignUUID(uuid=uuid):
            _assign_uuid(c, uuid)
        case UpgradeFormatVersion(format_version=version):
            _upgrade(c, version)
        case AddSchema():
            _add_schema(c, update)
        case SetCurrentSchema(schema_id=schema_id):
            wanted = _last_added(schema_id, c.last_added_schema_id, "schema")
            if wanted not in m.schema_by_id:
                raise InvalidRequestError(f"cannot make schema {wanted} current: it is not there")
            if wanted != m.current_schema_id:
                c.metadata = replace(m, current_schema_id=wanted)
        case AddPartitionSpec():
            _add_spec(c, update)
        case SetDefaultSpec(spec_id=spec_id):
            wanted = _last_added(spec_id, c.last_added_spec_id, "partition spec")
            if wanted not in m.spec_by_id:
                raise InvalidRequestError(f"cannot make spec {wanted} the default: it is not there")
            if wanted != m.default_spec_id:
                c.metadata = replace(m, default_spec_id=wanted)
        case AddSortOrder(sort_order=order):
            _add_sort_order(c, order)
        case SetDefaultSortOrder(order_id=order_id):
            wanted = _last_added(order_id, c.last_added_order_id, "sort order")
            if wanted not in m.sort_order_by_id:
                raise InvalidRequestError(
                    f"cannot make sort order {wanted} the default: it is not there"
                )
            if wanted != m.default_sort_order_id:
                c.metadata = replace(m, default_sort_order_id=wanted)
        case AddSnapshot(snapshot=snapshot):
            _add_snapshot(c, snapshot)
        case SetSnapshotRef():
            _set_ref(c, update)
        case RemoveSnapshotRef(name=name):
            _remove_ref(c, name)
        case RemoveSnapshots(snapshot_ids=ids):
            _remove_snapshots(c, set(ids))
        case SetLocation(location=location):
            normal = normal_location(location)
            if normal != m.location:
                c.metadata = replace(m, location=normal)
        case SetProperties(updates=changed):
            properties = {
                **m.properties,
                **{k: v for k, v in changed.items() if k not in RESERVED_PROPERTIES},
            }
            if properties != m.properties:
                c.metadata = replace(m, properties=properties)
        case RemoveProperties(removals=removals):
            properties = {k: v for k, v in m.properties.items() if k not in removals}
            if properties != m.properties:
                c.metadata = replace(m, properties=properties)
        case _:
            _apply_statistics_or_removal(c, update)


def _apply_statistics_or_removal(c: _Commit, update: TableUpdate) -> None:
    m = c.metadata
    match update:
        case SetStatistics(statistics=statistics):
            m.snapshot(statistics.snapshot_id)
            others = tuple(s for s in m.statistics if s.snapshot_id != statistics.snapshot_id)
            c.metadata = replace(m, statistics=(*others, statistics))
        case RemoveStatistics(snapshot_id=snapshot_id):
            kept = tuple(s for s in m.statistics if s.snapshot_id != snapshot_id)
            if len(kept) != len(m.statistics):
                c.metadata = replace(m, statistics=kept)
        case SetPartitionStatistics(partition_statistics=partitions):
            m.snapshot(partitions.snapshot_id)
            rest = tuple(
                s for s in m.partition_statistics if s.snapshot_id != partitions.snapshot_id
            )
            c.metadata = replace(m, partition_statistics=(*rest, partitions))
        case RemovePartitionStatistics(snapshot_id=snapshot_id):
            left = tuple(s for s in m.partition_statistics if s.snapshot_id != snapshot_id)
            if len(left) != len(m.partition_statistics):
                c.metadata = replace(m, partition_statistics=left)
        case RemoveSchemas(schema_ids=ids):
            if m.current_schema_id in ids:
                raise InvalidRequestError(f"cannot remove schema {m.current_schema_id}: current")
            schemas = tuple(s for s in m.schemas if s.schema_id not in ids)
            if len(schemas) != len(m.schemas):
                c.metadata = replace(m, schemas=schemas)
        case RemovePartitionSpecs(spec_ids=ids):
            if m.default_spec_id in ids:
                raise InvalidRequestError(f"cannot remove spec {m.default_spec_id}: the default")
            specs = tuple(s for s in m.partition_specs if s.spec_id not in ids)
            if len(specs) != len(m.partition_specs):
                c.metadata = replace(m, partition_specs=specs)
        case _:
            raise InvalidRequestError(f"unknown table update {type(update).__name__}")


def normal_location(location: str) -> str:
    """A location without trailing slashes, unless it is nothing else.

    >>> normal_location("s3://bucket/table/")
    's3://bucket/table'
    """
    stripped = location.rstrip("/")
    return location if not stripped or stripped.endswith(":") else stripped


def _last_added(asked: int, last_added: int | None, what: str) -> int:
    if asked != LAST_ADDED:
        return asked
    if last_added is None:
        raise InvalidRequestError(f"the last added {what} is asked for, and none was added")
    return last_added


def _assign_uuid(c: _Commit, uuid: str) -> None:
    current = c.metadata.table_uuid
    if current is not None and current.lower() != uuid.lower():
        raise CommitConflictError(
            f"the table has UUID {current} by now; it cannot become {uuid}; refresh and retry"
        )
    if current is None:
        c.metadata = replace(c.metadata, table_uuid=uuid)


def _upgrade(c: _Commit, version: int) -> None:
    current = c.metadata.format_version
    if version not in SUPPORTED_FORMAT_VERSIONS:
        raise InvalidRequestError(f"cannot upgrade to format version {version}: 1 to 3 are known")
    if version < current:
        raise InvalidRequestError(f"cannot lower the format version from {current} to {version}")
    if version == current:
        return
    # rows written before v3 have no ids; they are numbered by the first snapshot after the upgrade
    c.metadata = replace(c.metadata, format_version=version, next_row_id=0)


def _format_version(m: TableMetadata) -> int:
    if m.format_version == _UNSET_VERSION:
        raise InvalidRequestError("a new table needs its format version before anything else")
    return m.format_version


def same_schema(a: Schema, b: Schema) -> bool:
    """Whether two schemas are the same but for their schema id."""
    return a.fields == b.fields and set(a.identifier_field_ids) == set(b.identifier_field_ids)


def _add_schema(c: _Commit, update: AddSchema) -> None:
    m, schema = c.metadata, update.schema
    check_schema(schema, _format_version(m))
    last_column_id = max(m.last_column_id, update.last_column_id, schema.highest_field_id)
    existing = next((s for s in m.schemas if same_schema(s, schema)), None)
    if existing is not None:
        c.last_added_schema_id = existing.schema_id
        if last_column_id != m.last_column_id:
            c.metadata = replace(m, last_column_id=last_column_id)
        return
    schema_id = max((s.schema_id for s in m.schemas), default=-1) + 1
    c.last_added_schema_id = schema_id
    c.metadata = replace(
        m,
        schemas=(*m.schemas, replace(schema, schema_id=schema_id)),
        last_column_id=last_column_id,
    )


def _add_spec(c: _Commit, update: AddPartitionSpec) -> None:
    m, spec = c.metadata, update.spec
    existing = next((s for s in m.partition_specs if s.same_fields(spec)), None)
    if existing is not None:
        c.last_added_spec_id = existing.spec_id
        return
    if m.current_schema_id == NO_ID:
        raise InvalidRequestError("a partition spec needs a current schema first")
    check_spec(spec, m.current_schema, _format_version(m))
    taken: dict[int, set[tuple[int, ...]]] = {}
    for known in (f for s in m.partition_specs for f in s.fields):
        taken.setdefault(known.field_id, set()).add(known.source_ids)
    for f in spec.fields:
        # version 1 numbers every spec from 1000, so its ids do repeat
        if m.format_version > 1 and f.source_ids not in taken.get(f.field_id, {f.source_ids}):
            raise InvalidRequestError(
                f"partition field '{f.name}' has id {f.field_id}, which partitions another column; "
                "ids are never reused"
            )
    spec_id = max((s.spec_id for s in m.partition_specs), default=-1) + 1
    c.last_added_spec_id = spec_id
    c.metadata = replace(
        m,
        partition_specs=(*m.partition_specs, replace(spec, spec_id=spec_id)),
        last_partition_id=max([m.last_partition_id, *(f.field_id for f in spec.fields)]),
    )


def _add_sort_order(c: _Commit, order: SortOrder) -> None:
    m = c.metadata
    existing = next((o for o in m.sort_orders if o.fields == order.fields), None)
    if existing is not None:
        c.last_added_order_id = existing.order_id
        return
    if order.fields:
        if m.current_schema_id == NO_ID:
            raise InvalidRequestError("a sort order needs a current schema first")
        check_sort_order(order, m.current_schema)
        order_id = max((o.order_id for o in m.sort_orders), default=0) + 1
        added = replace(order, order_id=order_id)
    else:
        added = UNSORTED
    c.last_added_order_id = added.order_id
    c.metadata = replace(m, sort_orders=(*m.sort_orders, added))


def _add_snapshot(c: _Commit, snapshot: Snapshot) -> None:
    m = c.metadata
    if not (m.schemas and m.partition_specs and m.sort_orders):
        raise InvalidRequestError("a snapshot needs a schema, a partition spec and a sort order")
    if snapshot.snapshot_id in m.snapshot_by_id:
        raise InvalidRequestError(f"snapshot {snapshot.snapshot_id} is already in the table")
    if snapshot.schema_id is not None and snapshot.schema_id not in m.schema_by_id:
        raise InvalidRequestError(
            f"snapshot {snapshot.snapshot_id} names schema {snapshot.schema_id}: it is not there"
        )
    next_row_id = m.next_row_id
    if m.format_version >= 2:
        if snapshot.manifest_list is None:
            raise InvalidRequestError("a snapshot needs a manifest list since format version 2")
        if snapshot.sequence_number <= m.last_sequence_number:
            raise CommitConflictError(
                f"snapshot {snapshot.snapshot_id} has sequence number {snapshot.sequence_number}, "
                f"the table is at {m.last_sequence_number}; refresh and retry"
            )
    if m.format_version >= 3:
        next_row_id = _next_row_id(m, snapshot)
    c.added_snapshot_ids.add(snapshot.snapshot_id)
    c.metadata = replace(
        m,
        snapshots=(*m.snapshots, snapshot),
        last_sequence_number=snapshot.sequence_number if m.format_version >= 2 else 0,
        last_updated_ms=max(m.last_updated_ms, snapshot.timestamp_ms),
        next_row_id=next_row_id,
    )


def _next_row_id(m: TableMetadata, snapshot: Snapshot) -> int:
    """Where row ids go on after the snapshot (specification, "Row Lineage")."""
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


def _set_ref(c: _Commit, update: SetSnapshotRef) -> None:
    m, name, ref = c.metadata, update.name, update.ref
    if m.refs.get(name) == ref:
        return
    if ref.snapshot_id not in m.snapshot_by_id:
        raise InvalidRequestError(
            f"cannot set {ref.type} '{name}' to snapshot {ref.snapshot_id}: it is not in the table"
        )
    if ref.type == "tag" and (
        ref.min_snapshots_to_keep is not None or ref.max_snapshot_age_ms is not None
    ):
        raise InvalidRequestError(f"tag '{name}': only branches keep a number or age of snapshots")
    refs = {**m.refs, name: ref}
    if name != MAIN:
        c.metadata = replace(m, refs=refs)
        return
    if ref.type != "branch":
        raise InvalidRequestError(f"'{MAIN}' must be a branch")
    log = m.snapshot_log
    if ref.snapshot_id != m.current_snapshot_id:
        added = ref.snapshot_id in c.added_snapshot_ids
        at_ms = m.snapshot_by_id[ref.snapshot_id].timestamp_ms if added else c.now_ms
        # the log is sorted by time: a clock that is behind must not turn time travel around
        at_ms = max([at_ms, *(e.timestamp_ms for e in log[-1:])])
        log = (*log, SnapshotLogEntry(snapshot_id=ref.snapshot_id, timestamp_ms=at_ms))
    c.metadata = replace(m, refs=refs, current_snapshot_id=ref.snapshot_id, snapshot_log=log)


def _remove_ref(c: _Commit, name: str) -> None:
    m = c.metadata
    if name not in m.refs:
        return
    refs = {n: r for n, r in m.refs.items() if n != name}
    current = None if name == MAIN else m.current_snapshot_id
    c.metadata = replace(m, refs=refs, current_snapshot_id=current)


def _remove_snapshots(c: _Commit, removed: set[int]) -> None:
    m = c.metadata
    if not removed & m.snapshot_by_id.keys():
        return
    if m.current_snapshot_id in removed:
        raise InvalidRequestError(
            f"cannot remove snapshot {m.current_snapshot_id}: branch '{MAIN}' points at it"
        )
    log: list[SnapshotLogEntry] = []
    for entry in m.snapshot_log:
        if entry.snapshot_id in removed:
            # a gap would let time travel answer with the wrong snapshot, so history starts after it
            log.clear()
        else:
            log.append(entry)
    c.metadata = replace(
        m,
        snapshots=tuple(s for s in m.snapshots if s.snapshot_id not in removed),
        refs={n: r for n, r in m.refs.items() if r.snapshot_id not in removed},
        snapshot_log=tuple(log),
        statistics=tuple(s for s in m.statistics if s.snapshot_id not in removed),
        partition_statistics=tuple(
            s for s in m.partition_statistics if s.snapshot_id not in removed
        ),
    )


def _finish(
    c: _Commit, base: TableMetadata | None, previous_metadata_location: str | None
) -> TableMetadata:
    m = c.metadata
    if base is None:
        _check_complete(m)
    elif base.table_uuid is None and m.table_uuid is None and m.format_version >= 2:
        raise InvalidRequestError("a table needs a UUID since format version 2: assign one")
    _check_defaults(m, base)
    _check_numbers(m)
    added = [s.timestamp_ms for s in m.snapshots if s.snapshot_id in c.added_snapshot_ids]
    # never backwards: readers refuse metadata older than its own logs
    updated_ms = max([c.now_ms if not added else max(added), base.last_updated_ms if base else 0])
    return replace(
        m,
        last_updated_ms=updated_ms,
        snapshot_log=_without_intermediate(c),
        metadata_log=_metadata_log(m, base, previous_metadata_location),
    )


def _check_complete(m: TableMetadata) -> None:
    missing = [
        name
        for name, absent in (
            ("format version", m.format_version == _UNSET_VERSION),
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
    """Refuse what no reader could load: a number past the last one there is.

    Only metadata that is damaged comes near.
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
    """What new data is written with must fit together, when this commit changed any of it."""
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


def _without_intermediate(c: _Commit) -> tuple[SnapshotLogEntry, ...]:
    """The log without snapshots that were current only inside this commit."""
    m = c.metadata
    if len(c.added_snapshot_ids) < 2:
        return m.snapshot_log
    return tuple(
        e
        for e in m.snapshot_log
        if e.snapshot_id not in c.added_snapshot_ids or e.snapshot_id == m.current_snapshot_id
    )


def _metadata_log(
    m: TableMetadata, base: TableMetadata | None, previous_location: str | None
) -> tuple[MetadataLogEntry, ...]:
    if base is None or previous_location is None:
        return m.metadata_log
    entry = MetadataLogEntry(metadata_file=previous_location, timestamp_ms=base.last_updated_ms)
    keep = max(1, METADATA_PREVIOUS_VERSIONS_MAX.of(m.properties))
    return (*m.metadata_log, entry)[-keep:]
