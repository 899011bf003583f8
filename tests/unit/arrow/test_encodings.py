"""Every Arrow type and encoding, also nested, is written and read back, or refused by name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark.arrow.arrays import without_hidden_elements
from iceberg_pyspark.arrow.arrow_schemas import from_arrow_schema
from iceberg_pyspark.arrow.write import write_files
from iceberg_pyspark.arrow.write.cast_to_table_schema import (
    check_write_schema,
    compile_cast_to_table_schema,
)
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.errors import IcebergError, InvalidRequestError
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.amounts import FULL_WORK
from tests.support.scan_tasks import context_of, read_rows, task_of

Built = tuple[pa.Array, list[Any]]


class Leaf(NamedTuple):
    """A type of values, and the type of the table's column."""

    type: pa.DataType
    column: pa.DataType
    values: list[Any]


TEXTS = ["a", None, "", "longer than the twelve bytes of a view", "a"]
BYTES = [b"a", None, b"", b"longer than the twelve bytes of a view", b"a"]
IDS = [b"\x01" * 16, None, b"\xff" * 16]
LEAVES = (
    Leaf(pa.null(), pa.int32(), [None]),
    Leaf(pa.bool_(), pa.bool_(), [True, None, False]),
    Leaf(pa.int32(), pa.int32(), [1, None, -3]),
    Leaf(pa.uint16(), pa.int64(), [1, None, 3]),
    Leaf(pa.float16(), pa.float64(), [1.5, None, 0.0]),
    Leaf(pa.string(), pa.string(), TEXTS),
    Leaf(pa.large_string(), pa.string(), TEXTS),
    Leaf(pa.string_view(), pa.string(), TEXTS),
    Leaf(pa.binary(), pa.binary(), BYTES),
    Leaf(pa.large_binary(), pa.binary(), BYTES),
    Leaf(pa.binary_view(), pa.binary(), BYTES),
    Leaf(pa.uuid(), pa.binary(16), IDS),
    Leaf(pa.binary(), pa.binary(16), IDS),
    Leaf(pa.large_string(), pa.uuid(), [str(UUID(bytes=i)) if i else None for i in IDS]),
    Leaf(pa.json_(), pa.string(), ['{"a": 1}', None]),
)


def leaf(of: Leaf, count: int) -> Built:
    values = [of.values[i % len(of.values)] for i in range(count)]
    if isinstance(of.type, pa.BaseExtensionType):
        array = pa.ExtensionArray.from_storage(of.type, pa.array(values, of.type.storage_type))
    elif pa.types.is_float16(of.type):
        array = pa.array(values, pa.float32()).cast(of.type)
    else:
        array = pa.array(values, of.type)
    return array, [
        v.encode() if of.column == pa.binary() and isinstance(v, str) else v for v in values
    ]


def lengths_of(count: int) -> list[int | None]:
    return [(2, None, 0, 1, 3)[i % 5] for i in range(count)]


def mask_of(lengths: Iterable[int | None]) -> pa.Array:
    return pa.array([n is None for n in lengths])


def a_struct(count: int, child: Callable[[int], Built]) -> Built:
    array, values = child(count)
    mask = [i % 4 == 1 for i in range(count)]
    rows = [None if null else {"x": v} for v, null in zip(values, mask, strict=True)]
    return pa.StructArray.from_arrays([array], ["x"], mask=pa.array(mask, pa.bool_())), rows


def lists(count: int, child: Callable[[int], Built], *, large: bool, kind: str) -> Built:
    lengths = lengths_of(count)
    # the first two children belong to no row
    offsets = [2]
    for n in lengths:
        offsets.append(offsets[-1] + (n or 0))
    array, values = child(offsets[-1])
    rows = [
        None if n is None else values[o : o + n] for o, n in zip(offsets, lengths, strict=False)
    ]
    starts = pa.array(offsets, pa.int64() if large else pa.int32())
    mask = mask_of(lengths)
    if kind == "map":
        keys = pa.array([f"k{i}" for i in range(len(values))])
        maps = [
            None if n is None else [(f"k{o + i}", values[o + i]) for i in range(n)]
            for o, n in zip(offsets, lengths, strict=False)
        ]
        return pa.MapArray.from_arrays(starts, keys, array, mask=mask), maps
    if kind == "list":
        of = pa.LargeListArray if large else pa.ListArray
        return of.from_arrays(starts, array, mask=mask), rows
    # the last row has the first children, and a null the lists of others
    view = pa.LargeListViewArray if large else pa.ListViewArray
    sizes = pa.array([2 if n is None else n for n in reversed(lengths)], starts.type)
    begins = pa.array(list(reversed(offsets[:-1])), starts.type)
    begins = pa.array(
        [0 if n is None else b for b, n in zip(begins.to_pylist(), reversed(lengths), strict=True)],
        starts.type,
    )
    return view.from_arrays(begins, sizes, array, mask=mask_of(reversed(lengths))), rows[::-1]


