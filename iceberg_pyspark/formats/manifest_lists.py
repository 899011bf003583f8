"""Manifest lists: the manifests of a snapshot, which a commit writes and every reader reads.

Specification, "Manifest Lists", "First Row ID Assignment" and Appendix E for v1. A commit learns
its sequence number and first row ids only when it succeeds. A manifest leaves these numbers to
inheritance and the list assigns them, so a retry writes a new list and keeps its manifests byte for
byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.formats.avro.avro import parsed_schema, read_avro, write_avro
from iceberg_pyspark.formats.avro.renamed_schemas import damage_error
from iceberg_pyspark.formats.encoding.decoded_files import DecodedCache, memory_limit, too_large
from iceberg_pyspark.formats.manifest_reader import read_manifest_header
from iceberg_pyspark.formats.roots.root_manifests import read_root_manifest
from iceberg_pyspark.formats.roots.written_roots import written_root
from iceberg_pyspark.spec.avro_schemas import manifest_file_schema
from iceberg_pyspark.spec.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    EntryStatus,
    ManifestContent,
    ManifestFile,
    ManifestPart,
    PartitionFieldSummary,
    next_row_id_after,
    with_counts,
)
from iceberg_pyspark.spec.relative_paths import (
    may_hold_relative_paths,
    older_path,
    resolved_path,
)
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.storage.encryption.encrypted_io import decrypted, encryption_of
from iceberg_pyspark.storage.files.file_io import FileIO

T = TypeVar("T")

_CACHE_BYTES = 32 * 1024 * 1024
_LISTS: DecodedCache[tuple[ManifestFile, ...]] = DecodedCache(
    _CACHE_BYTES, lambda manifests: sum(map(_memory_of, manifests))
)
_WRITTEN_LISTS: DecodedCache[tuple[ManifestFile, ...]] = DecodedCache(
    _CACHE_BYTES // 4, lambda manifests: sum(map(_memory_of, manifests))
)
"""Lists that this process wrote, for its next commit; scans read the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenManifestList:
    """The values that a manifest list assigned; `manifests` are as a reader will see them.

    `next_row_id` is the first unassigned row id, `added_rows` the snapshot's `added-rows`; both are
    None before v3.
    """

    manifests: tuple[ManifestFile, ...]
    next_row_id: int | None
    added_rows: int | None
    key_metadata: bytes | None = field(default=None, repr=False)


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

    Manifests with an unassigned sequence number get the snapshot's. `first_row_id` is the table's
    `next-row-id` and required since v3: data manifests without a first row id are assigned ids from
    it, in order.
    """
    if format_version >= 3 and first_row_id is None:
        raise InvalidRequestError(
            f"{location}: a v{format_version} manifest list needs a first row id"
        )
    assigned_manifests = [_with_sequence_number(m, snapshot_id, sequence_number) for m in manifests]
    if format_version >= 2:
        assigned_manifests = [with_known_counts(file_io, m) for m in assigned_manifests]
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
        assigned_manifests, next_row_id = _with_first_row_ids(assigned_manifests, next_row_id)
    _, key_metadata = write_avro(
        file_io,
        location,
        _list_schema(format_version),
        (_manifest_file_record(m, location, format_version) for m in assigned_manifests),
        metadata=metadata,
        codec=codec,
    )
    _WRITTEN_LISTS.put(file_io, location, tuple(assigned_manifests))
    return WrittenManifestList(
        manifests=tuple(assigned_manifests),
        next_row_id=next_row_id,
        added_rows=None
        if next_row_id is None or first_row_id is None
        else next_row_id - first_row_id,
        key_metadata=key_metadata,
    )


@lru_cache
def _list_schema(format_version: int) -> Mapping[str, Any]:
    return parsed_schema(manifest_file_schema(format_version))


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
    is_unassigned = manifest.min_sequence_number == UNASSIGNED_SEQUENCE_NUMBER
    return replace(
        manifest,
        sequence_number=sequence_number,
        min_sequence_number=sequence_number if is_unassigned else manifest.min_sequence_number,
    )


def with_known_counts(file_io: FileIO, manifest: ManifestFile) -> ManifestFile:
    """Fill in the counts that v1 lists may omit and v2 requires, by reading the manifest."""
    counts = (
        manifest.added_files_count,
        manifest.existing_files_count,
        manifest.deleted_files_count,
        manifest.added_rows_count,
        manifest.existing_rows_count,
        manifest.deleted_rows_count,
    )
    if None not in counts:
        return manifest
    files = dict.fromkeys(EntryStatus, 0)
    rows = dict.fromkeys(EntryStatus, 0)
    avro = read_avro(decrypted(file_io, manifest.key_metadata), manifest.manifest_path)
    for record in avro.records():
        status = EntryStatus(record["_0"])
        files[status] += 1
        rows[status] += record["_2"]["_103"]
    return with_counts(manifest, files, rows)


def _with_first_row_ids(
    manifests: Iterable[ManifestFile], next_row_id: int
) -> tuple[list[ManifestFile], int]:
    assigned_manifests = []
    for m in manifests:
        if m.content is ManifestContent.DELETES:
            assigned_manifests.append(replace(m, first_row_id=None))
        elif m.first_row_id is not None:
            assigned_manifests.append(m)
        else:
            assigned_manifests.append(replace(m, first_row_id=next_row_id))
            # with_known_counts has already filled in the counts
            rows = (m.added_rows_count or 0) + (m.existing_rows_count or 0)
            next_row_id = next_row_id_after(next_row_id, rows, m.manifest_path)
    return assigned_manifests, next_row_id


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
    """Return the manifests in a snapshot's root manifest, manifest list or inline v1 list."""
    if snapshot.root_manifest is not None:
        return list(
            _LISTS.get_or_read(
                file_io,
                (snapshot.root_manifest, snapshot.table_location, snapshot.snapshot_id),
                lambda: tuple(read_root_manifest(file_io, str(snapshot.root_manifest), snapshot)),
            )
        )
    if snapshot.manifest_list is not None:
        manifests = read_manifest_list(
            _list_io(file_io, snapshot),
            snapshot.manifest_list,
            table_location=snapshot.table_location,
        )
        _check_not_cut(snapshot, len(manifests))
        return manifests
    return [
        _manifest_without_list(file_io, location, snapshot) for location in snapshot.manifests or ()
    ]


