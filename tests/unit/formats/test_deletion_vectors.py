"""Deletion vectors: bytes, masks, files. docs/conformance.md 35 and 36."""

from __future__ import annotations

import random
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile
from pyroaring import BitMap, BitMap64

from iceberg_pyspark.errors import IcebergError, InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.formats.puffin.deletion_vectors import (
    decode_deletion_vector,
    encode_deletion_vector,
    positions_mask,
    read_deletion_vector,
    write_deletion_vectors,
)
from iceberg_pyspark.formats.puffin.puffin import read_puffin_footer
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO

HIGHEST = ((2**31 - 2) << 32) | 2**31

positions_strategy = st.sets(
    st.one_of(
        st.integers(0, 200),
        st.integers(0, 200_000),
        st.integers(2**32 - 5, 2**32 + 5),
        st.integers(0, HIGHEST),
    ),
    max_size=200,
)


def framed(vector: bytes) -> bytes:
    """Return a deletion vector blob built by the text of the specification."""
    body = bytes.fromhex("d1d33964") + vector
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def vector_of(*bitmaps: tuple[int, bytes]) -> bytes:
    return len(bitmaps).to_bytes(8, "little") + b"".join(
        key.to_bytes(4, "little") + data for key, data in bitmaps
    )


# portable 32-bit Roaring: cookie, number of containers, (key, cardinality - 1), offsets, values
ARRAY_1_2_300 = (
    b"\x3a\x30\x00\x00" + b"\x01\x00\x00\x00" + b"\x00\x00\x02\x00" + b"\x10\x00\x00\x00"
    b"\x01\x00\x02\x00\x2c\x01"
)
# cookie for run containers with (count - 1) in its upper half, flags, (key, cardinality - 1),
# number of runs, runs of (start, length - 1)
RUN_5_TO_104 = (
    b"\x3b\x30\x00\x00" + b"\x01" + b"\x00\x00\x63\x00" + b"\x01\x00" + b"\x05\x00\x63\x00"
)
EVENS_TO_9998 = b"\x3a\x30\x00\x00\x01\x00\x00\x00\x00\x00\x87\x13\x10\x00\x00\x00" + (
    b"\x55" * 1250
).ljust(8192, b"\0")


@pytest.mark.parametrize(
    ("vector", "positions"),
    [
        (vector_of(), []),
        (vector_of((0, ARRAY_1_2_300)), [1, 2, 300]),
        (vector_of((0, RUN_5_TO_104)), range(5, 105)),
        (vector_of((0, EVENS_TO_9998)), range(0, 10_000, 2)),
        (
            vector_of((0, ARRAY_1_2_300), (1, ARRAY_1_2_300)),
            [1, 2, 300, 2**32 + 1, 2**32 + 2, 2**32 + 300],
        ),
        (vector_of((2**31 - 2, ARRAY_1_2_300)), [((2**31 - 2) << 32) + p for p in (1, 2, 300)]),
    ],
    ids=["empty", "array", "run", "bitmap", "two-keys", "highest-key"],
)
def test_vectors_by_hand_decode(vector: bytes, positions: list[int]) -> None:
    """docs/conformance.md 36."""
    assert list(decode_deletion_vector(framed(vector), "dv")) == list(positions)


def test_a_small_vector_encodes_to_these_bytes() -> None:
    """docs/conformance.md 36."""
    assert encode_deletion_vector([300, 1, 2, 1]) == framed(vector_of((0, ARRAY_1_2_300)))


def test_runs_are_encoded_as_runs() -> None:
    assert encode_deletion_vector(range(5, 105)) == framed(vector_of((0, RUN_5_TO_104)))


@given(positions_strategy)
def test_encoded_vector_decodes_to_its_positions(positions: set[int]) -> None:
    """docs/conformance.md 36."""
    assert set(decode_deletion_vector(encode_deletion_vector(positions), "dv")) == positions


