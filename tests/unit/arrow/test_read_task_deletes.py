"""Deleted rows are not returned."""

import uuid
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark.arrow.read import position_deletes as position_deletes_module
from iceberg_pyspark.errors import InvalidMetadataError, StorageError
from iceberg_pyspark.expressions.predicates import BoundColumn, BoundLiteral
from iceberg_pyspark.planning.scan_tasks import DeleteFileRef
from iceberg_pyspark.spec.name_mapping import MappedField, NameMapping
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.transforms import IdentityTransform
from iceberg_pyspark.spec.types import (
    BooleanType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructType,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.storage.restricted_io import ReadRule, RestrictedFileIO
from tests.support.scan_tasks import (
    context_of,
    deletion_vector,
    equality_deletes,
    optional,
    position_deletes,
    read_rows,
    required,
    schema_of,
    task_of,
    write_rows,
    write_table,
)

FILE = "/db/t/data/f.parquet"
ID = required(1, "id", LongType())
V = optional(2, "v", StringType())
SCHEMA = schema_of(ID, V)


def store(rows: Iterable[dict[str, Any]], schema: Schema = SCHEMA, **options: Any) -> MemoryFileIO:
    io = MemoryFileIO()
    write_rows(io, FILE, schema, rows, **options)
    return io


def numbered(count: int, **options: Any) -> MemoryFileIO:
    return store(({"id": i, "v": f"v{i}"} for i in range(count)), **options)


def ids(io: MemoryFileIO, *deletes: DeleteFileRef, projection: Schema = SCHEMA) -> list[int]:
    rows = read_rows(context_of(projection), task_of(io, FILE, deletes=deletes), io)
    return [row["id"] for row in rows]


# --- by position ----------------------------------------------------------------------------------


def test_a_deletion_vector_removes_its_positions() -> None:
    io = numbered(6, row_group_size=2)
    assert ids(io, deletion_vector(io, "/db/t/dv.puffin", FILE, [0, 3, 5])) == [1, 2, 4]


def test_a_deletion_vector_replaces_position_delete_files() -> None:
    """docs/conformance.md 32."""
    io = numbered(4)
    files = position_deletes(io, "/db/t/pos.parquet", [(FILE, 0)])
    vector = deletion_vector(io, "/db/t/dv.puffin", FILE, [1])
    assert ids(io, files, vector) == [0, 2, 3]


def test_two_deletion_vectors_for_a_file_are_refused() -> None:
    """docs/conformance.md 33."""
    io = numbered(4)
    vectors = [deletion_vector(io, f"/db/t/{n}.puffin", FILE, [1]) for n in "ab"]
    with pytest.raises(InvalidMetadataError, match="2 deletion vectors"):
        ids(io, *vectors)


def test_a_deletion_vector_of_another_file_is_refused() -> None:
    """docs/conformance.md 25."""
    io = numbered(4)
    vector = deletion_vector(io, "/db/t/dv.puffin", "/db/t/data/other.parquet", [1])
    with pytest.raises(
        InvalidMetadataError, match=r"other\.parquet .* is assigned to .*f\.parquet"
    ):
        ids(io, vector)


@pytest.mark.parametrize(
    "change", [{"content_offset": None}, {"content_size_in_bytes": None}, {"record_count": 9}]
)
def test_a_deletion_vector_that_its_entry_misdescribes_is_refused(
    change: dict[str, Any],
) -> None:
    """docs/conformance.md 35."""
    io = numbered(4)
    vector = deletion_vector(io, "/db/t/dv.puffin", FILE, [1])
    with pytest.raises(InvalidMetadataError, match=r"db\.t"):
        ids(io, replace(vector, **change))


def test_position_deletes_match_the_exact_path() -> None:
    """docs/conformance.md 37."""
    io = numbered(5)
    pairs = [("file:" + FILE, 0), (FILE, 1), (FILE + "x", 2), (FILE, 4)]
    assert ids(io, position_deletes(io, "/db/t/pos.parquet", pairs)) == [0, 2, 3]


def test_several_position_delete_files_unordered_and_overlapping() -> None:
    io = numbered(6)
    first = position_deletes(io, "/db/t/a.parquet", [(FILE, 4), ("z", 0), (FILE, 1), (FILE, 4)])
    second = position_deletes(io, "/db/t/b.parquet", [(FILE, 1), (FILE, 99)])
    other = position_deletes(io, "/db/t/c.parquet", [("elsewhere", 0)])
    assert ids(io, first, second, other) == [0, 2, 3, 5]


def test_a_large_position_delete_file_is_read_for_one_data_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(position_deletes_module, "_WHOLE_FILE_RECORDS", 3)
    io = numbered(6)
    pairs = [(f"/db/t/data/{name}.parquet", i) for name in "aefgz" for i in (1, 3)]
    ref = position_deletes(io, "/db/t/pos.parquet", pairs, row_group_size=2)
    assert ids(io, ref) == [0, 2, 4, 5]


def test_position_delete_files_without_field_ids_are_read_by_name() -> None:
    io = numbered(3)
    ref = position_deletes(io, "/db/t/pos.parquet", [])
    table = pa.table({"pos": pa.array([1], pa.int64()), "file_path": [FILE]})
    write_table(io, ref.file_path, table)
    assert ids(io, ref) == [0, 2]


def test_splits_and_row_groups_do_not_move_positions() -> None:
    """docs/conformance.md 38."""
    io = numbered(20, row_group_size=4)
    vector = deletion_vector(io, "/db/t/dv.puffin", FILE, [1, 9, 10, 19])
    whole = task_of(io, FILE, deletes=(vector,))
    step = 97
    row_ids = []
    for start in range(0, whole.length, step):
        split = replace(whole, start=start, length=step)
        row_ids += [row["id"] for row in read_rows(context_of(SCHEMA), split, io)]
    assert row_ids == [i for i in range(20) if i not in (1, 9, 10, 19)]


def test_deletes_come_before_the_filter() -> None:
    io = numbered(20, row_group_size=5)
    column = BoundColumn(field_id=1, name="id", type=LongType(), required=True)
    context = context_of(SCHEMA, predicate=BoundLiteral("gt_eq", column, 11))
    vector = deletion_vector(io, "/db/t/dv.puffin", FILE, [0, 11, 13])
    rows = read_rows(context, task_of(io, FILE, deletes=(vector,)), io)
    assert [r["id"] for r in rows] == [12, 14, 15, 16, 17, 18, 19]


def test_vector_of_all_rows_leaves_none() -> None:
    io = numbered(3)
    assert ids(io, deletion_vector(io, "/db/t/dv.puffin", FILE, range(3))) == []


def test_a_damaged_delete_file_is_an_error() -> None:
    io = numbered(3)
    ref = position_deletes(io, "/db/t/pos.parquet", [(FILE, 1)])
    io.write_bytes(ref.file_path, io.read_bytes(ref.file_path)[:-20])
    with pytest.raises(StorageError, match=r"db\.t"):
        ids(io, ref)


def test_cached_deletes_do_not_open_a_refused_location() -> None:
    io = numbered(3)
    ref = position_deletes(io, "/elsewhere/pos.parquet", [(FILE, 1)])
    assert ids(io, ref) == [0, 2]
    confined = RestrictedFileIO(
        io=io,
        known_location="/db/t",
        folders=("/db/t",),
        hint="table db.t",
        rule=ReadRule.OWN_FOLDERS,
    )
    with pytest.raises(StorageError, match="refused"):
        read_rows(context_of(SCHEMA), task_of(io, FILE, deletes=(ref,)), confined)


def test_only_vectors_in_uniquely_named_files_are_cached() -> None:
    unique_name = f"/db/t/00000-{uuid.uuid4()}-deletes.puffin"
    for location, expected in ((unique_name, [0, 2]), ("/db/t/deletes.puffin", [0, 1])):
        io = numbered(3)
        ref = deletion_vector(io, location, FILE, [1])
        assert ids(io, ref) == [0, 2]
        io.delete(location)
        assert deletion_vector(io, location, FILE, [2]) == ref
        assert ids(io, ref) == expected


# --- by value -------------------------------------------------------------------------------------


def test_equality_deletes_by_one_column() -> None:
    io = numbered(5)
    ref = equality_deletes(io, "/db/t/eq.parquet", schema_of(ID), [1], [{"id": 1}, {"id": 3}])
    assert ids(io, ref) == [0, 2, 4]


def test_null_equals_null_and_columns_are_anded_and_extra_columns_ignored() -> None:
    """docs/conformance.md 27."""
    w = optional(3, "w", IntegerType())
    schema = schema_of(ID, V, w)
    io = store(
        [
            {"id": 0, "v": None, "w": None},
            {"id": 1, "v": None, "w": 1},
            {"id": 2, "v": "a", "w": None},
            {"id": 3, "v": "a", "w": 1},
        ],
        schema,
    )
    keys: list[dict[str, Any]] = [{"w": None, "id": 7, "v": None}, {"w": 1, "id": 8, "v": "a"}]
    ref = equality_deletes(io, "/db/t/eq.parquet", schema_of(w, ID, V), [2, 3], keys)
    assert ids(io, ref, projection=schema) == [1, 2]


def test_floats_delete_by_their_bits_with_one_nan() -> None:
    d = optional(2, "d", DoubleType())
    schema = schema_of(ID, d)
    values = [float("nan"), 0.0, -0.0, None, 1.5]
    io = store([{"id": i, "d": v} for i, v in enumerate(values)], schema)
    keys = [{"d": -float("nan")}, {"d": 0.0}]
    ref = equality_deletes(io, "/db/t/eq.parquet", schema_of(d), [2], keys)
    assert ids(io, ref, projection=schema) == [2, 3, 4]


def test_equality_columns_outside_the_projection_are_read_and_dropped() -> None:
    """docs/conformance.md 28."""
    io = numbered(4)
    ref = equality_deletes(io, "/db/t/eq.parquet", schema_of(V), [2], [{"v": "v2"}])
    context = context_of(SCHEMA.select(["id"]), schemas=[SCHEMA])
    rows = read_rows(context, task_of(io, FILE, deletes=(ref,)), io)
    assert rows == [{"id": 0}, {"id": 1}, {"id": 3}]
    empty = context_of(schema_of(), schemas=[SCHEMA])
    assert read_rows(empty, task_of(io, FILE, deletes=(ref,)), io) == [{}] * 3


def test_a_column_dropped_since_still_deletes() -> None:
    """docs/conformance.md 29."""
    io = numbered(4)
    ref = equality_deletes(io, "/db/t/eq.parquet", schema_of(V), [2], [{"v": "v2"}])
    now = schema_of(ID, schema_id=1)
    context = context_of(now, schemas=[now, SCHEMA])
    rows = read_rows(context, task_of(io, FILE, deletes=(ref,)), io)
    assert [r["id"] for r in rows] == [0, 1, 3]


def test_a_dropped_column_compares_in_its_widest_type() -> None:
    """docs/conformance.md 29."""
    narrow = schema_of(optional(1, "id", LongType()), optional(2, "n", IntegerType()))
    wide = schema_of(optional(1, "id", LongType()), optional(2, "n", LongType()), schema_id=1)
    now = schema_of(optional(1, "id", LongType()), schema_id=2)
    io = store([{"id": 0, "n": 7}, {"id": 1, "n": 8}], narrow)
    keys = schema_of(optional(2, "n", LongType()))
    ref = equality_deletes(io, "/db/t/eq.parquet", keys, [2], [{"n": 7}, {"n": 2**40}])
    context = context_of(now, schemas=[now, narrow, wide])
    assert read_rows(context, task_of(io, FILE, deletes=(ref,)), io) == [{"id": 1}]


@pytest.mark.parametrize(("default", "remaining_ids"), [(None, []), ("d", [0, 1])])
def test_a_column_added_since_has_its_default_or_null(
    default: str | None, remaining_ids: list[int]
) -> None:
    """docs/conformance.md 29."""
    io = store([{"id": 0}, {"id": 1}], schema_of(ID))
    added = optional(2, "v", StringType(), initial_default=default)
    ref = equality_deletes(io, "/db/t/eq.parquet", schema_of(V), [2], [{"v": None}, {"v": "x"}])
    assert ids(io, ref, projection=schema_of(ID, added)) == remaining_ids
    by_default = equality_deletes(io, "/db/t/e.parquet", schema_of(V), [2], [{"v": default}])
    assert ids(io, by_default, projection=schema_of(ID, added)) == []


def test_an_identity_partition_column_that_files_lack() -> None:
    """docs/conformance.md 29."""
    io = store([{"id": 0}, {"id": 1}], schema_of(ID))
    field = PartitionField(source_ids=(2,), field_id=1000, name="v", transform=IdentityTransform())
    context = context_of(SCHEMA, specs=[PartitionSpec(spec_id=0, fields=(field,))])
    keys = [{"id": 0, "v": "p"}, {"id": 1, "v": "q"}]
    ref = equality_deletes(io, "/db/t/eq.parquet", SCHEMA, [1, 2], keys)
    task = task_of(io, FILE, deletes=(ref,), partition=("p",))
    assert read_rows(context, task, io) == [{"id": 1, "v": "p"}]


def test_promoted_columns_compare_as_values() -> None:
    """docs/conformance.md 30."""
    before = schema_of(optional(1, "id", IntegerType()), optional(2, "d", DecimalType(9, 2)))
    after = schema_of(optional(1, "id", LongType()), optional(2, "d", DecimalType(20, 2)))
    io = store([{"id": i, "d": Decimal(i)} for i in range(4)], before)
    by_id = equality_deletes(io, "/db/t/a.parquet", after, [1], [{"id": 1}, {"id": 2**40}])
    by_d = equality_deletes(io, "/db/t/b.parquet", before, [2], [{"d": Decimal(2)}])
    assert ids(io, by_id, by_d, projection=after) == [0, 3]


def test_all_delete_files_apply_whatever_their_equality_ids() -> None:
    """docs/conformance.md 30."""
    io = numbered(8)
    refs = [
        equality_deletes(io, "/db/t/a.parquet", schema_of(ID), [1], [{"id": 0}]),
        equality_deletes(io, "/db/t/b.parquet", schema_of(ID), [1], [{"id": 1}]),
        equality_deletes(io, "/db/t/c.parquet", schema_of(V), [2], [{"v": "v2"}]),
        equality_deletes(
            io, "/db/t/d.parquet", SCHEMA, [2, 1], [{"id": 3, "v": "v3"}, {"id": 4, "v": "x"}]
        ),
        equality_deletes(io, "/db/t/e.parquet", SCHEMA, [1, 2], []),
        deletion_vector(io, "/db/t/dv.puffin", FILE, [7]),
    ]
    assert ids(io, *refs) == [4, 5, 6]


def test_equality_on_a_struct_child_is_null_where_the_struct_is() -> None:
    struct = optional(
        3, "s", StructType((optional(4, "a", LongType()), optional(5, "b", BooleanType())))
    )
    only_a = optional(3, "s", StructType((optional(4, "a", LongType()),)))
    schema = schema_of(ID, struct)
    cells = [{"a": 1, "b": True}, {"a": None, "b": True}, None, {"a": 2, "b": None}]
    io = store([{"id": i, "s": s} for i, s in enumerate(cells)], schema)
    ref = equality_deletes(
        io, "/db/t/eq.parquet", schema_of(only_a), [4], [{"s": {"a": None}}, {"s": {"a": 2}}]
    )
    assert ids(io, ref, projection=schema) == [0]


def test_a_delete_file_without_one_of_its_equality_columns_is_refused() -> None:
    io = numbered(2)
    ref = equality_deletes(io, "/db/t/eq.parquet", schema_of(ID), [1, 2], [{"id": 1}])
    with pytest.raises(InvalidMetadataError, match=r"lacks columns with field ids \[2\]"):
        ids(io, ref)


def test_an_equality_delete_file_without_equality_ids_is_refused() -> None:
    io = numbered(2)
    ref = equality_deletes(io, "/db/t/eq.parquet", schema_of(ID), [], [{"id": 1}])
    with pytest.raises(InvalidMetadataError, match="no equality_ids"):
        ids(io, ref)


def test_unknown_equality_id_is_refused() -> None:
    io = numbered(2)
    ref = equality_deletes(io, "/db/t/eq.parquet", schema_of(ID), [77], [{"id": 1}])
    with pytest.raises(InvalidMetadataError, match="field id 77"):
        ids(io, ref)


def test_delete_files_without_ids_use_the_name_mapping() -> None:
    """docs/conformance.md 67."""
    io = numbered(3)
    ref = equality_deletes(io, "/db/t/eq.parquet", schema_of(ID), [1], [])
    write_table(io, ref.file_path, pa.table({"id": [1]}))
    mapping = NameMapping(fields=(MappedField(field_id=1, names=("id",)),))
    context = context_of(SCHEMA, name_mapping=mapping)
    rows = read_rows(context, task_of(io, FILE, deletes=(ref,)), io)
    assert [r["id"] for r in rows] == [0, 2]
