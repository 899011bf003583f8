"""Reads the deleted positions of one data file from a deletion vector or position delete files.

Specification, "Position Delete Files" and "Deletion Vectors". A deletion vector replaces all
position delete files of its data file. Paths are compared as exact strings
(docs/conformance.md 32 and 37).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from iceberg_pyspark.arrow.arrays import raw_values
from iceberg_pyspark.arrow.file_fields import resolve_file_fields
from iceberg_pyspark.arrow.formats.data_file_formats import RowGroupChoice
from iceberg_pyspark.arrow.formats.open_data_file import open_data_file
from iceberg_pyspark.arrow.read.file_projection import FileProjection
from iceberg_pyspark.errors import InvalidMetadataError, StorageError
from iceberg_pyspark.expressions.predicates import AlwaysTrue, BoundColumn, BoundLiteral, Predicate
from iceberg_pyspark.formats.encoding.decoded_files import DecodedCache
from iceberg_pyspark.formats.puffin.deletion_vectors import (
    positions_mask,
    read_deletion_vector,
    stored_deletion_vector,
)
from iceberg_pyspark.planning.scan_tasks import DeleteFileRef, ScanTask
from iceberg_pyspark.spec.manifests import FileContent
from iceberg_pyspark.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POS
from iceberg_pyspark.spec.name_mapping import MappedField, NameMapping
from iceberg_pyspark.spec.types import StringType
from iceberg_pyspark.storage.encryption.encrypted_io import decrypted
from iceberg_pyspark.storage.files.cache import is_written_once
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.threaded_map import threaded_map

Positions: TypeAlias = npt.NDArray[np.int64]

_CACHE_BYTES = 64 * 1024 * 1024
_WHOLE_FILE_RECORDS = 2_000_000
"""A delete file with more records is decoded for one data file at a time."""
_MAX_GAP_BYTES = 64 * 1024
"""The bytes between two vectors that take less time than a further request."""
_MAX_SPAN_BYTES = 8 * 1024 * 1024

_PATH_COLUMN = BoundColumn(DELETE_FILE_PATH.field_id, DELETE_FILE_PATH.name, StringType(), True)
POSITION_DELETE_NAMES = NameMapping(
    fields=tuple(
        MappedField(field_id=f.field_id, names=(f.name,))
        for f in (DELETE_FILE_PATH, DELETE_FILE_POS)
    )
)
"""The specification fixes the names, so files without field ids can be read too."""

_POSITIONS_CACHE: DecodedCache[Mapping[str, Positions]] = DecodedCache(
    _CACHE_BYTES, lambda by_path: sum(p.nbytes + len(path) for path, p in by_path.items())
)
_VECTORS_CACHE: DecodedCache[BitMap64] = DecodedCache(
    _CACHE_BYTES, lambda bitmap: len(bitmap.serialize())
)


class DeletionVector(NamedTuple):
    """The location of a data file's deletion vector, and its cardinality."""

    file_path: str
    content_offset: int
    content_size_in_bytes: int
    cardinality: int
    key_metadata: bytes | None = None


class DeletedRows(Protocol):
    """The deleted rows of one data file, by position."""

    def mask(self, start: int, length: int) -> npt.NDArray[np.bool_] | None:
        """Return a mask of the range, True for deleted rows, or None if no row is deleted."""
        ...

    def bitmap(self) -> BitMap64:
        """Return all deleted positions; the bitmap is shared, so callers must not change it."""
        ...


class DeletionVectorRows:
    """The rows that a deletion vector deletes."""

    def __init__(self, bitmap: BitMap64) -> None:
        self._bitmap = bitmap

    def mask(self, start: int, length: int) -> npt.NDArray[np.bool_] | None:
        """Return a mask of the range, True for deleted rows, or None if no row is deleted."""
        mask = positions_mask(self._bitmap, start, length)
        return mask if mask.any() else None

    def bitmap(self) -> BitMap64:
        """Return all deleted positions; the bitmap is shared, so callers must not change it."""
        return self._bitmap