def test_every_kind_of_iterable_encodes_alike() -> None:
    expected = encode_deletion_vector([3, 70_000])
    for positions in (
        {3, 70_000},
        BitMap64([3, 70_000]),
        np.array([70_000, 3], dtype=np.int64),
        np.array([70_000, 3], dtype=np.uint64),
        (p for p in (3, 70_000)),
    ):
        assert encode_deletion_vector(positions) == expected


@pytest.mark.parametrize("position", [-1, HIGHEST + 1, 2**64])
def test_positions_out_of_range_are_refused(position: int) -> None:
    with pytest.raises(InvalidRequestError):
        encode_deletion_vector([position])
    assert list(decode_deletion_vector(encode_deletion_vector([HIGHEST]), "dv")) == [HIGHEST]


GOOD = framed(vector_of((0, ARRAY_1_2_300)))


@pytest.mark.parametrize(
    ("blob", "message"),
    [
        (b"", "too few"),
        (GOOD[:19], "too few"),
        (GOOD[:-1], "bytes"),
        (GOOD + b"\0", "bytes"),
        ((2**31).to_bytes(4, "big") + GOOD[4:], "bytes"),
        (GOOD[:4] + b"\xd1\xd3\x39\x65" + GOOD[8:], "magic"),
        (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), "checksum"),
        (framed(vector_of((1, ARRAY_1_2_300), (0, ARRAY_1_2_300))), "damaged"),
        (framed(vector_of((1, ARRAY_1_2_300), (1, ARRAY_1_2_300))), "damaged"),
        (framed(vector_of((2**31 - 1, ARRAY_1_2_300))), "beyond"),
        (framed((2**62).to_bytes(8, "little") + vector_of((0, ARRAY_1_2_300))[8:]), "damaged"),
        (framed(vector_of((0, ARRAY_1_2_300[:-1]))), "damaged"),
        (framed(vector_of((0, ARRAY_1_2_300[:-4] + b"\x01\x00\x01\x00"))), "damaged"),
        (framed(vector_of((0, b"")) + BitMap([1]).serialize()[:3]), "damaged"),
    ],
)
def test_damage_is_named(blob: bytes, message: str) -> None:
    with pytest.raises(InvalidMetadataError, match=f"table t, file f.*{message}"):
        decode_deletion_vector(blob, "table t, file f")


def test_every_truncation_is_a_typed_error() -> None:
    blob = encode_deletion_vector([*range(100), *range(70_000, 90_000, 2), 2**33])
    for length in [*range(200), *range(200, len(blob), 37)]:
        with pytest.raises(InvalidMetadataError):
            decode_deletion_vector(blob[:length], "dv")


def test_every_bit_flip_is_found() -> None:
    """docs/conformance.md 36."""
    blob = encode_deletion_vector([*range(100), *range(70_000, 90_000, 2), 2**33])
    rng = random.Random(5)
    for _ in range(2000):
        damaged = bytearray(blob)
        damaged[rng.randrange(len(blob))] ^= 1 << rng.randrange(8)
        with pytest.raises(InvalidMetadataError):
            decode_deletion_vector(bytes(damaged), "dv")


def test_bit_flips_behind_a_right_checksum_are_typed_errors_or_read() -> None:
    vector = BitMap64([*range(100), *range(70_000, 90_000, 2), 2**33]).serialize()
    rng = random.Random(6)
    for _ in range(2000):
        damaged = bytearray(vector)
        damaged[rng.randrange(min(len(vector), 120))] ^= 1 << rng.randrange(8)
        try:
            len(decode_deletion_vector(framed(bytes(damaged)), "dv"))
        except IcebergError:
            continue


@given(positions_strategy, st.integers(0, 250_000), st.integers(0, 5_000))
def test_a_mask_is_true_where_a_row_is_deleted(
    positions: set[int], start: int, length: int
) -> None:
    mask = positions_mask(BitMap64(positions), start, length)
    assert mask.dtype == np.bool_
    assert mask.tolist() == [p in positions for p in range(start, start + length)]


