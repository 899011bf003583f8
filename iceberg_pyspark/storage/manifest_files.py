"""Manifest lists and manifests as files of objects: what a commit reads and writes.

Specification, "Manifests", "Manifest Lists", "First Row ID Assignment" and Appendix E for v1. A
scan reads manifests as columns, `storage/manifest_columns.py`. Numbers that a commit only knows
once it succeeds (sequence numbers, first row ids) are left to inheritance in a manifest and
assigned in the list, so that a retry writes a new list and keeps its manifests, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.spec.avro_schemas import (
    BLOCK_SIZE_IN_BYTES,
    manifest_entry_schema,
    manifest_file_schema,
)
from iceberg_pyspark.spec.avro_types import primitive_type
from iceberg_pyspark.spec.entry_columns import METRIC_MAPS
from iceberg_pyspark.spec.json_fields import MAX_INT64, JsonObject, parse_json
from iceberg_pyspark.spec.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    PartitionFieldSummary,
)
from iceberg_pyspark.spec.partition_summaries import summarise_partitions
from iceberg_pyspark.spec.partitioning import (
    PartitionSpec,
    fields_from_json,
    partition_field_to_json,
)
from iceberg_pyspark.spec.schema import Schema, schema_from_json, schema_to_json
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.types import StructType, Type, UnknownType
from iceberg_pyspark.storage.avro import AvroFile, damaged, read_avro, write_avro
from iceberg_pyspark.storage.decoded_cache import DecodedCache
from iceberg_pyspark.storage.decoded_size import memory_limit, too_large
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.manifest_columns import read_entries

T = TypeVar("T")

_CACHE_BYTES = 32 * 1024 * 1024
_LISTS: DecodedCache[tuple[ManifestFile, ...]] = DecodedCache(
    _CACHE_BYTES, lambda manifests: sum(map(_memory_of, manifests))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenManifestList:
    """What a manifest list assigned: `manifests` as a reader will see them.

    `next_row_id` is the first row id not assigned, `added_rows` the snapshot's `added-rows`; both
    are None before v3.
    """

    manifests: tuple[ManifestFile, ...]
    next_row_id: int | None
    added_rows: int | None


def write_manifest_list(
    file_io: FileIO,
    location: str,
    manifests: Iterable[ManifestFile],
    *,
    format_version: int,
    snapshot_id: int,
    parent_snapshot_id: int | None,
    sequence_number: int,
    first_row_id: int | None = None,
    codec: str = "gzip",
) -> WrittenManifestList:
    """Write a snapshot's manifest list.

    Manifests whose sequence number is unassigned get the snapshot's. `first_row_id` is the table's
    `next-row-id` and required since v3: data manifests without one get theirs from it, in order.
    """
    if format_version >= 3 and first_row_id is None:
        raise InvalidRequestError(
            f"{location}: a v{format_version} manifest list needs a first row id"
        )
    assigned = [_with_sequence_number(m, snapshot_id, sequence_number) for m in manifests]
    if format_version >= 2:
        assigned = [_with_counts(file_io, m) for m in assigned]
    next_row_id = first_row_id if format_version >= 3 else None
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
        "format-version": str(format_version),
    }
    if format_version >= 2:
        metadata["sequence-number"] = str(sequence_number)
    if next_row_id is not None:
        metadata["first-row-id"] = str(next_row_id)
        assigned, next_row_id = _with_first_row_ids(assigned, next_row_id)
    write_avro(
        file_io,
        location,
        manifest_file_schema(format_version),
        (_manifest_file_record(m, location, format_version) for m in assigned),
        metadata=metadata,
        codec=codec,
    )
    return WrittenManifestList(
        manifests=tuple(assigned),
        next_row_id=next_row_id,
        added_rows=None
        if next_row_id is None or first_row_id is None
        else next_row_id - first_row_id,
    )


def _with_sequence_number(
    manifest: ManifestFile, snapshot_id: int, sequence_number: int
) -> ManifestFile:
    if manifest.sequence_number != UNASSIGNED_SEQUENCE_NUMBER:
        return manifest
    if manifest.added_snapshot_id != snapshot_id:
        raise InvalidRequestError(
            f"{manifest.manifest_path}: it was written for snapshot {manifest.added_snapshot_id} "
            f"and has no sequence number, so snapshot {snapshot_id} cannot list it"
        )
    unassigned = manifest.min_sequence_number == UNASSIGNED_SEQUENCE_NUMBER
    return replace(
        manifest,
        sequence_number=sequence_number,
        min_sequence_number=sequence_number if unassigned else manifest.min_sequence_number,
    )


def _with_counts(file_io: FileIO, manifest: ManifestFile) -> ManifestFile:
    """Counts that v1 lists may leave out, and that v2 requires, from the manifest itself."""
    known = (
        manifest.added_files_count,
        manifest.existing_files_count,
        manifest.deleted_files_count,
        manifest.added_rows_count,
        manifest.existing_rows_count,
        manifest.deleted_rows_count,
    )
    if None not in known:
        return manifest
    files = dict.fromkeys(EntryStatus, 0)
    rows = dict.fromkeys(EntryStatus, 0)
    avro = read_avro(file_io, manifest.manifest_path)
    for record in avro.records():
        status = EntryStatus(record["_0"])
        files[status] += 1
        rows[status] += record["_2"]["_103"]
    return _counted(manifest, files, rows)


def _counted(
    manifest: ManifestFile, files: Mapping[EntryStatus, int], rows: Mapping[EntryStatus, int]
) -> ManifestFile:
    return replace(
        manifest,
        added_files_count=files[EntryStatus.ADDED],
        existing_files_count=files[EntryStatus.EXISTING],
        deleted_files_count=files[EntryStatus.DELETED],
        added_rows_count=rows[EntryStatus.ADDED],
        existing_rows_count=rows[EntryStatus.EXISTING],
        deleted_rows_count=rows[EntryStatus.DELETED],
    )


def _with_first_row_ids(
    manifests: Iterable[ManifestFile], next_row_id: int
) -> tuple[list[ManifestFile], int]:
    assigned = []
    for m in manifests:
        if m.content is ManifestContent.DELETES:
            assigned.append(replace(m, first_row_id=None))
        elif m.first_row_id is not None:
            assigned.append(m)
        else:
            assigned.append(replace(m, first_row_id=next_row_id))
            # counts are there: _with_counts came before
            next_row_id += (m.added_rows_count or 0) + (m.existing_rows_count or 0)
            if not 0 <= next_row_id <= MAX_INT64:
                raise InvalidMetadataError(
                    f"{m.manifest_path}: its rows would get ids up to {next_row_id}, which no "
                    "table has; the table's metadata or the manifest is damaged"
                )
    return assigned, next_row_id


def _manifest_file_record(m: ManifestFile, location: str, format_version: int) -> dict[str, Any]:
    if format_version == 1 and m.content is not ManifestContent.DATA:
        raise InvalidRequestError(
            f"{location}: a v1 table cannot list the deletes of {m.manifest_path}"
        )
    return {
        "manifest_path": m.manifest_path,
        "manifest_length": m.manifest_length,
        "partition_spec_id": m.partition_spec_id,
        "content": int(m.content),
        "sequence_number": m.sequence_number,
        "min_sequence_number": m.min_sequence_number,
        "added_snapshot_id": m.added_snapshot_id,
        "added_files_count": m.added_files_count,
        "existing_files_count": m.existing_files_count,
        "deleted_files_count": m.deleted_files_count,
        "added_rows_count": m.added_rows_count,
        "existing_rows_count": m.existing_rows_count,
        "deleted_rows_count": m.deleted_rows_count,
        "partitions": None
        if m.partitions is None
        else [
            {
                "contains_null": s.contains_null,
                "contains_nan": s.contains_nan,
                "lower_bound": s.lower_bound,
                "upper_bound": s.upper_bound,
            }
            for s in m.partitions
        ],
        "key_metadata": m.key_metadata,
        "first_row_id": m.first_row_id,
    }


def read_snapshot_manifests(file_io: FileIO, snapshot: Snapshot) -> list[ManifestFile]:
    """The manifests of a snapshot, from its manifest list or, in old v1 tables, its own list."""
    if snapshot.manifest_list is not None:
        manifests = read_manifest_list(file_io, snapshot.manifest_list)
        data_files = snapshot.summary.get("total-data-files", "0")
        if not manifests and data_files != "0":
            # a list cut behind its header is a valid Avro file of an empty table
            raise InvalidMetadataError(
                f"{snapshot.manifest_list}: it lists nothing, and snapshot {snapshot.snapshot_id} "
                f"has {data_files} data files; the file is cut short"
            )
        return manifests
    return [
        _inline_manifest(file_io, location, snapshot.snapshot_id)
        for location in snapshot.manifests or ()
    ]


def _inline_manifest(file_io: FileIO, location: str, snapshot_id: int) -> ManifestFile:
    header = _header_of(read_avro(file_io, location))
    return ManifestFile(
        manifest_path=location,
        manifest_length=file_io.size(location),
        partition_spec_id=header.spec.spec_id,
        content=header.content,
        added_snapshot_id=snapshot_id,
    )


def read_manifest_list(file_io: FileIO, location: str) -> list[ManifestFile]:
    """The manifests of a list of any format version, in order."""
    return list(_LISTS.get_or_read(file_io, location, lambda: _parsed_list(file_io, location)))


def _parsed_list(file_io: FileIO, location: str) -> tuple[ManifestFile, ...]:
    avro = read_avro(file_io, location)
    manifests = []
    room = memory_limit(avro.size) // 2
    try:
        for record in avro.records():
            manifests.append(_manifest_file(record))
            room -= _memory_of(manifests[-1])
            if room < 0:
                raise too_large(location, avro.size)
        return tuple(manifests)
    except (AttributeError, TypeError, ValueError) as e:
        raise damaged(location, f"{e} in a manifest list's record") from e


def _memory_of(manifest: ManifestFile) -> int:
    """An upper bound of the bytes it takes."""
    taken = 800 + 4 * len(manifest.manifest_path) + len(manifest.key_metadata or b"")
    for s in manifest.partitions or ():
        taken += 240 + len(s.lower_bound or b"") + len(s.upper_bound or b"")
    return taken


def _manifest_file(r: Mapping[str, Any]) -> ManifestFile:
    partitions = _of(r, 507, list)
    return ManifestFile(
        manifest_path=_required(r, 500, _of(r, 500, str)),
        manifest_length=_required(r, 501, _integer(r, 501)),
        partition_spec_id=_required(r, 502, _integer(r, 502, bits=32)),
        content=ManifestContent(_integer(r, 517) or 0),
        sequence_number=_integer(r, 515) or 0,
        min_sequence_number=_integer(r, 516) or 0,
        added_snapshot_id=_integer(r, 503),
        added_files_count=_integer(r, 504, bits=32),
        existing_files_count=_integer(r, 505, bits=32),
        deleted_files_count=_integer(r, 506, bits=32),
        added_rows_count=_integer(r, 512),
        existing_rows_count=_integer(r, 513),
        deleted_rows_count=_integer(r, 514),
        partitions=None if partitions is None else tuple(map(_summary, partitions)),
        key_metadata=_of(r, 519, bytes),
        first_row_id=_integer(r, 520),
    )


def _summary(r: Mapping[str, Any]) -> PartitionFieldSummary:
    return PartitionFieldSummary(
        contains_null=_required(r, 509, _of(r, 509, bool)),
        contains_nan=_of(r, 518, bool),
        lower_bound=_of(r, 510, bytes),
        upper_bound=_of(r, 511, bytes),
    )


def _of(r: Mapping[str, Any], field_id: int, type_: type[T]) -> T | None:
    """A field of a record that has the type the specification gives, whatever its schema says."""
    value = r.get(f"_{field_id}")
    if value is not None and not isinstance(value, type_):
        raise TypeError(f"field {field_id} is {type(value).__name__}, not {type_.__name__}")
    return value


def _integer(r: Mapping[str, Any], field_id: int, *, bits: int = 64) -> int | None:
    value = r.get(f"_{field_id}")
    if value is None:
        return None
    if type(value) is not int or not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(f"field {field_id} is no integer of {bits} bits")
    return value


def _required(r: Mapping[str, Any], field_id: int, value: T | None) -> T:
    if value is None:
        raise ValueError(f"field {field_id} is required")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestHeader:
    """What a manifest says of itself: it keeps its schema and spec when it is rewritten."""

    schema: Schema
    spec: PartitionSpec
    format_version: int
    content: ManifestContent


def read_manifest_header(file_io: FileIO, location: str) -> ManifestHeader:
    """The key-value metadata of a manifest."""
    return _header_of(read_avro(file_io, location))


def read_partition_types(file_io: FileIO, location: str) -> dict[int, Type]:
    """The types that a manifest itself gives its partition fields, by field id.

    Only they tell what the values of an unknown transform are, or of a source column that is gone.
    """
    avro = read_avro(file_io, location)
    return {field_id: primitive_type(type_) for field_id, type_ in avro.written_types.items()}


def _header_of(avro: AvroFile) -> ManifestHeader:
    try:
        schema_json = parse_json(avro.metadata["schema"], "schema")
        fields_json = parse_json(avro.metadata["partition-spec"], "partition-spec")
        schema_id = avro.metadata.get("schema-id")
        schema = schema_from_json(JsonObject(schema_json, "schema"))
        content = avro.metadata.get("content", "data")
        return ManifestHeader(
            schema=schema if schema_id is None else replace(schema, schema_id=int(schema_id)),
            spec=PartitionSpec(
                spec_id=int(avro.metadata.get("partition-spec-id", 0)),
                fields=fields_from_json(
                    JsonObject({"partition-spec": fields_json}), "partition-spec"
                ),
            ),
            format_version=int(avro.metadata.get("format-version", 1)),
            content={"data": ManifestContent.DATA, "deletes": ManifestContent.DELETES}[content],
        )
    except (KeyError, ValueError, InvalidMetadataError) as e:
        raise InvalidMetadataError(
            f"{avro.location}: the manifest's metadata is damaged: {type(e).__name__}: {e}"
        ) from e


def read_manifest_entries(
    file_io: FileIO,
    manifest: ManifestFile,
    partition_type: StructType,
    *,
    drop_deleted: bool = False,
) -> Iterator[ManifestEntry]:
    """The entries of a manifest with all metrics and everything inherited filled in, in order.

    `partition_type` is that of the manifest's own spec.
    """
    table = read_entries(
        file_io, manifest, partition_type, drop_deleted=drop_deleted, metrics="all"
    )
    for batch in table.to_batches(max_chunksize=_ENTRIES_AT_ONCE):
        columns = {name: batch.column(name) for name in batch.schema.names}
        parts = [part.to_pylist() for part in columns.pop("partition").flatten()]
        partitions = zip(*parts, strict=True) if parts else [()] * batch.num_rows
        rows = zip(*(c.to_pylist() for c in columns.values()), strict=True)
        for row, partition in zip(rows, partitions, strict=True):
            yield _manifest_entry(dict(zip(columns, row, strict=True)), partition)


_ENTRIES_AT_ONCE = 4096


def _manifest_entry(row: dict[str, Any], partition: tuple[Any, ...]) -> ManifestEntry:
    for metric in METRIC_MAPS:
        if row[metric] is not None:
            row[metric] = dict(row[metric])
    for name in ("split_offsets", "equality_ids"):
        if row[name] is not None:
            row[name] = tuple(row[name])
    return ManifestEntry(
        status=EntryStatus(row.pop("status")),
        snapshot_id=row.pop("snapshot_id"),
        sequence_number=row.pop("sequence_number"),
        file_sequence_number=row.pop("file_sequence_number"),
        data_file=DataFile(content=FileContent(row.pop("content")), partition=partition, **row),
    )


def write_manifest(
    file_io: FileIO,
    location: str,
    entries: Iterable[ManifestEntry],
    *,
    spec: PartitionSpec,
    schema: Schema,
    partition_type: StructType,
    format_version: int,
    content: ManifestContent,
    snapshot_id: int,
    codec: str = "gzip",
) -> ManifestFile:
    """Write a manifest of one partition spec; its sequence numbers wait for the manifest list.

    Added entries inherit their numbers, an explicit older data sequence number excepted. Existing
    and deleted entries must bring the numbers they were read with.
    """
    writing = _ManifestInWriting(location, format_version, content, snapshot_id, spec.spec_id)
    untyped = [i for i, f in enumerate(partition_type.fields) if isinstance(f.type, UnknownType)]
    avro_schema = manifest_entry_schema(partition_type, format_version)
    partition_names = _partition_names(avro_schema)
    length = write_avro(
        file_io,
        location,
        avro_schema,
        (writing.record(e, partition_names) for e in _typed(entries, spec, untyped, location)),
        metadata={
            "schema": json.dumps(schema_to_json(schema)),
            "schema-id": str(schema.schema_id),
            "partition-spec": json.dumps([partition_field_to_json(f) for f in spec.fields]),
            "partition-spec-id": str(spec.spec_id),
            "format-version": str(format_version),
            "content": content.name.lower(),
        },
        codec=codec,
    )
    manifest = ManifestFile(
        manifest_path=location,
        manifest_length=length,
        partition_spec_id=spec.spec_id,
        content=content,
        sequence_number=UNASSIGNED_SEQUENCE_NUMBER if format_version >= 2 else 0,
        min_sequence_number=(
            writing.min_sequence_number
            if writing.min_sequence_number is not None
            else UNASSIGNED_SEQUENCE_NUMBER
        )
        if format_version >= 2
        else 0,
        added_snapshot_id=snapshot_id,
        partitions=summarise_partitions(partition_type, writing.partitions),
    )
    return _counted(manifest, writing.files, writing.rows)


def _typed(
    entries: Iterable[ManifestEntry], spec: PartitionSpec, untyped: Sequence[int], location: str
) -> Iterator[ManifestEntry]:
    """The entries, unless one has a partition value of which no type is known."""
    for e in entries:
        for i in untyped:
            if e.data_file.partition[i] is not None:
                raise InvalidRequestError(
                    f"{location}: {e.data_file.file_path} has a value of partition field "
                    f"'{spec.fields[i].name}', whose type nothing tells: its transform is not "
                    "known, or its source column is gone"
                )
        yield e


def _partition_names(avro_schema: Mapping[str, Any]) -> tuple[str, ...]:
    data_file = next(f for f in avro_schema["fields"] if f["field-id"] == 2)["type"]
    partition = next(f for f in data_file["fields"] if f["field-id"] == 102)["type"]
    return tuple(f["name"] for f in partition["fields"])


class _ManifestInWriting:
    """Turns entries into Avro records and counts them on the way."""

    def __init__(
        self,
        location: str,
        format_version: int,
        content: ManifestContent,
        snapshot_id: int,
        spec_id: int,
    ) -> None:
        self._location = location
        self._format_version = format_version
        self._content = content
        self._snapshot_id = snapshot_id
        self._spec_id = spec_id
        self.files = dict.fromkeys(EntryStatus, 0)
        self.rows = dict.fromkeys(EntryStatus, 0)
        self.partitions: list[tuple[Any, ...]] = []
        self.min_sequence_number: int | None = None

    def record(self, entry: ManifestEntry, partition_names: tuple[str, ...]) -> dict[str, Any]:
        file = entry.data_file
        self._check(entry)
        self.files[entry.status] += 1
        self.rows[entry.status] += file.record_count
        self.partitions.append(file.partition)
        sequence_number = entry.sequence_number
        if entry.is_live and sequence_number is not None:
            known = self.min_sequence_number
            self.min_sequence_number = (
                sequence_number if known is None else min(known, sequence_number)
            )
        added = entry.status is EntryStatus.ADDED
        snapshot_id = entry.snapshot_id
        return {
            "status": int(entry.status),
            "snapshot_id": self._snapshot_id if snapshot_id is None else snapshot_id,
            "sequence_number": sequence_number,
            "file_sequence_number": None if added else entry.file_sequence_number,
            "data_file": _data_file_record(file, partition_names),
        }

    def _check(self, entry: ManifestEntry) -> None:
        file = entry.data_file
        content = (
            ManifestContent.DATA if file.content is FileContent.DATA else ManifestContent.DELETES
        )
        if content is not self._content:
            raise InvalidRequestError(
                f"{self._location}: {file.file_path} does not belong in a manifest of "
                f"{self._content.name.lower()}"
            )
        if file.spec_id != self._spec_id:
            raise InvalidRequestError(
                f"{self._location}: {file.file_path} is of partition spec {file.spec_id}, "
                f"the manifest of spec {self._spec_id}"
            )
        if self._format_version == 1 and content is ManifestContent.DELETES:
            raise InvalidRequestError(f"{self._location}: a v1 table cannot hold delete files")
        if entry.status is EntryStatus.ADDED:
            return
        numbers = (entry.sequence_number, entry.file_sequence_number)
        missing = entry.snapshot_id is None and entry.status is EntryStatus.EXISTING
        if missing or (self._format_version >= 2 and None in numbers):
            raise InvalidRequestError(
                f"{self._location}: {file.file_path} is {entry.status.name} and must bring its "
                "snapshot id and sequence numbers"
            )


def _data_file_record(file: DataFile, partition_names: tuple[str, ...]) -> dict[str, Any]:
    return {
        "content": int(file.content),
        "file_path": file.file_path,
        # upper case is what Java writes, and some readers compare
        "file_format": file.file_format.upper(),
        "partition": dict(zip(partition_names, file.partition, strict=True)),
        "record_count": file.record_count,
        "file_size_in_bytes": file.file_size_in_bytes,
        "block_size_in_bytes": BLOCK_SIZE_IN_BYTES,
        "column_sizes": _map_record(file.column_sizes),
        "value_counts": _map_record(file.value_counts),
        "null_value_counts": _map_record(file.null_value_counts),
        "nan_value_counts": _map_record(file.nan_value_counts),
        "lower_bounds": _map_record(file.lower_bounds),
        "upper_bounds": _map_record(file.upper_bounds),
        "key_metadata": file.key_metadata,
        "split_offsets": None if file.split_offsets is None else list(file.split_offsets),
        "equality_ids": None if file.equality_ids is None else list(file.equality_ids),
        "sort_order_id": file.sort_order_id,
        "first_row_id": file.first_row_id if file.content is FileContent.DATA else None,
        "referenced_data_file": file.referenced_data_file,
        "content_offset": file.content_offset,
        "content_size_in_bytes": file.content_size_in_bytes,
    }


def _map_record(metrics: Mapping[int, Any] | None) -> list[dict[str, Any]] | None:
    if metrics is None:
        return None
    return [{"key": k, "value": v} for k, v in metrics.items()]
