"""Reading a task agrees with a naive model of rows, deletes, filters and schema evolution."""

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from iceberg_pyspark.expressions.predicates import AlwaysTrue, BoundColumn, BoundLiteral, Predicate
from iceberg_pyspark.spec.metadata_columns import POS, ROW_ID
from iceberg_pyspark.spec.types import IntegerType, LongType, StringType, StructType
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.scan_tasks import (
    context_of,
    deletion_vector,
    equality_deletes,
    optional,
    position_deletes,
    read_rows,
    schema_of,
    task_of,
    write_rows,
)

FILE = "/db/t/data/f.parquet"
A = optional(1, "a", IntegerType())
B = optional(2, "b", StringType())
S = optional(3, "s", StructType((optional(4, "x", IntegerType()), optional(5, "y", StringType()))))
BEFORE = schema_of(A, B, S)
# fields renamed, promoted, reordered, dropped and added at two levels
AFTER = schema_of(
    optional(
        3,
        "t",
        StructType(
            (optional(7, "new", LongType(), initial_default=9), optional(4, "xx", LongType()))
        ),
    ),
    optional(1, "b", LongType()),
    optional(6, "added", StringType(), initial_default="d"),
    schema_id=1,
)
PROJECTION = replace(AFTER, fields=(POS, *AFTER.fields, ROW_ID))

small = st.none() | st.integers(0, 3)
text = st.none() | st.sampled_from(["", "p", "q"])
struct = st.none() | st.fixed_dictionaries({"x": small, "y": text})
rows = st.lists(
    st.fixed_dictionaries({"a": small, "b": text, "s": struct}), min_size=1, max_size=25
)


@dataclass(frozen=True)
class Case:
    """The rows of a file, the deletes that apply to the file, and the way it is read."""

    rows: list[dict[str, Any]]
    row_group_size: int
    vector: set[int] | None
    positions: list[list[int]]
    by_a: list[int | None]
    by_b_and_x: list[tuple[str | None, int | None]]
    above: int | None
    splits: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    file_rows = draw(rows)
    position = st.integers(0, len(file_rows) + 1)
    return Case(
        rows=file_rows,
        row_group_size=draw(st.integers(1, 10)),
        vector=draw(st.none() | st.sets(position, min_size=1, max_size=5)),
        positions=draw(st.lists(st.lists(position, max_size=5), max_size=2)),
        by_a=draw(st.lists(small, max_size=2)),
        by_b_and_x=draw(st.lists(st.tuples(text, small), max_size=3)),
        above=draw(st.none() | st.integers(0, 3)),
        splits=draw(st.integers(1, 4)),
    )


def expected(case: Case) -> list[dict[str, Any]]:
    by_position = case.vector if case.vector is not None else set().union(*map(set, case.positions))
    results = []
    for position, row in enumerate(case.rows):
        x = row["s"] and row["s"]["x"]
        deleted = (
            position in by_position
            or row["a"] in case.by_a
            or (row["b"], x if row["s"] else None) in case.by_b_and_x
        )
        matches = case.above is None or (row["a"] is not None and row["a"] > case.above)
        if matches and not deleted:
            results.append(
                {
                    "_pos": position,
                    "t": row["s"] and {"new": 9, "xx": row["s"]["x"]},
                    "b": row["a"],
                    "added": "d",
                    "_row_id": 500 + position,
                }
            )
    return results


@settings(max_examples=settings().max_examples * 6 // 5, deadline=None)
@given(cases())
def test_a_read_is_the_rows_not_deleted_that_match(case: Case) -> None:
    io = MemoryFileIO()
    write_rows(io, FILE, BEFORE, case.rows, row_group_size=case.row_group_size)
    deletes = [
        position_deletes(
            io, f"/db/t/pos{i}.parquet", [(FILE, p) for p in positions] + [("/other", 0)]
        )
        for i, positions in enumerate(case.positions)
    ]
    if case.vector is not None:
        deletes.append(deletion_vector(io, "/db/t/dv.puffin", FILE, case.vector))
    keys = schema_of(optional(1, "renamed", LongType()))
    deletes.append(
        equality_deletes(io, "/db/t/a.parquet", keys, [1], [{"renamed": a} for a in case.by_a])
    )
    only_x = optional(3, "s", StructType((optional(4, "x", IntegerType()),)))
    deletes.append(
        equality_deletes(
            io,
            "/db/t/bx.parquet",
            schema_of(only_x, B),
            [4, 2],
            [{"b": b, "s": {"x": x}} for b, x in case.by_b_and_x],
        )
    )
    predicate: Predicate = AlwaysTrue()
    if case.above is not None:
        column = BoundColumn(field_id=1, name="b", type=LongType(), required=False)
        predicate = BoundLiteral("gt", column, case.above)
    context = context_of(PROJECTION, schemas=[AFTER, BEFORE], predicate=predicate)
    whole = task_of(io, FILE, deletes=tuple(deletes), first_row_id=500)
    step = -(-whole.length // case.splits)
    results = [
        row
        for start in range(0, whole.length, step)
        for row in read_rows(context, replace(whole, start=start, length=step), io)
    ]
    assert results == expected(case)
