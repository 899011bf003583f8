"""Rewrites manifest lists and manifests with the paths of a copied table.

All fields are kept, including unknown fields, except paths and values that depend on paths: the
sizes and metrics of position delete files, which contain paths, and the lengths of manifests.
Sequence numbers, row ids and key metadata do not change. Specification, "Manifests" and "Manifest
Lists". `root_copy.py` rewrites manifests in Parquet and root manifests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.formats.avro.avro import AvroFile, damage_error, read_avro, with_other_records
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_files.open_manifest import open_manifest
from iceberg_pyspark.formats.manifest_files.parquet_manifests import ParquetManifest
from iceberg_pyspark.spec.manifests import FileContent, FileFormat, ManifestFile
from iceberg_pyspark.spec.relative_paths import may_hold_relative_paths
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.maintenance.copy.path_mapping import MovedPaths, StoredPaths, move_bounds
from iceberg_pyspark.table.maintenance.copy.root_copy import moved_entries

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
