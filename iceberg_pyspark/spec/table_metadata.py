"""Table metadata and its JSON form for format versions 1, 2 and 3.

Specification, "Table Metadata", Appendix C "Table Metadata and Snapshots" and Appendix E. Reading
is lenient where older writers were (defaults of v1), strict where a guess could return wrong rows.
Files, gzip and locations are `storage/metadata_files.py`; changes are `commits/`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from iceberg_pyspark.errors import (
    InvalidMetadataError,
    NoSuchSnapshotError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spec.partitioning import (
    PartitionSpec,
    fields_from_json,
    partition_field_to_json,
    spec_from_json,
    spec_to_json,
)
from iceberg_pyspark.spec.schema import Schema, schema_from_json, schema_to_json
from iceberg_pyspark.spec.snapshots import (
    MAIN,
    MetadataLogEntry,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    ref_from_json,
    ref_to_json,
    snapshot_from_json,
    snapshot_to_json,
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
from iceberg_pyspark.spec.unknown_keys import (
    NOTHING_UNKNOWN,
    UnknownKeys,
    put_back,
    unknown_keys,
)

SUPPORTED_FORMAT_VERSIONS = (1, 2, 3)

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class TableMetadata:
    """Everything a metadata file says, frozen; change it with `dataclasses.replace`."""

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
    snapshots: tuple[Snapshot, ...] = ()
    refs: Mapping[str, SnapshotRef] = field(default_factory=dict)
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    next_row_id: int = 0
    encryption_keys: tuple[Mapping[str, Any], ...] = ()
    unknown: UnknownKeys = field(default=NOTHING_UNKNOWN, repr=False, compare=False)
    """Keys of the JSON that this version does not know, to be written again."""

    @cached_property
    def schema_by_id(self) -> Mapping[int, Schema]:
        """All schemas by id."""
        return {s.schema_id: s for s in self.schemas}

    @cached_property
    def spec_by_id(self) -> Mapping[int, PartitionSpec]:
        """All partition specs by id."""
        return {s.spec_id: s for s in self.partition_specs}

    @cached_property
    def sort_order_by_id(self) -> Mapping[int, SortOrder]:
        """All sort orders by id."""
        return {s.order_id: s for s in self.sort_orders}

    @cached_property
    def snapshot_by_id(self) -> Mapping[int, Snapshot]:
        """All snapshots by id."""
        return {s.snapshot_id: s for s in self.snapshots}

    @property
    def current_schema(self) -> Schema:
        """The schema new data is written with."""
        return self.schema_by_id[self.current_schema_id]

    @property
    def default_spec(self) -> PartitionSpec:
        """The spec new data is partitioned by."""
        return self.spec_by_id[self.default_spec_id]

    @property
    def default_sort_order(self) -> SortOrder:
        """The order new data should be sorted by."""
        return self.sort_order_by_id[self.default_sort_order_id]

    @property
    def schemas_newest_first(self) -> tuple[Schema, ...]:
        """The current schema, then the others by falling id: where to look for a dropped column."""
        others = sorted(
            (s for s in self.schemas if s.schema_id != self.current_schema_id),
            key=lambda s: -s.schema_id,
        )
        return (self.current_schema, *others)

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The snapshot of branch main; None in an empty table."""
        if self.current_snapshot_id is None:
            return None
        return self.snapshot_by_id[self.current_snapshot_id]

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """The snapshot of that id; raises `NoSuchSnapshotError`."""
        found = self.snapshot_by_id.get(snapshot_id)
        if found is None:
            known = ", ".join(str(s.snapshot_id) for s in self.snapshots[-5:]) or "none"
            raise NoSuchSnapshotError(
                f"table {self.location} has no snapshot {snapshot_id} (expired or never there); "
                f"latest snapshots: {known}"
            )
        return found

    def ref_snapshot(self, name: str) -> Snapshot:
        """The snapshot a branch or tag points at; raises `NoSuchSnapshotError` naming the refs."""
        ref = self.refs.get(name)
        if ref is None:
            known = ", ".join(sorted(self.refs)) or "none"
            raise NoSuchSnapshotError(
                f"table {self.location} has no branch or tag '{name}'; there are: {known}"
            )
        return self.snapshot(ref.snapshot_id)


