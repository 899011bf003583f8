"""Puffin files: written files are read by us and by others, and damaged files are refused."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest
from pyiceberg.table.puffin import PuffinFile

from iceberg_pyspark.errors import IcebergError, InvalidMetadataError, UnsupportedFeatureError
from iceberg_pyspark.formats.puffin.puffin import (
    PuffinFooter,
    PuffinWriter,
    read_puffin_blob,
    read_puffin_footer,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO


def written(*blobs: bytes) -> bytes:
    io = MemoryFileIO()
    with io.open_output("p") as stream, PuffinWriter(stream, {"k": "v"}) as puffin:
        for i, data in enumerate(blobs):
            puffin.add_blob(
                type=f"type-{i}",
                fields=[1, 2],
                snapshot_id=3,
                sequence_number=4,
                data=data,
                properties={"ndv": "5"},
            )
    return io.read_bytes("p")


def assembled(
    payload: object,
    *,
    blobs: bytes = b"",
    codec: str | None = None,
    flags: bytes | None = None,
    payload_size: int | None = None,
) -> bytes:
    """Return a Puffin file built by the text of the specification."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    if codec is not None:
        data = frame(data, codec)
    size = len(data) if payload_size is None else payload_size
    if flags is None:
        flags = bytes([codec is not None, 0, 0, 0])
    trailer = size.to_bytes(4, "little", signed=True) + flags + b"PFA1"
    return b"PFA1" + blobs + b"PFA1" + data + trailer


def frame(data: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def blob(**changes: object) -> dict[str, object]:
    return {
        "type": "t",
        "fields": [1],
        "snapshot-id": 1,
        "sequence-number": 1,
        "offset": 4,
        "length": 0,
        **changes,
    }


def footer_of(data: bytes, **bounds: int) -> PuffinFooter:
    io = MemoryFileIO()
    io.write_bytes("the.puffin", data)
    return read_puffin_footer(io, "the.puffin", **bounds)


def contents(data: bytes) -> list[object]:
    io = MemoryFileIO()
    io.write_bytes("the.puffin", data)
    footer = read_puffin_footer(io, "the.puffin")
    return [footer.properties, *((b, read_puffin_blob(io, "the.puffin", b)) for b in footer.blobs)]


def test_blobs_and_footer_read_back() -> None:
    data = written(b"abc", b"", b"defg")
    io = MemoryFileIO()
    io.write_bytes("p", data)
    footer = read_puffin_footer(io, "p")
    assert [read_puffin_blob(io, "p", b) for b in footer.blobs] == [b"abc", b"", b"defg"]
    assert [(b.offset, b.length) for b in footer.blobs] == [(4, 3), (7, 0), (7, 4)]
    assert footer.blobs[2].type == "type-2"
    assert footer.blobs[0].fields == (1, 2)
    assert (footer.blobs[0].snapshot_id, footer.blobs[0].sequence_number) == (3, 4)
    assert footer.blobs[0].properties == {"ndv": "5"}
    assert footer.properties["k"] == "v"
    assert footer.file_size == len(data)


def test_the_writer_tells_sizes_for_the_statistics_entry() -> None:
    io = MemoryFileIO()
    with io.open_output("p") as stream, PuffinWriter(stream) as puffin:
        assert puffin.add_blob(
            type="t", fields=[], snapshot_id=1, sequence_number=1, data=b"ab"
        ) == (4, 2)
    footer = read_puffin_footer(io, "p")
    assert (puffin.file_size, puffin.footer_size) == (footer.file_size, footer.footer_size)
    assert puffin.blobs == footer.blobs


def test_an_empty_file_is_magic_footer_and_nothing_else() -> None:
    data = assembled({"blobs": []})
    assert footer_of(data).blobs == ()
    assert footer_of(data).footer_size == len(data) - 4


def test_the_java_library_s_empty_file_is_these_bytes() -> None:
    """The 32 bytes are: magic, magic, {"blobs":[]}, size 12, no flags, magic."""
    data = bytes.fromhex("50464131504641317b22626c6f6273223a5b5d7d0c0000000000000050464131")
    assert footer_of(data).footer_size == 28


def test_pyiceberg_reads_the_footer() -> None:
    assert [
        (b.type, b.offset, b.length) for b in PuffinFile(written(b"abc", b"de")).footer.blobs
    ] == [("type-0", 4, 3), ("type-1", 7, 2)]


def test_an_exception_while_writing_leaves_no_footer() -> None:
    io = MemoryFileIO()

    def fail() -> None:
        with io.open_output("p") as stream, PuffinWriter(stream) as puffin:
            puffin.add_blob(type="t", fields=[], snapshot_id=1, sequence_number=1, data=b"abcd" * 9)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with pytest.raises(InvalidMetadataError):
        read_puffin_footer(io, "p")


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_compressed_blobs_are_read(codec: str) -> None:
    packed = frame(b"abc" * 1000, codec)
    data = assembled(
        {"blobs": [blob(length=len(packed), **{"compression-codec": codec})]}, blobs=packed
    )
    assert contents(data)[1][1] == b"abc" * 1000  # type: ignore[index]


def test_a_compressed_footer_is_read() -> None:
    assert footer_of(assembled({"blobs": [blob()]}, codec="lz4")).blobs[0].type == "t"


def test_unknown_codec_is_refused_when_the_blob_is_read() -> None:
    data = assembled({"blobs": [blob(**{"compression-codec": "rar"})]})
    assert footer_of(data).blobs[0].compression_codec == "rar"
    with pytest.raises(UnsupportedFeatureError, match="rar"):
        contents(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "too few"),
        (b"PFA1" * 4, "too few"),
        (b"XXXX" + assembled({"blobs": []})[4:], "magic at the start"),
        (assembled({"blobs": []})[:-4] + b"XXXX", "magic at the end"),
        (assembled({"blobs": []}, payload_size=-1), "not in a file"),
        (assembled({"blobs": []}, payload_size=14), "not in a file"),
        (assembled({"blobs": []}, payload_size=12), "start of the Puffin footer"),
        (assembled({"blobs": []}, payload_size=2**31 - 1), "not in a file"),
        (assembled({"blobs": []}, flags=bytes([1, 0, 0, 0])), "damaged lz4"),
        (assembled(b"{"), "JSON"),
        (assembled(b"[" * 100_000), "JSON"),
        (assembled(b"\xff\xfe{}"), "JSON"),
        (assembled([]), "blobs"),
        (assembled({}), "blobs"),
        (assembled({"blobs": [1]}), r"blobs\[0\]"),
        (assembled({"blobs": [], "properties": {"a": 1}}), "properties"),
        (assembled({"blobs": [blob(type=1)]}), "type"),
        (assembled({"blobs": [blob(fields="x")]}), "fields"),
        (assembled({"blobs": [blob(fields=[True])]}), "fields"),
        (assembled({"blobs": [blob(offset="4")]}), "offset"),
        (assembled({"blobs": [blob(offset=3)]}), "outside"),
        (assembled({"blobs": [blob(length=1)]}), "outside"),
        (assembled({"blobs": [blob(length=-1)]}), "outside"),
        (assembled({"blobs": [blob(offset=2**70, length=-(2**70))]}), "outside"),
    ],
)
def test_damage_is_named(data: bytes, message: str) -> None:
    with pytest.raises(InvalidMetadataError, match=rf"the\.puffin.*{message}"):
        footer_of(data)


