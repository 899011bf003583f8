"""Which deletes apply to which data file: the index agrees with the scope rules for each pair."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.planning import delete_index as delete_groups
from iceberg_pyspark.planning.delete_index import DELETE_METRICS, DeleteEntries, DeleteIndex
from iceberg_pyspark.spec.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
)
from iceberg_pyspark.spec.metadata_columns import DELETE_FILE_PATH
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec, partition_type
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.transforms import VoidTransform
from iceberg_pyspark.spec.types import DoubleType, LongType, PrimitiveType
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.manifests import a_file, identity_table, listed

PATH = DELETE_FILE_PATH.field_id
POSITION, EQUALITY = FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES


def at(sequence_number: int, file: DataFile) -> ManifestEntry:
    """Return a live entry with this data sequence number."""
    return ManifestEntry(
        status=EntryStatus.EXISTING,
        snapshot_id=1,
        sequence_number=sequence_number,
        file_sequence_number=sequence_number,
        data_file=file,
    )


def deletes(path: str, content: FileContent, **values: Any) -> DataFile:
    return a_file(path, content=content, **values)


def vector(path: str, of: str, offset: int = 4, **values: Any) -> DataFile:
    return deletes(
        path,
        POSITION,
        file_format="puffin",
        referenced_data_file=of,
        content_offset=offset,
        content_size_in_bytes=10,
        **values,
    )


def equality(path: str, **values: Any) -> DataFile:
    return deletes(path, EQUALITY, equality_ids=(1,), **values)


def between(low: str, high: str) -> dict[str, dict[int, bytes]]:
    """Return metrics with bounds of the paths that a position delete file refers to."""
    return {"lower_bounds": {PATH: low.encode()}, "upper_bounds": {PATH: high.encode()}}


class Snapshot:
    """Data files and delete files by partition spec, matched by the index."""

    def __init__(self, schema: Schema, *specs: PartitionSpec) -> None:
        self.io = MemoryFileIO()
        self.schema = schema
        self.specs = {s.spec_id: s for s in specs}

    def match(
        self, data: Sequence[ManifestEntry], delete: Sequence[ManifestEntry]
    ) -> dict[str, set[str]]:
        """Return the names of the deletes of each data file that has deletes."""
        index = DeleteIndex(
            [
                DeleteEntries(
                    spec, self._table(delete, spec, ManifestContent.DELETES, DELETE_METRICS)
                )
                for spec in self.specs.values()
            ]
        )
        deletes_by_file: dict[str, set[str]] = {}
        for spec in self.specs.values():
            table = self._table(data, spec, ManifestContent.DATA, ())
            paths = table["file_path"].to_pylist()
            for row, refs in index.match(table, spec.spec_id).items():
                assert len(refs) == len(set(refs))
                deletes_by_file[paths[row]] = {name(r.file_path, r.content_offset) for r in refs}
        return deletes_by_file

    def _table(
        self,
        entries: Iterable[ManifestEntry],
        spec: PartitionSpec,
        content: ManifestContent,
        metrics: Any,
    ) -> Any:
        mine = [e for e in entries if e.data_file.spec_id == spec.spec_id]
        manifest = listed(
            self.io,
            mine,
            schema=self.schema,
            spec=spec,
            content=content,
            format_version=3,
            name=f"{content.name}-{spec.spec_id}-{len(list(self.io.list_files('')))}",
        )
        type_ = partition_type(spec, [self.schema])
        return read_entries(self.io, manifest, type_, metrics=metrics)


def name(path: str, offset: int | None) -> str:
    return path if offset is None else f"{path}@{offset}"


def unpartitioned() -> Snapshot:
    return Snapshot(Schema(fields=()), PartitionSpec(spec_id=0))


def partitioned(*types: PrimitiveType) -> Snapshot:
    schema, spec = identity_table(*types)
    return Snapshot(schema, spec, replace(spec, spec_id=1))


def test_equality_deletes_apply_to_strictly_older_data() -> None:
    """docs/conformance.md 22."""
    data = [at(n, a_file(f"d{n}")) for n in (1, 2, 3)]
    matches = unpartitioned().match(data, [at(2, equality("e"))])
    assert matches == {"d1": {"e"}}


def test_position_deletes_apply_to_data_of_the_same_commit_too() -> None:
    """docs/conformance.md 22."""
    data = [at(n, a_file(f"d{n}")) for n in (1, 2, 3)]
    matches = unpartitioned().match(data, [at(2, deletes("p", POSITION))])
    assert matches == {"d1": {"p"}, "d2": {"p"}}


def test_vectors_apply_to_the_file_they_name() -> None:
    data = [at(1, a_file("d1")), at(1, a_file("d2")), at(3, a_file("d3"))]
    matches = unpartitioned().match(
        data, [at(2, vector("v", "d1")), at(2, vector("v", "d3", 20)), at(2, vector("v", "x", 40))]
    )
    assert matches == {"d1": {"v@4"}}


def test_equality_deletes_of_an_unpartitioned_spec_are_global() -> None:
    """docs/conformance.md 23."""
    schema, spec = identity_table(LongType())
    field = spec.fields[0]
    void = PartitionSpec(
        spec_id=2, fields=(replace(field, transform=VoidTransform(), field_id=1001),)
    )
    snapshot = Snapshot(schema, spec, PartitionSpec(spec_id=1), void)
    data = [at(1, a_file("d0", partition=(5,))), at(1, a_file("d1", spec_id=1))]
    delete = [
        at(2, equality("plain", spec_id=1)),
        at(2, equality("void", spec_id=2, partition=(None,))),
    ]
    assert snapshot.match(data, delete) == {"d0": {"plain", "void"}, "d1": {"plain", "void"}}


def test_position_deletes_of_an_unpartitioned_spec_are_not_global() -> None:
    schema, spec = identity_table(LongType())
    snapshot = Snapshot(schema, spec, PartitionSpec(spec_id=1))
    data = [at(1, a_file("d0", partition=(5,)))]
    assert snapshot.match(data, [at(2, deletes("p", POSITION, spec_id=1))]) == {}


def test_deletes_stay_in_their_spec_and_partition() -> None:
    """docs/conformance.md 24 and 25."""
    snapshot = partitioned(LongType())
    data = [
        at(1, a_file("a", partition=(1,))),
        at(1, a_file("b", partition=(2,))),
        at(1, a_file("c", partition=(1,), spec_id=1)),
    ]
    delete = [
        at(2, equality("e", partition=(1,))),
        at(2, deletes("p", POSITION, partition=(2,))),
        at(2, equality("f", partition=(3,))),
    ]
    assert snapshot.match(data, delete) == {"a": {"e"}, "b": {"p"}}


def test_partitions_are_equal_as_the_specification_says() -> None:
    """docs/conformance.md 26."""
    snapshot = partitioned(DoubleType(), LongType())
    other_nan = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
    values = {"nan": math.nan, "zero": 0.0, "minus": -0.0, "null": None}
    data = [at(1, a_file(k, partition=(v, None))) for k, v in values.items()]
    delete = [at(2, equality(f"of {k}", partition=(v, None))) for k, v in values.items()]
    delete += [at(2, equality("other nan", partition=(other_nan, None)))]
    matches = snapshot.match(data, delete)
    assert matches == {
        "nan": {"of nan", "other nan"},
        "zero": {"of zero"},
        "minus": {"of minus"},
        "null": {"of null"},
    }


@pytest.mark.parametrize(
    "delete",
    [
        vector("v", "d", partition=(2,)),
        vector("v", "d", partition=(1,), spec_id=1),
        deletes("v", POSITION, referenced_data_file="d", partition=(2,)),
    ],
)
def test_a_delete_that_names_a_file_elsewhere_is_damage(delete: DataFile) -> None:
    """docs/conformance.md 25."""
    data = [at(1, a_file("d", partition=(1,)))]
    with pytest.raises(InvalidMetadataError, match=r"v.* names d, which has another partition"):
        partitioned(LongType()).match(data, [at(2, delete)])


def test_bounds_that_name_a_file_elsewhere_only_do_not_apply() -> None:
    data = [at(1, a_file("d", partition=(1,)))]
    delete = deletes("p", POSITION, partition=(2,), **between("d", "d"))
    assert partitioned(LongType()).match(data, [at(2, delete)]) == {}


def test_a_vector_replaces_position_deletes() -> None:
    """docs/conformance.md 32."""
    data = [at(1, a_file("a")), at(1, a_file("b"))]
    delete = [
        at(2, deletes("p", POSITION)),
        at(2, deletes("q", POSITION, referenced_data_file="a")),
        at(3, vector("v", "a")),
        at(3, equality("e")),
    ]
    assert unpartitioned().match(data, delete) == {"a": {"v@4", "e"}, "b": {"p", "e"}}


def test_two_vectors_of_a_file_are_damage() -> None:
    """docs/conformance.md 33."""
    delete = [at(2, vector("v", "a")), at(3, vector("w", "a", 30))]
    with pytest.raises(InvalidMetadataError, match=r"a has two deletion vectors.*v at.*w at"):
        unpartitioned().match([at(1, a_file("a"))], delete)


def test_position_deletes_of_one_file_by_name_or_by_bounds() -> None:
    """docs/conformance.md 37."""
    data = [at(1, a_file(p)) for p in ("a", "b")]
    delete = [
        at(2, deletes("named", POSITION, referenced_data_file="a")),
        at(2, deletes("bounds", POSITION, **between("b", "b"))),
        at(2, deletes("null name", POSITION, referenced_data_file=None)),
    ]
    assert unpartitioned().match(data, delete) == {
        "a": {"named", "null name"},
        "b": {"bounds", "null name"},
    }


def test_bounds_of_paths_narrow_and_need_not_be_whole() -> None:
    """docs/conformance.md 37."""
    data = [at(1, a_file(p)) for p in ("data/1", "data/2", "data/3")]
    delete = [
        at(2, deletes("two", POSITION, **between("data/2", "data/3"))),
        at(2, deletes("cut", POSITION, **between("data/", "data0"))),
    ]
    assert unpartitioned().match(data, delete) == {
        "data/1": {"cut"},
        "data/2": {"two", "cut"},
        "data/3": {"two", "cut"},
    }


@pytest.mark.parametrize(
    ("damaged", "missing"),
    [
        (replace(vector("v", "a"), content_offset=None), "content_offset"),
        (replace(vector("v", "a"), content_size_in_bytes=None), "content_size_in_bytes"),
        (replace(vector("v", "a"), referenced_data_file=None), "referenced_data_file"),
    ],
)
def test_a_vector_must_say_where_it_is(damaged: DataFile, missing: str) -> None:
    """docs/conformance.md 35."""
    with pytest.raises(InvalidMetadataError, match=f"v: a deletion vector must have {missing}"):
        unpartitioned().match([at(1, a_file("a"))], [at(2, damaged)])


def test_an_equality_delete_without_columns_is_damage() -> None:
    damaged = replace(equality("e"), equality_ids=None)
    with pytest.raises(InvalidMetadataError, match=r"e: .*equality_ids"):
        unpartitioned().match([at(1, a_file("a"))], [at(2, damaged)])


PARTITIONS = st.sampled_from([None, 0.0, -0.0, math.nan, 1.5])
SEQUENCE = st.integers(1, 4)
PATHS = tuple("abcde")


@st.composite
def data_entries(draw: DrawFn) -> list[ManifestEntry]:
    return [
        at(
            draw(SEQUENCE),
            a_file(p, spec_id=draw(st.sampled_from([0, 1, 2])), partition=(draw(PARTITIONS),)),
        )
        for p in draw(st.lists(st.sampled_from(PATHS), unique=True))
    ]


@st.composite
def delete_entries(draw: DrawFn, data: Sequence[ManifestEntry]) -> list[ManifestEntry]:
    entries = []
    of = {e.data_file.file_path: e.data_file for e in data}
    vectors = draw(st.lists(st.sampled_from(PATHS), unique=True, max_size=3))
    for i, path in enumerate(vectors):
        home = of.get(path, a_file(path, partition=(None,)))
        entries.append(vector("v", path, 10 * i, spec_id=home.spec_id, partition=home.partition))
    for i in range(draw(st.integers(0, 5))):
        where = {
            "spec_id": draw(st.sampled_from([0, 1, 2])),
            "partition": (draw(PARTITIONS),),
        }
        kind = draw(st.sampled_from(["equality", "position", "named", "bounds"]))
        path = draw(st.sampled_from(PATHS))
        home = of.get(path, a_file(path, partition=(None,)))
        match kind:
            case "equality":
                entries.append(equality(f"e{i}", **where))
            case "position":
                low, high = sorted(draw(st.tuples(st.sampled_from(PATHS), st.sampled_from(PATHS))))
                bounds = between(low, high) if low != high else {}
                entries.append(deletes(f"p{i}", POSITION, **bounds, **where))
            case "named":
                values = {"spec_id": home.spec_id, "partition": home.partition}
                entries.append(deletes(f"n{i}", POSITION, referenced_data_file=path, **values))
            case _:
                entries.append(deletes(f"b{i}", POSITION, **between(path, path), **where))
    return [at(draw(SEQUENCE), f) for f in entries]


def bits(partition: tuple[Any, ...]) -> list[Any]:
    return [
        None if v is None else "nan" if math.isnan(v) else struct.pack("<d", v) for v in partition
    ]


def applies(delete: ManifestEntry, data: ManifestEntry, unpartitioned: set[int]) -> bool:
    """Apply the scope rules of "Scan Planning" to a pair, except that vectors hide deletes."""
    d, f = delete.data_file, data.data_file
    assert delete.sequence_number is not None
    assert data.sequence_number is not None
    same = d.spec_id == f.spec_id and bits(d.partition) == bits(f.partition)
    if d.content is EQUALITY:
        older = data.sequence_number < delete.sequence_number
        return older and (same or d.spec_id in unpartitioned)
    if data.sequence_number > delete.sequence_number or not same:
        return False
    if d.referenced_data_file is not None:
        return d.referenced_data_file == f.file_path
    path = f.file_path.encode()
    low = (d.lower_bounds or {}).get(PATH, path)
    high = (d.upper_bounds or {}).get(PATH, path)
    return low <= path <= high


def test_many_deletes_are_matched_in_bounded_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delete_groups, "MAX_PAIRS", 3)
    data = [at(n, a_file(f"d{n}")) for n in range(1, 8)]
    delete = [at(3, equality("e")), at(5, deletes("p", POSITION)), at(9, vector("v", "d7"))]
    assert unpartitioned().match(data, delete) == {
        **{f"d{n}": {"e", "p"} for n in (1, 2)},
        **{f"d{n}": {"p"} for n in (3, 4, 5)},
        "d7": {"v@4"},
    }


@settings(max_examples=settings().max_examples * 80 // 100, deadline=None)
@given(st.data())
def test_the_join_equals_the_rules_pair_by_pair(draw: st.DataObject) -> None:
    schema, spec = identity_table(DoubleType())
    all_void = tuple(
        PartitionField(
            source_ids=f.source_ids, field_id=f.field_id, name=f.name, transform=VoidTransform()
        )
        for f in spec.fields
    )
    snapshot = Snapshot(
        schema, spec, replace(spec, spec_id=1), PartitionSpec(spec_id=2, fields=all_void)
    )
    data = draw.draw(data_entries())
    delete = draw.draw(delete_entries(data))
    expected: dict[str, set[str]] = {}
    for f in data:
        mine = [d.data_file for d in delete if applies(d, f, {2})]
        if any(d.is_deletion_vector for d in mine):
            mine = [d for d in mine if d.is_deletion_vector or d.content is EQUALITY]
        if mine:
            expected[f.data_file.file_path] = {name(d.file_path, d.content_offset) for d in mine}
    assert snapshot.match(data, delete) == expected
