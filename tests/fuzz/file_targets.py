"""Targets for files: manifest lists, manifests, Puffin, deletion vectors, data, delete files."""

from __future__ import annotations

import functools
import io
import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import fastavro
import pyarrow as pa

from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.arrow.read.read_task import read_task
from iceberg_pyspark.catalogs.memory_catalog import MemoryCatalog
from iceberg_pyspark.changes.new_table import NewTable
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_files.open_manifest import Decoder
from iceberg_pyspark.formats.manifest_lists import read_manifest_list
from iceberg_pyspark.formats.manifest_reader import read_manifest_entries, read_manifest_header
from iceberg_pyspark.formats.puffin.deletion_vectors import (
    decode_deletion_vector,
    encode_deletion_vector,
)
from iceberg_pyspark.formats.puffin.puffin import PuffinWriter, read_puffin_blob, read_puffin_footer
from iceberg_pyspark.planning.scan_tasks import DeleteFileRef, ScanTask
from iceberg_pyspark.spec.manifests import ManifestFile
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.sql_text.filters import parse_filter
from iceberg_pyspark.sql_text.schema_text import parse_schema
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.table.commits.create_table import create_table
from iceberg_pyspark.table.table import Table
from tests.fuzz.metadata_targets import scan_and_commit
from tests.fuzz.mutations import mutate_bytes, mutate_json
from tests.fuzz.seeds import (
    COLUMNS,
    IDENTIFIER,
    SeedTable,
    rows,
    seed_table,
    seed_tables,
    settled_uuids,
)
from tests.fuzz.targets import Target
from tests.support.commit_tables import FakeClock
from tests.support.scan_tasks import (
    context_of,
    equality_deletes,
    position_deletes,
    task_of,
    write_table,
)

_HERE = "mem://t/mutated"


def _store(data: bytes) -> MemoryFileIO:
    store = MemoryFileIO()
    store.write_bytes(_HERE, data)
    return store


# --- Avro: manifest lists and manifests ----------------------------------------------------------


@dataclass(frozen=True)
class _Manifest:
    data: bytes
    listed: ManifestFile
    partitions: StructType


@functools.cache
def _manifests() -> tuple[tuple[bytes, ...], tuple[_Manifest, ...]]:
    """Return manifest lists and manifests of the seed tables, uncompressed."""
    lists: list[bytes] = []
    manifests: list[_Manifest] = []
    for version in (1, 2, 3):
        for partitioned in (False, True):
            seed = seed_table(version, partitioned)
            table = seed.opened(json.dumps(seed.metadata_json).encode())
            metadata = table.metadata
            assert metadata.current_snapshot is not None
            location = metadata.current_snapshot.manifest_list
            assert location is not None
            lists.append(seed.files[location])
            manifests += [
                _Manifest(
                    seed.files[m.manifest_path],
                    m,
                    partition_type(
                        metadata.spec_by_id[m.partition_spec_id], metadata.schemas_newest_first
                    ),
                )
                for m in read_manifest_list(table.io, location)
            ]
    return tuple(lists), tuple(manifests)


def _mutated_avro(data: bytes, choose: Random) -> bytes:
    """Change bytes anywhere, or JSON values in the header, or decoded records."""
    kind = choose.random()
    if kind < 0.5:
        return mutate_bytes(data, choose)
    reader = fastavro.reader(io.BytesIO(data))
    schema, metadata = reader.writer_schema, dict(reader.metadata)
    records = list(reader)
    codec = choose.choice(("null", "deflate", "snappy", "zstandard"))
    if kind < 0.75:
        # another header in front of the same blocks
        header = {k: v for k, v in metadata.items() if k != "avro.codec"}
        key = choose.choice(sorted(header))
        try:
            header[key] = json.dumps(mutate_json(json.loads(header[key]), choose))
        except ValueError:
            header[key] = choose.choice(("", "-1", "x", "9" * 5000, "1", "2", "deletes", "{}"))
        out = bytearray(b"Obj\x01" + _long(len(header)))
        for name, text in header.items():
            raw = text.encode("utf-8", "replace")
            out += _long(len(name)) + name.encode() + _long(len(raw)) + raw
        out += b"\x00"
        return bytes(out) + data[data.index(data[-16:]) :]
    for _ in range(choose.choice((1, 1, 3))):
        _change_record(choose.choice(records), choose)
    out_stream = io.BytesIO()
    extra = {k: v for k, v in metadata.items() if not k.startswith("avro.")}
    try:
        fastavro.writer(out_stream, schema, records, codec=codec, metadata=extra)
    except (ValueError, TypeError, OverflowError, AttributeError, struct.error):
        return mutate_bytes(data, choose)
    return out_stream.getvalue()