def test_unknown_flags_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="flags"):
        footer_of(assembled({"blobs": []}, flags=bytes([0, 1, 0, 0])))


def test_bombs_are_refused() -> None:
    packed = frame(b"\0" * 50_000_000, "zstd")
    data = assembled(
        {"blobs": [blob(length=len(packed), **{"compression-codec": "zstd"})]}, blobs=packed
    )
    io = MemoryFileIO()
    io.write_bytes("p", data)
    entry = read_puffin_footer(io, "p").blobs[0]
    with pytest.raises(InvalidMetadataError, match="refused"):
        read_puffin_blob(io, "p", entry, max_bytes=1_000_000)
    padded = b'{"blobs":[]}' + b" " * 2_000_000
    for codec in (None, "lz4"):
        with pytest.raises(InvalidMetadataError, match="refused"):
            footer_of(assembled(padded, codec=codec), max_bytes=1_000_000)


def samples() -> list[bytes]:
    packed = frame(b"abc" * 20, "zstd")
    entry = blob(length=len(packed), **{"compression-codec": "zstd"})
    return [
        written(b"abc", b"defg"),
        assembled({"blobs": [entry]}, blobs=packed),
        assembled({"blobs": [blob()]}, codec="lz4"),
    ]


@pytest.mark.parametrize("data", samples())
def test_every_truncation_is_a_typed_error(data: bytes) -> None:
    for length in range(len(data)):
        with pytest.raises(IcebergError, match=r"the\.puffin"):
            footer_of(data[:length])


# Puffin has no checksum, so a flipped bit in a name only gives another name.
@pytest.mark.parametrize("data", samples())
def test_random_bit_flips_are_typed_errors_or_read(data: bytes) -> None:
    rng = random.Random(11)
    for _ in range(2000):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            contents(bytes(damaged))
        except IcebergError:
            continue
