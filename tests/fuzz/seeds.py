"""The inputs to mutate: real tables that our own writers create in memory, and their files."""

from __future__ import annotations

import contextlib
import functools
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from random import Random
from typing import Any
from unittest import mock

import pyarrow as pa

from iceberg_pyspark import Table
from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.memory_catalog import MemoryCatalog
from iceberg_pyspark.changes.new_table import NewTable
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.sql_text.ddl import parse_partitioning, parse_sort_order
from iceberg_pyspark.sql_text.schema_text import parse_schema
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.table.commits.create_table import create_table
from tests.support.commit_tables import FakeClock
from tests.support.deleted_rows import delete_keys, delete_positions

IDENTIFIER = TableIdentifier(namespace=("db",), name="t")
COLUMNS = (
    "id BIGINT NOT NULL, part STRING COMMENT 'c', ts TIMESTAMP, n INT, d DECIMAL(9, 2), "
    "f DOUBLE, b BINARY, s STRUCT<a: INT, b: STRING>, l ARRAY<INT>, m MAP<STRING, BIGINT>"
)
NAME_MAPPING = json.dumps(
    [
        {"field-id": 1, "names": ["id", "key"]},
        {"field-id": 8, "names": ["s"], "fields": [{"field-id": 11, "names": ["a", "A"]}]},
        {"names": ["gone"]},
        {
            "field-id": 10,
            "names": ["m"],
            "fields": [{"field-id": 14, "names": ["key"]}, {"field-id": 15, "names": ["value"]}],
        },
    ]
)
_EPOCH = datetime(2024, 5, 6, 7, tzinfo=timezone.utc)


@dataclass(frozen=True)
class SeedTable:
    """A table in memory: its files by location, and the location of its current metadata."""

    files: Mapping[str, bytes] = field(repr=False)
    metadata_location: str
    metadata_json: dict[str, Any] = field(repr=False)

    def store(self) -> MemoryFileIO:
        """Return a new store with the table's files."""
        io = MemoryFileIO()
        io._files.update(self.files)
        return io

    def opened(self, metadata: bytes) -> Table:
        """Return the table with these bytes as its metadata, in a new catalog."""
        io = self.store()
        io.write_bytes("mem://t/metadata/mutated.metadata.json", metadata)
        catalog = MemoryCatalog("fuzz", io=io)
        catalog.create_namespace(("db",))
        loaded = catalog.register_table(IDENTIFIER, "mem://t/metadata/mutated.metadata.json")
        return Table(catalog, loaded, io=io, clock=FakeClock().clock)


def rows(schema: Schema, first: int, count: int) -> pa.Table:
    """Return rows with the columns in `COLUMNS`."""
    records = [
        {
            "id": i,
            "part": f"p{i % 3}",
            "ts": _EPOCH,
            "n": None if i % 4 == 0 else i,
            "d": Decimal(i) / 4,
            "f": i / 3,
            "b": bytes([i % 256]) * 3,
            "s": {"a": i, "b": f"b{i}"},
            "l": [i, None],
            "m": [(f"k{i}", i)],
        }
        for i in range(first, first + count)
    ]
    return pa.Table.from_pylist(records, to_arrow_schema(schema))


@contextlib.contextmanager
def settled_uuids(seed: int) -> Iterator[None]:
    """Make `uuid4` repeatable: file names and snapshot ids contain UUIDs, so all files do."""
    choose = Random(seed)

    def settled() -> uuid.UUID:
        return uuid.UUID(int=choose.getrandbits(128), version=4)

    with mock.patch("uuid.uuid4", settled):
        yield


@functools.cache
def seed_table(version: int, partitioned: bool) -> SeedTable:
    """Return a table with a history: appends, schema and spec changes, deletes, branch, tag."""
    with settled_uuids(version):
        return _seed_table(version, partitioned)


def _seed_table(version: int, partitioned: bool) -> SeedTable:
    io = MemoryFileIO()
    catalog = MemoryCatalog("fuzz", io=io)
    catalog.create_namespace(("db",))
    schema = parse_schema(COLUMNS)
    terms = ["truncate(2, part)", "days(ts)", "bucket(4, id)", "n"] if partitioned else []
    loaded = create_table(
        catalog,
        IDENTIFIER,
        NewTable(
            schema=schema,
            spec=parse_partitioning(terms, schema),
            sort_order=parse_sort_order(["id DESC", "truncate(3, part)"], schema),
            location="mem://t",
            properties={
                "format-version": str(version),
                "write.manifest.compression-codec": "none",
                "schema.name-mapping.default": NAME_MAPPING,
            },
        ),
    )
    table = Table(catalog, loaded, io=io, clock=FakeClock().clock)
    table.append(rows(table.schema, 0, 8))
    with table.update_schema() as change:
        change.add_column("e", "INT")
        change.rename_column("f", "g")
    table.update_schema().drop_column("g").commit()
    table.append(
        rows(schema, 8, 4).drop_columns(["f"]).append_column("e", pa.array([1] * 4, pa.int32()))
    )
    if partitioned:
        table.update_spec().remove_field("part_trunc").add_field("part", "truncate[1]").commit()
        table.append(table.scan().to_arrow())
    elif version > 1:
        if version == 3:
            paths = sorted(t.file_path for t in table.scan().plan_files())
            delete_positions(table, {paths[0]: [0, 2]})
        delete_keys(table, "id", [3, 9])
    table.manage_snapshots().create_branch("b").create_tag("v1", max_ref_age_ms=10**12).commit()
    table.delete("id = 77")
    location = table.loaded.metadata_location
    metadata = json.loads(io.read_bytes(location))
    last = metadata["snapshots"][-1]["snapshot-id"]
    metadata["statistics"] = [
        {
            "snapshot-id": last,
            "statistics-path": "mem://t/metadata/s.stats",
            "file-size-in-bytes": 413,
            "file-footer-size-in-bytes": 42,
            "blob-metadata": [
                {"type": "x", "snapshot-id": last, "sequence-number": 1, "fields": [1]},
            ],
        }
    ]
    metadata["partition-statistics"] = [
        {"snapshot-id": last, "statistics-path": "mem://t/p.parquet", "file-size-in-bytes": 43}
    ]
    if version == 3:
        defaults = {"initial-default": 7, "write-default": 8}
        metadata["schemas"][-1]["fields"][-1] |= defaults
        metadata["encryption-keys"] = [{"key-id": "k", "encrypted-key-metadata": "AAAA"}]
    return SeedTable(dict(io._files), location, metadata)


def seed_tables() -> list[SeedTable]:
    """Return the seed tables of every format version, with and without partitions."""
    return [
        seed_table(version, partitioned) for version in (1, 2, 3) for partitioned in (False, True)
    ]