def pairs(count: int, child: Callable[[int], Built]) -> Built:
    array, values = child(2 * count)
    mask = [i % 4 == 1 for i in range(count)]
    rows = [None if null else values[2 * i : 2 * i + 2] for i, null in enumerate(mask)]
    return pa.FixedSizeListArray.from_arrays(array, 2, mask=pa.array(mask, pa.bool_())), rows


def a_dictionary(count: int, child: Callable[[int], Built]) -> Built:
    array, values = child(count)
    at = [None if i % 5 == 2 else count - 1 - i for i in range(count)]
    rows = [None if i is None else values[i] for i in at]
    return pa.DictionaryArray.from_arrays(pa.array(at, pa.int16()), array), rows


def runs(count: int, child: Callable[[int], Built]) -> Built:
    ends = list(range(2, count, 2)) + ([count] if count else [])
    array, values = child(len(ends))
    rows = [values[i // 2] for i in range(count)]
    return pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), array), rows


def wrapper(kind: str, large: bool = False) -> Callable[[int, Callable[[int], Built]], Built]:
    return lambda count, child: lists(count, child, large=large, kind=kind)


WRAPPERS: dict[str, Callable[[int, Callable[[int], Built]], Built]] = {
    "struct": a_struct,
    "list": wrapper("list"),
    "large_list": wrapper("list", large=True),
    "list_view": wrapper("view"),
    "large_list_view": wrapper("view", large=True),
    "fixed_size_list": pairs,
    "map": wrapper("map"),
    "dictionary": a_dictionary,
    "run_end_encoded": runs,
}


def column_type(names: tuple[str, ...], type_: pa.DataType) -> pa.DataType:
    for name in reversed(names):
        if name == "struct":
            type_ = pa.struct([("x", type_)])
        elif name == "map":
            type_ = pa.map_(pa.string(), type_)
        elif "list" in name:
            type_ = pa.list_(type_)
    return type_


def build(names: tuple[str, ...], of: Leaf, count: int) -> Built:
    if not names:
        return leaf(of, count)
    return WRAPPERS[names[0]](count, lambda n: build(names[1:], of, n))


def plain(value: Any, as_bytes: bool) -> Any:
    match value:
        case dict():
            return {k: plain(v, as_bytes) for k, v in value.items()}
        case list():
            return [plain(v, as_bytes) for v in value]
        case tuple():
            return (value[0], plain(value[1], as_bytes))
        case UUID():
            return value.bytes
        case str() if as_bytes:
            return UUID(value).bytes
        case _:
            return value


def written_files(rows: pa.Table, schema: Schema, store: MemoryFileIO) -> list[DataFile]:
    context = WriteContext(
        table="db.t",
        table_location="mem/t",
        schema=schema,
        spec=PartitionSpec(spec_id=0),
        write_id="w",
    )
    return write_data_files(context, rows.to_batches(), store, partition_id=0, task_id=0)


def written(rows: pa.Table, schema: Schema) -> list[Any]:
    store = MemoryFileIO()
    files = written_files(rows, schema, store)
    return [
        row["c"]
        for f in files
        for row in read_rows(context_of(schema), task_of(store, f.file_path), store)
    ]


def check(names: tuple[str, ...], of: Leaf) -> None:
    """Raise `AssertionError` unless rows of the type are read as they were written."""
    array, values = build(names, of, 11)
    schema = from_arrow_schema(pa.schema([("c", column_type(names, of.column))]))
    values = [plain(v, of.column == pa.uuid()) for v in values]
    field = pa.schema([pa.field("c", array.type)])
    for start, length in ((0, 11), (3, 5), (7, 4), (10, 1), (1, 1), (4, 0)):
        table = pa.Table.from_batches(
            [pa.record_batch([array.slice(start, length)], schema=field)], schema=field
        )
        assert written(table, schema) == values[start : start + length], (names, of.type, start)
    chunks = pa.chunked_array([array.slice(6), array.slice(0, 0), array.slice(1, 3)], array.type)
    expected = values[6:] + values[1:4]
    assert written(pa.table([chunks], schema=field), schema) == expected, (names, of.type)


def cases() -> Iterator[tuple[tuple[str, ...], Leaf]]:
    """Yield every type alone and nested once, and texts and UUIDs nested twice."""
    yield from product([(), *((w,) for w in WRAPPERS)], LEAVES)
    few = (pa.large_string(), pa.string_view(), pa.uuid())
    inner = [x for x in LEAVES if FULL_WORK or x.type in few]
    yield from product(list(product(WRAPPERS, WRAPPERS)), inner)


