"""Decoded manifests stay in memory compressed, and plans unpack only the columns that they need."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import iceberg_pyspark
from iceberg_pyspark import Table
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.formats import known_manifests
from iceberg_pyspark.formats.encoding.decoded_files import DecodedCache
from iceberg_pyspark.formats.known_manifests import KnownEntries
from iceberg_pyspark.formats.manifest_files.open_manifest import AvroManifest
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.types import LongType
from iceberg_pyspark.spec.values import value_to_bytes

FILES = 4000


@pytest.fixture(scope="module")
def table() -> Table:
    catalog = iceberg_pyspark.load_catalog(
        "known", type="memory", warehouse=f"memory://{uuid.uuid4()}"
    )
    catalog.create_namespace("db")
    made: Table = catalog.create_table("db.t", "id BIGINT, v STRING")
    with made.transaction() as transaction:
        transaction.add_snapshot(AppendFiles(data_files=tuple(files_of(made))))
    return made.refresh()


def files_of(table: Table) -> list[DataFile]:
    return [
        DataFile(
            file_path=f"{table.location}/data/{uuid.uuid4()}.parquet",
            record_count=10,
            file_size_in_bytes=1000,
            spec_id=0,
            value_counts={1: 10},
            null_value_counts={1: 0},
            lower_bounds={1: value_to_bytes(LongType(), 10 * i)},
            upper_bounds={1: value_to_bytes(LongType(), 10 * i + 9)},
        )
        for i in range(FILES)
    ]


def test_a_plan_unpacks_only_what_its_filter_needs(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed: list[tuple[int, int]] = []
    unpacked: list[tuple[list[str], int]] = []
    pack, unpack = known_manifests._packed, known_manifests._unpacked

    def packing(block: pa.Table) -> pa.Buffer:
        made = pack(block)
        packed.append((block.nbytes, made.size))
        return made

    def unpacking(block: pa.Buffer, columns: Sequence[int]) -> pa.Table:
        entries = unpack(block, columns)
        unpacked.append((entries.column_names, entries.num_rows))
        return entries

    monkeypatch.setattr(known_manifests, "_PLAIN_BYTES", 0)
    monkeypatch.setattr(known_manifests, "BLOCK_ENTRIES", 500)
    monkeypatch.setattr(known_manifests, "_packed", packing)
    monkeypatch.setattr(known_manifests, "_unpacked", unpacking)
    assert len(list(table.scan("id < 25").plan_files())) == 3
    assert len(packed) == FILES // 500
    assert sum(size for _, size in packed) < sum(size for size, _ in packed) / 4
    assert not unpacked
    # no block of entries has such an id
    assert not list(table.scan("id < 0").plan_files())
    assert not unpacked
    # one block may have it, but no entry of the block
    assert not list(table.scan("id < 25 AND id > 5000 OR id > 19 AND id < 20").plan_files())
    [(names, count)] = unpacked
    assert "file_path" not in names
    assert len(names) < 10
    assert count == 500
    unpacked.clear()
    assert len(list(table.scan("id < 25").plan_files())) == 3
    assert [("file_path" in names, count) for names, count in unpacked] == [
        (False, 500),
        (True, 500),
    ]
    assert len(packed) == FILES // 500


def test_what_does_not_fit_is_decoded_once_for_each_plan(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    none: DecodedCache[KnownEntries] = DecodedCache(0, lambda _: 1)
    monkeypatch.setattr(known_manifests, "_KNOWN", none)
    decoded: list[str] = []
    raw_entries = AvroManifest.raw_entries

    def decoding(manifest: AvroManifest, *args: Any, **kwargs: Any) -> pa.Table:
        decoded.append(manifest.location)
        return raw_entries(manifest, *args, **kwargs)

    monkeypatch.setattr(AvroManifest, "raw_entries", decoding)
    for _ in range(2):
        assert len(list(table.scan("id < 25").plan_files())) == 3
    assert len(decoded) == 2
