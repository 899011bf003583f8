"""Plans of scans."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.evaluation import evaluate
from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    LiteralPredicate,
    Predicate,
)
from iceberg_pyspark.formats import known_manifests
from iceberg_pyspark.formats.known_manifests import KnownEntries
from iceberg_pyspark.formats.manifest_columns import TypedManifest, entries_of_manifests
from iceberg_pyspark.planning import entry_blocks
from iceberg_pyspark.planning.scan_plan import PlanStatistics, ScanPlan, without_collection
from iceberg_pyspark.planning.split_pack import SplitOptions
from iceberg_pyspark.spec.manifests import DataFile, FileContent, ManifestContent, ManifestFile
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    IdentityTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    apply_transform,
)
from iceberg_pyspark.spec.types import (
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
)
from iceberg_pyspark.spec.values import value_to_bytes
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.manifests import a_file, added, deleted, identity_table, listed
from tests.support.strategies import columns, predicates, rows, schema_of

BOUND = columns(IntegerType(), StringType())
SCHEMA = schema_of(BOUND)


def spec_of(spec_id: int, *transforms: tuple[int, Transform]) -> PartitionSpec:
    return PartitionSpec(
        spec_id=spec_id,
        fields=tuple(
            PartitionField(
                source_ids=(source,),
                field_id=1000 + 10 * spec_id + i,
                name=f"p{i}",
                transform=transform,
            )
            for i, (source, transform) in enumerate(transforms)
        ),
    )


BY_NUMBER = spec_of(0, (1, IdentityTransform()))
SPECS = (
    BY_NUMBER,
    spec_of(1, (1, TruncateTransform(3)), (2, TruncateTransform(1))),
    spec_of(2),
    spec_of(3, (1, BucketTransform(2)), (2, VoidTransform())),
)


@pytest.fixture(scope="module", autouse=True)
def blocks_of_two_entries() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_manifests, "BLOCK_ENTRIES", 2)
        patch.setattr(entry_blocks, "_FEW", 0)
        yield


def table(schema: Schema = SCHEMA, specs: Sequence[PartitionSpec] = SPECS) -> TableMetadata:
    return TableMetadata(
        format_version=2,
        table_uuid="u",
        location="t",
        last_updated_ms=0,
        last_column_id=9,
        schemas=(schema,),
        current_schema_id=schema.schema_id,
        partition_specs=tuple(specs),
        default_spec_id=specs[0].spec_id,
        last_partition_id=2000,
    )


def plan(
    io: MemoryFileIO,
    manifests: Sequence[ManifestFile],
    predicate: Predicate = AlwaysTrue(),  # noqa: B008
    metadata: TableMetadata | None = None,
) -> ScanPlan:
    return ScanPlan(
        metadata=metadata or table(),
        manifests=manifests,
        predicate=bind(predicate, SCHEMA),
        read_entries=partial(entries_of_manifests, io),
    )


def numbered(io: MemoryFileIO, name: str, *numbers: int) -> ManifestFile:
    """Write a manifest with one file per number, partitioned by the number."""
    files = [a_file(f"{name}/{n}", partition=(n,)) for n in numbers]
    return listed(io, [added(f) for f in files], schema=SCHEMA, spec=BY_NUMBER, name=name)


def test_manifests_and_files_are_pruned_and_counted() -> None:
    io = MemoryFileIO()
    manifests = [numbered(io, "low", 1, 2, 3), numbered(io, "high", 11, 12), numbered(io, "no", 50)]
    planned = plan(io, manifests, LiteralPredicate("lt", "c1", 12))
    tasks = list(planned.tasks())
    assert [t.file_path for t in tasks] == ["low/1", "low/2", "low/3", "high/11"]
    assert planned.statistics == PlanStatistics(
        manifests=3,
        manifests_kept=2,
        data_files=6,
        data_files_kept=4,
        delete_files=0,
        bytes_kept=400,
    )


def test_a_manifest_that_cannot_match_is_not_opened() -> None:
    io = MemoryFileIO()
    manifests = [numbered(io, "low", 1), numbered(io, "high", 11)]
    opened: list[tuple[str, set[int]]] = []

    def read(
        manifests: Sequence[TypedManifest], *, metrics: Collection[int]
    ) -> Iterator[KnownEntries]:
        opened.extend((m.manifest_path, set(metrics)) for m, _ in manifests)
        return entries_of_manifests(io, manifests, metrics=metrics)

    planned = ScanPlan(
        metadata=table(),
        manifests=manifests,
        predicate=bind(LiteralPredicate("gt", "c1", 5), SCHEMA),
        read_entries=read,
    )
    assert [t.file_path for t in planned.tasks()] == ["high/11"]
    assert opened == [("metadata/high.avro", {1})]


@pytest.mark.parametrize("length", [-1, 0, 1, 2**40])
def test_manifests_that_are_read_at_once_are_few(length: int) -> None:
    io = MemoryFileIO()
    first = replace(numbered(io, "a", 1), manifest_length=length)
    io.write_bytes("/t/a.avro", io.read_bytes(first.manifest_path))
    parts = []

    def read(
        manifests: Sequence[TypedManifest], *, metrics: Collection[int]
    ) -> Iterator[KnownEntries]:
        parts.append(len(manifests))
        return entries_of_manifests(io, manifests, metrics=metrics)

    planned = ScanPlan(
        metadata=table(),
        manifests=[replace(first, manifest_path="/t/a.avro")] * 1000,
        predicate=bind(LiteralPredicate("gt", "c1", 0), SCHEMA),
        read_entries=read,
    )
    assert len(list(planned.tasks())) == 1000
    assert max(parts) <= 64


def test_a_predicate_that_is_false_opens_nothing() -> None:
    planned = plan(MemoryFileIO(), [numbered(MemoryFileIO(), "a", 1)], AlwaysFalse())
    assert list(planned.tasks()) == []


def test_partitions_that_prove_the_predicate_need_no_row_filter() -> None:
    io = MemoryFileIO()
    manifests = [numbered(io, "a", 1, 2)]
    (task,) = plan(io, manifests, LiteralPredicate("eq", "c1", 2)).tasks()
    assert task.filter_satisfied
    assert all(t.filter_satisfied for t in plan(io, manifests).tasks())
    file = a_file("b", spec_id=2)
    unpartitioned = listed(io, [added(file)], schema=SCHEMA, spec=SPECS[2], name="b")
    (task,) = plan(io, [unpartitioned], LiteralPredicate("eq", "c1", 2)).tasks()
    assert not task.filter_satisfied


def test_an_unknown_spec_is_refused() -> None:
    """docs/conformance.md 10."""
    io = MemoryFileIO()
    manifest = replace(numbered(io, "a", 1), partition_spec_id=8)
    with pytest.raises(InvalidMetadataError, match=r"a\.avro: partition spec 8 is not in"):
        list(plan(io, [manifest]).tasks())


def test_manifests_without_live_files_are_skipped() -> None:
    io = MemoryFileIO()
    without_files = listed(
        io,
        [deleted(a_file("a", partition=(1,)))],
        schema=SCHEMA,
        spec=BY_NUMBER,
        name="gone",
    )
    planned = plan(io, [without_files])
    assert list(planned.tasks()) == []
    assert planned.statistics.manifests_kept == 0


def test_a_v1_manifest_without_counts_is_read() -> None:
    """docs/conformance.md 9."""
    io = MemoryFileIO()
    manifest = replace(numbered(io, "a", 1, 2), added_files_count=None, existing_files_count=None)
    planned = plan(io, [manifest], LiteralPredicate("eq", "c1", 2))
    assert len(list(planned.tasks())) == 1
    assert planned.statistics.data_files == 2


def test_tasks_carry_what_readers_need() -> None:
    io = MemoryFileIO()
    file = a_file(
        "a", partition=(7,), file_size_in_bytes=250, split_offsets=(4, 100), file_format="parquet"
    )
    delete = a_file("d", partition=(7,), content=FileContent.EQUALITY_DELETES, equality_ids=(1,))
    manifests = [
        listed(
            io,
            [added(file, sequence_number=3)],
            schema=SCHEMA,
            spec=BY_NUMBER,
            format_version=3,
            first_row_id=40,
            name="data",
        ),
        listed(
            io,
            [added(delete)],
            schema=SCHEMA,
            spec=BY_NUMBER,
            content=ManifestContent.DELETES,
            name="deletes",
        ),
    ]
    planned = plan(io, manifests)
    first, second = planned.tasks(SplitOptions(target_size=150))
    assert (first.start, first.length, second.start, second.length) == (0, 100, 100, 150)
    assert (first.partition, first.spec_id, first.data_sequence_number) == ((7,), 0, 3)
    assert (first.file_format, first.first_row_id, first.record_count) == ("parquet", 40, 10)
    assert [d.file_path for d in first.deletes] == ["d"]
    assert first.deletes == second.deletes
    assert first.deletes[0].equality_ids == (1,)
    assert planned.statistics.delete_files == 1


def test_sizes_that_are_not_true_make_few_tasks_and_are_summed() -> None:
    io = MemoryFileIO()
    files = [
        a_file(str(i), partition=(i,), file_size_in_bytes=2**62, record_count=3) for i in range(4)
    ]
    files.append(replace(files[0], record_count=2**62, split_offsets=(4, 9)))
    files.append(replace(files[0], split_offsets=tuple(range(20_000))))
    manifest = listed(io, [added(f) for f in files], schema=SCHEMA, spec=BY_NUMBER)
    planned = plan(io, [manifest])
    assert len(list(planned.tasks())) == 4 * 3 + 2 + 3
    assert planned.statistics.bytes_kept == 6 * 2**62


def with_bounds(path: str, low: int | None, high: int | None, **values: Any) -> DataFile:
    """Return a file whose c1 lies between the bounds; if a bound is None, c1 is always null."""
    if low is None or high is None:
        return a_file(path, spec_id=2, value_counts={1: 10}, null_value_counts={1: 10}, **values)
    return a_file(
        path,
        spec_id=2,
        value_counts={1: 10},
        null_value_counts={1: 0},
        lower_bounds={1: value_to_bytes(IntegerType(), low)},
        upper_bounds={1: value_to_bytes(IntegerType(), high)},
        **values,
    )


def test_equality_deletes_are_left_out_by_sound_bounds_only() -> None:
    """docs/conformance.md 31."""
    io = MemoryFileIO()
    data = [
        with_bounds("low", 1, 5),
        with_bounds("high", 6, 9),
        with_bounds("null", None, None),
        a_file("unknown", spec_id=2),
    ]
    one = {"content": FileContent.EQUALITY_DELETES, "equality_ids": (1,)}
    two = {"content": FileContent.EQUALITY_DELETES, "equality_ids": (2,)}
    delete = [
        with_bounds("of 3", 3, 3, **one),
        with_bounds("of 5 to 6", 5, 6, **one),
        with_bounds("of null", None, None, **one),
        a_file("of something", spec_id=2, **one),
        with_bounds("of another column", 3, 3, **two),
    ]
    manifests = [
        listed(
            io,
            [added(f, sequence_number=1) for f in data],
            schema=SCHEMA,
            spec=SPECS[2],
            name="data",
        ),
        listed(
            io,
            [added(f) for f in delete],
            schema=SCHEMA,
            spec=SPECS[2],
            content=ManifestContent.DELETES,
            name="deletes",
        ),
        listed(
            io,
            [added(a_file("positions", content=FileContent.POSITION_DELETES, spec_id=2))],
            schema=SCHEMA,
            spec=SPECS[2],
            content=ManifestContent.DELETES,
            name="positions",
        ),
    ]
    deletes_by_file = {
        t.file_path: {d.file_path for d in t.deletes} for t in plan(io, manifests).tasks()
    }
    always = {"of something", "of another column", "positions"}
    assert deletes_by_file == {
        "low": {"of 3", "of 5 to 6", *always},
        "high": {"of 5 to 6", *always},
        "null": {"of null", *always},
        "unknown": {"of 3", "of 5 to 6", "of null", *always},
    }


def test_planning_many_manifests_keeps_their_order() -> None:
    io = MemoryFileIO()
    manifests = [numbered(io, f"m{i}", i) for i in range(20)]
    tasks = list(plan(io, manifests).tasks())
    assert [t.partition for t in tasks] == [(i,) for i in range(20)]


def test_the_files_of_a_manifest_become_tasks_without_garbage_collection() -> None:
    io = MemoryFileIO()
    planned = plan(io, [numbered(io, "m", *range(2000))])
    list(planned.tasks())  # decodes the manifest
    collections = Counter[str]()

    def count(phase: str, _info: dict[str, int]) -> None:
        collections[phase] += 1

    thresholds = gc.get_threshold()
    gc.set_threshold(100)
    gc.callbacks.append(count)
    try:
        tasks = planned.tasks()
        next(tasks)
    finally:
        gc.callbacks.remove(count)
        gc.set_threshold(*thresholds)
    assert len(list(tasks)) == 1999
    assert collections["start"] < 10


Row = Mapping[int, Any]


def file_of(path: str, spec: PartitionSpec, some: Sequence[Row]) -> DataFile:
    """Return a file with rows of one partition and with the metrics that a writer would record."""
    first = some[0]
    partition = []
    for f in spec.fields:
        source = BOUND[f.source_id - 1]
        partition.append(apply_transform(f.transform, source.type, first[f.source_id]))
    values = {c.field_id: [r[c.field_id] for r in some if r[c.field_id] is not None] for c in BOUND}
    type_by_id = {c.field_id: c.type for c in BOUND}
    return a_file(
        path,
        spec_id=spec.spec_id,
        partition=tuple(partition),
        record_count=len(some),
        value_counts={i: len(some) for i in values},
        null_value_counts={i: len(some) - len(v) for i, v in values.items()},
        lower_bounds={i: value_to_bytes(type_by_id[i], min(v)) for i, v in values.items() if v},
        upper_bounds={i: value_to_bytes(type_by_id[i], max(v)) for i, v in values.items() if v},
    )


@st.composite
def files_with_rows(draw: DrawFn) -> tuple[PartitionSpec, list[tuple[DataFile, list[Row]]]]:
    """Draw a spec and files of the spec, with their rows grouped by partition tuple."""
    spec = draw(st.sampled_from(SPECS))
    by_partition: dict[tuple[Any, ...], list[Row]] = {}
    for row in draw(st.lists(rows(BOUND), min_size=1, max_size=8)):
        key = tuple(
            apply_transform(f.transform, BOUND[f.source_id - 1].type, row[f.source_id])
            for f in spec.fields
        )
        if all(not isinstance(k, int) or k >= -(2**31) for k in key):
            by_partition.setdefault(key, []).append(row)
    files = [
        (file_of(f"s{spec.spec_id}/{i}", spec, some), some)
        for i, some in enumerate(by_partition.values())
    ]
    return spec, files


@settings(max_examples=settings().max_examples * 6 // 5, deadline=None)
@given(st.lists(files_with_rows(), min_size=1, max_size=3), predicates(BOUND))
def test_no_file_with_a_matching_row_is_pruned(
    groups: list[tuple[PartitionSpec, list[tuple[DataFile, list[Row]]]]], predicate: Predicate
) -> None:
    """docs/conformance.md 57."""
    io = MemoryFileIO()
    manifests = []
    matching = set()
    proved = {}
    for i, (spec, files) in enumerate(groups):
        files = [(replace(f, file_path=f"{i}/{f.file_path}"), some) for f, some in files]
        entries = [added(f) for f, _ in files]
        manifests.append(listed(io, entries, schema=SCHEMA, spec=spec, name=f"m{i}"))
        for f, some in files:
            matches = [evaluate(predicate, row) is True for row in some]
            if any(matches):
                matching.add(f.file_path)
            proved[f.file_path] = all(matches)
    planned = ScanPlan(
        metadata=table(),
        manifests=manifests,
        predicate=predicate,
        read_entries=partial(entries_of_manifests, io),
    )
    tasks = list(planned.tasks())
    assert matching <= {t.file_path for t in tasks}
    assert all(proved[t.file_path] for t in tasks if t.filter_satisfied)


def test_partitions_of_zeros_stay_apart() -> None:
    io = MemoryFileIO()
    schema, spec = identity_table(DoubleType())
    files = [a_file(str(v), partition=(v,)) for v in (0.0, -0.0, None)]
    manifest = listed(io, [added(f) for f in files], schema=schema, spec=spec)
    tasks = plan(io, [manifest], metadata=table(schema, [spec])).tasks()
    assert [repr(t.partition) for t in tasks] == ["(0.0,)", "(-0.0,)", "(None,)"]


def test_a_partition_of_a_dropped_column_still_plans() -> None:
    """docs/conformance.md 63."""
    io = MemoryFileIO()
    manifests = [numbered(io, "a", 1, 2)]
    new_schema = Schema(
        fields=(NestedField(field_id=2, name="c2", type=StringType()),), schema_id=1
    )
    metadata = table(new_schema)
    tasks = list(plan(io, manifests, metadata=metadata).tasks())
    assert [t.partition for t in tasks] == [(1,), (2,)]
    both = replace(metadata, schemas=(new_schema, SCHEMA))
    tasks = list(plan(io, manifests, metadata=both).tasks())
    assert [t.partition for t in tasks] == [(1,), (2,)]


def test_a_promoted_partition_column_plans_with_its_new_type() -> None:
    io = MemoryFileIO()
    manifests = [numbered(io, "a", 1, 2)]
    wide = Schema(fields=(replace(SCHEMA.fields[0], type=LongType()), SCHEMA.fields[1]))
    predicate = bind(LiteralPredicate("gt", "c1", 2**40), wide)
    planned = plan(io, manifests, predicate, table(wide))
    assert list(planned.tasks()) == []


def test_equality_deletes_are_pruned_only_by_the_columns_that_they_compare() -> None:
    """docs/conformance.md 27: other columns of a delete file may differ from the deleted rows.

    Writers of change streams store nulls there if they know only the key of a deleted row.
    """
    io = MemoryFileIO()
    keys_alone = {
        "spec_id": 2,
        "content": FileContent.EQUALITY_DELETES,
        "record_count": 10,
        "value_counts": {1: 10, 2: 10},
        "null_value_counts": {1: 0, 2: 10},
        "lower_bounds": {1: value_to_bytes(IntegerType(), 3)},
        "upper_bounds": {1: value_to_bytes(IntegerType(), 3)},
    }
    deletes = [
        a_file("of c1", equality_ids=(1,), **keys_alone),
        a_file("of both", equality_ids=(2, 1), **keys_alone),
        # the column `row` of a position delete file has the field ids of the table
        a_file("positions", **{**keys_alone, "content": FileContent.POSITION_DELETES}),
    ]
    manifests = [
        listed(
            io,
            [added(a_file("data", spec_id=2), sequence_number=1)],
            schema=SCHEMA,
            spec=SPECS[2],
            name="data",
        ),
        listed(
            io,
            [added(f) for f in deletes],
            schema=SCHEMA,
            spec=SPECS[2],
            content=ManifestContent.DELETES,
            name="deletes",
        ),
    ]

    def planned_deletes(predicate: Predicate) -> set[str]:
        (task,) = plan(io, manifests, predicate).tasks()
        return {d.file_path for d in task.deletes}

    assert planned_deletes(LiteralPredicate("eq", "c2", "x")) == {"of c1", "positions"}
    assert planned_deletes(LiteralPredicate("eq", "c1", 3)) == {"of c1", "of both", "positions"}
    assert planned_deletes(LiteralPredicate("eq", "c1", 4)) == {"positions"}


@without_collection
def is_enabled() -> bool:
    return gc.isenabled()


@without_collection
def fails() -> None:
    raise KeyError


def test_garbage_is_not_collected_while_the_function_runs() -> None:
    assert not is_enabled()
    assert gc.isenabled()
    with pytest.raises(KeyError):
        fails()
    assert gc.isenabled()


def test_a_caller_that_has_switched_collection_off_finds_it_off() -> None:
    gc.disable()
    try:
        is_enabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_generator_function_is_refused() -> None:
    def numbers() -> Iterator[int]:
        yield 1

    with pytest.raises(TypeError, match="generator function"):
        without_collection(numbers)
