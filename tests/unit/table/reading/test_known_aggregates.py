"""Aggregates from metadata, and from the rows of other files, are those of all rows, or unknown."""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cmp_to_key
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iceberg_pyspark import Table, TableCatalog, load_catalog
from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.reading.metadata_aggregates import (
    Aggregate,
    AggregateKind,
    KnownAggregates,
    known_aggregates,
)

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "b BOOLEAN": st.booleans(),
    "f FLOAT": st.floats(width=32) | st.sampled_from([0.0, -0.0, math.inf, 1.5]),
    "d DOUBLE": st.floats() | st.sampled_from([0.0, -0.0, -math.inf, 1.5]),
    "c DECIMAL(9, 2)": st.decimals("-9999999.99", "9999999.99", places=2),
    "e DECIMAL(38, 10)": st.decimals(-(10**27), 10**27, places=10),
    "y BINARY": st.binary(max_size=20),
    "i INT": st.integers(-5, 5),
}
NAMES = [column.partition(" ")[0] for column in VALUES]
KINDS: tuple[AggregateKind, ...] = ("min", "max", "count")
ROWS = st.lists(st.tuples(*(st.none() | value for value in VALUES.values())), max_size=4)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> TableCatalog:
    return load_catalog("known", type="hadoop", warehouse=str(tmp_path_factory.mktemp("known")))


def in_spark(kind: AggregateKind, values: Sequence[Any]) -> Any:
    """Return what Spark computes: NaN is the greatest number, and equals itself."""
    values = [v for v in values if v is not None]
    if kind == "count":
        return len(values)

    def compare(a: Any, b: Any) -> int:
        if a != a or b != b:
            return int(a != a) - int(b != b)
        return int(a > b) - int(a < b)

    ordered = sorted(values, key=cmp_to_key(compare))
    return None if not ordered else ordered[0 if kind == "min" else -1]


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return repr(left) == repr(right)
    return type(left) is type(right) and left == right


def known(
    table: Table, kind: AggregateKind, name: str, condition: str | None = None
) -> KnownAggregates | None:
    return known_aggregates(
        table.scan(condition), (), [Aggregate(kind=kind, column=table.schema.find(name))]
    )


def combined(kind: AggregateKind, known_value: Any, others: Sequence[Any]) -> Any:
    """Return an aggregate of the rows of other files and of the known value of all others."""
    read = in_spark(kind, others)
    return known_value + read if kind == "count" else in_spark(kind, [known_value, read])


