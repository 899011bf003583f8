"""Metadata columns of rows."""

from dataclasses import replace
from typing import Any

import pytest

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.predicates import BoundColumn, BoundLiteral
from iceberg_pyspark.spec.metadata_columns import (
    DELETED,
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    POS,
    ROW_ID,
    SPEC_ID,
    partition_column,
)
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.transforms import BucketTransform, IdentityTransform, UnknownTransform
from iceberg_pyspark.spec.types import (
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    StructType,
    UnknownType,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.scan_tasks import (
    context_of,
    deletion_vector,
    equality_deletes,
    optional,
    read_rows,
    required,
    schema_of,
    task_of,
    write_rows,
)

PATH = "/db/t/data/f.parquet"
ID = required(1, "id", LongType())
LINEAGE = schema_of(ID, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)


def store(count: int, **options: Any) -> MemoryFileIO:
    io = MemoryFileIO()
    write_rows(io, PATH, schema_of(ID), ({"id": i} for i in range(count)), **options)
    return io


def test_file_position_and_spec_stand_where_they_are_asked_for() -> None:
    io = store(2)
    projection = schema_of(POS, ID, FILE, SPEC_ID)
    assert read_rows(context_of(projection), task_of(io, PATH), io) == [
        {"_pos": i, "id": i, "_file": PATH, "_spec_id": 0} for i in range(2)
    ]


def test_metadata_columns_need_no_column_of_the_file() -> None:
    io = store(3, row_group_size=2)
    assert read_rows(context_of(schema_of(POS)), task_of(io, PATH), io) == [
        {"_pos": i} for i in range(3)
    ]


def test_positions_are_the_files_under_deletes_filters_and_splits() -> None:
    """docs/conformance.md 38."""
    io = store(30, row_group_size=5)
    id_column = BoundColumn(field_id=1, name="id", type=LongType(), required=True)
    context = context_of(
        schema_of(POS, ROW_ID), schemas=[schema_of(ID)], predicate=BoundLiteral("gt", id_column, 11)
    )
    vector = deletion_vector(io, "/db/t/dv.puffin", PATH, [3, 13, 29])
    whole = task_of(io, PATH, deletes=(vector,), first_row_id=100)
    expected = [{"_pos": i, "_row_id": 100 + i} for i in range(12, 30) if i not in (13, 29)]
    assert read_rows(context, whole, io) == expected
    middle = whole.length // 2
    halves = [replace(whole, length=middle), replace(whole, start=middle)]
    assert [row for half in halves for row in read_rows(context, half, io)] == expected


def test_the_partition_tuple_as_the_union_of_all_specs() -> None:
    io = store(1)
    fields = (
        PartitionField(source_ids=(1,), field_id=1000, name="b", transform=BucketTransform(4)),
        PartitionField(source_ids=(2,), field_id=1001, name="c", transform=IdentityTransform()),
    )
    specs = [
        PartitionSpec(spec_id=0, fields=fields[:1]),
        PartitionSpec(spec_id=1, fields=fields[1:]),
    ]
    union = StructType((optional(1000, "b", IntegerType()), optional(1001, "c", StringType())))
    context = context_of(schema_of(partition_column(union)), specs=specs)
    tasks = [
        task_of(io, PATH, spec_id=0, partition=(3,)),
        task_of(io, PATH, spec_id=1, partition=("x",)),
    ]
    assert [read_rows(context, task, io) for task in tasks] == [
        [{"_partition": {"b": 3, "c": None}}],
        [{"_partition": {"b": None, "c": "x"}}],
    ]


@pytest.mark.parametrize(
    ("shown_as", "value", "expected"),
    [(StringType(), 7, "7"), (StringType(), b"\xff", "/w=="), (UnknownType(), 7, None)],
)
def test_partition_values_of_no_known_type_are_shown_as_text_or_not_at_all(
    shown_as: PrimitiveType, value: Any, expected: str | None
) -> None:
    io = store(1)
    fields = (
        PartitionField(source_ids=(1,), field_id=1000, name="z", transform=UnknownTransform("z")),
    )
    union = StructType((optional(1000, "z", shown_as),))
    specs = [PartitionSpec(spec_id=0, fields=fields)]
    context = context_of(schema_of(partition_column(union)), specs=specs)
    task = task_of(io, PATH, spec_id=0, partition=(value,))
    assert read_rows(context, task, io) == [{"_partition": {"z": expected}}]


def test_row_ids_and_sequence_numbers_are_inherited() -> None:
    io = store(2)
    task = task_of(io, PATH, first_row_id=1000, data_sequence_number=7)
    assert read_rows(context_of(LINEAGE), task, io) == [
        {"id": i, "_row_id": 1000 + i, "_last_updated_sequence_number": 7} for i in range(2)
    ]


def stored_lineage() -> MemoryFileIO:
    io = MemoryFileIO()
    rows: list[dict[str, Any]] = [
        {"id": 0, "_row_id": 55, "_last_updated_sequence_number": None},
        {"id": 1, "_row_id": None, "_last_updated_sequence_number": 3},
        {"id": 2, "_row_id": 44, "_last_updated_sequence_number": 4},
    ]
    write_rows(io, PATH, LINEAGE, rows)
    return io


def test_stored_lineage_wins_row_by_row() -> None:
    """docs/conformance.md 20 and 21."""
    io = stored_lineage()
    task = task_of(io, PATH, first_row_id=1000, data_sequence_number=7)
    assert read_rows(context_of(LINEAGE), task, io) == [
        {"id": 0, "_row_id": 55, "_last_updated_sequence_number": 7},
        {"id": 1, "_row_id": 1001, "_last_updated_sequence_number": 3},
        {"id": 2, "_row_id": 44, "_last_updated_sequence_number": 4},
    ]


def test_stored_lineage_follows_its_rows_through_deletes() -> None:
    io = stored_lineage()
    ref = equality_deletes(io, "/db/t/eq.parquet", schema_of(ID), [1], [{"id": 0}])
    task = task_of(io, PATH, first_row_id=1000, deletes=(ref,))
    context = context_of(schema_of(ROW_ID), schemas=[schema_of(ID)])
    assert read_rows(context, task, io) == [{"_row_id": 1001}, {"_row_id": 44}]


def test_lineage_is_null_without_a_first_row_id_even_if_stored() -> None:
    """docs/conformance.md 15."""
    io = stored_lineage()
    assert read_rows(context_of(LINEAGE), task_of(io, PATH, first_row_id=None), io) == [
        {"id": i, "_row_id": None, "_last_updated_sequence_number": None} for i in range(3)
    ]


def test_deleted_rows_come_marked_when_asked_for() -> None:
    io = store(4)
    by_value = equality_deletes(io, "/db/t/eq.parquet", schema_of(ID), [1], [{"id": 1}])
    vector = deletion_vector(io, "/db/t/dv.puffin", PATH, [3])
    id_column = BoundColumn(field_id=1, name="id", type=LongType(), required=True)
    context = context_of(
        schema_of(ID, DELETED), schemas=[schema_of(ID)], predicate=BoundLiteral("gt", id_column, 0)
    )
    rows = read_rows(context, task_of(io, PATH, deletes=(by_value, vector)), io)
    assert rows == [
        {"id": 1, "_deleted": True},
        {"id": 2, "_deleted": False},
        {"id": 3, "_deleted": True},
    ]
    assert read_rows(context, task_of(io, PATH), io) == [
        {"id": i, "_deleted": False} for i in (1, 2, 3)
    ]


def test_other_reserved_ids_are_refused() -> None:
    io = store(1)
    odd = optional(2147483500, "odd", LongType())
    with pytest.raises(InvalidRequestError, match="reserved field id 2147483500"):
        read_rows(context_of(schema_of(odd)), task_of(io, PATH), io)
