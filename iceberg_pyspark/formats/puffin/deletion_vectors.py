"""Deletion vectors: the positions of a data file's deleted rows, as a blob of a Puffin file.

Specification, "Deletion Vectors"; Puffin specification, blob type `deletion-vector-v1`:

    length of magic and vector (int32 BE) | magic D1 D3 39 64 | vector | CRC-32 of both (int32 BE)

The vector is a 64-bit Roaring bitmap in its portable form. Blobs are located by the offset and size
in the delete entry, never by the Puffin footer, which some writers have omitted.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.formats.puffin.puffin import PuffinWriter
from iceberg_pyspark.spec.metadata_columns import POS
from iceberg_pyspark.storage.encryption.encrypted_io import stored_file
from iceberg_pyspark.storage.files.file_io import FileIO

BLOB_TYPE = "deletion-vector-v1"

_MAGIC = bytes.fromhex("d1d33964")
_SMALLEST_BLOB = 4 + 4 + 8 + 4
# The highest key is a signed 32-bit integer in Java, and its last value is never used
_MAX_POSITION = ((2**31 - 2) << 32) | 2**31
# When the blob is written, the snapshot that will commit it is unknown
_UNKNOWN = -1


class DeletionVectorBlob(NamedTuple):
    """The place of a deletion vector in its Puffin file, and the number of rows that it deletes.

    `file_size_in_bytes` is the stored size of the whole Puffin file.
    """

    content_offset: int
    content_size_in_bytes: int
    cardinality: int
    file_size_in_bytes: int
    key_metadata: bytes | None = None


def encode_deletion_vector(positions: Iterable[int]) -> bytes:
    """Return the blob for row positions in any order, with or without duplicates.

    A `BitMap64` is the fastest input.
    """
    bitmap = _bitmap(positions)
    bitmap.run_optimize()
    body = _MAGIC + bitmap.serialize()
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def decode_deletion_vector(data: bytes, where: str) -> BitMap64:
    """Return the positions in a blob; `where` begins the message of every error."""
    if len(data) < _SMALLEST_BLOB:
        raise InvalidMetadataError(f"{where}: {len(data)} bytes are too few for a deletion vector")
    length = int.from_bytes(data[:4], "big")
    if length != len(data) - 8:
        raise InvalidMetadataError(
            f"{where}: the deletion vector says {length} bytes, {len(data) - 8} are there"
        )
    body = data[4:-4]
    if body[:4] != _MAGIC:
        raise InvalidMetadataError(f"{where}: no deletion vector (wrong magic {body[:4].hex()})")
    if zlib.crc32(body) != int.from_bytes(data[-4:], "big"):
        raise InvalidMetadataError(f"{where}: damaged deletion vector (wrong checksum)")
    try:
        # pyroaring checks that keys ascend and that every container keeps its bounds and order
        bitmap = BitMap64.deserialize(body[4:])
    except ValueError as e:
        raise InvalidMetadataError(f"{where}: damaged deletion vector ({e})") from e
    if bitmap and bitmap.max() > _MAX_POSITION:
        raise InvalidMetadataError(f"{where}: position {bitmap.max()} is beyond any file")
    return bitmap


def read_deletion_vector(
    io: FileIO,
    file_path: str,
    content_offset: int,
    content_size: int,
    expected_cardinality: int | None,
    where: str,
) -> BitMap64:
    """Read one vector by its offset and size, and check its cardinality."""
    data = io.read_range(file_path, content_offset, content_size)
    return stored_deletion_vector(data, file_path, content_offset, expected_cardinality, where)


def stored_deletion_vector(
    data: bytes,
    file_path: str,
    content_offset: int,
    expected_cardinality: int | None,
    where: str,
) -> BitMap64:
    """Return the positions in the blob at this place, and check its cardinality."""
    place = f"{where}: deletion vector at {content_offset} of {file_path}"
    bitmap = decode_deletion_vector(data, place)
    if expected_cardinality is not None and len(bitmap) != expected_cardinality:
        raise InvalidMetadataError(
            f"{place}: deletes {len(bitmap)} rows, its manifest entry says {expected_cardinality}"
        )
    return bitmap


def positions_mask(bitmap: BitMap64, start: int, length: int) -> npt.NDArray[np.bool_]:
    """Return a mask of rows `start` to `start + length` of the data file: True for deleted rows."""
    mask = np.zeros(length, dtype=np.bool_)
    within = bitmap & BitMap64(range(start, start + length))
    if within:
        mask[np.frombuffer(within.to_array(), dtype=np.uint64).astype(np.int64) - start] = True
    return mask


def write_deletion_vectors(
    io: FileIO, location: str, positions_by_data_file: Mapping[str, Iterable[int]]
) -> dict[str, DeletionVectorBlob]:
    """Write one Puffin file with a vector for each data file; an empty vector is refused."""
    bitmaps = {data_file: _bitmap(p) for data_file, p in positions_by_data_file.items()}
    for data_file, bitmap in bitmaps.items():
        if not bitmap:
            raise InvalidRequestError(f"{location}: no deleted rows given for {data_file}")
    places = {}
    with io.open_output(location) as stream, PuffinWriter(stream) as puffin:
        for data_file, bitmap in bitmaps.items():
            places[data_file] = puffin.add_blob(
                type=BLOB_TYPE,
                fields=[POS.field_id],
                snapshot_id=_UNKNOWN,
                sequence_number=_UNKNOWN,
                data=encode_deletion_vector(bitmap),
                properties={"referenced-data-file": data_file, "cardinality": str(len(bitmap))},
            )
    stored = stored_file(stream, puffin.file_size)
    return {
        data_file: DeletionVectorBlob(*places[data_file], len(bitmap), *stored)
        for data_file, bitmap in bitmaps.items()
    }


def _bitmap(positions: Iterable[int]) -> BitMap64:
    try:
        bitmap = BitMap64(positions)
    except OverflowError as e:
        raise InvalidRequestError(f"row positions must be 0 to {_MAX_POSITION}: {e}") from e
    if bitmap and bitmap.max() > _MAX_POSITION:
        raise InvalidRequestError(f"row position {bitmap.max()} is beyond {_MAX_POSITION}")
    return bitmap
