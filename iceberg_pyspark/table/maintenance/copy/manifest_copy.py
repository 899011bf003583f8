"""Rewrites manifest lists, manifests and root manifests with the paths of a copied table.

All fields are kept, including unknown fields, except paths and values that depend on paths: the
sizes and metrics of position delete files, which contain paths, and the lengths of manifests.
Sequence numbers, row ids and key metadata do not change. Specification, "Manifests" and "Manifest
Lists".

In Parquet (specification of version 4, "Paths in Metadata", and the proposal "Single-file commits")
relative paths stay as they are: a file that has no other paths, and names no file of another size,
is copied unchanged. A column that this package does not know could hold paths, so a file that has
values in one is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.errors import IcebergError, UnsupportedFeatureError
from iceberg_pyspark.formats.avro.avro import AvroFile, read_avro, with_other_records
from iceberg_pyspark.formats.avro.renamed_schemas import damage_error
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_files.open_manifest import open_manifest
from iceberg_pyspark.formats.manifest_files.parquet_manifests import ParquetManifest, field_id_of
from iceberg_pyspark.formats.roots.content_entry_reader import profile_of
from iceberg_pyspark.spec.content_entries import Profile
from iceberg_pyspark.spec.manifests import FileContent, FileFormat, ManifestFile
from iceberg_pyspark.spec.relative_paths import may_hold_relative_paths
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.maintenance.copy.path_mapping import MovedPaths, StoredPaths, move_bounds

Kind = Literal["as it is", "positions", "vectors"]

_NO_PARTITION = StructType(fields=())


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedDeletes:
    """A delete file with other paths: its size, and the metrics of a position delete file.

    `metrics` has the keys of manifest records, `_<field id>`.
    """

    file_size_in_bytes: int
    metrics: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFile:
    """A live file of a manifest; `is_new`: a copy of the start version does not have the file."""

    path: str
    kind: Kind
    file_format: FileFormat
    content_offset: int | None
    is_new: bool


def vector_file(path: str, *, is_new: bool) -> LiveFile:
    """Return a Puffin file with deletion vectors of manifests, which no manifest lists."""
    return LiveFile(
        path=path, kind="vectors", file_format="puffin", content_offset=None, is_new=is_new
    )


def live_files(
    io: FileIO, manifest: ManifestFile, known_snapshot_ids: Collection[int]
) -> Iterator[LiveFile]:
    """Yield the live files of a manifest; a file is new if no known snapshot added it."""
    entries = read_entries(io, manifest, _NO_PARTITION)
    columns = ("file_path", "content", "file_format", "content_offset", "snapshot_id")
    for path, content, file_format, offset, added_by in zip(
        *(entries[name].to_pylist() for name in columns), strict=True
    ):
        yield LiveFile(
            path=path,
            kind=_kind(content, file_format),
            file_format=cast("FileFormat", file_format),
            content_offset=offset,
            is_new=added_by not in known_snapshot_ids,
        )


def moved_manifest(
    io: FileIO, location: str, paths: MovedPaths, deletes: Mapping[str, MovedDeletes]
) -> bytes | None:
    """Return the bytes of a manifest with other paths, or None if the copy is the same file."""
    manifest = open_manifest(io, location)
    if isinstance(manifest, ParquetManifest):
        sizes = {path: moved.file_size_in_bytes for path, moved in deletes.items()}
        return moved_entries(manifest, paths, sizes)
    avro = read_avro(io, location)
    stored_paths = _stored_paths(avro, paths)

    def records() -> Iterator[dict[str, Any]]:
        for record in avro.records():
            with _names(location):
                yield {**record, "_2": _moved_file(record["_2"], stored_paths, deletes)}

    return with_other_records(avro, records())


def moved_manifest_list(
    io: FileIO, location: str, paths: MovedPaths, lengths: Mapping[str, int]
) -> bytes:
    """Return the bytes of a manifest list with other paths and the moved manifests' lengths."""
    avro = read_avro(io, location)
    stored_paths = _stored_paths(avro, paths)

    def records() -> Iterator[dict[str, Any]]:
        for record in avro.records():
            with _names(location):
                path = record["_500"]
                length = lengths[stored_paths.absolute(path)]
                yield {**record, "_500": stored_paths.move(path), "_501": length}

    return with_other_records(avro, records())


