"""Small manifests that are decoded together have the entries that each has alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.formats import manifest_columns
from iceberg_pyspark.formats.entry_reader import EntryReader
from iceberg_pyspark.formats.known_manifests import KnownEntries
from iceberg_pyspark.formats.manifest_columns import (
    TypedManifest,
    entries_of_manifests,
    known_entries,
)
from iceberg_pyspark.spec.manifests import FileContent, ManifestContent
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.manifest_entries import written_entries
from tests.support.manifests import a_file, added, identity_table, listed
from tests.support.strategies import PRIMITIVE_TYPES

NO_PARTITION = StructType(())


@st.composite
def manifests(draw: DrawFn, io: MemoryFileIO) -> list[TypedManifest]:
    """Write manifests of a table, of at most two kinds; some are damaged."""
    version = draw(st.sampled_from([1, 2, 3]))
    kinds = []
    for spec_id in range(draw(st.integers(1, 2))):
        types = draw(st.lists(st.sampled_from(PRIMITIVE_TYPES), max_size=2))
        schema, spec = identity_table(*types, spec_id=spec_id)
        content = ManifestContent.DATA
        values: dict[str, Any] = {"spec_id": spec_id}
        if version > 1 and draw(st.booleans()):
            content = ManifestContent.DELETES
            values |= {"content": FileContent.EQUALITY_DELETES, "equality_ids": (1,)}
        shape = {"schema": schema, "spec": spec, "content": content}
        codec = draw(st.sampled_from(["gzip", "zstd"]))
        kinds.append((shape | {"codec": codec}, values, partition_type(spec, [schema])))
    typed = []
    for number in range(draw(st.integers(1, 6))):
        shape, values, type_ = draw(st.sampled_from(kinds))
        entries = [
            replace(e, data_file=replace(e.data_file, **values))
            for e in draw(written_entries(type_, version))
        ]
        manifest = listed(io, entries, format_version=version, name=f"m{number}", **shape)
        numbers: dict[str, Any] = {
            "added_snapshot_id": draw(st.sampled_from([None, 7, 8])),
            "sequence_number": draw(st.sampled_from([0, 5, 6])),
            "first_row_id": draw(st.sampled_from([None, 1000, 2000])),
        }
        if draw(st.booleans()):
            numbers["deleted_files_count"] = None
        manifest = replace(manifest, **numbers)
        if draw(st.integers(0, 15)) == 0:
            data = io.read_bytes(manifest.manifest_path)
            io.write_bytes(manifest.manifest_path, data[: draw(st.integers(0, len(data) - 1))])
        typed.append((manifest, type_))
    return typed


def known(entries: KnownEntries) -> tuple[Any, str, list[int]]:
    table = entries.table()
    table.validate(full=True)
    return table.schema, repr(table.to_pylist()), entries.dropped.tolist()


def alone(io: MemoryFileIO, typed: Sequence[TypedManifest], metrics: tuple[int, ...]) -> list[Any]:
    """Return the entries of each, up to the first error."""
    results: list[Any] = []
    for manifest, type_ in typed:
        try:
            # the name of the decoder keeps them apart from those that are decoded together
            entries = known_entries(io, manifest, type_, metrics=metrics, decoder="fastavro")
        except IcebergError as e:
            return [*results, (type(e), str(e))]
        results.append(known(entries))
    return results


@settings(max_examples=settings().max_examples * 2, deadline=None)
@given(st.data(), st.sampled_from([(), (1, 3)]))
def test_together_as_alone(data: st.DataObject, metrics: tuple[int, ...]) -> None:
    io = MemoryFileIO()
    typed = data.draw(manifests(io))
    results: list[Any] = []
    try:
        for entries in entries_of_manifests(io, typed, metrics=metrics):
            results.append(known(entries))
    except IcebergError as e:
        results.append((type(e), str(e)))
    assert results == alone(io, typed, metrics)


def test_manifests_of_one_schema_are_decoded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    io = MemoryFileIO()
    typed = [(listed(io, [added(a_file(str(i)))], name=f"m{i}"), NO_PARTITION) for i in range(20)]
    readers = []

    def reader(*arguments: Any) -> EntryReader:
        readers.append(len(arguments[1]))
        return EntryReader(*arguments)

    monkeypatch.setattr(manifest_columns, "EntryReader", reader)
    for _ in range(2):
        entries = entries_of_manifests(io, typed)
        paths = [path for e in entries for path in e.table()["file_path"].to_pylist()]
        assert paths == [str(i) for i in range(20)]
    assert readers == [20]
