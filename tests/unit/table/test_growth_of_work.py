"""No operation's work grows with the square of its input.

Each input is doubled twice, and the second doubling may add at most some more than twice the work
that the first one added: fixed work does not count, linear work adds exactly twice, squares four
times. Work is counted and not timed: the lines that Python runs in this package, the bytes that
Arrow allocates, and the bytes and requests that the storage serves.
"""

from __future__ import annotations

import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pytest

import iceberg_pyspark
from iceberg_pyspark import Table
from iceberg_pyspark.arrow.arrow_schemas import stored_arrow_schema, to_arrow_schema
from iceberg_pyspark.arrow.file_fields import resolve_file_fields
from iceberg_pyspark.arrow.formats.parquet_writer import ParquetFile, ParquetOptions
from iceberg_pyspark.arrow.write.cast_to_table_schema import compile_cast_to_table_schema
from iceberg_pyspark.changes.removals import RemoveFiles
from iceberg_pyspark.changes.snapshot_changes import AppendFiles, OverwriteFiles
from iceberg_pyspark.formats import known_manifests, manifest_columns
from iceberg_pyspark.spark.native_read.columns import native_columns
from iceberg_pyspark.spark.rows.spark_types import (
    from_spark_schema,
    project_with_hidden_columns,
    to_spark_schema,
)
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.name_mapping import name_mapping_of
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.commit_snapshot import SnapshotStep
from iceberg_pyspark.table.commits.pending_changes import UpdateSchema
from tests.support.deleted_rows import delete_positions

Action: TypeAlias = Callable[[], object]
Input: TypeAlias = Callable[[int], Action]
"""A function that prepares an input of a size, and returns the work on it."""

MOST = 2.7
"""The most additional work of the second doubling, as a ratio to that of the first."""

