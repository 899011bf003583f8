"""The files of a relation, their table for the JVM, and the offsets at which tasks may begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from iceberg_pyspark.formats.encoding.physical_types import physical_type
from iceberg_pyspark.planning.scan_plan import PlannedFiles, tasks_of
from iceberg_pyspark.planning.scan_tasks import RowChange, ScanTask
from iceberg_pyspark.planning.split_pack import MAX_RANGES_OF_A_FILE
from iceberg_pyspark.spark.bridge.call_arguments import arrow_stream
from iceberg_pyspark.spark.bridge.features import JvmFileSystem
from iceberg_pyspark.spark.native_read.columns import (
    CONSTANT_FILE,
    CONSTANT_FIRST_ROW_ID,
    ConstantColumn,
)
from iceberg_pyspark.spark.native_read.equality_joins import PARTITION_ORDINAL, PartitionOrdinals
from iceberg_pyspark.spark.native_read.relations import (
    LOCATION,
    ORDINAL,
    FileFacts,
    RelationFiles,
    SplitOffsets,
    files_table,
    usable_offsets,
)
from iceberg_pyspark.spark.storage.jvm_access import NativeStorage
from iceberg_pyspark.spec.manifests import FileFormat
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec, partition_type
from iceberg_pyspark.spec.transforms import BucketTransform, IdentityTransform
from iceberg_pyspark.spec.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    Type,
)
from tests.support.manifests import UNPARTITIONED, identity_table
from tests.support.strategies import nullable

SIZE = 100
STORAGE = NativeStorage(lambda s: JvmFileSystem("x") if s == "s3a" else None, {})


def group(entries: pa.Table, **attributes: Any) -> PlannedFiles:
    others: dict[str, Any] = {"spec": UNPARTITIONED, "partition_type": StructType(fields=())}
    others |= {"deletes": {}, "satisfies_filter": np.zeros(entries.num_rows, np.bool_)}
    return PlannedFiles(entries=entries, **(others | attributes))


def entries(offsets: Sequence[Sequence[int | None] | None], first: int, element: str) -> pa.Table:
    type_ = pa.list_(pa.field(element, pa.int64()))
    paths = [f"f{first + number}" for number in range(len(offsets))]
    return pa.table({"split_offsets": pa.array(offsets, type_), "file_path": paths})


def offsets_of(
    tables: Sequence[pa.Table],
    numbers: Sequence[int],
    sizes: Sequence[int],
    file_format: FileFormat = "parquet",
) -> pa.Array:
    paths = pa.array([f"f{number}" for number in numbers], pa.string())
    offsets = SplitOffsets([group(table) for table in tables]).of(paths)
    return usable_offsets(offsets, pa.array(sizes, pa.int64()), file_format)


def usable(offsets: Sequence[int | None] | None) -> bool:
    if not offsets:
        return False
    known = [o for o in offsets if o is not None]
    return len(known) == len(offsets) and (
        known[0] >= 0 and known[-1] < SIZE and all(a < b for a, b in pairwise(known))
    )


LISTS = st.none() | st.lists(st.none() | st.integers(-2, SIZE + 2), max_size=4)
ASCENDING = st.lists(st.integers(0, SIZE - 1), unique=True, min_size=1, max_size=4).map(sorted)


@given(st.lists(st.lists(LISTS | ASCENDING, max_size=4), max_size=3), st.randoms())
def test_only_offsets_that_ascend_within_the_file_are_used(
    manifests: list[list[list[int | None] | None]], random: object
) -> None:
    tables, first = [], 0
    for number, offsets in enumerate(manifests):
        tables.append(entries(offsets, first, "element" if number % 2 else "item"))
        first += len(offsets)
    everything = [offsets for of_manifest in manifests for offsets in of_manifest]
    numbers = list(range(len(everything)))
    random.shuffle(numbers)  # type: ignore[attr-defined]
    result = offsets_of(tables, numbers, [SIZE] * len(numbers))
    assert result.type == pa.list_(pa.int64())
    expected = [everything[n] if usable(everything[n]) else None for n in numbers]
    assert result.to_pylist() == expected


def test_only_parquet_files_of_a_known_size_are_cut_at_offsets() -> None:
    tables = [entries([[4, 50], [4, 50]], 0, "item")]
    assert offsets_of(tables, [0, 1], [SIZE, 50]).to_pylist() == [[4, 50], None]
    assert offsets_of(tables, [0], [SIZE], "orc").to_pylist() == [None]


def test_too_many_offsets_are_not_used() -> None:
    many = list(range(MAX_RANGES_OF_A_FILE + 1))
    result = offsets_of([entries([many, many[:-1]], 0, "item")], [0, 1], [2 * len(many)] * 2)
    assert [o is None for o in result.to_pylist()] == [True, False]


def test_a_scan_without_files() -> None:
    assert offsets_of([], [], []).to_pylist() == []


def spec(spec_id: int, *sources: int) -> PartitionSpec:
    """Return a spec with a bucket of column 9, followed by identity fields."""
    first = PartitionField(source_ids=(9,), field_id=999, name="b", transform=BucketTransform(4))
    others = (
        PartitionField(
            source_ids=(i,), field_id=1000 + i, name=f"p{i}", transform=IdentityTransform()
        )
        for i in sources
    )
    return PartitionSpec(spec_id=spec_id, fields=(first, *others))


SPECS = {0: spec(0, 1), 1: spec(1, 2, 1)}


def task(path: str, spec_id: int, *partition: Any, **changes: Any) -> ScanTask:
    attributes: dict[str, Any] = {
        "file_path": path,
        "file_format": "parquet",
        "file_size_in_bytes": 7,
        "record_count": 1,
        "start": 0,
        "length": 7,
        "spec_id": spec_id,
        "partition": partition,
        "data_sequence_number": 3,
    }
    return ScanTask(**(attributes | changes))


def facts_of(type_: Type) -> FileFacts:
    return FileFacts(SPECS, PartitionOrdinals(), {"p": ConstantColumn(field_id=1, type=type_)})


def files_of(tasks: Sequence[ScanTask], offsets: pa.Array | None = None) -> RelationFiles:
    paths = [t.file_path for t in tasks]
    columns = {
        "file_path": paths,
        "split_offsets": pa.nulls(len(paths)) if offsets is None else offsets,
    }
    return RelationFiles.of_tasks(tasks, STORAGE, SplitOffsets([group(pa.table(columns))]))


def read(table: pa.RecordBatch) -> pa.RecordBatch:
    with pa.ipc.open_stream(arrow_stream(table)) as stream:
        (batch,) = stream
    return batch


@pytest.mark.parametrize(
    ("type_", "value", "arrow"),
    [
        (BooleanType(), False, pa.bool_()),
        (LongType(), 2**62, pa.int64()),
        (DecimalType(12, 3), Decimal("-1.250"), pa.decimal128(12, 3)),
        (DateType(), -1, pa.date32()),
        (TimestampType(), -1, pa.timestamp("us")),
        (TimestamptzType(), 1_700_000_000_000_001, pa.timestamp("us", tz="UTC")),
        (StringType(), "a\tb\\n\n\u00e9\U0001f600", pa.string()),
        (StringType(), "", pa.string()),
    ],
)
def test_partition_values_have_the_types_of_their_columns(
    type_: Type, value: Any, arrow: pa.DataType
) -> None:
    tasks = [task("a", 0, 5, value), task("b", 1, 5, "other", value), task("c", 0, 5, None)]
    column = facts_of(type_).column("p", files_of(tasks))
    assert column.type == arrow
    physical = (
        column.cast(pa.int32() if arrow == pa.date32() else pa.int64())
        if (pa.types.is_temporal(arrow))
        else column
    )
    assert physical.to_pylist() == [value, value, None]


def test_a_table_of_files_arrives_as_it_is() -> None:
    tasks = [
        task("s3://b/x\ty=1", 0, 1, "v", first_row_id=40),
        task("s3://b/z", 0, 1, "w", file_size_in_bytes=2**40),
        task("s3://b/\u00e9", 0, 1, "v"),
    ]
    facts = facts_of(StringType())
    names = (ORDINAL, CONSTANT_FILE, CONSTANT_FIRST_ROW_ID, PARTITION_ORDINAL, "p")
    files = files_of(tasks, pa.array([[4], None, [4, 5]], pa.list_(pa.int64())))
    columns = {name: facts.column(name, files) for name in names}
    keys = {"k0": pa.array([1, None, 2])}
    table = read(files_table(files, columns, keys))
    assert table.to_pydict() == {
        "location": [f"s3a{t.file_path[2:]}" for t in tasks],
        "file_size_in_bytes": [7, 2**40, 7],
        "split_offsets": [[4], None, [4, 5]],
        ORDINAL: [0, 1, 2],
        CONSTANT_FILE: [t.file_path for t in tasks],
        CONSTANT_FIRST_ROW_ID: [40, None, None],
        PARTITION_ORDINAL: [0, 1, 0],
        "p": ["v", "w", "v"],
        "k0": [1, None, 2],
    }


def test_no_file_has_types_all_the_same() -> None:
    facts = facts_of(DateType())
    nothing = RelationFiles.of_plan([])
    table = read(files_table(nothing, {"p": facts.column("p", nothing)}, {}))
    assert table.num_rows == 0
    assert table.schema.field("p").type == pa.date32()


PARTITION_TYPES = (LongType(), DoubleType(), StringType(), DateType(), DecimalType(12, 3))
NUMBERS = st.integers(0, 2**40)


@st.composite
def planned(draw: DrawFn, number: int, file_format: FileFormat) -> PlannedFiles:
    """Return planned files of a spec with no, one or two identity fields."""
    types = draw(st.lists(st.sampled_from(PARTITION_TYPES), max_size=2))
    schema, of_types = identity_table(*types, spec_id=number)
    count = draw(st.integers(0, 4))

    def some(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=count, max_size=count))

    fields = partition_type(of_types, [schema]).fields
    typed = {str(f.field_id): f.type for f in fields if isinstance(f.type, PrimitiveType)}
    columns = [some(nullable(type_)) for type_ in typed.values()]
    partition = pa.array(
        [dict(zip(typed, row, strict=True)) for row in zip(*columns, strict=True)] or [{}] * count,
        pa.struct([(name, physical_type(type_)) for name, type_ in typed.items()]),
    )
    element = draw(st.sampled_from(["item", "element"]))
    table = pa.table(
        {
            "file_path": pa.array([f"s3://b/{number}/{i}" for i in range(count)], pa.string()),
            "file_format": pa.array([file_format] * count, pa.string()),
            "partition": partition,
            "record_count": pa.array(some(st.integers(-1, 2**62)), pa.int64()),
            "file_size_in_bytes": pa.array(some(NUMBERS), pa.int64()),
            "sequence_number": pa.array(some(NUMBERS), pa.int64()),
            "first_row_id": pa.array(some(st.none() | NUMBERS), pa.int64()),
            "key_metadata": pa.array(some(st.none() | st.binary(max_size=3)), pa.binary()),
            "split_offsets": pa.array(
                some(LISTS | ASCENDING), pa.list_(pa.field(element, pa.int64()))
            ),
        }
    )
    change = RowChange(type="INSERT", ordinal=number, snapshot_id=1, sequence_number=2, time_us=3)
    return group(table, spec=of_types, change=draw(st.sampled_from([None, change])))


@given(st.data())
def test_planned_files_and_their_tasks_give_the_same_columns(data: st.DataObject) -> None:
    file_format: FileFormat = data.draw(st.sampled_from(["parquet", "orc"]))
    count = data.draw(st.integers(1, 3))
    groups = [data.draw(planned(number, file_format)) for number in range(count)]
    tasks = [task for files in groups for task in tasks_of(files)]
    if not tasks:
        return
    located = [
        replace(
            files,
            entries=files.entries.append_column(
                LOCATION, STORAGE.locations(files.entries["file_path"])
            ),
        )
        for files in groups
    ]
    columns = RelationFiles.of_plan(located)
    of_tasks = RelationFiles.of_tasks(tasks, STORAGE, SplitOffsets(groups))
    assert columns.file_format == of_tasks.file_format == file_format
    assert columns.table.equals(of_tasks.table)
    assert repr(list(columns.partitions())) == repr(list(of_tasks.partitions()))
    assert list(columns.changes()) == list(of_tasks.changes())