def append(table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    names = [f.name for f in table.schema.fields]
    columns = [dict(zip(names, row, strict=True)) for row in rows]
    table.append(pa.Table.from_pylist(columns, schema=to_arrow_schema(table.schema)))


@settings(max_examples=settings().max_examples // 2, deadline=None)
@given(
    files=st.lists(ROWS, max_size=3),
    partitioned_by=st.sampled_from([(), (), ("f",), ("d",), ("b",), ("c",), ("truncate(1, y)",)]),
    file_format=st.sampled_from(["parquet", "parquet", "orc", "avro"]),
    condition=st.sampled_from([None, "i > 0", "i <= 2", "i is not null", "c >= 0 or i = 1"]),
    deleted=st.sampled_from([None, None, "i = 3", "b"]),
)
def test_aggregates_from_metadata_equal_those_of_the_rows(
    catalog: TableCatalog,
    files: list[list[tuple[Any, ...]]],
    partitioned_by: tuple[str, ...],
    file_format: str,
    condition: str | None,
    deleted: str | None,
) -> None:
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table(
        f"db.t_{in_order()}",
        ", ".join(VALUES),
        partitioned_by=partitioned_by,
        properties={
            "write.format.default": file_format,
            "write.delete.mode": "merge-on-read",
        },
    )
    for rows in files:
        append(table, rows)
    if deleted is not None:
        table.delete(deleted)
    # as they are stored: partition values may have another sign of zero than the rows
    stored = table.scan(condition).to_arrow()
    for name in NAMES:
        values = stored[name].to_pylist()
        for kind in KINDS:
            answer = known(table, kind, name, condition)
            if answer is not None:
                ((value,),) = answer.rows
                read = table.scan(condition).of_files(answer.other_files).to_arrow()[name]
                actual = combined(kind, value, read.to_pylist())
                assert same(actual, in_spark(kind, values)), (kind, name, answer, values)
        # Ordinary values are known, or the law would be empty.
        ordinary = all(v is None or (v == v and v != 0 and v not in EDGES) for v in values)
        if (
            file_format == "parquet"
            and not partitioned_by
            and name != "y"
            and ordinary
            and condition is None
            and deleted is None
        ):
            for kind in KINDS:
                answer = known(table, kind, name)
                assert answer is not None, name
                assert not answer.other_files, name


_numbers = iter(range(1_000_000))


def in_order() -> int:
    return next(_numbers)


Change = Callable[[DataFile], DataFile]
DOUBLE = 3
LARGEST = (struct.unpack("<f", b"\xff\xff\x7f\x7f")[0], sys.float_info.max)
EDGES = (*LARGEST, *(-v for v in LARGEST))
CHANGES: dict[str, Change] = {
    "no NaN count": lambda f: replace(f, nan_value_counts=None),
    "a NaN": lambda f: replace(f, nan_value_counts={DOUBLE: 1}),
    "an unknown NaN count": lambda f: replace(f, nan_value_counts={DOUBLE: -1}),
    "no bounds": lambda f: replace(f, lower_bounds=None, upper_bounds=None),
    "no null count": lambda f: replace(f, null_value_counts={}),
    "too few values": lambda f: replace(f, value_counts={DOUBLE: 1}),
    "NaN as bounds": lambda f: replace(
        f, lower_bounds={DOUBLE: b"\0" * 6 + b"\xf8\x7f"}, upper_bounds={DOUBLE: b"\xff" * 8}
    ),
    "a zero": lambda f: replace(
        f, lower_bounds={DOUBLE: bytes(8)}, upper_bounds={DOUBLE: bytes(8)}
    ),
    "the largest numbers": lambda f: replace(
        f,
        lower_bounds={DOUBLE: struct.pack("<d", LARGEST[1])},
        upper_bounds={DOUBLE: struct.pack("<d", LARGEST[1])},
    ),
    "the largest numbers of floats": lambda f: replace(
        f,
        lower_bounds={DOUBLE: struct.pack("<f", -LARGEST[0])},
        upper_bounds={DOUBLE: struct.pack("<f", -LARGEST[0])},
    ),
}


@pytest.mark.parametrize("sign", [1, -1])
def test_infinities_whose_bounds_are_numbers(tmp_path: Path, sign: int) -> None:
    """pyarrow 24 gives a page of infinities the largest number as a bound."""
    table = load_catalog("none", type="memory").create_table(str(tmp_path / "t"), "f FLOAT")
    table.append(pa.table({"f": pa.array([sign * math.inf], pa.float32())}))
    for kind in ("min", "max"):
        answer = known(table, kind, "f")
        assert answer is None or answer.rows == [(sign * math.inf,)]


@pytest.mark.parametrize("change", CHANGES)
def test_rows_are_read_if_metrics_are_inconclusive(tmp_path: Path, change: str) -> None:
    catalog = load_catalog("none", type="memory")
    table = catalog.create_table(str(tmp_path / "t"), ", ".join(VALUES))
    append(table, [(True, 1.5, 2.5, Decimal(1), Decimal(1), b"x", 1), (None,) * 7])
    (task,) = table.scan().plan_files()
    values = ((2.5,), (2.5,), (1,))
    assert [known(table, k, "d") for k in KINDS] == [KnownAggregates(rows=[v]) for v in values]
    bounds = {DOUBLE: b"\0" * 6 + b"\x04\x40"}
    file = DataFile(
        file_path=task.file_path,
        record_count=2,
        file_size_in_bytes=table.io.size(task.file_path),
        value_counts={DOUBLE: 2},
        null_value_counts={DOUBLE: 1},
        nan_value_counts={DOUBLE: 0},
        lower_bounds=bounds,
        upper_bounds=bounds,
    )
    for name, make in {"same": lambda f: f, change: CHANGES[change]}.items():
        other = catalog.create_table(str(tmp_path / name), ", ".join(VALUES))
        action = AppendFiles(data_files=(make(file),))
        commit_action(other.catalog, other.loaded, other.io, action)
        other.refresh()
        answers = [known(other, kind, "d") for kind in ("min", "max")]
        assert answers == [KnownAggregates(rows=[(2.5,)]) if name == "same" else None] * 2


def test_only_files_that_a_condition_divides_and_files_with_deletes_are_read(
    tmp_path: Path,
) -> None:
    catalog = load_catalog("parts", type="memory")
    table = catalog.create_table(
        str(tmp_path / "t"),
        "id BIGINT",
        properties={"format-version": "3", "write.delete.mode": "merge-on-read"},
    )
    for first in range(0, 50, 10):
        table.append(pa.table({"id": pa.array(range(first, first + 10), pa.int64())}))
    column = table.schema.find("id")
    aggregates = [Aggregate(kind="rows"), *(Aggregate(kind=k, column=column) for k in KINDS)]

    def values(condition: str | None) -> tuple[tuple[Any, ...], list[int]] | None:
        """Return the known row, and the first id of each file that is read."""
        answer = known_aggregates(table.scan(condition), (), aggregates)
        if answer is None:
            return None
        paths = answer.other_files
        ids = (t.to_pylist()[0] for f in paths for t in [read_ids(frozenset([f]))])
        return answer.rows[0], sorted(ids)

    def read_ids(paths: frozenset[str]) -> pa.ChunkedArray:
        return table.scan().of_files(paths).to_arrow()["id"]

    assert values("id >= 15") == ((30, 20, 49, 30), [10])
    assert values("id >= 15 and id < 42") == ((20, 20, 39, 20), [10, 40])
    assert values("id in (3, 15)") is None, "no file is whole"
    table.delete("id = 21")
    assert values("id >= 15") == ((20, 30, 49, 20), [10, 20])
    assert values(None) == ((40, 0, 49, 40), [20])
    column_too = [Aggregate(kind="rows")]
    assert known_aggregates(table.scan(), (column,), column_too) is None, "groups need all files"