def _stored_paths(avro: AvroFile, paths: MovedPaths) -> StoredPaths:
    is_relative = may_hold_relative_paths(avro.metadata.get("format-version"))
    return StoredPaths(paths, base=paths.table_location if is_relative else None)


def _kind(content: int | None, file_format: str) -> Kind:
    if (content or 0) != FileContent.POSITION_DELETES:
        return "as it is"
    return "vectors" if file_format.lower() == "puffin" else "positions"


def _moved_file(
    file: dict[str, Any], stored_paths: StoredPaths, deletes: Mapping[str, MovedDeletes]
) -> dict[str, Any]:
    path = file["_100"]
    moved_record = {**file, "_100": stored_paths.move(path)}
    if file.get("_143") is not None:
        moved_record["_143"] = stored_paths.move(file["_143"])
    if _kind(file.get("_134"), file["_101"]) != "as it is":
        move_bounds(moved_record, stored_paths.paths)
        moved_deletes = deletes.get(stored_paths.absolute(path))
        if moved_deletes is not None:
            moved_record["_104"] = moved_deletes.file_size_in_bytes
            # only fields that this manifest has
            moved_record.update({k: v for k, v in moved_deletes.metrics.items() if k in file})
    return moved_record


class _names:  # noqa: N801 - reads as a statement
    """A context manager whose errors name the file with the wrong record."""

    def __init__(self, location: str) -> None:
        self._location = location

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, (KeyError, TypeError, AttributeError)) and not isinstance(
            error, IcebergError
        ):
            raise damage_error(self._location, f"{error!r} in a record") from error


_Place = tuple[int, ...]

