"""Damaged, hostile and unusual Avro files: an error that names the file, in bounded memory."""

from __future__ import annotations

import contextlib
import io as streams
import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import fastavro
import pytest

from iceberg_pyspark.errors import (
    IcebergError,
    InvalidMetadataError,
    InvalidRequestError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.formats.avro.avro import parse_avro, write_avro
from iceberg_pyspark.formats.encoding import decoded_files
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_files.open_manifest import Decoder
from iceberg_pyspark.spec.manifests import ManifestFile
from iceberg_pyspark.spec.types import LongType, StructType
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.amounts import FULL_WORK
from tests.support.manifests import a_file, added, identity_table, listed

DECODERS: tuple[Decoder, ...] = ("fastavro", "datafusion")
LONG_FIELD = {"name": "a", "type": "long", "field-id": 1}
RECORD = {"type": "record", "name": "r", "fields": [LONG_FIELD]}
SYNC = bytes(range(16))


def long(value: int) -> bytes:
    out = streams.BytesIO()
    fastavro.schemaless_writer(out, "long", value)
    return out.getvalue()


def text(value: bytes) -> bytes:
    return long(len(value)) + value


def avro_file(schema: Any, *blocks: tuple[int, bytes], codec: bytes = b"null") -> bytes:
    header = long(2)
    header += text(b"avro.schema") + text(json.dumps(schema).encode())
    header += text(b"avro.codec") + text(codec) + long(0)
    body = b"".join(long(count) + text(data) + SYNC for count, data in blocks)
    return b"Obj\x01" + header + SYNC + body


def a_manifest(io: MemoryFileIO, codec: str = "gzip") -> ManifestFile:
    entries = [
        added(a_file(f"data/{i}", partition=(i,), value_counts={1: 2}, lower_bounds={1: b"x"}))
        for i in range(20)
    ]
    schema, spec = identity_table(LongType())
    return listed(io, entries, schema=schema, spec=spec, codec=codec)


def read(io: MemoryFileIO, manifest: ManifestFile, decoder: Decoder) -> None:
    _, spec = identity_table(LongType())
    schema, _ = identity_table(LongType())
    type_ = StructType(
        tuple(
            replace(f, field_id=p.field_id) for f, p in zip(schema.fields, spec.fields, strict=True)
        )
    )
    read_entries(io, manifest, type_, metrics="all", decoder=decoder)


def read_or_refuse(io: MemoryFileIO, manifest: ManifestFile, decoder: Decoder) -> None:
    """Read the rows, or accept an error of ours that names the file; raise any other error."""
    with contextlib.suppress(IcebergError):
        try:
            read(io, manifest, decoder)
        except IcebergError as e:
            if "metadata/m0.avro" not in str(e):
                raise AssertionError(f"the error does not name the file: {e}") from e
            raise


def test_records_come_back_by_field_id() -> None:
    file = parse_avro(avro_file(RECORD, (2, long(5) + long(-6)), (1, long(7))), "f")
    assert list(file.records()) == [{"_1": 5}, {"_1": -6}, {"_1": 7}]
    assert file.record_count == 3


def test_a_file_without_blocks_has_no_records() -> None:
    assert list(parse_avro(avro_file(RECORD), "f").records()) == []


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_manifest_cut_anywhere_is_a_typed_error(codec: str) -> None:
    io = MemoryFileIO()
    manifest = a_manifest(io, codec)
    whole = io.read_bytes(manifest.manifest_path)
    for size in range(len(whole)):
        io.write_bytes(manifest.manifest_path, whole[:size])
        with pytest.raises(InvalidMetadataError, match=r"metadata/m0\.avro"):
            read(io, manifest, "fastavro")


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("counted", [True, False])
def test_flipped_bits_end_in_rows_or_a_typed_error(
    codec: str, decoder: Decoder, counted: bool
) -> None:
    io = MemoryFileIO()
    manifest = a_manifest(io, codec)
    whole = io.read_bytes(manifest.manifest_path)
    if not counted:
        # Without the counts of the manifest list, the decoder itself meets a wrong record count.
        manifest = replace(manifest, added_files_count=None, existing_files_count=None)
    random = Random(3)
    for _ in range(150 if FULL_WORK else 50):
        damaged = bytearray(whole)
        damaged[random.randrange(len(whole) // 2, len(whole))] ^= 1 << random.randrange(8)
        io.write_bytes(manifest.manifest_path, bytes(damaged))
        read_or_refuse(io, manifest, decoder)


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_block_with_bytes_behind_its_last_record_does_not_hang(decoder: Decoder) -> None:
    io = MemoryFileIO()
    manifest = replace(a_manifest(io, "none"), added_files_count=None)
    whole = io.read_bytes(manifest.manifest_path)
    count = whole.index(whole[-16:]) + 16
    assert whole[count : count + 1] == long(20)
    io.write_bytes(manifest.manifest_path, whole[:count] + long(4) + whole[count + 1 :])
    read_or_refuse(io, manifest, decoder)


def test_fewer_entries_than_the_list_says_is_damage() -> None:
    io = MemoryFileIO()
    manifest = replace(a_manifest(io), added_files_count=21)
    with pytest.raises(InvalidMetadataError, match="20 entries where its manifest list says 21"):
        read(io, manifest, "fastavro")


def raw_deflate(data: bytes) -> bytes:
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return squeezer.compress(data) + squeezer.flush()


def bomb(codec: str) -> bytes:
    out = streams.BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{**LONG_FIELD, "type": "bytes"}]}
    fastavro.writer(out, schema, [{"a": bytes(3_000_000)}], codec=codec)
    return out.getvalue()


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
def test_block_that_decompresses_beyond_the_limit_is_refused(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = bomb(codec)
    assert len(list(parse_avro(file, "f").records())) == 1
    monkeypatch.setattr(decoded_files, "MEMORY_FLOOR", 1_000_000)
    monkeypatch.setattr(decoded_files, "MEMORY_PER_BYTE", 0)
    with pytest.raises(InvalidMetadataError, match=r"f: .*more than 1,000,000 bytes"):
        list(parse_avro(file, "f").records())


def nested(depth: int) -> Any:
    schema: Any = "long"
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return {"type": "record", "name": "r", "fields": [{**LONG_FIELD, "type": schema}]}


@pytest.mark.parametrize(
    ("why", "file"),
    [
        ("magic", lambda: b"PAR1" + avro_file(RECORD)[4:]),
        ("empty", lambda: b""),
        ("negative block", lambda: avro_file(RECORD, (-1, long(5)))),
        ("enormous count", lambda: avro_file(RECORD, (2**62, long(5)))),
        ("enormous header", lambda: b"Obj\x01" + long(2**62)),
        ("enormous string", lambda: b"Obj\x01" + long(1) + long(2**62)),
        ("number without end", lambda: b"Obj\x01" + b"\xff" * 30),
        ("no schema", lambda: b"Obj\x01" + long(0) + SYNC),
        ("schema no JSON", lambda: avro_file(RECORD).replace(b'"name"', b'"name}')),
        ("not a record", lambda: avro_file("long", (1, long(1)))),
        ("no fields", lambda: avro_file({"type": "record", "name": "r", "fields": []})),
        (
            "unknown type",
            lambda: avro_file({**RECORD, "fields": [{**LONG_FIELD, "type": "int96"}]}),
        ),
        ("nested too deep", lambda: avro_file(nested(60))),
        ("nested far too deep", lambda: avro_file(nested(400))),
        ("an id twice", lambda: avro_file({**RECORD, "fields": [LONG_FIELD, LONG_FIELD]})),
        (
            "recursive",
            lambda: avro_file(
                {**RECORD, "fields": [LONG_FIELD, {"name": "b", "type": ["null", "r"]}]}
            ),
        ),
        (
            "items without bytes",
            lambda: avro_file(
                {
                    **RECORD,
                    "fields": [
                        LONG_FIELD,
                        {"name": "b", "type": {"type": "array", "items": "null"}},
                    ],
                },
                (1, long(1) + long(2**40)),
            ),
        ),
        ("wrong sync", lambda: avro_file(RECORD, (1, long(5)))[:-1] + b"x"),
        (
            "cut deflate",
            lambda: avro_file(RECORD, (1, raw_deflate(long(5))[:-1]), codec=b"deflate"),
        ),
        ("no snappy", lambda: avro_file(RECORD, (1, b"\xff" * 9), codec=b"snappy")),
        ("no zstd", lambda: avro_file(RECORD, (1, b"123456"), codec=b"zstandard")),
    ],
)
def test_hostile_files_are_refused_by_name(why: str, file: Callable[[], bytes]) -> None:
    with pytest.raises((InvalidMetadataError, UnsupportedFeatureError), match="some/file"):
        list(parse_avro(file(), "some/file").records())


def test_json_nested_a_hundred_thousand_deep_is_an_error() -> None:
    header = long(1) + text(b"avro.schema") + text(b"[" * 100_000) + long(0)
    with pytest.raises(InvalidMetadataError, match="some/file"):
        parse_avro(b"Obj\x01" + header + SYNC, "some/file")


def test_an_unknown_codec_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match="f: Avro codec 'lz77'"):
        parse_avro(avro_file(RECORD, (1, long(5)), codec=b"lz77"), "f")
    with pytest.raises(InvalidRequestError, match="'lz77'"):
        write_avro(MemoryFileIO(), "f", RECORD, iter(()), metadata={}, codec="lz77")