def _change_record(record: Any, choose: Random) -> None:
    """Replace a random value of a decoded record by another value, mostly of the same type."""
    waiting, places = [record], []
    while waiting:
        at = waiting.pop()
        for key in at if isinstance(at, dict) else range(len(at)):
            places.append((at, key))
            if isinstance(at[key], dict | list):
                waiting.append(at[key])
    parent, key = choose.choice(places)
    match parent[key]:
        case bool():
            parent[key] = not parent[key]
        case int():
            number = choose.choice((0, -1, 1, 3, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63)))
            parent[key] = number
        case bytes() as raw:
            parent[key] = choose.choice((b"", raw[:-1], raw + b"\x00", b"\xff" * 16, b"\x80" * 40))
        case str() as text:
            parent[key] = choose.choice(("", "x", text[:-1], "\x00", "orc", "puffin", "é" * 2000))
        case list() as items:
            parent[key] = choose.choice(([], items * 2, items[:-1]))
        case _:
            parent[key] = choose.choice((None, 0, -1, 2**62, b"", "", []))


def _long(value: int) -> bytes:
    number = (value << 1) ^ (value >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _mutated_list(choose: Random) -> bytes:
    return _mutated_avro(choose.choice(_manifests()[0]), choose)


def _manifest_list(data: bytes) -> None:
    read_manifest_list(_store(data), _HERE)


def _mutated_manifest(choose: Random) -> tuple[bytes, _Manifest, int]:
    manifest = choose.choice(_manifests()[1])
    return _mutated_avro(manifest.data, choose), manifest, choose.randrange(3)


def _manifest(decoder: Decoder) -> Callable[[tuple[bytes, _Manifest, int]], None]:
    def parse(case: tuple[bytes, _Manifest, int]) -> None:
        data, manifest, metrics = case
        store = _store(data)
        listed = replace(manifest.listed, manifest_path=_HERE)
        read_entries(
            store,
            listed,
            manifest.partitions,
            drop_deleted=metrics == 0,
            metrics=((), (1, 3, 4), "all")[metrics],
            decoder=decoder,
        )
        if metrics == 2:
            list(read_manifest_entries(store, listed, manifest.partitions))

    return parse


def _manifest_header(case: tuple[bytes, _Manifest, int]) -> None:
    read_manifest_header(_store(case[0]), _HERE)


def _mutated_metadata_file(choose: Random) -> tuple[SeedTable, str, bytes, int]:
    """Return a table, the location of a manifest list or manifest, and its mutated bytes."""
    seed = choose.choice(seed_tables())
    location = choose.choice(sorted(name for name in seed.files if name.endswith(".avro")))
    data = _mutated_avro(seed.files[location], choose)
    return seed, location, data, choose.getrandbits(32)


def _scan_with(case: tuple[SeedTable, str, bytes, int]) -> None:
    seed, location, data, number = case
    changed = replace(seed, files={**seed.files, location: data})
    scan_and_commit(changed, json.dumps(seed.metadata_json).encode(), Random(number))


# --- Puffin and deletion vectors -----------------------------------------------------------------


@functools.cache
def _puffin() -> bytes:
    out = io.BytesIO()
    with PuffinWriter(out) as puffin:
        for number, data in enumerate((b"abc" * 20, b"", encode_deletion_vector(range(0, 90, 7)))):
            puffin.add_blob(
                type="deletion-vector-v1",
                fields=[number],
                snapshot_id=number,
                sequence_number=number,
                data=data,
                properties={"a": "b"},
            )
    return out.getvalue()


def _mutated_puffin(choose: Random) -> bytes:
    data = _puffin()
    if choose.random() < 0.5:
        return mutate_bytes(data, choose, end=60)
    size = int.from_bytes(data[-12:-8], "little")
    footer = mutate_json(json.loads(data[-12 - size : -12]), choose)
    payload, flags = json.dumps(footer).encode(), 0
    if choose.random() < 0.4:
        payload, flags = pa.compress(payload, codec="lz4", asbytes=True), 1
    tail = len(payload).to_bytes(4, "little") + flags.to_bytes(4, "little") + data[-4:]
    return data[: -12 - size] + payload + tail


def _read_puffin(data: bytes) -> None:
    store = _store(data)
    for blob in read_puffin_footer(store, _HERE).blobs:
        read_puffin_blob(store, _HERE, blob)


def _mutated_vector(choose: Random) -> bytes:
    positions = {
        0: range(0, 5000, 3),
        1: range(100_000),
        2: [1, 2**31, 2**40, 2**62],
        3: [choose.randrange(70_000) for _ in range(6000)],
    }[choose.randrange(4)]
    data = encode_deletion_vector(positions)
    if choose.random() < 0.3:
        return mutate_bytes(data, choose)
    body = mutate_bytes(data[4:200] if len(data) > 400 else data[4:-4], choose)
    if len(data) > 400:
        body += data[200:-4]
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def _vector(data: bytes) -> None:
    bitmap = decode_deletion_vector(data, "a vector")
    if len(bitmap) < 100_000:
        assert len(list(bitmap)) == len(bitmap)


# --- data files ----------------------------------------------------------------------------------


@functools.cache
def _data_schema() -> Schema:
    return parse_schema(COLUMNS)


@functools.cache
def _data_files(file_format: str) -> tuple[bytes, ...]:
    """Return files of our writers, one per codec that is worth fuzzing."""
    with settled_uuids(7):
        return tuple(_written(file_format, codec) for codec in _CODECS[file_format])


_CODECS = {
    "parquet": ("uncompressed", "snappy", "zstd"),
    "orc": ("none", "zlib"),
    "avro": ("uncompressed", "gzip", "snappy"),
}


def _written(file_format: str, codec: str) -> bytes:
    store = MemoryFileIO()
    catalog = MemoryCatalog("fuzz", io=store)
    catalog.create_namespace(("db",))
    properties = {
        "write.format.default": file_format,
        f"write.{file_format}.compression-codec": codec,
        "write.parquet.bloom-filter-enabled.column.id": "true",
    }
    loaded = create_table(
        catalog,
        IDENTIFIER,
        NewTable(schema=_data_schema(), location="mem://t", properties=properties),
    )
    table = Table(catalog, loaded, io=store, clock=FakeClock().clock)
    table.append(rows(table.schema, 0, 40))
    (task,) = table.scan().plan_files()
    return store.read_bytes(task.file_path)


def _mutated_data(file_format: str) -> Callable[[Random], tuple[bytes, bool]]:
    def mutate(choose: Random) -> tuple[bytes, bool]:
        data = choose.choice(_data_files(file_format))
        return mutate_bytes(data, choose, end=len(data) // 3), choose.random() < 0.5

    return mutate


def _read_data(file_format: str) -> Callable[[tuple[bytes, bool]], None]:
    def parse(case: tuple[bytes, bool]) -> None:
        data, filtered = case
        schema = _data_schema()
        store = _store(data)
        context = context_of(schema)
        if filtered:
            predicate = bind(parse_filter("id > 3 AND part <> 'p1'"), schema)
            context = context_of(
                schema.select(["id", "part", "l"]), schemas=(schema,), predicate=predicate
            )
        task = task_of(store, _HERE, file_format=file_format, record_count=40)
        for batch in read_task(context, task, store):
            # Do not validate in full: a flipped bit inside a string still leaves a string of the
            # same length, and only Parquet has checksums that would detect it.
            batch.validate()

    return parse


@functools.cache
def _delete_files() -> tuple[MemoryFileIO, ScanTask, tuple[DeleteFileRef, ...]]:
    store = MemoryFileIO()
    schema = _data_schema()
    write_table(
        store,
        "data",
        pa.Table.from_batches(
            rows(schema, 0, 40).to_batches(), to_arrow_schema(schema, field_ids=True)
        ),
    )
    deletes = (
        position_deletes(store, "positions", [("data", i) for i in (1, 5, 39)]),
        equality_deletes(
            store,
            "keys",
            schema.select(["id", "part"]),
            (1, 2),
            [{"id": 3, "part": "p0"}, {"id": 4, "part": None}],
        ),
    )
    return store, task_of(store, "data", record_count=40), deletes


def _mutated_deletes(choose: Random) -> tuple[int, bytes]:
    store, _, deletes = _delete_files()
    which = choose.randrange(len(deletes))
    data = store.read_bytes(deletes[which].file_path)
    return which, mutate_bytes(data, choose, end=len(data) // 3)


def _read_deletes(case: tuple[int, bytes]) -> None:
    which, data = case
    original, task, deletes = _delete_files()
    store = _store(data)
    store.write_bytes("data", original.read_bytes("data"))
    ref = replace(deletes[which], file_path=_HERE, file_size_in_bytes=len(data))
    for _ in read_task(context_of(_data_schema()), replace(task, deletes=(ref,)), store):
        pass


# pyarrow checks these numbers of the footer where no exception can be raised, so the process ends.
# Only parsing the whole footer in Python would find them before, which no scan can afford.
_PARQUET_ENDS = ("level histogram size mismatch",)

FILE_TARGETS = (
    Target(name="manifest-list", mutate=_mutated_list, parse=_manifest_list),
    Target(name="manifest-fastavro", mutate=_mutated_manifest, parse=_manifest("fastavro")),
    Target(
        name="manifest-datafusion",
        mutate=_mutated_manifest,
        parse=_manifest("datafusion"),
        in_tests=125,
    ),
    Target(name="manifest-header", mutate=_mutated_manifest, parse=_manifest_header),
    Target(name="table-files", mutate=_mutated_metadata_file, parse=_scan_with, in_tests=12),
    Target(name="puffin", mutate=_mutated_puffin, parse=_read_puffin),
    Target(name="deletion-vector", mutate=_mutated_vector, parse=_vector),
    Target(
        name="parquet",
        mutate=_mutated_data("parquet"),
        parse=_read_data("parquet"),
        library_ends=_PARQUET_ENDS,
    ),
    Target(name="orc", mutate=_mutated_data("orc"), parse=_read_data("orc")),
    Target(name="avro", mutate=_mutated_data("avro"), parse=_read_data("avro")),
    Target(
        name="delete-files",
        mutate=_mutated_deletes,
        parse=_read_deletes,
        library_ends=_PARQUET_ENDS,
        in_tests=150,
    ),
)