_DATA_FILE = 2
_ENTRY_IDS = frozenset((0, 1, _DATA_FILE, 3, 4))
_FILE_IDS = frozenset(
    (
        *(100, 101, 102, 103, 104, 105, 108, 109, 110, 111, 125, 128, 131, 132, 134, 135),
        *(137, 140, 142, 143, 144, 145, 146),
    )
)
"""The ids of the struct `data_file`: specification, "Data File Fields"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """Where the paths of an entry are, by field ids, and the ids of the known columns."""

    location: _Place
    other_paths: Sequence[_Place]
    size: _Place
    known_ids: Mapping[_Place, Collection[int]]


_MANIFEST_ENTRIES = _Form(
    location=(_DATA_FILE, 100),
    other_paths=((_DATA_FILE, 143),),
    size=(_DATA_FILE, 104),
    known_ids={(): _ENTRY_IDS, (_DATA_FILE,): _FILE_IDS},
)


def moved_entries(
    manifest: ParquetManifest, paths: MovedPaths, sizes: Mapping[str, int]
) -> bytes | None:
    """Return the bytes of a root manifest or Parquet manifest with other paths.

    `sizes` has the new size of each file that has other bytes in the copy, by the absolute path in
    the table. The result is None if the file has no path or size to change. Raises
    `UnsupportedFeatureError` for entries that cannot be rewritten.
    """
    is_relative = may_hold_relative_paths(manifest.metadata.get("format-version"))
    stored_paths = StoredPaths(paths, base=paths.table_location if is_relative else None)
    profile = profile_of(manifest.raw_entries(stats_of=()))
    form = _MANIFEST_ENTRIES if profile is None else _form_of(profile)

    def change(rows: pa.Table) -> pa.Table:
        _check_columns(rows, form, manifest.location)
        if profile is None:
            _check_no_positions(rows, manifest.location)
        locations = _values(rows, form.location)
        rows = _with_values(rows, form.location, _move_paths(locations, stored_paths))
        for place in form.other_paths:
            rows = _with_values(rows, place, _move_paths(_values(rows, place), stored_paths))
        old_sizes = _values(rows, form.size)
        new_sizes = [
            size if path is None else sizes.get(stored_paths.absolute(path), size)
            for path, size in zip(locations, old_sizes, strict=True)
        ]
        return _with_values(rows, form.size, new_sizes)

    return manifest.with_other_entries(change)


def moved_root(
    io: FileIO, location: str, paths: MovedPaths, sizes: Mapping[str, int]
) -> bytes | None:
    """Return the bytes of a root manifest with other paths; otherwise like `moved_entries`."""
    root = open_manifest(io, location)
    if not isinstance(root, ParquetManifest):
        raise root.damage_error("it is referenced as a root manifest, and is not in Parquet")
    return moved_entries(root, paths, sizes)


def _form_of(profile: Profile) -> _Form:
    places = profile.paths
    return _Form(
        location=places["location"],
        other_paths=[places[r] for r in ("referenced_file", "vector_location") if r in places],
        size=places["file_size_in_bytes"],
        known_ids={(): profile.top_level_ids},
    )


def _move_paths(values: Iterable[str | None], stored_paths: StoredPaths) -> list[str | None]:
    return [None if path is None else stored_paths.move(path) for path in values]


def _check_columns(rows: pa.Table, form: _Form, location: str) -> None:
    for place, ids in form.known_ids.items():
        for field, array in _children(rows, place):
            field_id = field_id_of(field)
            if field_id not in ids and array.null_count < len(array):
                raise UnsupportedFeatureError(
                    f"{location}: the meaning of its column '{field.name}' (field id {field_id}) "
                    "is unknown, and it could hold paths; use a newer version of this package"
                )


def _check_no_positions(rows: pa.Table, location: str) -> None:
    """Refuse position delete files: the manifest's metrics of them would have to change too."""
    contents = _values(rows, (_DATA_FILE, 134))
    formats = _values(rows, (_DATA_FILE, 101))
    for content, file_format in zip(contents, formats, strict=True):
        if content == FileContent.POSITION_DELETES and str(file_format).lower() != "puffin":
            raise UnsupportedFeatureError(
                f"{location}: paths of position delete files in a Parquet manifest are not "
                "rewritten; replace these files by deletion vectors with the engine that wrote "
                "them"
            )


def _children(rows: pa.Table, place: _Place) -> list[tuple[pa.Field, pa.Array]]:
    """Return the columns of a table, or the fields of a struct in it."""
    columns = [(f, rows.column(i).combine_chunks()) for i, f in enumerate(rows.schema)]
    for field_id in place:
        columns = next(
            (
                list(zip(field.type, array.flatten(), strict=True))
                for field, array in columns
                if field_id_of(field) == field_id
            ),
            [],
        )
    return columns


def _values(rows: pa.Table, place: _Place) -> list[Any]:
    """Return the values of a column; all are None if the table has no such column."""
    *structs, field_id = place
    for field, array in _children(rows, tuple(structs)):
        if field_id_of(field) == field_id:
            values: list[Any] = array.to_pylist()
            return values
    return [None] * rows.num_rows


def _with_values(rows: pa.Table, place: _Place, values: Sequence[Any]) -> pa.Table:
    """Return the table with other values in a column, if the table has the column."""
    for i, field in enumerate(rows.schema):
        if field_id_of(field) == place[0]:
            array = rows.column(i).combine_chunks()
            return rows.set_column(i, field, _with_child(array, field.type, place[1:], values))
    return rows


def _with_child(
    array: pa.Array, type_: pa.DataType, place: _Place, values: Sequence[Any]
) -> pa.Array:
    if not place:
        return pa.array(values, type_)
    fields = list(type_)
    children = [
        _with_child(array.field(i), field.type, place[1:], values)
        if field_id_of(field) == place[0]
        else array.field(i)
        for i, field in enumerate(fields)
    ]
    mask = pc.is_null(array) if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
