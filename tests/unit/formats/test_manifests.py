"""Manifests as columns and as objects: round trip, two decoders, inheritance, other writers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_files.open_manifest import Decoder
from iceberg_pyspark.formats.manifest_reader import read_manifest_entries
from iceberg_pyspark.spec.entry_columns import ENTRY_COLUMNS, metric_column
from iceberg_pyspark.spec.manifests import (
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
)
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.types import (
    StructType,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.manifest_entries import written_entries
from tests.support.manifests import (
    SEQUENCE_NUMBER,
    SNAPSHOT_ID,
    a_file,
    added,
    deleted,
    existing,
    identity_table,
    listed,
)
from tests.support.strategies import PRIMITIVE_TYPES

DECODERS: tuple[Decoder, ...] = ("fastavro", "datafusion")
NO_PARTITION = StructType(())


def resolved(entries: Iterable[ManifestEntry], version: int) -> list[ManifestEntry]:
    """Return the entries that reading the listed manifest must give."""
    sequence_number = SEQUENCE_NUMBER if version >= 2 else 0
    row_id = 1000
    resolved_entries = []
    for e in entries:
        file = e.data_file
        if version >= 3 and e.is_live:
            file = replace(file, first_row_id=row_id)
            row_id += file.record_count
        inherits = e.status is EntryStatus.ADDED or version == 1
        resolved_entries.append(
            replace(
                e,
                snapshot_id=SNAPSHOT_ID if e.snapshot_id is None else e.snapshot_id,
                sequence_number=sequence_number if inherits else e.sequence_number,
                file_sequence_number=sequence_number if inherits else e.file_sequence_number,
                data_file=file,
            )
        )
    return resolved_entries


def same(value: Any) -> Any:
    """Return a form of a value in which NaN and -0.0 can be compared."""
    if isinstance(value, float):
        return repr(value)
    return tuple(map(same, value)) if isinstance(value, tuple) else value


def comparable(entries: Iterable[ManifestEntry]) -> list[tuple[Any, Any]]:
    return [
        (replace(e, data_file=replace(e.data_file, partition=())), same(e.data_file.partition))
        for e in entries
    ]


@settings(max_examples=settings().max_examples * 60 // 100)
@given(st.data(), st.sampled_from([1, 2, 3]))
def test_entries_survive_writing_and_reading(data: st.DataObject, version: int) -> None:
    types = data.draw(st.lists(st.sampled_from(PRIMITIVE_TYPES), max_size=3))
    schema, spec = identity_table(*types)
    type_ = partition_type(spec, [schema])
    entries = data.draw(written_entries(type_, version))
    io = MemoryFileIO()
    manifest = listed(io, entries, schema=schema, spec=spec, format_version=version)
    read = list(read_manifest_entries(io, manifest, type_))
    assert comparable(read) == comparable(resolved(entries, version))


@settings(max_examples=settings().max_examples * 40 // 100, deadline=None)
@given(st.data(), st.sampled_from([1, 2, 3]))
def test_both_decoders_give_the_same_table(data: st.DataObject, version: int) -> None:
    types = data.draw(st.lists(st.sampled_from(PRIMITIVE_TYPES), max_size=3))
    schema, spec = identity_table(*types)
    type_ = partition_type(spec, [schema])
    io = MemoryFileIO()
    entries = data.draw(written_entries(type_, version))
    manifest = listed(io, entries, schema=schema, spec=spec, format_version=version)
    for metrics in ((), (1, 3), "all"):
        for drop_deleted in (True, False):
            first, second = (
                read_entries(
                    io,
                    manifest,
                    type_,
                    metrics=metrics,
                    drop_deleted=drop_deleted,
                    decoder=decoder,
                )
                for decoder in DECODERS
            )
            first.validate(full=True)
            second.validate(full=True)
            assert first.schema == second.schema
            assert repr(first.to_pylist()) == repr(second.to_pylist())


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "zstd"])
def test_all_codecs_are_readable(codec: str, decoder: Decoder) -> None:
    """docs/conformance.md 13."""
    io = MemoryFileIO()
    manifest = listed(io, [added(a_file(str(i))) for i in range(50)], codec=codec)
    table = read_entries(io, manifest, NO_PARTITION, decoder=decoder)
    assert table["file_path"].to_pylist() == [str(i) for i in range(50)]
    assert tuple(table.schema.names) == ENTRY_COLUMNS


def test_metrics_of_chosen_fields_are_columns() -> None:
    io = MemoryFileIO()
    files = [
        a_file("a", value_counts={1: 5, 2: 6}, lower_bounds={2: b"x"}),
        a_file("b"),
        a_file("c", value_counts={}, lower_bounds={1: b"y"}, upper_bounds={1: b"z"}),
    ]
    manifest = listed(io, [added(f) for f in files])
    table = read_entries(io, manifest, NO_PARTITION, metrics=(1, 9))
    assert table[metric_column("value_counts", 1)].to_pylist() == [5, None, None]
    assert table[metric_column("lower_bounds", 1)].to_pylist() == [None, None, b"y"]
    assert table[metric_column("upper_bounds", 1)].to_pylist() == [None, None, b"z"]
    assert table[metric_column("value_counts", 9)].to_pylist() == [None, None, None]
    assert metric_column("value_counts", 2) not in table.schema.names


def test_an_added_file_may_bring_an_older_data_sequence_number() -> None:
    """docs/conformance.md 6."""
    io = MemoryFileIO()
    manifest = listed(io, [added(a_file("a"), sequence_number=2), added(a_file("b"))])
    table = read_entries(io, manifest, NO_PARTITION)
    assert table["sequence_number"].to_pylist() == [2, SEQUENCE_NUMBER]
    assert table["file_sequence_number"].to_pylist() == [SEQUENCE_NUMBER, SEQUENCE_NUMBER]
    assert manifest.min_sequence_number == 2


def test_row_ids_are_inherited_in_order() -> None:
    """docs/conformance.md 14."""
    io = MemoryFileIO()
    manifest = listed(
        io,
        [
            existing(a_file("a", record_count=25, first_row_id=800)),
            added(a_file("b", record_count=50)),
            deleted(a_file("gone", record_count=1000)),
            added(a_file("c", record_count=50)),
            existing(a_file("d", record_count=7)),
        ],
        format_version=3,
    )
    table = read_entries(io, manifest, NO_PARTITION, drop_deleted=False)
    assert table["first_row_id"].to_pylist() == [800, 1000, None, 1050, 1100]


def test_without_a_first_row_id_of_the_manifest_there_are_none() -> None:
    """docs/conformance.md 15."""
    io = MemoryFileIO()
    manifest = listed(io, [existing(a_file("a", first_row_id=800))], format_version=3)
    table = read_entries(io, replace(manifest, first_row_id=None), NO_PARTITION)
    assert table["first_row_id"].to_pylist() == [None]


def test_delete_files_have_no_row_ids() -> None:
    """docs/conformance.md 17."""
    io = MemoryFileIO()
    delete = a_file("d", content=FileContent.POSITION_DELETES, first_row_id=3)
    manifest = listed(io, [added(delete)], format_version=3, content=ManifestContent.DELETES)
    assert manifest.first_row_id is None
    table = read_entries(io, replace(manifest, first_row_id=9), NO_PARTITION)
    assert table["first_row_id"].to_pylist() == [None]
