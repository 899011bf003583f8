"""Files of up to a mebibyte that would decode to gigabytes are refused, or read below one GiB.

Each file is close to its limit, on either side. One child process reads all files, so its peak is
the peak of the worst file.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from iceberg_pyspark.formats.puffin.deletion_vectors import encode_deletion_vector
from tests.amounts import FULL_WORK

METADATA_JSON = json.dumps(
    {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "s3://b/t",
        "last-sequence-number": 0,
        "last-updated-ms": 1,
        "last-column-id": 0,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": []}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
    }
)
GIB = 1 << 30
MIB = 1 << 20


def long(value: int) -> bytes:
    number = (value << 1) ^ (value >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def text(value: bytes) -> bytes:
    return long(len(value)) + value


def deflate(data: bytes) -> bytes:
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return squeezer.compress(data) + squeezer.flush()


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


AVRO_METADATA = {
    "schema": b'{"type":"struct","schema-id":0,"fields":[]}',
    "partition-spec": b"[]",
    "partition-spec-id": b"0",
    "format-version": b"2",
    "content": b"data",
}


def avro(
    schema: Any,
    records: bytes,
    count: int,
    *,
    blocks: int | None = None,
    codec: str = "deflate",
    squeeze: Callable[[bytes], bytes] = deflate,
) -> bytes:
    """Return an Avro file of equal blocks with `count` records each, as many as fit a mebibyte."""
    header = b"".join(
        text(key.encode()) + text(value)
        for key, value in {
            "avro.schema": json.dumps(schema).encode(),
            "avro.codec": codec.encode(),
            **AVRO_METADATA,
        }.items()
    )
    sync = bytes(range(16))
    block = long(count) + text(squeeze(records)) + sync
    start = b"Obj\x01" + long(2 + len(AVRO_METADATA)) + header + b"\x00" + sync
    return start + block * (blocks or max(1, (MIB - len(start)) // len(block)))


def field(field_id: int, type_: Any) -> dict[str, Any]:
    return {"name": f"f{field_id}", "type": type_, "field-id": field_id}


def record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def entry(*more: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a manifest entry whose data file has `more` fields."""
    file = record(
        "r2",
        *(field(134, "int"), field(100, "string"), field(101, "string")),
        *(field(102, record("r102")), field(103, "long"), field(104, "long"), *more),
    )
    optional = ["null", "long"]
    return record(
        "manifest_entry",
        *(field(0, "int"), field(1, optional), field(3, optional), field(4, optional)),
        field(2, file),
    )


ENTRY = long(1) + b"\x02" + long(5) + b"\x00\x00"
FILE = ENTRY + long(0) + text(b"a") + text(b"parquet") + long(1) + long(1)
MAP_ITEM = record("k", field(126, "int"), field(127, "bytes"))
BOUNDS = field(125, ["null", {"type": "array", "logicalType": "map", "items": MAP_ITEM}])
OFFSETS = field(132, ["null", {"type": "array", "items": "long", "element-id": 133}])
WIDE = record("w", *(field(10_000 + i, "long") for i in range(2_000)))
MANIFEST_FILE = record(
    "manifest_file",
    *(field(500, "string"), field(501, "long"), field(502, "int")),
    field(507, {"type": "array", "items": record("r508", field(509, "boolean"))}),
)


def chained(depth: int) -> dict[str, Any]:
    """Return a record schema that expands to 2 ** depth fields."""
    schema = record("d0", field(1, "long"))
    for i in range(1, depth):
        schema = record(f"d{i}", field(1, schema), field(2, f"d{i - 1}"))
    return schema


def list_of(items: int, item: bytes) -> bytes:
    return FILE + b"\x02" + long(items) + item * items + b"\x00"