def _list_io(file_io: FileIO, snapshot: Snapshot) -> FileIO:
    """Return a store for reading a snapshot's manifest list, encrypted or not."""
    if snapshot.key_id is None:
        return file_io
    encryption = encryption_of(file_io)
    if snapshot.list_key is None or encryption is None:
        raise InvalidMetadataError(
            f"{snapshot.manifest_list}: it is encrypted, and encryption-keys has no key "
            f"{snapshot.key_id}, or not the key that encrypts this key; the metadata is damaged"
        )
    return decrypted(file_io, encryption.list_key_metadata(snapshot.list_key))


def read_other_manifests(
    file_io: FileIO, snapshot: Snapshot, known_manifests: Mapping[ManifestPart, ManifestFile]
) -> list[ManifestFile]:
    """Return a snapshot's manifests whose `part` is not in `known_manifests`, and perhaps others.

    Lists of neighbouring snapshots share nearly all manifests: a thousand lists may have half a
    million entries, most of which need not become objects.
    """
    location = snapshot.manifest_list
    if (
        location is None
        or snapshot.root_manifest is not None
        or snapshot.table_location is not None
    ):
        return read_snapshot_manifests(file_io, snapshot)
    parsed_list = _parse_list(_list_io(file_io, snapshot), location, None, known_manifests)
    if not parsed_list.manifests:
        _check_not_cut(snapshot, parsed_list.length)
    return list(parsed_list.manifests)


def _check_not_cut(snapshot: Snapshot, count: int) -> None:
    """Raise an error for an empty list of a snapshot with data files.

    A list that is cut after its header is a valid Avro file of an empty table.
    """
    data_files = snapshot.summary.get("total-data-files", "0")
    if not count and data_files != "0":
        raise InvalidMetadataError(
            f"{snapshot.manifest_list}: the manifest list has no manifests, but snapshot "
            f"{snapshot.snapshot_id} has {data_files} data files; the file is truncated"
        )


def manifests_to_build_on(file_io: FileIO, snapshot: Snapshot) -> list[ManifestFile]:
    """Return a snapshot's manifests without reading a list or root that this process wrote."""
    if snapshot.root_manifest is not None:
        root = written_root(file_io, snapshot.root_manifest)
        written_manifests = (
            None if root is None else root.manifests(snapshot.root_manifest, snapshot)
        )
        return (
            read_snapshot_manifests(file_io, snapshot)
            if written_manifests is None
            else written_manifests
        )
    location = snapshot.manifest_list
    if location is None:
        return read_snapshot_manifests(file_io, snapshot)
    return list(
        _WRITTEN_LISTS.get_or_read(
            file_io, location, lambda: tuple(read_snapshot_manifests(file_io, snapshot))
        )
    )


