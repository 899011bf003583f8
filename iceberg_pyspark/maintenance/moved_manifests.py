"""Rewrites manifest lists and manifests with the paths of a copied table.

All fields are kept, including unknown fields, except paths and values that depend on paths: the
sizes and metrics of position delete files, which contain paths, and the lengths of manifests.
Sequence numbers, row ids and key metadata do not change. Specification, "Manifests" and "Manifest
Lists".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.maintenance.moved_paths import MovedPaths, move_bounds
from iceberg_pyspark.spec.manifests import EntryStatus, FileContent, FileFormat, ManifestFile
from iceberg_pyspark.storage.avro import damaged, read_avro, with_other_records
from iceberg_pyspark.storage.file_io import FileIO

Kind = Literal["as it is", "positions", "vectors"]


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


def live_files(
    io: FileIO, manifest: ManifestFile, known_snapshot_ids: Collection[int]
) -> Iterator[LiveFile]:
    """Yield the live files of a manifest; a file is new if no known snapshot added it."""
    for record in read_avro(io, manifest.manifest_path).records():
        with _names(manifest.manifest_path):
            if record["_0"] == EntryStatus.DELETED:
                continue
            file = record["_2"]
            snapshot_id = record.get("_1")
            added_by = manifest.added_snapshot_id if snapshot_id is None else snapshot_id
            yield LiveFile(
                path=file["_100"],
                kind=_kind(file),
                file_format=cast("FileFormat", file["_101"].lower()),
                content_offset=file.get("_144"),
                is_new=added_by not in known_snapshot_ids,
            )


def moved_manifest(
    io: FileIO, location: str, paths: MovedPaths, deletes: Mapping[str, MovedDeletes]
) -> bytes:
    """Return the bytes of a manifest with other paths."""
    avro = read_avro(io, location)

    def records() -> Iterator[dict[str, Any]]:
        for record in avro.records():
            with _names(location):
                yield {**record, "_2": _moved_file(record["_2"], paths, deletes)}

    return with_other_records(avro, records())


def moved_manifest_list(
    io: FileIO, location: str, paths: MovedPaths, length_of: Callable[[str], int]
) -> bytes:
    """Return the bytes of a manifest list with other paths and the moved manifests' lengths."""
    avro = read_avro(io, location)

    def records() -> Iterator[dict[str, Any]]:
        for record in avro.records():
            with _names(location):
                path = record["_500"]
                yield {**record, "_500": paths.moved(path), "_501": length_of(path)}

    return with_other_records(avro, records())


def _kind(file: Mapping[str, Any]) -> Kind:
    if (file.get("_134") or 0) != FileContent.POSITION_DELETES:
        return "as it is"
    return "vectors" if file["_101"].lower() == "puffin" else "positions"


def _moved_file(
    file: dict[str, Any], paths: MovedPaths, deletes: Mapping[str, MovedDeletes]
) -> dict[str, Any]:
    path = file["_100"]
    moved = {**file, "_100": paths.moved(path)}
    if file.get("_143") is not None:
        moved["_143"] = paths.moved(file["_143"])
    if _kind(file) != "as it is":
        move_bounds(moved, paths)
        if path in deletes:
            moved["_104"] = deletes[path].file_size_in_bytes
            # only fields that this manifest has
            moved.update({k: v for k, v in deletes[path].metrics.items() if k in file})
    return moved


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
            raise damaged(self._location, f"{error!r} in a record") from error
