"""Columns that are read only where columns before them have wanted rows."""

from __future__ import annotations

import io as streams
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import iceberg_pyspark
from iceberg_pyspark import Table
from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.arrow.formats import parquet_pages, parquet_reader
from iceberg_pyspark.arrow.formats.parquet_writer import LIMITS_PAGE_ROWS
from iceberg_pyspark.arrow.read.read_task import read_task
from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.expressions.predicates import AlwaysTrue, And, BoundColumn, BoundLiteral, Or
from iceberg_pyspark.spec.metadata_columns import POS
from iceberg_pyspark.spec.types import (
    DecimalType,
    IntegerType,
    ListType,
    LongType,
    StringType,
    StructType,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.scan_tasks import (
    context_of,
    deletion_vector,
    equality_deletes,
    optional,
    required,
    schema_of,
    task_of,
)

FILE = "/db/t/data/f.parquet"
ID, K = required(1, "id", LongType()), optional(2, "k", IntegerType())
STRUCT = StructType((optional(8, "x", IntegerType()), optional(9, "y", StringType())))
SCHEMA = schema_of(
    optional(3, "few", StringType()),
    ID,
    optional(4, "many", StringType()),
    optional(5, "l", ListType(element_id=6, element_type=IntegerType())),
    optional(7, "s", STRUCT),
    K,
    optional(10, "d", DecimalType(15, 2)),
)
ID_COLUMN = BoundColumn(field_id=1, name="id", type=LongType(), required=True)
K_COLUMN = BoundColumn(field_id=2, name="k", type=IntegerType(), required=False)
X_COLUMN = BoundColumn(field_id=8, name="s.x", type=IntegerType(), required=False)


def rows_of(count: int, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    numbers = random.integers(0, 1000, count)
    nulls = random.integers(0, 10, count) == 0
    texts = [None if n else f"text {i}" for i, n in zip(numbers, nulls, strict=True)]
    x = pa.array(numbers % 7, pa.int32())
    columns: dict[str, Any] = {
        "few": pa.array(
            [None if n else f"few {i % 5}" for i, n in zip(numbers, nulls, strict=True)]
        ),
        "id": pa.array(range(count), pa.int64()),
        "many": pa.array([f"{t} of {i}" if t else None for i, t in enumerate(texts)]),
        "l": pa.array([[int(i)] * int(i % 4) or None for i in numbers], pa.list_(pa.int32())),
        "s": pa.StructArray.from_arrays([x, pa.array(texts)], ["x", "y"], mask=pa.array(nulls)),
        "k": pa.array(numbers // 100, pa.int32(), mask=nulls),
        "d": pa.array(numbers).cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2)),
    }
    stored = to_arrow_schema(SCHEMA, field_ids=True)
    return (
        pa.table(columns)
        .cast(pa.schema([stored.field(name) for name in columns]))
        .select([f.name for f in SCHEMA.fields])
    )


@dataclass(frozen=True)
class Case:
    """The layout of a file, and what is read of it."""

    rows: int
    row_group_size: int
    page_rows: int
    page_size: int
    page_version: str
    page_index: bool
    compression: str
    dictionaries: bool
    threads: bool
    spans: list[tuple[int, int]]
    k: int | None
    x: int | None
    deleted: set[int]
    deleted_k: list[int]
    most_page_rows: int
    stripe_bytes: int
    chunk_bytes: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rows = draw(st.integers(1, 1500))
    start = st.integers(0, rows)
    return Case(
        rows=rows,
        row_group_size=draw(st.integers(100, 1500)),
        page_rows=draw(st.sampled_from([5000, 10, 37, 100])),
        page_size=draw(st.sampled_from([500, 64, 200, 1 << 20])),
        page_version=draw(st.sampled_from(["1.0", "2.0"])),
        page_index=draw(st.integers(0, 3)) > 0,
        compression=draw(st.sampled_from(["zstd", "none"])),
        dictionaries=draw(st.booleans()),
        threads=draw(st.booleans()),
        spans=draw(
            st.lists(st.tuples(start, st.integers(1, 300)), max_size=3).map(
                lambda spans: [(s, s + n) for s, n in spans]
            )
        ),
        k=draw(st.none() | st.integers(0, 9)),
        x=draw(st.none() | st.integers(0, 7)),
        deleted=draw(st.sets(start, max_size=20)),
        deleted_k=draw(st.lists(st.integers(0, 9), max_size=2)),
        most_page_rows=draw(st.sampled_from([50, 1 << 17])),
        stripe_bytes=draw(st.sampled_from([1, 500_000, 1 << 27])),
        chunk_bytes=draw(st.sampled_from([0, 0, 1 << 16])),
    )


def write(io: MemoryFileIO, rows: pa.Table, case: Case) -> None:
    stream = streams.BytesIO()
    options = {"max_rows_per_page": case.page_rows} if LIMITS_PAGE_ROWS else {}
    pq.write_table(
        rows,
        stream,
        row_group_size=case.row_group_size,
        data_page_size=case.page_size,
        write_batch_size=10,
        data_page_version=case.page_version,
        write_page_index=case.page_index,
        compression=case.compression,
        use_dictionary=case.dictionaries,
        dictionary_pagesize_limit=1 << 12,
        store_schema=False,
        write_page_checksum=True,
        **options,
    )
    io.write_bytes(FILE, stream.getvalue())


def selected(rows: pa.Table, case: Case) -> list[dict[str, Any]]:
    results = []
    for position, row in enumerate(rows.to_pylist()):
        in_span = not case.spans or any(a <= position < b for a, b in case.spans)
        matches = (
            in_span
            and (case.k is None or (row["k"] is not None and row["k"] >= case.k))
            and (case.x is None or (row["s"] is not None and row["s"]["x"] == case.x))
        )
        if matches and position not in case.deleted and row["k"] not in case.deleted_k:
            results.append({"_pos": position} | row)
    return results


UNEVEN_PAGES = Case(
    rows=1500,
    row_group_size=1500,
    page_rows=5000,
    page_size=500,
    page_version="1.0",
    page_index=True,
    compression="zstd",
    dictionaries=False,
    threads=False,
    spans=[(700, 705)],
    k=None,
    x=None,
    deleted=set(),
    deleted_k=[],
    most_page_rows=1 << 17,
    stripe_bytes=1 << 27,
    chunk_bytes=0,
)
"""The leaves of the struct and of the other columns have pages of different rows."""


@settings(max_examples=settings().max_examples * 3, deadline=None)
@given(cases())
@example(UNEVEN_PAGES)
@example(replace(UNEVEN_PAGES, spans=[], stripe_bytes=1))
@example(replace(UNEVEN_PAGES, spans=[(700, 705), (1400, 1500)], dictionaries=True))
def test_late_columns_change_no_row(case: Case) -> None:
    """Row groups, pages, filters and deletes of any size: the rows are those of a naive model."""
    io = MemoryFileIO()
    rows = rows_of(case.rows, seed=case.rows)
    write(io, rows, case)
    parts: list[Any] = [AlwaysTrue()]
    if case.spans:
        spans = [
            And(BoundLiteral("gt_eq", ID_COLUMN, a), BoundLiteral("lt", ID_COLUMN, b))
            for a, b in case.spans
        ]
        parts.append(
            spans[0] if len(spans) == 1 else Or(spans[0], Or(spans[-1], spans[len(spans) // 2]))
        )
    if case.k is not None:
        parts.append(BoundLiteral("gt_eq", K_COLUMN, case.k))
    if case.x is not None:
        parts.append(BoundLiteral("eq", X_COLUMN, case.x))
    predicate = parts[0]
    for part in parts[1:]:
        predicate = And(predicate, part)
    deletes = [deletion_vector(io, "/dv.puffin", FILE, case.deleted)] if case.deleted else []
    if case.deleted_k:
        keys = [{"k": k} for k in case.deleted_k]
        deletes.append(equality_deletes(io, "/eq.parquet", schema_of(K), [2], keys))
    projection = schema_of(POS, *SCHEMA.fields)
    context = context_of(projection, schemas=[SCHEMA], predicate=predicate)
    task = task_of(io, FILE, deletes=tuple(deletes))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_reader, "BATCH_ROWS", 256)
        patch.setattr(parquet_reader, "LATE_FACTOR", 1)
        patch.setattr(parquet_reader, "LATE_CHUNK_BYTES", case.chunk_bytes)
        patch.setattr(parquet_pages, "MOST_ROWS", case.most_page_rows)
        patch.setattr(parquet_reader, "_HELD_BYTES", case.stripe_bytes)
        patch.setattr(parquet_reader, "_STRIPE_BYTES", case.stripe_bytes)
        batches = list(read_task(context, task, io, threads=case.threads))
    expected_schema = to_arrow_schema(projection)
    read = []
    for batch in batches:
        assert batch.schema.equals(expected_schema, check_metadata=True)
        batch.validate(full=True)
        read += batch.to_pylist()
    assert read == selected(rows, case)


@given(st.data())
def test_a_damaged_page_index_gives_no_wrong_row(data: st.DataObject) -> None:
    """Other bytes in the index are found out, or Arrow refuses them."""
    io, rows = MemoryFileIO(), rows_of(1500)
    write(io, rows, UNEVEN_PAGES)
    content = bytearray(io.read_bytes(FILE))
    row_group = pq.read_metadata(streams.BytesIO(content)).row_group(0)
    chunks = [row_group.column(i) for i in range(row_group.num_columns)]
    ends = [
        (c.dictionary_page_offset or c.data_page_offset) + c.total_compressed_size for c in chunks
    ]
    length = int.from_bytes(content[-8:-4], "little")
    at = data.draw(st.integers(max(ends), len(content) - length - 9))
    content[at] ^= data.draw(st.integers(1, 255))
    io.write_bytes(FILE, bytes(content))
    condition = BoundLiteral("eq", ID_COLUMN, 700)
    context = context_of(SCHEMA, predicate=condition)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_reader, "BATCH_ROWS", 256)
        patch.setattr(parquet_reader, "LATE_CHUNK_BYTES", 0)
        with suppress(StorageError):
            read = pa.Table.from_batches(read_task(context, task_of(io, FILE), io))
            assert read.to_pylist() == rows.slice(700, 1).to_pylist()


def test_small_column_chunks_are_read_without_their_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index of each of thousands of columns takes seconds to parse, and saves no page."""
    rows = pa.table({"id": range(100)} | {f"c{i}": range(100) for i in range(20)})
    catalog = iceberg_pyspark.load_catalog("late", type="memory", warehouse="memory://late")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", rows.schema)
    table.append(rows)
    monkeypatch.setattr(parquet_reader, "PageIndex", None)
    assert table.scan("id = 7").to_arrow().to_pylist() == rows.slice(7, 1).to_pylist()


def allocated() -> int:
    """Return the bytes that Arrow has allocated so far; old versions of pyarrow do not count."""
    return int(getattr(pa.default_memory_pool(), "total_bytes_allocated", lambda: 0)())


ROWS = 200_000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, pa.Table, int]:
    """A table in the order of its ids, with many more columns, its rows, and the bytes for them."""
    ids = pa.array(range(ROWS), pa.int64())
    texts = pa.array([f"text {i}" for i in range(ROWS)])
    rows = pa.table({"id": ids} | {f"t{i}": texts for i in range(20)})
    folder = str(tmp_path_factory.mktemp("late"))
    catalog = iceberg_pyspark.load_catalog("late", type="hadoop", warehouse=folder)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", rows.schema)
    table.append(rows)
    before = allocated()
    return table, table.scan().to_arrow(), allocated() - before


@pytest.mark.skipif(not LIMITS_PAGE_ROWS, reason="this pyarrow writes large pages")
@pytest.mark.parametrize(
    ("condition", "rows", "part"),
    [
        ("id = 5", 1, 0.7),  # of the rows whose texts are in dictionaries
        (f"id = {ROWS - 5}", 1, 0.2),
        ("id IN (199000, 199999)", 2, 0.2),
        ("id < 3000 AND id > 199000", 0, 0.1),
        ("id >= 0", ROWS, 1.5),
    ],
)
def test_few_rows_take_little_work(
    table: tuple[Table, pa.Table, int], condition: str, rows: int, part: float
) -> None:
    read, whole, for_all = table
    before = allocated()
    found = read.scan(condition).to_arrow()
    assert allocated() - before <= part * for_all
    assert found.num_rows == rows
    ids = found["id"]
    assert found.equals(whole.take(ids))