def metadata_to_json(metadata: TableMetadata) -> dict[str, Any]:
    """Table metadata as the JSON object of its format version."""
    m = metadata
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
    # v1 and v2 readers exist that require the key, and take -1 as "none"; v3 says null
    if m.current_snapshot_id is not None:
        out["current-snapshot-id"] = m.current_snapshot_id
    else:
        out["current-snapshot-id"] = -1 if m.format_version < 3 else None
    if m.format_version >= 3:
        out["next-row-id"] = m.next_row_id
    if m.encryption_keys:
        out["encryption-keys"] = [dict(k) for k in m.encryption_keys]
    out["refs"] = {name: ref_to_json(ref) for name, ref in m.refs.items()}
    out["snapshots"] = [snapshot_to_json(s) for s in m.snapshots]
    out["statistics"] = [statistics_to_json(s) for s in m.statistics]
    out["partition-statistics"] = [partition_statistics_to_json(s) for s in m.partition_statistics]
    out["snapshot-log"] = [
        {"timestamp-ms": e.timestamp_ms, "snapshot-id": e.snapshot_id} for e in m.snapshot_log
    ]
    out["metadata-log"] = [
        {"timestamp-ms": e.timestamp_ms, "metadata-file": e.metadata_file} for e in m.metadata_log
    ]
    put_back(m.unknown, out)
    return out


def metadata_to_bytes(metadata: TableMetadata) -> bytes:
    """The metadata file's bytes, uncompressed."""
    return json.dumps(metadata_to_json(metadata), separators=(",", ":")).encode("utf-8")


def metadata_from_bytes(data: bytes, path: str) -> TableMetadata:
    """Parse an uncompressed metadata file; errors start with `path`."""
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError) as e:
        raise InvalidMetadataError(f"{path}: not valid JSON ({e})") from e
    try:
        return metadata_from_json(parsed)
    except (InvalidMetadataError, UnsupportedFeatureError) as e:
        raise type(e)(f"{path}: {e}") from e
    except (KeyError, TypeError, AttributeError, ValueError) as e:
        raise InvalidMetadataError(f"{path}: damaged metadata ({type(e).__name__}: {e})") from e