def main() -> None:
    """Check all cases; print those that fail."""
    failed = 0
    for names, of in cases():
        try:
            check(names, of)
        except (AssertionError, IcebergError, pa.ArrowException) as e:
            failed += 1
            sys.stdout.write(f"{names} {of.type} as {of.column}: {e}\n")
    sys.exit(bool(failed))


def test_every_type_and_encoding_is_read_as_it_was_written() -> None:
    # in a process of its own: invalid arrays may end it
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.arrow.test_encodings"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_type_without_an_iceberg_type_is_refused_by_name() -> None:
    schema = from_arrow_schema(pa.schema([("c", pa.list_(pa.int32()))]))
    for type_ in (
        pa.month_day_nano_interval(),
        pa.list_view(pa.duration("s")),
        pa.dictionary(pa.int8(), pa.duration("s")),
        pa.large_list_view(pa.uint64()),
        pa.sparse_union([pa.field("a", pa.int32())]),
    ):
        with pytest.raises(InvalidRequestError, match="column 'c"):
            check_write_schema(pa.schema([("c", type_)]), schema, table="db.t")


@pytest.fixture
def zeros(tmp_path: Path) -> pa.Buffer:
    """Return 3 GiB of zeros that take no memory: a file without contents, mapped."""
    with (tmp_path / "zeros").open("wb") as file:
        file.truncate(3 * 2**30)
    return pa.memory_map(str(tmp_path / "zeros")).read_buffer()


@pytest.mark.parametrize("name", [None, "struct", "large_list", "map"])
@pytest.mark.parametrize("type_", [pa.large_string(), pa.large_binary(), pa.large_list(pa.int8())])
def test_rows_late_in_a_chunk_of_more_than_2_gib(
    type_: pa.DataType, name: str | None, zeros: pa.Buffer
) -> None:
    far = 2**31 + 5
    offsets = pa.py_buffer(np.array([0, far, far + 2, far + 2, far + 5], np.int64))
    if pa.types.is_large_list(type_):
        values = pa.Array.from_buffers(pa.int8(), zeros.size, [None, zeros])
        array = pa.Array.from_buffers(type_, 4, [None, offsets], children=[values])
        rows: list[Any] = [[0, 0], [], [0, 0, 0]]
        column = pa.list_(pa.int32())
    else:
        array = pa.Array.from_buffers(type_, 4, [None, offsets, zeros])
        rows = ["\0\0", "", "\0\0\0"]
        column = pa.string()
        if type_ == pa.large_binary():
            rows, column = [r.encode() for r in rows], pa.binary()
    names = () if name is None else (name,)
    keys = pa.array(["a", "b", "c", "d"])
    if name == "struct":
        array, rows = pa.StructArray.from_arrays([array], ["x"]), [{"x": r} for r in rows]
    elif name == "large_list":
        ends = pa.array(range(5), pa.int64())
        array, rows = pa.LargeListArray.from_arrays(ends, array), [[r] for r in rows]
    elif name == "map":
        ends = pa.array(range(5), pa.int32())
        array = pa.MapArray.from_arrays(ends, keys, array)
        rows = [[(k, r)] for k, r in zip("bcd", rows, strict=True)]
    schema = from_arrow_schema(pa.schema([("c", column_type(names, column))]))
    assert written(pa.table({"c": array}).slice(1), schema) == rows


@pytest.mark.parametrize("name", ["list", "large_list", "list_view", "fixed_size_list", "map"])
def test_only_the_children_of_a_piece_are_converted(name: str) -> None:
    array, values = build((name,), Leaf(pa.int32(), pa.int64(), [1]), 5000)
    schema = from_arrow_schema(pa.schema([("c", column_type((name,), pa.int64()))]))
    batch = pa.record_batch({"c": array}).slice(4000, 3)
    cast = compile_cast_to_table_schema(batch.schema, schema, table="t")
    column = cast(batch).column(0)
    assert column.to_pylist() == values[4000:4003]
    assert len(column.values) == sum(len(v) for v in values[4000:4003] if v is not None)


def test_elements_that_a_null_hides_are_left_out() -> None:
    ends = pa.array([0, 2, 3, 6], pa.int32())
    numbers = pa.array(range(6))
    texts = pa.array(list("abcdef"))
    hides_first = pa.array([True, False, False])
    for inner in (pa.ListArray, pa.MapArray):
        children = (numbers,) if inner is pa.ListArray else (texts, numbers)
        plain = inner.from_arrays(ends, *children)
        assert without_hidden_elements(plain) is plain
        lists = inner.from_arrays(ends, *children, mask=hides_first)
        structs = pa.StructArray.from_arrays([plain], ["x"], mask=hides_first)
        nested = pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), structs)
        hidden = pa.StructArray.from_arrays([nested], ["y"], mask=pa.array([True, False]))
        for array in (lists, structs, nested, hidden):
            shown = without_hidden_elements(array)
            shown.validate(full=True)
            assert shown.equals(array)
            assert without_hidden_elements(shown) is shown
            pq.write_table(pa.table({"c": shown}), pa.BufferOutputStream())
            assert without_hidden_elements(array.slice(1)).equals(array.slice(1))


