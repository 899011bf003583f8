"""Metadata files: names, gzip, bounds, damaged files. docs/conformance.md 94."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from iceberg_pyspark.errors import (
    FileAlreadyExistsError,
    IcebergError,
    InvalidMetadataError,
    InvalidRequestError,
)
from iceberg_pyspark.formats.metadata_files import (
    metadata_codec,
    new_metadata_file_name,
    parse_version,
    read_table_metadata,
    write_table_metadata,
)
from iceberg_pyspark.spec.table_metadata import TableMetadata, metadata_from_bytes
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO

JSON = (
    b'{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"s3://b/t",'
    b'"last-sequence-number":0,"last-updated-ms":1,"last-column-id":1,"current-schema-id":0,'
    b'"schemas":[{"type":"struct","schema-id":0,"fields":'
    b'[{"id":1,"name":"x","required":true,"type":"long"}]}],'
    b'"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"last-partition-id":999,'
    b'"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}]}'
)
METADATA = metadata_from_bytes(JSON, "here")


def read(data: bytes, **bounds: int) -> TableMetadata:
    io = MemoryFileIO()
    io.write_bytes("t/f.metadata.json", data)
    return read_table_metadata(io, "t/f.metadata.json", **bounds)


@pytest.mark.parametrize("name", ["v1.metadata.json", "v1.gz.metadata.json", "v1.metadata.json.gz"])
def test_a_file_is_compressed_as_its_name_says(name: str) -> None:
    """docs/conformance.md 94."""
    io = MemoryFileIO()
    write_table_metadata(io, METADATA, f"t/{name}")
    assert io.read_bytes(f"t/{name}").startswith(b"\x1f\x8b") == ("gz" in name)
    assert read_table_metadata(io, f"t/{name}") == METADATA


def test_metadata_in_use_is_not_parsed_again() -> None:
    first = read(JSON)
    assert read(gzip.compress(JSON)) is first
    # other metadata under the same name
    assert read(JSON.replace(b'"x"', b'"y"')).current_schema.fields[0].name == "y"
    assert read(JSON) is first


def test_gzip_is_found_by_its_bytes_under_any_name() -> None:
    """docs/conformance.md 94."""
    assert read(gzip.compress(JSON)) == METADATA


def test_gzip_of_several_streams_and_padding_is_read() -> None:
    assert read(gzip.compress(JSON[:100]) + gzip.compress(JSON[100:]) + bytes(7)) == METADATA


def test_a_file_is_created_once() -> None:
    io = MemoryFileIO()
    write_table_metadata(io, METADATA, "t/f")
    with pytest.raises(FileAlreadyExistsError):
        write_table_metadata(io, METADATA, "t/f")


@pytest.mark.parametrize("compressed", [False, True])
def test_the_bound_holds_for_both_forms(compressed: bool) -> None:
    data = gzip.compress(JSON) if compressed else JSON
    assert read(data, max_bytes=len(JSON)) == METADATA
    with pytest.raises(InvalidMetadataError, match=f"f.metadata.json.*{len(JSON) - 1}"):
        read(data, max_bytes=len(JSON) - 1)


def test_ten_gigabytes_in_ten_megabytes_are_refused_in_bounded_memory(tmp_path: Path) -> None:
    packer = zlib.compressobj(9, wbits=31)
    megabyte = b" " * (1 << 20)
    bomb = tmp_path / "bomb.metadata.json"
    unit = b"".join(packer.compress(megabyte) for _ in range(64)) + packer.flush()
    bomb.write_bytes(unit * 160)
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.memory_reader", f"metadata={bomb}"],
        capture_output=True,
        text=True,
        check=True,
    )
    end = json.loads(run.stdout)
    assert end["error"] == "InvalidMetadataError"
    assert end["peak"] < 1 << 30


def test_every_truncation_is_a_typed_error() -> None:
    data = gzip.compress(JSON)
    for whole in (data, JSON):
        for length in range(len(whole)):
            with pytest.raises(InvalidMetadataError, match=r"f\.metadata\.json"):
                read(whole[:length])


def test_random_bit_flips_of_gzip_are_found_or_harmless() -> None:
    data = gzip.compress(JSON)
    rng = random.Random(7)
    for _ in range(2000):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            assert read(bytes(damaged)) == METADATA
        except IcebergError:
            continue


def test_the_codec_is_a_table_property() -> None:
    assert metadata_codec({}) == "none"
    assert metadata_codec({"write.metadata.compression-codec": "GZIP"}) == "gzip"
    with pytest.raises(InvalidRequestError, match="zstd"):
        metadata_codec({"write.metadata.compression-codec": "zstd"})


def test_names_carry_version_and_codec() -> None:
    """docs/conformance.md 94."""
    uuid = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
    assert new_metadata_file_name(0, uuid) == f"00000-{uuid}.metadata.json"
    assert new_metadata_file_name(12, uuid, "gzip") == f"00012-{uuid}.gz.metadata.json"
    assert parse_version(f"s3://b/t-1/metadata/00012-{uuid}.gz.metadata.json") == 12
    assert parse_version(f"file:/t/123456-{uuid}.metadata.json") == 123456


@pytest.mark.parametrize(
    "name", ["v3.metadata.json", f"{'9c12d441'}.metadata.json", "x-1.metadata.json", ""]
)
def test_name_without_version_parses_to_minus_one(name: str) -> None:
    assert parse_version(f"s3://b/00001-t/{name}") == -1
