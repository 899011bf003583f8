"""Targets for version 4: root manifests and leaf manifests in Parquet, damaged at random places."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TypeAlias

from iceberg_pyspark import Table
from iceberg_pyspark.catalogs.memory_catalog import MemoryCatalog
from iceberg_pyspark.changes.new_table import NewTable
from iceberg_pyspark.formats.entry_reader import Metrics
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.formats.manifest_reader import read_manifest_entries
from iceberg_pyspark.formats.roots.root_manifests import read_base_root, read_root_manifest
from iceberg_pyspark.spec.manifests import ManifestFile
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.sql_text.ddl import parse_partitioning
from iceberg_pyspark.sql_text.schema_text import parse_schema
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.table.commits.create_table import create_table
from tests.fuzz.metadata_targets import scan_and_commit
from tests.fuzz.mutations import mutate_bytes
from tests.fuzz.seeds import COLUMNS, IDENTIFIER, SeedTable, rows, settled_uuids
from tests.fuzz.targets import Target
from tests.support.commit_tables import FakeClock
from tests.support.deleted_rows import delete_positions

Leaf: TypeAlias = tuple[bytes, ManifestFile, StructType]


@functools.cache
def _table(partitioned: bool) -> Table:
    """Return a version 4 table with files, vectors and leaves in its roots, and a leaf vector."""
    with settled_uuids(4):
        store = MemoryFileIO()
        catalog = MemoryCatalog("fuzz", io=store)
        catalog.create_namespace(("db",))
        schema = parse_schema(COLUMNS)
        spec = parse_partitioning(["part", "bucket(4, id)"] if partitioned else [], schema)
        limits = {
            "write.root.max-data-entries": "2",
            "write.root.max-delete-entries": "1",
            "commit.manifest-merge.enabled": "false",
        }
        new = NewTable(
            schema=schema,
            spec=spec,
            location="mem://t",
            properties={"format-version": "4", **limits},
        )
        loaded = create_table(catalog, IDENTIFIER, new)
        table = Table(catalog, loaded, io=store, clock=FakeClock().clock)
        for first in range(0, 12, 3):
            table.append(rows(table.schema, first, 3))
        for i in range(2):
            task = sorted(table.scan().plan_files(), key=lambda t: t.file_path)[i]
            delete_positions(table, {task.file_path: [0]}, partition=task.partition)
        table.delete("part = 'p1'" if partitioned else "id < 3")
        table.append(rows(table.schema, 20, 1))
        return table.refresh()


@functools.cache
def _roots() -> tuple[tuple[bytes, Snapshot], ...]:
    roots = []
    for partitioned in (False, True):
        table = _table(partitioned)
        for snapshot in table.metadata.snapshots[-3:]:
            assert snapshot.root_manifest is not None
            roots.append((table.io.read_bytes(snapshot.root_manifest), snapshot))
    return tuple(roots)


@functools.cache
def _leaves() -> tuple[Leaf, ...]:
    leaves: list[Leaf] = []
    for partitioned in (False, True):
        table = _table(partitioned)
        m, snapshot = table.metadata, table.metadata.current_snapshot
        assert snapshot is not None
        for manifest in read_snapshot_manifests(table.io, snapshot):
            type_ = partition_type(m.spec_by_id[manifest.partition_spec_id], m.schemas_newest_first)
            leaves.append((table.io.read_bytes(manifest.manifest_path), manifest, type_))
    assert {leaf.is_root for _, leaf, _ in leaves} == {False, True}
    assert any(leaf.dead_positions for _, leaf, _ in leaves)
    return tuple(leaves)


def _store(data: bytes, location: str) -> MemoryFileIO:
    store = MemoryFileIO()
    store.write_bytes(location, data)
    return store


def _damaged(data: bytes, choose: Random) -> bytes:
    """Change bytes anywhere, or only in the Parquet footer, which holds most of the structure."""
    if choose.random() < 0.5:
        return mutate_bytes(data, choose)
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = mutate_bytes(data[start:-8], choose)
    return data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def _mutated_root(choose: Random) -> tuple[bytes, Snapshot]:
    data, snapshot = choose.choice(_roots())
    return _damaged(data, choose), snapshot


def _root(case: tuple[bytes, Snapshot]) -> None:
    data, snapshot = case
    location = str(snapshot.root_manifest)
    read_root_manifest(_store(data, location), location, snapshot)
    read_base_root(_store(data, location), snapshot)


def _mutated_leaf(choose: Random) -> tuple[Leaf, int]:
    data, leaf, type_ = choose.choice(_leaves())
    return (_damaged(data, choose), leaf, type_), choose.randrange(3)


def _leaf(case: tuple[Leaf, int]) -> None:
    (data, leaf, type_), metrics = case
    store = _store(data, leaf.manifest_path)
    metrics_choices: tuple[Metrics, ...] = ((), (1, 3, 4), "all")
    read_entries(store, leaf, type_, drop_deleted=metrics == 0, metrics=metrics_choices[metrics])
    if metrics == 2:
        list(read_manifest_entries(store, leaf, type_))


def _mutated_table(choose: Random) -> tuple[SeedTable, int]:
    """Return a table with one damaged manifest, and a seed for what to do with the table."""
    table = _table(choose.random() < 0.5)
    assert isinstance(table.io, MemoryFileIO)
    files = dict(table.io._files)
    manifest_paths = sorted(f for f in files if "/metadata/" in f and f.endswith(".parquet"))
    location = choose.choice(manifest_paths)
    files[location] = _damaged(files[location], choose)
    seed = SeedTable(
        files=files,
        metadata_location=table.loaded.metadata_location,
        metadata_json=json.loads(files[table.loaded.metadata_location]),
    )
    return seed, choose.getrandbits(32)


def _scan_with(case: tuple[SeedTable, int]) -> None:
    seed, number = case
    scan_and_commit(replace(seed), json.dumps(seed.metadata_json).encode(), Random(number))


_TARGETS: tuple[tuple[str, Callable[[Random], object], Callable[..., None], int], ...] = (
    ("root-manifest", _mutated_root, _root, 125),
    ("root-leaf", _mutated_leaf, _leaf, 125),
    ("root-table", _mutated_table, _scan_with, 8),
)
ROOT_TARGETS: tuple[Target, ...] = tuple(
    Target(name=name, mutate=mutate, parse=parse, in_tests=in_tests)
    for name, mutate, parse, in_tests in _TARGETS
)