class PositionRows:
    """The deleted rows, from sorted distinct positions."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions

    def mask(self, start: int, length: int) -> npt.NDArray[np.bool_] | None:
        """Return a mask of the range, True for deleted rows, or None if no row is deleted."""
        first, last = np.searchsorted(self._positions, [start, start + length])
        if first == last:
            return None
        mask = np.zeros(length, dtype=np.bool_)
        mask[self._positions[first:last] - start] = True
        return mask

    def bitmap(self) -> BitMap64:
        """Return all deleted positions as a new bitmap."""
        return bitmap_of(self._positions)


def read_deleted_rows(
    io: FileIO, task: ScanTask, table: str, *, verify_checksums: bool = False
) -> DeletedRows | None:
    """Return the rows that the task's position deletes remove, or None without position deletes."""
    vector = deletion_vector_of(task, table)
    if vector is not None:
        return DeletionVectorRows(_read_vector(io, vector, table))
    refs = [d for d in task.deletes if d.content is FileContent.POSITION_DELETES]
    positions = [
        p for ref in refs if len(p := _positions_of(io, ref, task.file_path, verify_checksums))
    ]
    if not positions:
        return None
    return PositionRows(
        positions[0] if len(positions) == 1 else np.unique(np.concatenate(positions))
    )


def deletion_vector_of(task: ScanTask, table: str) -> DeletionVector | None:
    """Return the deletion vector of a task's data file, or None; raise if its entry is invalid."""
    vectors = [d for d in task.deletes if d.is_deletion_vector]
    if not vectors:
        return None
    if len(vectors) > 1:
        raise InvalidMetadataError(
            f"table {table}: {task.file_path} has {len(vectors)} deletion vectors "
            f"({', '.join(v.file_path for v in vectors)}); a snapshot may have one per data file"
        )
    (ref,) = vectors
    if ref.referenced_data_file != task.file_path:
        raise InvalidMetadataError(
            f"table {table}: deletion vector of {ref.referenced_data_file} in {ref.file_path} is "
            f"assigned to {task.file_path}"
        )
    if ref.content_offset is None or ref.content_size_in_bytes is None:
        raise InvalidMetadataError(
            f"table {table}: the deletion vector of {task.file_path} in {ref.file_path} has no "
            "content_offset and content_size_in_bytes, which are required"
        )
    return DeletionVector(
        ref.file_path,
        ref.content_offset,
        ref.content_size_in_bytes,
        ref.record_count,
        ref.key_metadata,
    )


def is_only_of(
    io: FileIO, ref: DeleteFileRef, data_file: str, *, verify_checksums: bool = False
) -> bool:
    """Return whether a position delete file refers to that data file and to no other."""
    if ref.referenced_data_file is not None:
        return ref.referenced_data_file == data_file
    return len(_positions_of(io, ref, data_file, verify_checksums)) == ref.record_count


def _read_vector(io: FileIO, vector: DeletionVector, table: str) -> BitMap64:
    place, key_metadata = vector[:4], vector.key_metadata
    read_vector = partial(
        read_deletion_vector, decrypted(io, key_metadata), *place, f"table {table}"
    )
    if not is_written_once(vector.file_path.rpartition("/")[2]):
        return read_vector()
    return _VECTORS_CACHE.get_or_read(io, vector, read_vector)


def fetch_vectors(io: FileIO, tasks: Iterable[ScanTask], table: str) -> None:
    """Read the vectors of tasks into the cache: neighbours in a file by one request.

    A vector that cannot be read so is left to the read that needs it, whose error names it.
    """
    by_file: dict[tuple[str, bytes | None], list[DeletionVector]] = {}
    size = 0
    for task in tasks:
        vector = deletion_vector_of(task, table)
        if vector is None or not is_written_once(vector.file_path.rpartition("/")[2]):
            continue
        size += vector.content_size_in_bytes
        if size > _CACHE_BYTES // 2:
            break
        if _VECTORS_CACHE.get(io, vector) is None:
            by_file.setdefault((vector.file_path, vector.key_metadata), []).append(vector)
    spans = [span for vectors in by_file.values() for span in _spans(vectors) if len(span) > 1]
    for _ in threaded_map(partial(_fetch, io, table), spans, lambda span: span[0].file_path):
        pass


def _spans(vectors: Iterable[DeletionVector]) -> Iterator[list[DeletionVector]]:
    """Yield the vectors of a file by their places, in groups that one request reads."""
    span: list[DeletionVector] = []
    for vector in sorted(vectors, key=lambda v: v.content_offset):
        if span and not (
            vector.content_offset - _end(span[-1]) <= _MAX_GAP_BYTES
            and _end(vector) - span[0].content_offset <= _MAX_SPAN_BYTES
        ):
            yield span
            span = []
        span.append(vector)
    yield span


def _end(vector: DeletionVector) -> int:
    return vector.content_offset + vector.content_size_in_bytes


def _fetch(io: FileIO, table: str, span: list[DeletionVector]) -> None:
    path, start, *_, key_metadata = span[0]
    try:
        data = decrypted(io, key_metadata).read_range(path, start, _end(span[-1]) - start)
    except StorageError:
        return
    for vector in span:
        blob = data[vector.content_offset - start : _end(vector) - start]
        if len(blob) == vector.content_size_in_bytes:
            bitmap = stored_deletion_vector(
                blob, path, vector.content_offset, vector.cardinality, f"table {table}"
            )
            _VECTORS_CACHE.put(io, vector, bitmap)