MANIFESTS: dict[str, Callable[[], bytes]] = {
    "many entries in one block": lambda: avro(entry(), FILE * 2_000_000, 2_000_000, blocks=1),
    "many entries": lambda: avro(entry(), FILE * 4_000, 4_000),
    "one long list": lambda: avro(entry(OFFSETS), list_of(40_000_000, b"\x00"), 1, blocks=1),
    "lists": lambda: avro(entry(OFFSETS), list_of(60_000, b"\x00"), 1),
    "maps": lambda: avro(entry(BOUNDS), list_of(60_000, b"\x02\x00"), 1),
    "a list of null records": lambda: avro(
        entry(field(9_999, {"type": "array", "items": ["null", WIDE]})),
        FILE + long(MIB) + bytes(MIB) + b"\x00",
        1,
        blocks=1,
    ),
    "wide nulls": lambda: avro(
        entry(field(9_999, ["null", WIDE])), (FILE + b"\x00") * 2_000, 2_000
    ),
    "null octets": lambda: avro(
        entry(field(9_999, ["null", {"type": "fixed", "name": "x", "size": MIB}])),
        FILE + b"\x00",
        1,
    ),
    "one null of gigabytes": lambda: avro(
        entry(field(9_999, ["null", {"type": "fixed", "name": "x", "size": 2**31 - 1}])),
        FILE + b"\x00",
        1,
        blocks=1,
    ),
    "names used twice": lambda: avro(
        entry(field(9_999, chained(22))), FILE + bytes(2**21), 1, blocks=1
    ),
    "thousands of columns": lambda: avro(
        entry(*(field(10_000 + i, "long") for i in range(18_000))), FILE + bytes(18_000), 1
    ),
    "a negative count": lambda: avro(
        entry(OFFSETS), FILE + b"\x02" + long(-(2**62)) + long(2**62), 1, blocks=1
    ),
    "a count beyond the end": lambda: avro(
        entry(OFFSETS), FILE + b"\x02" + long(2**62) + b"\x00", 1, blocks=1
    ),
    "a text beyond the end": lambda: avro(entry(), ENTRY + long(0) + long(2**40), 1, blocks=1),
    "zstd": lambda: avro(entry(), bytes(100 * MIB), 1, blocks=1, codec="zstandard", squeeze=zstd),
}

ANY = '"x":'