LEAST = {"lines": 4000, "requests": 10, "bytes read": 20_000, "bytes allocated": 1_000_000}
"""Additional work below these numbers is noise: caches, buffers that double, one more page."""


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count the work in the block."""
    work: Counter[str] = Counter()
    package = iceberg_pyspark.__path__[0]

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(package):
            return None
        work["lines"] += event == "line"
        return trace

    def counting(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            result = method(*arguments)
            work["requests"] += 1
            work["bytes read"] += len(result) if isinstance(result, bytes) else 0
            return result

        return call

    # old versions of pyarrow do not count
    allocated = getattr(pa.default_memory_pool(), "total_bytes_allocated", lambda: 0)
    allocated_before = allocated()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("read_bytes", "read_range", "open_input", "exists", "size", "list_files"):
            patch.setattr(MemoryFileIO, name, counting(getattr(MemoryFileIO, name)))
        threading.settrace(trace)
        sys.settrace(trace)
        try:
            yield work
        finally:
            sys.settrace(None)
            threading.settrace(None)
    work["bytes allocated"] = allocated() - allocated_before


def work_of(make: Input, size: int) -> Counter[str]:
    action = make(size)
    with counted() as work:
        action()
    return work


def new_table(schema: Any = "id BIGINT, v STRING", **options: Any) -> Table:
    catalog = iceberg_pyspark.load_catalog(
        "law", type="memory", warehouse=f"memory://{uuid.uuid4()}"
    )
    catalog.create_namespace("db")
    return catalog.create_table("db.t", schema, **options)


def some_rows(count: int) -> pa.Table:
    ids = pa.array(range(count), pa.int64())
    return pa.table({"id": ids, "v": ids.cast(pa.string())})


def _numbers(count: int) -> pa.Array:
    return pa.array(np.arange(count), pa.int32())


def _lists(count: int, type_: Any = pa.ListArray) -> pa.Array:
    offsets = np.arange(0, 2 * count + 1, 2, dtype="i8" if type_ is pa.LargeListArray else "i4")
    return type_.from_arrays(pa.array(offsets), _numbers(2 * count))


CHUNKS: Mapping[str, tuple[Callable[[int], pa.Array], str]] = {
    "numbers": (_numbers, "BIGINT"),
    "texts": (lambda n: _numbers(n).cast(pa.string()), "STRING"),
    "large texts": (lambda n: _numbers(n).cast(pa.large_string()), "STRING"),
    "text views": (lambda n: _numbers(n).cast(pa.string()).cast(pa.string_view()), "STRING"),
    "lists": (_lists, "ARRAY<INT>"),
    "lists of other elements": (_lists, "ARRAY<BIGINT>"),
    "large lists": (lambda n: _lists(n, pa.LargeListArray), "ARRAY<BIGINT>"),
    "lists of a length": (
        lambda n: pa.FixedSizeListArray.from_arrays(_numbers(2 * n), 2),
        "ARRAY<BIGINT>",
    ),
    "list views": (
        lambda n: pa.ListViewArray.from_arrays(
            pa.array(np.arange(0, 2 * n, 2), pa.int32()),
            pa.array(np.full(n, 2), pa.int32()),
            _numbers(2 * n),
        ),
        "ARRAY<BIGINT>",
    ),
    "maps": (
        lambda n: pa.MapArray.from_arrays(
            pa.array(np.arange(n + 1), pa.int32()), _numbers(n), _numbers(n)
        ),
        "MAP<BIGINT, BIGINT>",
    ),
    "structs of lists": (
        lambda n: pa.StructArray.from_arrays([_lists(n)], ["l"]),
        "STRUCT<l: ARRAY<BIGINT>>",
    ),
    "lists of structs": (
        lambda n: pa.ListArray.from_arrays(
            pa.array(np.arange(n + 1), pa.int32()),
            pa.StructArray.from_arrays([_numbers(n)], ["x"]),
        ),
        "ARRAY<STRUCT<x: BIGINT>>",
    ),
    "dictionaries": (lambda n: pa.DictionaryArray.from_arrays(_numbers(n), _numbers(n)), "BIGINT"),
    "dictionaries of lists": (
        lambda n: pa.DictionaryArray.from_arrays(_numbers(n), _lists(n)),
        "ARRAY<BIGINT>",
    ),
    "runs": (
        lambda n: pa.RunEndEncodedArray.from_arrays(
            pa.array(np.arange(1, n + 1), pa.int32()), _numbers(n)
        ),
        "BIGINT",
    ),
}


@pytest.mark.parametrize("name", CHUNKS)
def test_an_append_of_one_chunk(name: str) -> None:
    column, type_ = CHUNKS[name]

    def make(size: int) -> Action:
        rows = pa.table({"c": column(size)})
        table = new_table(f"c {type_}")
        return lambda: table.append(rows)

    assert_not_square(make, 250_000)


def wide_schema(columns: int) -> str:
    return ", ".join(f"c{i} BIGINT" for i in range(columns))


def wide_rows(columns: int) -> pa.Table:
    return pa.table({f"c{i}": pa.array([1, 2], pa.int64()) for i in range(columns)})


class Used:
    """Rows whose uses are counted: each takes as long as there are columns, and Arrow counts none.

    Making the list of columns, and replacing one column, are such uses.
    """

    def __init__(self, rows: pa.Table | pa.RecordBatch) -> None:
        self.rows = rows
        self.uses: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        self.uses[name] += 1
        return getattr(self.rows, name)


def test_a_write_takes_the_columns_of_its_rows_once() -> None:
    rows, schema = wide_rows(10), new_table(wide_schema(10)).schema
    others = rows.select(rows.column_names[::-1]).combine_chunks().to_batches()[0]
    cast = Used(others)
    compile_cast_to_table_schema(others.schema, schema, table="t")(cast)
    assert cast.uses["columns"] == 1
    written = Used(rows.cast(stored_arrow_schema(schema)))
    file = ParquetFile(MemoryFileIO(), "memory://file", schema, ParquetOptions.of({}))
    file.write_row_group(written)
    file.close()
    assert (written.uses["columns"], written.uses["set_column"]) == (1, 0)


def create_wide(size: int) -> Action:
    return lambda: new_table(wide_schema(size))


def append_wide(size: int) -> Action:
    table = new_table(wide_schema(size))
    return lambda: table.append(wide_rows(size))


def read_wide(size: int) -> Action:
    table = new_table(wide_schema(size))
    table.append(wide_rows(size))
    return lambda: table.scan("c1 > 0").to_arrow()


def find_wide(size: int) -> Action:
    schema = to_arrow_schema(new_table(wide_schema(size)).schema, field_ids=True)
    fields = resolve_file_fields(schema, None, "a file")
    return lambda: [fields.column_with_id(i) for i in range(1, size + 1)]


def find_by_name(size: int) -> Action:
    schema = new_table(wide_schema(size)).schema
    mapping, without_ids = name_mapping_of(schema), to_arrow_schema(schema)
    return lambda: resolve_file_fields(without_ids, mapping, "a file")


def select_wide(size: int) -> Action:
    table = new_table(wide_schema(size))
    table.append(wide_rows(size))
    return lambda: table.scan(columns=[f"c{i}" for i in range(size)]).to_arrow()


def filter_wide(size: int) -> Action:
    table = new_table(wide_schema(size))
    table.append(wide_rows(size))
    condition = " AND ".join(f"c{i} > 0" for i in range(size))
    return lambda: table.scan(condition).to_arrow()


def columns_of_spark(size: int) -> Action:
    table = new_table(wide_schema(size))

    def convert() -> None:
        shown = to_spark_schema(table.schema)
        project_with_hidden_columns(table.schema, shown, table.metadata)
        from_spark_schema(shown)
        assert native_columns(table.scan()) is not None

    return convert


def describe_wide(size: int) -> Action:
    table = new_table(wide_schema(size))
    return lambda: repr(table)


def inspect_wide(size: int) -> Action:
    table = new_table(wide_schema(size))
    table.append(wide_rows(size))
    return lambda: table.inspect.files()


def change_columns(
    edit: Callable[[UpdateSchema, int], object], columns: Callable[[int], str] = wide_schema
) -> Input:
    """Return one change of a schema that edits each of its columns."""

    def make(size: int) -> Action:
        table = new_table(columns(size))

        def change() -> None:
            changes = table.update_schema(allow_incompatible_changes=True)
            for i in range(size):
                edit(changes, i)
            changes.commit()

        return change

    return make


def required_columns(count: int) -> str:
    return ", ".join(f"c{i} INT NOT NULL" for i in range(count))


def drop_most(change: UpdateSchema, i: int) -> None:
    if i:
        change.drop_column(f"c{i}")


def union_columns(first: int) -> Input:
    def make(size: int) -> Action:
        table = new_table(wide_schema(size))
        other = new_table(", ".join(f"C{i} BIGINT" for i in range(first * size, 2 * size))).schema
        return lambda: table.update_schema().union_by_name(other, case_sensitive=False).commit()

    return make


def deep_rows(depth: int) -> pa.Table:
    array = pa.array([1, 2], pa.int64())
    for _ in range(depth):
        array = pa.StructArray.from_arrays([array], ["s"])
    return pa.table({"s": array})


def append_deep(depth: int) -> Action:
    rows = deep_rows(depth)
    table = new_table(rows.schema)
    return lambda: table.append(rows)


def read_deep(depth: int) -> Action:
    rows = deep_rows(depth)
    table = new_table(rows.schema)
    table.append(rows)
    return lambda: table.scan().to_arrow()


def data_files(table: Table, count: int) -> list[DataFile]:
    """Write one file and return entries of as many, which differ in their names."""
    return [
        DataFile(
            file_path=f"{table.location}/data/{uuid.uuid4()}.parquet",
            file_format="parquet",
            record_count=1,
            file_size_in_bytes=1000,
            spec_id=table.spec.spec_id,
            partition=(f"p{i}",) if table.spec.fields else (),
        )
        for i in range(count)
    ]


def with_files(count: int, **options: Any) -> Table:
    table = new_table(**options)
    with table.transaction() as transaction:
        transaction.add_snapshot(AppendFiles(data_files=tuple(data_files(table, count))))
    return table.refresh()


def commit_files(size: int) -> Action:
    table = new_table()
    files = tuple(data_files(table, size))

    def commit() -> None:
        with table.transaction() as transaction:
            transaction.add_snapshot(AppendFiles(data_files=files))

    return commit


def test_a_removal_lists_no_paths_of_other_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python objects of each path are most of the work of a commit on a million files."""
    table = with_files(10)
    files = [task.file_path for task in table.scan().plan_files()]

    def refuse(*_: object) -> None:
        raise AssertionError("the paths of a manifest were made to objects")

    monkeypatch.setattr(SnapshotStep, "_read_paths", refuse)
    removal = RemoveFiles(data_paths=frozenset(files[:1]))
    commit_action(table.catalog, table.loaded, table.io, OverwriteFiles(removal=removal))
    left = [task.file_path for task in table.refresh().scan().plan_files()]
    assert sorted(left) == sorted(files[1:])