@pytest.mark.parametrize("start", [2**32 - 3, 2**40, HIGHEST - 2])
def test_a_mask_of_high_rows(start: int) -> None:
    mask = positions_mask(BitMap64([start + 1, start + 3]), start, 4)
    assert mask.tolist() == [False, True, False, True]


def test_a_mask_of_no_rows_is_empty() -> None:
    assert positions_mask(BitMap64([1]), 1, 0).tolist() == []


POSITIONS = {
    "s3://b/t/a.parquet": [1, 2, 3, 100_000],
    "s3://b/t/ü.parquet": range(100_000),
    "c": [*range(0, 200_000, 2), 2**33 + 1],
}


def test_one_file_holds_many_vectors_found_by_offset_and_size() -> None:
    io = MemoryFileIO()
    written = write_deletion_vectors(io, "dv.puffin", POSITIONS)
    for data_file, positions in POSITIONS.items():
        offset, size, cardinality, file_size, _ = written[data_file]
        assert cardinality == len(positions)
        assert file_size == io.size("dv.puffin")
        bitmap = read_deletion_vector(io, "dv.puffin", offset, size, cardinality, "t")
        assert bitmap == BitMap64(positions)


def test_the_footer_says_what_the_manifest_entry_says() -> None:
    io = MemoryFileIO()
    written = write_deletion_vectors(io, "dv.puffin", POSITIONS)
    footer = read_puffin_footer(io, "dv.puffin")
    for blob, (data_file, entry) in zip(footer.blobs, written.items(), strict=True):
        assert blob.type == "deletion-vector-v1"
        assert blob.fields == (2147483645,)
        assert (blob.snapshot_id, blob.sequence_number) == (-1, -1)
        assert blob.compression_codec is None
        assert (blob.offset, blob.length) == entry[:2]
        assert blob.properties == {
            "referenced-data-file": data_file,
            "cardinality": str(entry.cardinality),
        }


def test_pyiceberg_reads_the_vectors() -> None:
    io = MemoryFileIO()
    write_deletion_vectors(io, "dv.puffin", POSITIONS)
    vectors = deletion_vectors_from_puffin_file(PuffinFile(io.read_bytes("dv.puffin")))
    assert {v.referenced_data_file: v.to_vector().to_pylist() for v in vectors} == {
        data_file: list(positions) for data_file, positions in POSITIONS.items()
    }


# DuckDB 1.5.3 writes such blobs.
def test_a_bare_blob_without_puffin_around_it_is_read() -> None:
    io = MemoryFileIO()
    io.write_bytes("dv.bin", b"junk" + GOOD)
    bitmap = read_deletion_vector(io, "dv.bin", 4, len(GOOD), 3, "t")
    assert list(bitmap) == [1, 2, 300]


@pytest.mark.parametrize(
    ("offset", "size"), [(0, len(GOOD) + 1), (1, len(GOOD)), (-1, 4), (0, 2**62), (0, 0), (4, 24)]
)
def test_offsets_and_sizes_that_are_wrong_are_typed_errors(offset: int, size: int) -> None:
    io = MemoryFileIO()
    io.write_bytes("dv.bin", GOOD)
    with pytest.raises(IcebergError, match=r"dv\.bin"):
        read_deletion_vector(io, "dv.bin", offset, size, None, "t")


# docs/conformance.md 35
def test_a_cardinality_that_is_not_the_entry_s_is_an_error() -> None:
    io = MemoryFileIO()
    io.write_bytes("dv.bin", GOOD)
    with pytest.raises(InvalidMetadataError, match="deletes 3 rows, its manifest entry says 4"):
        read_deletion_vector(io, "dv.bin", 0, len(GOOD), 4, "t")


def test_an_empty_vector_is_not_written() -> None:
    io = MemoryFileIO()
    with pytest.raises(InvalidRequestError, match="no deleted rows given for b"):
        write_deletion_vectors(io, "dv.puffin", {"a": [1], "b": []})
    assert not io.exists("dv.puffin")