def long_of(type_: pa.DataType, count: int) -> pa.Array:
    """Return values of which few take nearly all bytes in a plain encoding."""
    texts = ["x" * (3000 if i > count - 20 else i % 2) for i in range(count)]
    match type_:
        case pa.DictionaryType():
            return pa.array(texts, type_.value_type).dictionary_encode()
        case pa.RunEndEncodedType():
            return pc.run_end_encode(pa.array(texts, type_.value_type))
        case pa.ListViewType():
            starts = pa.array([0] * count, pa.int32())
            sizes = pa.array([len(x) for x in texts], pa.int32())
            return pa.ListViewArray.from_arrays(starts, sizes, pa.array([True] * 3000))
        case pa.LargeListType():
            return pa.array([[None] * len(x) for x in texts], type_)
        case _:
            return pa.array(texts, type_)


def letters(value: Any) -> int:
    """Return the number of letters, or of other values, in a value."""
    match value:
        case str():
            return len(value)
        case dict():
            return letters(list(value.values()))
        case list():
            return sum(map(letters, value))
    return 1


@pytest.mark.parametrize(
    "type_",
    [
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.run_end_encoded(pa.int32(), pa.string()),
        pa.list_view(pa.bool_()),
        pa.large_list(pa.null()),
    ],
)
@pytest.mark.parametrize("name", [None, "struct", "list"])
def test_pieces_are_small_however_they_are_encoded(
    type_: pa.DataType, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_files, "_MAX_BYTES", 10_000)
    array = long_of(type_, 200)
    if name == "struct":
        array = pa.StructArray.from_arrays([array], ["x"])
    elif name == "list":
        array = pa.ListArray.from_arrays(pa.array(range(201), pa.int32()), array)
    batch = pa.record_batch({"c": array}).slice(3)
    result = list(write_files.pieces(batch))
    assert pa.Table.from_batches(result).to_pylist() == batch.to_pylist()
    assert 6 < len(result) < 30
    assert max(letters(p.column(0).to_pylist()) for p in result) <= 10_000


@pytest.mark.nightly
@pytest.mark.parametrize("type_", [pa.large_string(), pa.large_list(pa.int8())])
def test_one_value_of_more_than_2_gib_is_refused_by_name(
    type_: pa.DataType, zeros: pa.Buffer
) -> None:
    buffers = [None, pa.py_buffer(np.array([0, 0, 2**31 + 5], np.int64))]
    if pa.types.is_large_list(type_):
        values = pa.Array.from_buffers(pa.int8(), zeros.size, [None, zeros])
        array = pa.Array.from_buffers(type_, 2, buffers, children=[values])
        column = pa.list_(pa.int32())
    else:
        array, column = pa.Array.from_buffers(type_, 2, [*buffers, zeros]), pa.string()
    schema = from_arrow_schema(pa.schema([("c", column)]))
    with pytest.raises(InvalidRequestError, match=r"'c' of table 'db\.t'.*split or convert"):
        written_files(pa.table({"c": array}), schema, MemoryFileIO())


@pytest.mark.nightly
@pytest.mark.parametrize("type_", [pa.large_string(), pa.large_list(pa.bool_())])
def test_rows_of_more_than_2_gib_in_one_piece_are_split(
    type_: pa.DataType, zeros: pa.Buffer
) -> None:
    few, each = 100, 26_000_000
    offsets = np.concatenate([np.zeros(5000, np.int64), np.arange(few, dtype=np.int64) * each])
    buffers = [None, pa.py_buffer(offsets)]
    if pa.types.is_large_list(type_):
        values = pa.Array.from_buffers(pa.bool_(), few * each, [None, zeros])
        array = pa.Array.from_buffers(type_, len(offsets) - 1, buffers, children=[values])
        column = pa.list_(pa.bool_())
    else:
        array = pa.Array.from_buffers(type_, len(offsets) - 1, [*buffers, zeros])
        column = pa.string()
    schema = from_arrow_schema(pa.schema([("c", column)]))
    files = written_files(pa.table({"c": array}), schema, MemoryFileIO())
    assert sum(f.record_count for f in files) == len(array)


if __name__ == "__main__":
    main()
