"""Table metadata and its JSON form for format versions 1 to 4.

Specification, "Table Metadata", Appendix C "Table Metadata and Snapshots" and Appendix E. Reading
is lenient where older writers were (defaults of v1) and strict where a guess could return wrong
rows. Metadata files, gzip and locations are in `formats/metadata_files.py`; changes are in
`commits/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from iceberg_pyspark.errors import (
    InvalidMetadataError,
    NoSuchSnapshotError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spec.argument_types import check_whole_number
from iceberg_pyspark.spec.encryption import manifest_list_key
from iceberg_pyspark.spec.json_fields import MAX_INT64, JsonObject, compact_json, parse_json
from iceberg_pyspark.spec.partitioning import (
    PartitionSpec,
    fields_from_json,
    partition_field_to_json,
    spec_from_json,
    spec_to_json,
    unified_partition_type,
)
from iceberg_pyspark.spec.relative_paths import RELATIVE_PATHS_VERSION, resolved_path
from iceberg_pyspark.spec.schema import Schema, schema_from_json, schema_to_json
from iceberg_pyspark.spec.snapshots import (
    MAIN,
    KnownFirst,
    MetadataLogEntry,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    SnapshotsOfRefs,
    metadata_log_entry_from_json,
    ref_from_json,
    ref_to_json,
    snapshot_from_json,
    snapshot_log_entry_from_json,
    snapshot_to_bytes,
    snapshot_to_json,
    with_resolved_paths,
)
from iceberg_pyspark.spec.sorting import (
    UNSORTED,
    SortOrder,
    sort_order_from_json,
    sort_order_to_json,
)
from iceberg_pyspark.spec.statistics import (
    PartitionStatisticsFile,
    StatisticsFile,
    partition_statistics_from_json,
    partition_statistics_to_json,
    statistics_from_json,
    statistics_to_json,
)
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.spec.unknown_keys import NOTHING_UNKNOWN, UnknownKeys, put_back, unknown_keys

SUPPORTED_FORMAT_VERSIONS = (1, 2, 3, 4)
"""The format versions of tables that can be read."""

WRITABLE_FORMAT_VERSIONS = (1, 2, 3, 4)
"""The format versions that can be created and changed; `check_may_change` limits version 4."""

T = TypeVar("T")


class ById(dict[int, T]):
    """Parts of table metadata by id; a missing id raises `InvalidMetadataError`.

    The ids that callers look up come from files, which may be damaged.
    """

    def __init__(self, missing: str, items: Iterable[tuple[int, T]]) -> None:
        super().__init__(items)
        self._missing = missing

    def __missing__(self, key: int) -> T:
        raise InvalidMetadataError(f"{self._missing} {key}")


@dataclass(frozen=True, kw_only=True)
class TableMetadata:
    """The content of a metadata file, immutable; use `dataclasses.replace` to change it."""

    format_version: int
    table_uuid: str | None
    location: str
    last_sequence_number: int = 0
    last_updated_ms: int
    last_column_id: int
    schemas: tuple[Schema, ...]
    current_schema_id: int
    partition_specs: tuple[PartitionSpec, ...]
    default_spec_id: int
    last_partition_id: int
    sort_orders: tuple[SortOrder, ...] = (UNSORTED,)
    default_sort_order_id: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)
    current_snapshot_id: int | None = None
    snapshots: Sequence[Snapshot] = ()
    refs: Mapping[str, SnapshotRef] = field(default_factory=dict)
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    next_row_id: int = 0
    encryption_keys: tuple[Mapping[str, Any], ...] = ()
    unknown: UnknownKeys = field(default=NOTHING_UNKNOWN, repr=False, compare=False)
    """The JSON keys that this package does not know; they are written again."""

    @cached_property
    def schema_by_id(self) -> Mapping[int, Schema]:
        """All schemas by id."""
        return self._by_id("schema", ((s.schema_id, s) for s in self.schemas))

    @cached_property
    def spec_by_id(self) -> Mapping[int, PartitionSpec]:
        """All partition specs by id."""
        return self._by_id("partition spec", ((s.spec_id, s) for s in self.partition_specs))

    @cached_property
    def sort_order_by_id(self) -> Mapping[int, SortOrder]:
        """All sort orders by id."""
        return self._by_id("sort order", ((s.order_id, s) for s in self.sort_orders))

    @cached_property
    def snapshot_by_id(self) -> Mapping[int, Snapshot]:
        """All snapshots by id."""
        if isinstance(self.snapshots, SnapshotsOfRefs):
            return KnownFirst(self.snapshots.loaded_by_id, lambda: self._all_snapshots_by_id)
        return self._all_snapshots_by_id

    @cached_property
    def _all_snapshots_by_id(self) -> Mapping[int, Snapshot]:
        return self._by_id("snapshot", ((s.snapshot_id, s) for s in self.snapshots))

    def _by_id(self, kind: str, items: Iterable[tuple[int, T]]) -> ById[T]:
        return ById(f"table {self.location} has no {kind}", items)

    @property
    def current_schema(self) -> Schema:
        """The schema with which new data is written."""
        return self.schema_by_id[self.current_schema_id]

    @property
    def default_spec(self) -> PartitionSpec:
        """The spec by which new data is partitioned."""
        return self.spec_by_id[self.default_spec_id]

    @property
    def default_sort_order(self) -> SortOrder:
        """The order in which new data should be sorted."""
        return self.sort_order_by_id[self.default_sort_order_id]

    @property
    def next_sequence_number(self) -> int:
        """The sequence number of the next snapshot; 0 in v1."""
        if self.format_version < 2:
            return 0
        if self.last_sequence_number >= MAX_INT64:
            raise InvalidMetadataError(
                f"table {self.location}: no sequence number follows {self.last_sequence_number}; "
                "the table's metadata is damaged"
            )
        return self.last_sequence_number + 1

    @property
    def schemas_newest_first(self) -> tuple[Schema, ...]:
        """The current schema, then the others by descending id; use it to find a dropped column."""
        others = sorted(
            (s for s in self.schemas if s.schema_id != self.current_schema_id),
            key=lambda s: -s.schema_id,
        )
        return (self.current_schema, *others)

    @property
    def unified_partition_type(self) -> StructType:
        """A struct with every partition field of all specs, in ascending order of field id."""
        return unified_partition_type(self.partition_specs, self.schemas_newest_first)

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The snapshot of branch `main`, or None in an empty table."""
        if self.current_snapshot_id is None:
            return None
        return self.snapshot_by_id[self.current_snapshot_id]

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """Return the snapshot with the id; raise `NoSuchSnapshotError` if there is none."""
        check_whole_number("snapshot_id", snapshot_id)
        snapshot = self.snapshot_by_id.get(snapshot_id)
        if snapshot is None:
            latest_ids = ", ".join(str(s.snapshot_id) for s in self.snapshots[-5:]) or "none"
            raise NoSuchSnapshotError(
                f"table {self.location} has no snapshot {snapshot_id} (it has expired or never "
                f"existed); latest snapshots: {latest_ids}"
            )
        return snapshot

    def snapshot_or_current(self, snapshot_id: int | None) -> Snapshot | None:
        """Return the snapshot with the id; without an id the current one, or None."""
        return self.current_snapshot if snapshot_id is None else self.snapshot(snapshot_id)

    def ref_snapshot(self, name: str) -> Snapshot:
        """Return the snapshot of a branch or tag; raise `NoSuchSnapshotError` listing the refs."""
        ref = self.refs.get(name)
        if ref is None:
            names = ", ".join(sorted(self.refs)) or "none"
            raise NoSuchSnapshotError(
                f"table {self.location} has no branch or tag '{name}'; there are: {names}"
            )
        return self.snapshot(ref.snapshot_id)