def test_a_delete_decodes_each_manifest_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that the commit looks for and rewrites is in what the plan has decoded."""
    table = new_table(properties={"commit.manifest-merge.enabled": "false"})
    for start in range(0, 50, 10):
        table.append(some_rows(60).slice(start, 10))
    decoded = []
    decode = manifest_columns._raw_entries

    def counting(*arguments: Any) -> pa.Table:
        decoded.append(arguments[1].manifest_path)
        return decode(*arguments)

    monkeypatch.setattr(manifest_columns, "_raw_entries", counting)
    known_manifests._KNOWN._entries.clear()
    table.refresh().delete("id >= 5 AND id < 15")
    assert len(decoded) == len(set(decoded)) == 5
    # manifests that were rewritten have entries of removed files
    table.refresh().delete("id >= 18 AND id < 22")
    assert len(decoded) == len(set(decoded))
    assert table.refresh().scan().count() == 36


def plan_files(size: int) -> Action:
    table = with_files(size)
    return lambda: list(table.scan("id > 5").plan_files())


def inspect_files(size: int) -> Action:
    table = with_files(size)
    return lambda: table.inspect.files()


def delete_files(size: int) -> Action:
    table = with_files(size, partitioned_by=["v"])
    return lambda: table.delete("v >= 'p'")


def append_partitions(size: int) -> Action:
    table = new_table(partitioned_by=["id"])
    return lambda: table.append(some_rows(size))


def inspect_partitions(size: int) -> Action:
    table = with_files(size, partitioned_by=["v"])
    return lambda: table.inspect.partitions()


def plan_partitions(size: int) -> Action:
    table = with_files(size, partitioned_by=["v"])
    return lambda: list(table.scan("v = 'p1'").plan_files())


def filter_of(size: int) -> Action:
    table = with_files(10)
    condition = " OR ".join(f"id = {i}" for i in range(size))
    return lambda: list(table.scan(condition).plan_files())


def filter_in(size: int) -> Action:
    table = with_files(10)
    condition = f"id IN ({', '.join(map(str, range(size)))})"
    return lambda: list(table.scan(condition).plan_files())


def with_snapshots(count: int) -> Table:
    table = new_table(properties={"commit.manifest-merge.enabled": "false"})
    for _ in range(count):
        with table.transaction() as transaction:
            transaction.add_snapshot(AppendFiles(data_files=tuple(data_files(table, 1))))
        table.refresh()
    return table


def commit_after_snapshots(size: int) -> Action:
    table = with_snapshots(size)
    files = tuple(data_files(table, 1))

    def commit() -> None:
        with table.transaction() as transaction:
            transaction.add_snapshot(AppendFiles(data_files=files))

    return commit


with_same_snapshots = cache(with_snapshots)


def of_snapshots(
    work: Callable[[Table], object], table_with: Callable[[int], Table] = with_same_snapshots
) -> Input:
    def make(size: int) -> Action:
        table = table_with(size)
        return lambda: work(table)

    return make


def with_tags(count: int) -> Table:
    table = with_snapshots(1)
    change = table.manage_snapshots()
    for i in range(count):
        change.create_tag(f"tag{i}")
    change.commit()
    return table


def create_tags(size: int) -> Action:
    return lambda: with_tags(size)


def of_tags(work: Callable[[Table], object]) -> Input:
    def make(size: int) -> Action:
        table = with_tags(size)
        return lambda: work(table)

    return make


def with_schemas(count: int) -> Table:
    table = new_table()
    for i in range(count):
        table.update_schema().rename_column("v", f"v{i}").commit()
        table.update_schema().rename_column(f"v{i}", "v").commit()
    table.append(some_rows(1))
    return table


def of_schemas(work: Callable[[Table], object]) -> Input:
    def make(size: int) -> Action:
        table = with_schemas(size)
        return lambda: work(table)

    return make


def set_properties(size: int) -> Action:
    table = new_table()
    return lambda: table.update_properties().set({f"p{i}": "x" for i in range(size)}).commit()


def append_with_properties(size: int) -> Action:
    table = new_table(properties={f"p{i}": "x" for i in range(size)})
    return lambda: table.append(some_rows(1))


def positions_of_a_file(size: int) -> Action:
    table = new_table(properties={"format-version": "3"})
    table.append(some_rows(2 * size))
    [file] = table.scan().plan_files()
    delete_positions(table, {file.file_path: range(0, 2 * size, 2)})
    return lambda: table.scan().to_arrow()


OPERATIONS: Mapping[str, tuple[Input, int]] = {
    "columns: create": (create_wide, 40),
    "columns: append": (append_wide, 40),
    "columns: read": (read_wide, 40),
    "columns: select": (select_wide, 40),
    "columns: filter": (filter_wide, 40),
    "columns: of Spark": (columns_of_spark, 40),
    "columns: find": (find_wide, 100),
    "columns: find by name": (find_by_name, 100),
    "columns: repr": (describe_wide, 40),
    "columns: files": (inspect_wide, 40),
    "columns: add": (change_columns(lambda c, i: c.add_column(f"d{i}", "long")), 200),
    "columns: drop": (change_columns(drop_most), 200),
    "columns: rename": (change_columns(lambda c, i: c.rename_column(f"c{i}", f"d{i}")), 200),
    "columns: comment": (change_columns(lambda c, i: c.update_doc(f"c{i}", "a column")), 200),
    "columns: promote": (
        change_columns(lambda c, i: c.update_type(f"c{i}", "long"), required_columns),
        200,
    ),
    "columns: make optional": (
        change_columns(lambda c, i: c.make_optional(f"c{i}"), required_columns),
        200,
    ),
    "columns: require": (change_columns(lambda c, i: c.require(f"c{i}")), 200),
    "columns: same names": (union_columns(0), 200),
    "columns: new names": (union_columns(1), 200),
    "depth: append": (append_deep, 20),
    "depth: read": (read_deep, 20),
    "files: commit": (commit_files, 60),
    "files: plan": (plan_files, 100),
    "files: files": (inspect_files, 100),
    "files: delete": (delete_files, 60),
    "partitions: append": (append_partitions, 40),
    "partitions: partitions": (inspect_partitions, 60),
    "partitions: plan": (plan_partitions, 60),
    "conditions: or": (filter_of, 50),
    "conditions: in": (filter_in, 100),
    "snapshots: commit": (commit_after_snapshots, 8),
    "snapshots: plan": (of_snapshots(lambda t: list(t.scan().plan_files())), 8),
    "snapshots: load": (of_snapshots(lambda t: t.refresh()), 8),
    "snapshots: history": (of_snapshots(lambda t: t.inspect.history()), 8),
    "snapshots: snapshots": (of_snapshots(lambda t: t.inspect.snapshots()), 8),
    "snapshots: manifests": (of_snapshots(lambda t: t.inspect.manifests()), 8),
    "snapshots: verify": (of_snapshots(lambda t: t.verify(check_files=True)), 8),
    "snapshots: expire": (
        of_snapshots(
            lambda t: t.maintenance().expire_snapshots(older_than=2**60, retain_last=1),
            with_snapshots,
        ),
        8,
    ),
    "snapshots: rewrite manifests": (
        of_snapshots(lambda t: t.maintenance().rewrite_manifests(), with_snapshots),
        8,
    ),
    "refs: create": (create_tags, 30),
    "refs: load": (of_tags(lambda t: t.refresh()), 30),
    "refs: refs": (of_tags(lambda t: t.inspect.refs()), 30),
    "refs: append": (of_tags(lambda t: t.append(some_rows(1))), 30),
    "refs: expire": (of_tags(lambda t: t.maintenance().expire_snapshots(older_than=2**60)), 30),
    "schemas: load": (of_schemas(lambda t: t.refresh()), 15),
    "schemas: read": (of_schemas(lambda t: t.scan("id = 1").to_arrow()), 15),
    "schemas: append": (of_schemas(lambda t: t.append(pa.table({"id": [1]}))), 15),
    "properties: set": (set_properties, 100),
    "properties: append": (append_with_properties, 100),
    "deletes: positions": (positions_of_a_file, 5000),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation(name: str) -> None:
    make, size = OPERATIONS[name]
    assert_not_square(make, size)


def assert_not_square(make: Input, size: int) -> None:
    make(size)()  # what is loaded or compiled at the first use
    one, two, four = (work_of(make, size * factor) for factor in (1, 2, 4))
    for kind in four:
        first, second = two[kind] - one[kind], four[kind] - two[kind]
        assert second <= max(MOST * first, LEAST[kind]), (
            f"{kind}: {one[kind]}, {two[kind]}, {four[kind]} for inputs of {size}, {2 * size} and "
            f"{4 * size}"
        )


def test_the_law_sees_squares() -> None:
    def square(size: int) -> Action:
        schema = new_table(wide_schema(size)).schema
        return lambda: [repr(schema) for _ in range(size)]

    with pytest.raises(AssertionError, match="lines"):
        assert_not_square(square, 10)