def gzipped(*parts: tuple[str, int]) -> bytes:
    """Return a gzipped metadata file with repeated texts, as a stream of many gzip members."""
    out = gzip.compress(METADATA_JSON[:-1].encode() + b",")
    for part, count in parts:
        at_once = min(count, 100_000)
        out += gzip.compress(part.encode() * at_once) * (count // at_once)
    return out + gzip.compress(b"}")


METADATA: dict[str, Callable[[], bytes]] = {
    "objects": lambda: gzipped((f"{ANY}[", 1), ('{"a":0},', 20 * MIB), ("0]", 1)),
    "objects that are read": lambda: gzipped((f"{ANY}[", 1), ('{"a":0},', 900_000), ("0]", 1)),
    "lists": lambda: gzipped((f"{ANY}[", 1), ("[],", 60 * MIB), ("0]", 1)),
    "lists that are read": lambda: gzipped((f"{ANY}[", 1), ("[],", 2_000_000), ("0]", 1)),
    "one text": lambda: gzipped((f'{ANY}"', 1), ("x" * 64, 3_200_000), ('"', 1)),
    "one text that is read": lambda: gzipped((f'{ANY}"', 1), ("x" * 64, 2_500_000), ('"', 1)),
    "a wide character": lambda: gzipped((f'{ANY}"\U0001f600', 1), ("x" * 64, 1_200_000), ('"', 1)),
    "a wide character that is read": lambda: gzipped(
        (f'{ANY}"\U0001f600', 1), ("x" * 64, 900_000), ('"', 1)
    ),
    "escapes": lambda: gzipped((f'{ANY}"', 1), ("\\u0394", 20 * MIB), ('"', 1)),
    "spaces": lambda: gzipped((" " * 1_000, 600_000), (f"{ANY}0", 1)),
    "depth": lambda: METADATA_JSON[:-1].encode() + b',"x":' + b"[" * 100_000,
    "a long number": lambda: METADATA_JSON[:-1].encode() + b',"x":' + b"9" * MIB + b"}",
}

REST_OF_LIST = b"\x00\x00"
LISTS: dict[str, Callable[[], bytes]] = {
    "paths": lambda: avro(
        MANIFEST_FILE,
        text("\U0001f600".encode() + b"a" * 100_000) + REST_OF_LIST + b"\x00",
        1,
    ),
    "one path": lambda: avro(MANIFEST_FILE, text(b"a" * 40 * MIB) + bytes(3), 1, blocks=1),
}


def puffin(payload: bytes, blobs: bytes = b"") -> bytes:
    packed = bytes(pa.compress(payload, codec="lz4", asbytes=True))
    trailer = len(packed).to_bytes(4, "little") + b"\x01\x00\x00\x00"
    return b"PFA1" + blobs + b"PFA1" + packed + trailer + b"PFA1"


def packed_blob(codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        for _ in range(1_000 if codec == "zstd" else 250):
            stream.write(bytes(MIB))
    data = bytes(sink.getvalue())
    blob = {
        "type": "x",
        "fields": [1],
        "snapshot-id": 1,
        "sequence-number": 1,
        "offset": 4,
        "length": len(data),
        "compression-codec": codec,
    }
    return puffin(json.dumps({"blobs": [blob]}).encode(), data)


PUFFINS: dict[str, Callable[[], bytes]] = {
    "footer of blobs": lambda: puffin(b'{"blobs":[' + b"{}," * (20 * MIB) + b"{}]}"),
    "footer of properties": lambda: puffin(
        b'{"blobs":[],"properties":{"a":[' + b"[]," * (20 * MIB) + b"0]}}"
    ),
    "footer of spaces": lambda: puffin(b'{"blobs":[]' + b" " * (100 * MIB) + b"}"),
    "zstd": lambda: packed_blob("zstd"),
    "lz4": lambda: packed_blob("lz4"),
}


def runs() -> bytes:
    """Return a deletion vector of more than four billion positions in a mebibyte."""
    positions = BitMap64()
    for key in range(70_000):
        positions.add_range(key << 16, (key << 16) + 65_000)
    return encode_deletion_vector(positions)


VECTORS: dict[str, Callable[[], bytes]] = {
    "runs": runs,
    "scattered": lambda: encode_deletion_vector(BitMap64(i << 32 for i in range(45_000))),
}

ROWS = record("table", field(1, ["null", "string"]), field(2, ["null", WIDE]))
DATA: dict[str, Callable[[], bytes]] = {
    "one text": lambda: avro(ROWS, b"\x02" + text(b"a" * 100 * MIB) + b"\x00", 1, blocks=1),
    "texts": lambda: avro(
        ROWS,
        b"\x02" + text(b"a" * 20 * MIB) + b"\x00",
        1,
        codec="zstandard",
        squeeze=zstd,
        blocks=9,
    ),
    "wide nulls": lambda: avro(ROWS, bytes(2 * 1_000), 1_000, blocks=4),
}


FILES: dict[str, dict[str, Callable[[], bytes]]] = {
    "metadata": METADATA,
    "list": LISTS,
    "puffin": PUFFINS,
    "vector": VECTORS,
    "avro": DATA,
    "fastavro": MANIFESTS,
    "datafusion": MANIFESTS,
}
SLOW = {
    ("fastavro", name)
    for name in ("many entries in one block", "many entries", "lists", "maps", "wide nulls")
}
"""Files on which this decoder needs seconds to reach its limit; the other decoder reads them."""
ALIKE = {
    "metadata": {
        "lists": "one text",
        "lists that are read": "objects that are read",
        "escapes": "objects",
        "spaces": "one text",
        "one text that is read": "a wide character that is read",
    },
    "fastavro": {"thousands of columns": "null octets"},
    "puffin": {"footer of properties": "footer of blobs", "lz4": "zstd"},
    "avro": {"one text": "texts"},
    "datafusion": {
        "many entries": "lists",
        "maps": "lists",
        "wide nulls": "null octets",
    },
}
"""Files that only `make nightly` reads, each with another file that comes to the same limit."""
READ = "that are read", "that is read"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bombs")


@pytest.mark.nightly
@pytest.mark.parametrize("kind", FILES)
def test_files_of_a_mebibyte_are_read_or_refused_below_a_gibibyte(kind: str, folder: Path) -> None:
    paths = {}
    left_out = {} if FULL_WORK else ALIKE.get(kind, {})
    for name, make in FILES[kind].items():
        if name in left_out or (kind, name) in SLOW:
            continue
        path = (
            folder / f"{name.replace(' ', '-')}.{'metadata.json' if kind == 'metadata' else kind}"
        )
        path.write_bytes(make())
        assert path.stat().st_size < 1.1 * MIB, name
        paths[name] = path
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.memory_reader"]
        + [f"{kind}={path}" for path in paths.values()],
        capture_output=True,
        text=True,
        check=False,
    )
    ends = [json.loads(line) for line in run.stdout.splitlines()]
    for (name, path), end in zip(paths.items(), ends, strict=False):
        assert end["peak"] < GIB, (name, end)
        if end["error"] is not None:
            assert end["error"] in ("InvalidMetadataError", "StorageError"), (name, end)
            assert str(path) in end["message"], (name, end)
        assert not (end["error"] and name.endswith(READ)), (name, end)
    assert len(ends) == len(paths), run.stderr[-2000:]