def metadata_from_json(data: Any) -> TableMetadata:
    """Parse table metadata; errors name the JSON path and the rule."""
    if not isinstance(data, dict):
        raise InvalidMetadataError("expected a JSON object")
    version = data.get("format-version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise InvalidMetadataError("format-version: required integer")
    if version not in SUPPORTED_FORMAT_VERSIONS:
        raise UnsupportedFeatureError(
            f"format-version {version} is not supported (1, 2 and 3 are); "
            "read the table with a newer version of this package"
        )
    _require(data, "location", str)
    _require(data, "last-updated-ms", int)
    _require(data, "last-column-id", int)
    if version >= 2:
        _require(data, "table-uuid", str)
        _require(data, "last-sequence-number", int)
    schemas, current_schema_id = _schemas_from_json(data, version)
    specs, default_spec_id = _specs_from_json(data, version)
    orders, default_order_id = _sort_orders_from_json(data, version)
    snapshots = tuple(
        snapshot_from_json(s, f"snapshots[{i}]", version)
        for i, s in enumerate(data.get("snapshots") or ())
    )
    current = data.get("current-snapshot-id")
    current_snapshot_id = None if current in (None, -1) else current
    refs = _refs_from_json(data, {s.snapshot_id for s in snapshots}, current_snapshot_id)
    if version >= 3:
        _require(data, "next-row-id", int)
    highest_partition_id = max((f.field_id for s in specs for f in s.fields), default=999)
    return TableMetadata(
        format_version=version,
        table_uuid=data.get("table-uuid"),
        location=data["location"].rstrip("/") or "/",
        last_sequence_number=data.get("last-sequence-number", 0) if version >= 2 else 0,
        last_updated_ms=data["last-updated-ms"],
        last_column_id=data["last-column-id"],
        schemas=schemas,
        current_schema_id=current_schema_id,
        partition_specs=specs,
        default_spec_id=default_spec_id,
        last_partition_id=data.get("last-partition-id", highest_partition_id),
        sort_orders=orders,
        default_sort_order_id=default_order_id,
        properties={str(k): str(v) for k, v in (data.get("properties") or {}).items()},
        current_snapshot_id=current_snapshot_id,
        snapshots=snapshots,
        refs=refs,
        snapshot_log=tuple(
            SnapshotLogEntry(snapshot_id=e["snapshot-id"], timestamp_ms=e["timestamp-ms"])
            for e in data.get("snapshot-log") or ()
        ),
        metadata_log=tuple(
            MetadataLogEntry(metadata_file=e["metadata-file"], timestamp_ms=e["timestamp-ms"])
            for e in data.get("metadata-log") or ()
        ),
        statistics=tuple(
            statistics_from_json(s, f"statistics[{i}]")
            for i, s in enumerate(data.get("statistics") or ())
        ),
        partition_statistics=tuple(
            partition_statistics_from_json(s, f"partition-statistics[{i}]")
            for i, s in enumerate(data.get("partition-statistics") or ())
        ),
        next_row_id=data.get("next-row-id", 0) if version >= 3 else 0,
        encryption_keys=tuple(data.get("encryption-keys") or ()),
        unknown=unknown_keys(data),
    )


def _require(data: Mapping[str, Any], key: str, type_: type) -> None:
    if not isinstance(data.get(key), type_) or isinstance(data.get(key), bool):
        raise InvalidMetadataError(f"{key}: required {type_.__name__}, got {data.get(key)!r}")


def _schemas_from_json(data: Mapping[str, Any], version: int) -> tuple[tuple[Schema, ...], int]:
    if data.get("schemas"):
        schemas = tuple(schema_from_json(s, f"schemas[{i}]") for i, s in enumerate(data["schemas"]))
        current = data.get("current-schema-id")
        if current is None:
            raise InvalidMetadataError("current-schema-id: required with schemas")
    elif version == 1 and "schema" in data:
        schemas = (schema_from_json(data["schema"], "schema"),)
        current = schemas[0].schema_id
    else:
        raise InvalidMetadataError(f"schemas: required in v{version}")
    _unique(schemas, lambda s: s.schema_id, "schemas", "schema-id")
    if current not in {s.schema_id for s in schemas}:
        raise InvalidMetadataError(f"current-schema-id: {current} is not in schemas")
    return schemas, current


def _specs_from_json(
    data: Mapping[str, Any], version: int
) -> tuple[tuple[PartitionSpec, ...], int]:
    if data.get("partition-specs"):
        specs = tuple(
            spec_from_json(s, f"partition-specs[{i}]")
            for i, s in enumerate(data["partition-specs"])
        )
        default = data.get("default-spec-id")
        if default is None:
            raise InvalidMetadataError("default-spec-id: required with partition-specs")
    elif version == 1 and "partition-spec" in data:
        specs = (
            PartitionSpec(
                spec_id=0, fields=fields_from_json(data["partition-spec"], "partition-spec")
            ),
        )
        default = 0
    else:
        raise InvalidMetadataError(f"partition-specs: required in v{version}")
    _unique(specs, lambda s: s.spec_id, "partition-specs", "spec-id")
    if default not in {s.spec_id for s in specs}:
        raise InvalidMetadataError(f"default-spec-id: {default} is not in partition-specs")
    return specs, default


def _sort_orders_from_json(
    data: Mapping[str, Any], version: int
) -> tuple[tuple[SortOrder, ...], int]:
    if data.get("sort-orders"):
        orders = tuple(
            sort_order_from_json(o, f"sort-orders[{i}]") for i, o in enumerate(data["sort-orders"])
        )
    elif version == 1 or "sort-orders" in data:
        orders = (UNSORTED,)
    else:
        raise InvalidMetadataError(f"sort-orders: required in v{version}")
    _unique(orders, lambda o: o.order_id, "sort-orders", "order-id")
    default = data.get("default-sort-order-id", 0)
    if default not in {o.order_id for o in orders}:
        if default != 0:
            raise InvalidMetadataError(f"default-sort-order-id: {default} is not in sort-orders")
        orders = (UNSORTED, *orders)
    return orders, default


def _refs_from_json(
    data: Mapping[str, Any], snapshot_ids: set[int], current_snapshot_id: int | None
) -> dict[str, SnapshotRef]:
    refs = {
        name: ref_from_json(ref, f"refs.{name}") for name, ref in (data.get("refs") or {}).items()
    }
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
    seen: set[int] = set()
    for item in items:
        if key(item) in seen:
            raise InvalidMetadataError(f"{path}: {name} {key(item)} occurs twice")
        seen.add(key(item))