def ancestors_of(metadata: TableMetadata, snapshot: Snapshot | None) -> Iterator[Snapshot]:
    """Yield a snapshot and its ancestors, newest first, as far as the table still has them.

    Ends at a circle of parents, which damaged metadata may contain.
    """
    visited_ids: set[int] = set()
    while snapshot is not None and snapshot.snapshot_id not in visited_ids:
        visited_ids.add(snapshot.snapshot_id)
        yield snapshot
        parent_id = snapshot.parent_snapshot_id
        snapshot = None if parent_id is None else metadata.snapshot_by_id.get(parent_id)


def metadata_to_json(metadata: TableMetadata) -> dict[str, Any]:
    """Return table metadata as the JSON object of its format version."""
    out = _to_json(metadata, [snapshot_to_json(s) for s in metadata.snapshots])
    put_back(metadata.unknown, out)
    return out


def _to_json(m: TableMetadata, snapshots: list[dict[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {"format-version": m.format_version}
    if m.table_uuid is not None:
        out["table-uuid"] = m.table_uuid
    out["location"] = m.location
    if m.format_version >= 2:
        out["last-sequence-number"] = m.last_sequence_number
    out["last-updated-ms"] = m.last_updated_ms
    out["last-column-id"] = m.last_column_id
    if m.format_version == 1:
        out["schema"] = schema_to_json(m.current_schema)
    out["current-schema-id"] = m.current_schema_id
    out["schemas"] = [schema_to_json(s) for s in m.schemas]
    if m.format_version == 1:
        out["partition-spec"] = [partition_field_to_json(f) for f in m.default_spec.fields]
    out["default-spec-id"] = m.default_spec_id
    out["partition-specs"] = [spec_to_json(s) for s in m.partition_specs]
    out["last-partition-id"] = m.last_partition_id
    out["default-sort-order-id"] = m.default_sort_order_id
    out["sort-orders"] = [sort_order_to_json(o) for o in m.sort_orders]
    out["properties"] = dict(m.properties)
    # some v1 and v2 readers require the key and read -1 as "none"; v3 says null
    if m.current_snapshot_id is not None:
        out["current-snapshot-id"] = m.current_snapshot_id
    else:
        out["current-snapshot-id"] = -1 if m.format_version < 3 else None
    if m.format_version >= 3:
        out["next-row-id"] = m.next_row_id
    if m.encryption_keys:
        out["encryption-keys"] = [dict(k) for k in m.encryption_keys]
    out["refs"] = {name: ref_to_json(ref) for name, ref in m.refs.items()}
    out["snapshots"] = snapshots
    out["statistics"] = [statistics_to_json(s) for s in m.statistics]
    out["partition-statistics"] = [partition_statistics_to_json(s) for s in m.partition_statistics]
    out["snapshot-log"] = [
        {"timestamp-ms": e.timestamp_ms, "snapshot-id": e.snapshot_id} for e in m.snapshot_log
    ]
    out["metadata-log"] = [
        {"timestamp-ms": e.timestamp_ms, "metadata-file": e.metadata_file} for e in m.metadata_log
    ]
    return out


def metadata_to_bytes(metadata: TableMetadata) -> bytes:
    """Return the content of the metadata file, uncompressed."""
    if metadata.unknown.by_object:
        return _dump(metadata_to_json(metadata))
    # snapshot_to_bytes writes summaries of unchanged snapshots as they were read
    snapshots = b"[%s]" % b",".join(map(snapshot_to_bytes, metadata.snapshots))
    fields = (
        b"%s:%s" % (_dump(key), snapshots if key == "snapshots" else _dump(value))
        for key, value in _to_json(metadata, []).items()
    )
    return b"{%s}" % b",".join(fields)


def _dump(value: Any) -> bytes:
    return compact_json(value).encode()


def metadata_from_bytes(data: bytes, path: str) -> TableMetadata:
    """Parse an uncompressed metadata file; errors start with `path`."""
    content = parse_json(data, path)
    try:
        return metadata_from_json(content, metadata_location=path)
    except (InvalidMetadataError, UnsupportedFeatureError) as e:
        raise type(e)(f"{path}: {e}") from e


@dataclass(frozen=True, slots=True)
class ReadHistory:
    """The snapshots and the snapshot log of table metadata, already parsed and checked."""

    snapshots: tuple[Snapshot, ...]
    snapshot_log: tuple[SnapshotLogEntry, ...]


def metadata_from_json(
    data: Any, history: ReadHistory | None = None, *, metadata_location: str | None = None
) -> TableMetadata:
    """Parse table metadata; errors name the JSON path and the rule.

    `history`, if set, replaces the keys `snapshots` and `snapshot-log` of `data`. Version 4
    metadata may omit the table's location; then the location is derived from `metadata_location`,
    the place of the metadata file.
    """
    o = JsonObject(data)
    version = o.int32("format-version")
    if version not in SUPPORTED_FORMAT_VERSIONS:
        raise UnsupportedFeatureError(
            f"format-version {version} is not supported (1 to 4 are); "
            "read the table with a newer version of this package"
        )
    table_uuid = o.string("table-uuid") if version >= 2 else o.optional_string("table-uuid")
    schemas, current_schema_id = _schemas_from_json(o, version)
    specs, default_spec_id = _specs_from_json(o, version)
    orders, default_order_id = _sort_orders_from_json(o, version)
    if history is None:
        history = ReadHistory(
            tuple(snapshot_from_json(s, version) for s in o.objects("snapshots")),
            tuple(map(snapshot_log_entry_from_json, o.objects("snapshot-log"))),
        )
    location = _location(o, version, metadata_location)
    log = tuple(map(metadata_log_entry_from_json, o.objects("metadata-log")))
    statistics = tuple(map(statistics_from_json, o.objects("statistics")))
    partition_statistics = tuple(
        map(partition_statistics_from_json, o.objects("partition-statistics"))
    )
    snapshots = history.snapshots
    if version >= RELATIVE_PATHS_VERSION:
        snapshots = tuple(with_resolved_paths(s, location) for s in snapshots)
        log = tuple(replace(e, metadata_file=resolved_path(e.metadata_file, location)) for e in log)
        statistics = tuple(
            replace(s, statistics_path=resolved_path(s.statistics_path, location))
            for s in statistics
        )
        partition_statistics = tuple(
            replace(s, statistics_path=resolved_path(s.statistics_path, location))
            for s in partition_statistics
        )
    encryption_keys = tuple(map(_encryption_key, o.objects("encryption-keys")))
    snapshots = with_list_keys(snapshots, encryption_keys)
    _unique(snapshots, lambda s: s.snapshot_id, "snapshots", "snapshot-id")
    current = o.optional_int64("current-snapshot-id")
    current_snapshot_id = None if current == -1 else current
    # a writer may have declared a lower id than it used, and the next id must not be in use
    last_column_id = max(o.int32("last-column-id", 0), *(s.highest_field_id for s in schemas))
    highest_partition_id = max((f.field_id for s in specs for f in s.fields), default=999)
    declared_id = o.optional_int32("last-partition-id", 0)
    last_partition_id = (
        max(declared_id, highest_partition_id) if declared_id is not None else highest_partition_id
    )
    return TableMetadata(
        format_version=version,
        table_uuid=table_uuid,
        location=location,
        last_sequence_number=_last_sequence_number(o, version, snapshots),
        last_updated_ms=o.time_ms("last-updated-ms"),
        last_column_id=last_column_id,
        schemas=schemas,
        current_schema_id=current_schema_id,
        partition_specs=specs,
        default_spec_id=default_spec_id,
        last_partition_id=last_partition_id,
        sort_orders=orders,
        default_sort_order_id=default_order_id,
        properties=o.string_map("properties"),
        current_snapshot_id=current_snapshot_id,
        snapshots=snapshots,
        refs=_refs_from_json(o, {s.snapshot_id for s in snapshots}, current_snapshot_id),
        snapshot_log=history.snapshot_log,
        metadata_log=log,
        statistics=statistics,
        partition_statistics=partition_statistics,
        next_row_id=o.int64("next-row-id", 0) if version >= 3 else 0,
        encryption_keys=encryption_keys,
        unknown=unknown_keys(data),
    )


def _last_sequence_number(o: JsonObject, version: int, snapshots: Iterable[Snapshot]) -> int:
    if version < 2:
        return 0
    # DuckDB's COPY leaves the key out; no file of the table has a higher number than its snapshots
    return (
        o.int64("last-sequence-number", 0)
        if o.has("last-sequence-number")
        else max((s.sequence_number for s in snapshots), default=0)
    )


def _location(o: JsonObject, version: int, metadata_location: str | None) -> str:
    if version < RELATIVE_PATHS_VERSION or o.has("location"):
        return o.string("location").rstrip("/") or "/"
    folder, _, _ = (metadata_location or "").rpartition("/")
    location, _, name = folder.rpartition("/")
    if name != "metadata" or not location:
        raise UnsupportedFeatureError(
            "location: the metadata has none, and none can be derived from the path of the "
            f"metadata file ({metadata_location or 'unknown'}), which is not in a folder "
            "'metadata'; set the location with the engine that created the table"
        )
    return location


def with_list_keys(
    snapshots: Sequence[Snapshot], keys: Iterable[Mapping[str, Any]]
) -> tuple[Snapshot, ...]:
    """Return the snapshots with the keys of their manifest lists."""
    if not any(s.key_id is not None and s.list_key is None for s in snapshots):
        return tuple(snapshots)
    keys = tuple(keys)
    return tuple(
        s if s.key_id is None else replace(s, list_key=manifest_list_key(keys, s.key_id))
        for s in snapshots
    )


def _encryption_key(o: JsonObject) -> Mapping[str, Any]:
    """Return an encryption key as it is stored."""
    key: dict[str, Any] = {"key-id": o.string("key-id")}
    key["encrypted-key-metadata"] = o.string("encrypted-key-metadata")
    if o.has("encrypted-by-id"):
        key["encrypted-by-id"] = o.string("encrypted-by-id")
    if o.has("properties"):
        key["properties"] = o.string_map("properties")
    return key


def _schemas_from_json(o: JsonObject, version: int) -> tuple[tuple[Schema, ...], int]:
    if objects := o.objects("schemas"):
        schemas = tuple(map(schema_from_json, objects))
        current = o.int32("current-schema-id")
    elif version == 1 and o.has("schema"):
        schemas = (schema_from_json(o.object("schema")),)
        current = schemas[0].schema_id
    else:
        raise InvalidMetadataError(f"schemas: required in v{version}")
    _unique(schemas, lambda s: s.schema_id, "schemas", "schema-id")
    if current not in {s.schema_id for s in schemas}:
        raise InvalidMetadataError(f"current-schema-id: {current} is not in schemas")
    return schemas, current


def _specs_from_json(o: JsonObject, version: int) -> tuple[tuple[PartitionSpec, ...], int]:
    if objects := o.objects("partition-specs"):
        specs = tuple(map(spec_from_json, objects))
        default = o.int32("default-spec-id")
    elif version == 1 and o.has("partition-spec"):
        specs = (PartitionSpec(spec_id=0, fields=fields_from_json(o, "partition-spec")),)
        default = 0
    else:
        raise InvalidMetadataError(f"partition-specs: required in v{version}")
    _unique(specs, lambda s: s.spec_id, "partition-specs", "spec-id")
    if default not in {s.spec_id for s in specs}:
        raise InvalidMetadataError(f"default-spec-id: {default} is not in partition-specs")
    return specs, default


def _sort_orders_from_json(o: JsonObject, version: int) -> tuple[tuple[SortOrder, ...], int]:
    if objects := o.objects("sort-orders"):
        orders = tuple(map(sort_order_from_json, objects))
    elif version == 1 or o.has("sort-orders"):
        orders = (UNSORTED,)
    else:
        raise InvalidMetadataError(f"sort-orders: required in v{version}")
    _unique(orders, lambda order: order.order_id, "sort-orders", "order-id")
    default = o.optional_int32("default-sort-order-id") or 0
    if default not in {order.order_id for order in orders}:
        if default != 0:
            raise InvalidMetadataError(f"default-sort-order-id: {default} is not in sort-orders")
        orders = (UNSORTED, *orders)
    return orders, default


def _refs_from_json(
    o: JsonObject, snapshot_ids: set[int], current_snapshot_id: int | None
) -> dict[str, SnapshotRef]:
    objects = o.optional_object("refs")
    refs = {} if objects is None else {n: ref_from_json(objects.object(n)) for n in objects.names()}
    if current_snapshot_id is not None and current_snapshot_id not in snapshot_ids:
        raise InvalidMetadataError(
            f"current-snapshot-id: {current_snapshot_id} is not in snapshots"
        )
    for name, ref in refs.items():
        if ref.snapshot_id not in snapshot_ids:
            raise InvalidMetadataError(
                f"refs.{name}.snapshot-id: {ref.snapshot_id} is not in snapshots"
            )
    if current_snapshot_id is not None:
        main = refs.setdefault(MAIN, SnapshotRef(snapshot_id=current_snapshot_id))
        if main.snapshot_id != current_snapshot_id:
            raise InvalidMetadataError(
                f"refs.main.snapshot-id: {main.snapshot_id} is not current-snapshot-id "
                f"{current_snapshot_id}"
            )
    elif MAIN in refs:
        raise InvalidMetadataError("refs.main: set while current-snapshot-id is not")
    return refs


def _unique(items: tuple[T, ...], key: Callable[[T], int], path: str, name: str) -> None:
    ids: set[int] = set()
    for item in items:
        if key(item) in ids:
            raise InvalidMetadataError(f"{path}: {name} {key(item)} occurs twice")
        ids.add(key(item))