def _positions_of(
    io: FileIO, ref: DeleteFileRef, data_file: str, verify_checksums: bool = False
) -> Positions:
    """Return the sorted distinct positions of one data file in one delete file."""
    only = data_file if ref.record_count > _WHOLE_FILE_RECORDS else None
    by_path = _POSITIONS_CACHE.get_or_read(
        io,
        (ref.file_path, ref.file_size_in_bytes, ref.record_count, only),
        lambda: _read_positions(io, ref, only, verify_checksums),
    )
    return by_path.get(data_file, np.empty(0, dtype=np.int64))


def _read_positions(
    io: FileIO, ref: DeleteFileRef, only: str | None, verify_checksums: bool
) -> Mapping[str, Positions]:
    parts: dict[str, list[Positions]] = {}
    batches = stored_positions(
        decrypted(io, ref.key_metadata),
        ref.file_path,
        ref.file_format,
        only=only,
        verify_checksums=verify_checksums,
    )
    for paths, positions in batches:
        if only is not None:
            positions = positions.filter(pc.equal(paths, only))
            parts.setdefault(only, []).append(_as_numpy(positions))
        else:
            for path, numbers in positions_by_path(paths, positions):
                parts.setdefault(path, []).append(numbers)
    return {path: np.unique(np.concatenate(arrays)) for path, arrays in parts.items()}


def stored_positions(
    io: FileIO,
    location: str,
    file_format: str,
    *,
    only: str | None = None,
    verify_checksums: bool = False,
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield the paths and positions of a position delete file in file order, batch by batch.

    With `only`, row groups without that data file are skipped. Raises `InvalidMetadataError` for a
    null or a negative position.
    """
    predicate: Predicate = AlwaysTrue() if only is None else BoundLiteral("eq", _PATH_COLUMN, only)
    with open_data_file(io, location, file_format, verify_checksums=verify_checksums) as file:
        projection = FileProjection(
            (DELETE_FILE_PATH, DELETE_FILE_POS),
            resolve_file_fields(file.schema, POSITION_DELETE_NAMES, location),
            partition_values={},
            location=location,
        )
        convert = projection.compile(projection.leaves)
        choice = RowGroupChoice(predicate=predicate, leaf_by_id=projection.exact_leaves)
        for _, batch in file.batches(projection.leaves, choice):
            paths, positions = convert(batch.columns, batch.num_rows)
            _check(paths, positions, location)
            yield paths, positions


def _check(paths: pa.Array, positions: pa.Array, location: str) -> None:
    """Raise for a null or negative position: no wrong delete may be lost or misapplied."""
    for name, column in ((DELETE_FILE_PATH.name, paths), (DELETE_FILE_POS.name, positions)):
        if column.null_count:
            raise InvalidMetadataError(
                f"{location}: a row has no {name}, which every row must have"
            )
    least = pc.min(positions).as_py()
    if least is not None and least < 0:
        raise InvalidMetadataError(f"{location}: position {least} is negative")


def positions_by_path(
    paths: pa.Array, positions: pa.Array, rows: npt.NDArray[np.bool_] | None = None
) -> Iterator[tuple[str, Positions]]:
    """Yield each path, in the order of their first rows, with its positions in their order.

    If `rows` are given, only these count; only others may be null.
    """
    dictionary = paths.dictionary_encode()
    if rows is None:
        codes = dictionary.indices.to_numpy(zero_copy_only=False)
        numbers = _as_numpy(positions)
    else:
        codes, numbers = raw_values(dictionary.indices)[rows], raw_values(positions)[rows]
    if len(dictionary.dictionary) > 1:
        order = np.argsort(codes, kind="stable")
        codes, numbers = codes[order], numbers[order]
    ends = np.cumsum(np.bincount(codes, minlength=len(dictionary.dictionary)))
    start = 0
    for path, end in zip(dictionary.dictionary.to_pylist(), ends.tolist(), strict=True):
        if start < end:
            yield path, numbers[start:end]
        start = end


def bitmap_of(positions: Positions) -> BitMap64:
    """Return positions as a bitmap; `BitMap64` takes a numpy array number by number, this whole."""
    return BitMap64(array("Q", positions.astype(np.uint64).tobytes()))


def _as_numpy(positions: pa.Array) -> Positions:
    array: Positions = positions.to_numpy(zero_copy_only=False)
    return array