def _manifest_without_list(file_io: FileIO, location: str, snapshot: Snapshot) -> ManifestFile:
    header = read_manifest_header(file_io, location)
    return ManifestFile(
        manifest_path=location,
        manifest_length=file_io.size(location),
        partition_spec_id=header.spec.spec_id,
        content=header.content,
        added_snapshot_id=snapshot.snapshot_id,
        table_location=snapshot.table_location,
    )


def read_manifest_list(
    file_io: FileIO, location: str, *, table_location: str | None = None
) -> list[ManifestFile]:
    """Return the manifests of a list of any format version, in order.

    `table_location` is the base of relative paths; None in tables before version 4.
    """
    return list(
        _LISTS.get_or_read(
            file_io,
            (location, table_location),
            lambda: _parse_list(file_io, location, table_location).manifests,
        )
    )


class _ParsedList(NamedTuple):
    manifests: tuple[ManifestFile, ...]
    length: int


def _parse_list(
    file_io: FileIO,
    location: str,
    table_location: str | None,
    known_manifests: Mapping[ManifestPart, ManifestFile] = MappingProxyType({}),
) -> _ParsedList:
    """Return the manifests of a list that are not in `known_manifests`, and the list's length."""
    avro = read_avro(file_io, location)
    is_resolved = may_hold_relative_paths(avro.metadata.get("format-version"))
    absolute = resolved_path if is_resolved else older_path
    manifests = []
    count = 0
    room = memory_limit(avro.size) // 2
    try:
        for record in avro.records():
            count += 1
            if known_manifests:
                # unchecked values from the file: a value of another type matches no known part
                part: Any = (record.get("_500"), record.get("_517") or 0, record.get("_502"))
                same = known_manifests.get(part)
                if same is not None and same.dead_positions is None:
                    continue
            manifest = _manifest_file(record)
            if table_location is not None:
                path = manifest.manifest_path
                manifest = replace(
                    manifest,
                    manifest_path=absolute(path, table_location),
                    table_location=table_location,
                )
            manifests.append(manifest)
            room -= _memory_of(manifests[-1])
            if room < 0:
                raise too_large(location, avro.size)
        return _ParsedList(tuple(manifests), count)
    except (AttributeError, TypeError, ValueError) as e:
        raise damage_error(location, f"{e} in a manifest list's record") from e


def _memory_of(manifest: ManifestFile) -> int:
    """Return an upper bound of the bytes that the object takes."""
    size = 800 + 4 * len(manifest.manifest_path) + len(manifest.key_metadata or b"")
    for s in manifest.partitions or ():
        size += 240 + len(s.lower_bound or b"") + len(s.upper_bound or b"")
    return size


def _manifest_file(r: Mapping[str, Any]) -> ManifestFile:
    partitions = _typed_field(r, 507, list)
    return ManifestFile(
        manifest_path=_require(r, 500, _typed_field(r, 500, str)),
        manifest_length=_require(r, 501, _integer(r, 501)),
        partition_spec_id=_require(r, 502, _integer(r, 502, bits=32)),
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
        key_metadata=_typed_field(r, 519, bytes),
        first_row_id=_integer(r, 520),
    )


def _summary(r: Mapping[str, Any]) -> PartitionFieldSummary:
    return PartitionFieldSummary(
        contains_null=_require(r, 509, _typed_field(r, 509, bool)),
        contains_nan=_typed_field(r, 518, bool),
        lower_bound=_typed_field(r, 510, bytes),
        upper_bound=_typed_field(r, 511, bytes),
    )


def _typed_field(r: Mapping[str, Any], field_id: int, type_: type[T]) -> T | None:
    """Return a field of a record; raise `TypeError` if it lacks the type in the specification."""
    value = r.get(f"_{field_id}")
    if value is not None and not isinstance(value, type_):
        raise TypeError(f"field {field_id} is {type(value).__name__}, not {type_.__name__}")
    return value


def _integer(r: Mapping[str, Any], field_id: int, *, bits: int = 64) -> int | None:
    value = r.get(f"_{field_id}")
    if value is None:
        return None
    if type(value) is not int or not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(f"field {field_id} is not an integer of {bits} bits")
    return value


def _require(r: Mapping[str, Any], field_id: int, value: T | None) -> T:
    if value is None:
        raise ValueError(f"field {field_id} is required")
    return value
