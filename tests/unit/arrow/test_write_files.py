"""Batches become data files: layout, sizes, partitions, and no leftover files on failure."""

from __future__ import annotations

import io
import json
import math
import pickle
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark.arrow.arrow_schemas import arrow_type
from iceberg_pyspark.arrow.write import write_files
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.arrow.write.write_files import write_data_files, write_in_threads
from iceberg_pyspark.errors import InvalidRequestError, StorageError, UnsupportedFeatureError
from iceberg_pyspark.spec.json_fields import JsonObject
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import Schema, schema_from_json
from iceberg_pyspark.spec.transforms import (
    DayTransform,
    IdentityTransform,
    Transform,
    UnknownTransform,
    VoidTransform,
)
from iceberg_pyspark.spec.types import (
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    Type,
    UUIDType,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO

UNPARTITIONED = PartitionSpec(spec_id=0)


def a_field(field_id: int, name: str, type_: Type, *, required: bool = False) -> NestedField:
    return NestedField(field_id=field_id, name=name, type=type_, required=required)


NUMBERS = Schema(fields=(a_field(1, "p", IntegerType()), a_field(2, "v", LongType())))


def spec_of(source_id: int, transform: Transform, name: str = "p") -> PartitionSpec:
    return PartitionSpec(
        spec_id=4,
        fields=(
            PartitionField(source_ids=(source_id,), field_id=1000, name=name, transform=transform),
        ),
    )


def a_context(
    schema: Schema = NUMBERS, spec: PartitionSpec = UNPARTITIONED, **more: Any
) -> WriteContext:
    return WriteContext(
        table="db.t", table_location="mem/t", schema=schema, spec=spec, write_id="w1", **more
    )


def write(
    context: WriteContext, batches: Iterable[pa.RecordBatch], store: MemoryFileIO | None = None
) -> tuple[list[DataFile], MemoryFileIO]:
    store = store or MemoryFileIO()
    files = write_data_files(context, batches, store, partition_id=3, task_id=17)
    return files, store


def numbers(p: list[Any], start: int = 0) -> pa.RecordBatch:
    values = list(range(start, start + len(p)))
    return pa.RecordBatch.from_pydict(
        {"p": pa.array(p, pa.int32()), "v": pa.array(values, pa.int64())}
    )


def footer(store: MemoryFileIO, file: DataFile) -> pq.FileMetaData:
    return pq.read_metadata(io.BytesIO(store.read_bytes(file.file_path)))


def rows(store: MemoryFileIO, files: Iterable[DataFile]) -> list[dict[str, Any]]:
    all_rows: list[dict[str, Any]] = []
    for file in files:
        all_rows += pq.read_table(io.BytesIO(store.read_bytes(file.file_path))).to_pylist()
    return all_rows


def noise(count: int, groups: int, seed: int = 1) -> Iterator[pa.RecordBatch]:
    """Yield batches of 1000 rows that hardly compress: 16 bytes a row in Arrow, 8 in files."""
    random = np.random.default_rng(seed)
    for _ in range(0, count, 1000):
        yield pa.RecordBatch.from_pydict(
            {
                "p": pa.array(random.integers(0, groups, 1000), pa.int32()),
                "v": pa.array(random.integers(-(2**63), 2**63 - 1, 1000), pa.int64()),
            }
        )


def test_rows_of_a_task_are_one_file_named_after_it() -> None:
    batches = [numbers([1, 2]), numbers([3], start=2)]
    [file], store = write(a_context(sort_order_id=5), batches)
    assert file.file_path == "mem/t/data/00003-17-w1-00001.parquet"
    assert file.file_format == "parquet"
    assert file.record_count == 3
    assert file.file_size_in_bytes == store.size(file.file_path)
    assert (file.spec_id, file.partition, file.sort_order_id) == (0, (), 5)
    assert rows(store, [file]) == [{"p": 1, "v": 0}, {"p": 2, "v": 1}, {"p": 3, "v": 2}]
    assert footer(store, file).num_row_groups == 1


def test_unsorted_files_are_marked_as_unsorted() -> None:
    [file], _ = write(a_context(), [numbers([2, 1])])
    assert file.sort_order_id == 0


def test_a_table_whose_partition_fields_are_all_dropped_has_no_partition_folders() -> None:
    # docs/conformance.md 23: the table counts as unpartitioned.
    [file], _ = write(a_context(spec=spec_of(1, VoidTransform())), [numbers([2, 1])])
    assert file.file_path == "mem/t/data/00003-17-w1-00001.parquet"
    assert file.partition == (None,)


@pytest.mark.parametrize("batches", [[], [numbers([])]])
def test_empty_write_makes_no_files(batches: list[pa.RecordBatch]) -> None:
    for spec in (UNPARTITIONED, spec_of(1, IdentityTransform())):
        files, store = write(a_context(spec=spec), batches)
        assert files == []
        assert list(store.list_files("mem")) == []


def test_line_79_ids_are_on_every_level_and_the_schema_is_in_the_footer() -> None:
    point = StructType((a_field(3, "x", DoubleType(), required=True), a_field(4, "u", UUIDType())))
    schema = Schema(
        schema_id=7,
        fields=(
            a_field(1, "id", LongType(), required=True),
            a_field(2, "s", point),
            a_field(5, "l", ListType(element_id=6, element_type=StringType())),
            a_field(
                7,
                "m",
                MapType(key_id=8, key_type=StringType(), value_id=9, value_type=UUIDType()),
            ),
            a_field(10, "d9", DecimalType(9, 2)),
            a_field(11, "d18", DecimalType(18, 2)),
            a_field(12, "d19", DecimalType(19, 2)),
            a_field(13, "d38", DecimalType(38, 2)),
            a_field(14, "t", TimeType()),
            a_field(15, "ts", TimestampType()),
            a_field(16, "tz", TimestamptzType()),
            a_field(17, "da", DateType()),
        ),
    )
    columns = {
        f.name: pa.array([1] if f.name == "id" else [None], arrow_type(f.type))
        for f in schema.fields
    }
    [file], store = write(a_context(schema), [pa.RecordBatch.from_pydict(columns)])
    parquet = footer(store, file)
    lines = [line.strip() for line in str(parquet.schema).splitlines()[1:]]
    assert lines == [
        "required group field_id=-1 schema {",
        "required int64 field_id=1 id;",
        "optional group field_id=2 s {",
        "required double field_id=3 x;",
        "optional fixed_len_byte_array(16) field_id=4 u (UUID);",
        "}",
        "optional group field_id=5 l (List) {",
        "repeated group field_id=-1 list {",
        "optional binary field_id=6 element (String);",
        "}",
        "}",
        "optional group field_id=7 m (Map) {",
        "repeated group field_id=-1 key_value {",
        "required binary field_id=8 key (String);",
        "optional fixed_len_byte_array(16) field_id=9 value (UUID);",
        "}",
        "}",
        # docs/conformance.md 77
        "optional int32 field_id=10 d9 (Decimal(precision=9, scale=2));",
        "optional int64 field_id=11 d18 (Decimal(precision=18, scale=2));",
        "optional fixed_len_byte_array(9) field_id=12 d19 (Decimal(precision=19, scale=2));",
        "optional fixed_len_byte_array(16) field_id=13 d38 (Decimal(precision=38, scale=2));",
        "optional int64 field_id=14 t (Time(isAdjustedToUTC=false, timeUnit=microseconds));",
        *(
            f"optional int64 field_id={i} {name} (Timestamp(isAdjustedToUTC={utc}, "
            "timeUnit=microseconds, is_from_converted_type=false, "
            "force_set_converted_type=false));"
            for i, name, utc in ((15, "ts", "false"), (16, "tz", "true"))
        ),
        "optional int32 field_id=17 da (Date);",
        "}",
    ]
    assert parquet.metadata.keys() == {b"iceberg.schema"}
    assert schema_from_json(JsonObject(json.loads(parquet.metadata[b"iceberg.schema"]))) == schema


def test_each_partition_has_its_file_in_its_folder() -> None:
    batches = [numbers([1, None, 1]), numbers([2, 1, None], start=3)]
    files, store = write(a_context(spec=spec_of(1, IdentityTransform(), "a b")), batches)
    by_partition = {f.partition: (f.file_path, rows(store, [f])) for f in files}
    assert by_partition == {
        (p,): (
            f"mem/t/data/a+b={folder}/00003-17-w1-{count:05d}.parquet",
            [{"p": p, "v": v} for v in values],
        )
        for p, folder, values, count in (
            (1, "1", [0, 2, 4], 1),
            (2, "2", [3], 2),
            (None, "null", [1, 5], 3),
        )
    }
    assert {f.spec_id for f in files} == {4}


def test_line_26_zeros_of_both_signs_and_nan_have_a_file_each_over_many_batches() -> None:
    schema = Schema(fields=(a_field(1, "f", DoubleType()),))
    batch = pa.RecordBatch.from_pydict({"f": [0.0, -0.0, math.nan]})
    spec = spec_of(1, IdentityTransform())
    files, _ = write(a_context(schema, spec, buffer_bytes=8), [batch, batch])
    assert [f.record_count for f in files] == [2, 2, 2]


@pytest.mark.parametrize("location", ["other/place", None])
def test_files_go_where_the_table_says(location: str | None) -> None:
    properties = {} if location is None else {"write.data.path": location}
    [file], _ = write(a_context(properties=properties), [numbers([1])])
    assert file.file_path.startswith(f"{location or 'mem/t/data'}/00003-")


@pytest.mark.parametrize("one_batch", [False, True])
@pytest.mark.parametrize("target", [50_000, 400_000])
def test_files_roll_at_their_size_on_disk(target: int, one_batch: bool) -> None:
    batches = list(noise(200_000, groups=4))
    if one_batch:
        batches = pa.Table.from_batches(batches).combine_chunks().to_batches()
    files, store = write(a_context(target_file_size_in_bytes=target), batches)
    sizes = [f.file_size_in_bytes for f in files]
    assert sum(f.record_count for f in files) == 200_000
    assert len(files) >= 3
    # The writer of the first file cannot know yet how well rows compress.
    assert all(0.85 * target < size < 1.25 * target for size in sizes[1:-1])
    assert sizes[0] > 0.6 * target
    assert len({f.file_path for f in files}) == len(files)
    assert {f.location for f in store.list_files("mem")} == {f.file_path for f in files}


def test_a_tiny_target_size_still_gives_files_of_a_thousand_rows() -> None:
    files, _ = write(a_context(target_file_size_in_bytes=1), noise(3000, groups=2))
    assert [f.record_count for f in files] == [1000, 1000, 1000]


def test_a_file_has_row_groups_of_the_size_asked() -> None:
    """docs/conformance.md 49: the offsets where a file may be split ascend."""
    properties = {"write.parquet.row-group-size-bytes": "120000"}
    batches = list(noise(50_000, groups=4))
    [file], store = write(a_context(properties=properties), batches)
    parquet = footer(store, file)
    assert [parquet.row_group(i).num_rows for i in range(parquet.num_row_groups)] == [10_000] * 5
    assert file.split_offsets == tuple(
        min(c.data_page_offset, c.dictionary_page_offset or c.data_page_offset)
        for c in (parquet.row_group(i).column(0) for i in range(parquet.num_row_groups))
    )
    assert list(file.split_offsets or ()) == sorted(file.split_offsets or ())
    expected = [row for b in batches for row in b.to_pylist()]
    assert rows(store, [file]) == expected


class CountingStore(MemoryFileIO):
    """A store that counts the streams that are open at once."""

    def __init__(self) -> None:
        super().__init__()
        self.open = 0
        self.max_open = 0

    def open_output(self, location: str) -> BinaryIO:
        stream = super().open_output(location)
        self.open += 1
        self.max_open = max(self.max_open, self.open)
        close = stream.close

        def closed() -> None:
            self.open -= not stream.closed
            close()

        stream.close = closed  # type: ignore[method-assign]
        return stream


def test_open_files_are_bounded_and_no_row_is_lost() -> None:
    store = CountingStore()
    context = a_context(spec=spec_of(1, IdentityTransform()), max_open_files=3, buffer_bytes=20_000)
    batches = list(noise(20_000, groups=10))
    files, _ = write(context, batches, store)
    assert store.max_open == 3
    assert store.open == 0
    assert all(row["p"] == f.partition[0] for f in files for row in rows(store, [f]))
    key = lambda row: (row["p"], row["v"])  # noqa: E731
    assert sorted(rows(store, files), key=key) == sorted(
        (row for b in batches for row in b.to_pylist()), key=key
    )


def test_clustered_rows_have_one_file_a_partition_however_small_the_buffer() -> None:
    batches = [numbers([p] * 500, start=p * 500) for p in range(40)]
    context = a_context(spec=spec_of(1, IdentityTransform()), max_open_files=2, buffer_bytes=10_000)
    files, _ = write(context, batches)
    assert [f.partition for f in files] == [(p,) for p in range(40)]


def test_small_batches_are_gathered_to_one_row_group() -> None:
    batches = [numbers([i % 2], start=i) for i in range(300)]
    files, store = write(a_context(spec=spec_of(1, IdentityTransform())), batches)
    assert [footer(store, f).num_row_groups for f in files] == [1, 1]


def test_a_missing_column_or_wrong_type_leaves_no_file() -> None:
    store = MemoryFileIO()
    with pytest.raises(InvalidRequestError, match="no column 'extra'"):
        write(a_context(), [pa.RecordBatch.from_pydict({"extra": [1]})], store)
    assert list(store.list_files("mem")) == []


@pytest.mark.parametrize("spec", [UNPARTITIONED, spec_of(1, IdentityTransform())])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_half_way_removes_open_and_finished_files(
    spec: PartitionSpec, error: type[BaseException]
) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from noise(20_000, groups=3)
        raise error("source")

    store = CountingStore()
    context = a_context(
        spec=spec,
        target_file_size_in_bytes=60_000,
        buffer_bytes=40_000,
        properties={"write.parquet.row-group-size-bytes": "30000"},
    )
    with pytest.raises(error, match="source"):
        write(context, failing(), store)
    assert store.max_open >= 1
    assert store.open == 0
    assert list(store.list_files("mem")) == []


class FullStore(MemoryFileIO):
    """A store that runs full after some bytes, and cannot delete either."""

    def open_output(self, location: str) -> BinaryIO:
        stream = super().open_output(location)
        write = stream.write

        def limited(data: Any) -> int:
            if stream.tell() > 20_000:
                raise StorageError(f"cannot write {location}: no space left")
            return write(data)

        stream.write = limited  # type: ignore[method-assign]
        return stream

    def delete(self, location: str) -> None:
        raise StorageError(f"cannot delete {location}")


def test_the_error_of_the_store_is_the_one_reported() -> None:
    context = a_context(properties={"write.parquet.row-group-size-bytes": "30000"})
    with pytest.raises(StorageError, match="no space left"):
        write(context, noise(50_000, groups=2), FullStore())


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, "ZSTD"),
        ({"write.parquet.compression-codec": "gzip"}, "GZIP"),
        ({"write.parquet.compression-codec": "SNAPPY"}, "SNAPPY"),
        ({"write.parquet.compression-codec": "uncompressed"}, "UNCOMPRESSED"),
        (
            {
                "write.parquet.compression-codec": "zstd",
                "write.parquet.compression-level": "9",
            },
            "ZSTD",
        ),
        (
            {
                "write.parquet.compression-codec": "snappy",
                "write.parquet.compression-level": "9",
            },
            "SNAPPY",
        ),
    ],
)
def test_the_codec_is_the_tables(properties: dict[str, str], expected: str) -> None:
    [file], store = write(a_context(properties=properties), [numbers([1])])
    assert footer(store, file).row_group(0).column(0).compression == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.parquet.compression-codec", "zip"),
        ("write.parquet.row-group-size-bytes", "many"),
        ("write.parquet.page-size-bytes", "0"),
    ],
)
def test_a_property_that_cannot_be_read_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(InvalidRequestError, match=name):
        write(a_context(properties={name: value}), [numbers([1])])


def test_metrics_follow_the_tables_properties() -> None:
    [file], _ = write(
        a_context(properties={"write.metadata.metrics.column.v": "counts"}), [numbers([1, None])]
    )
    assert file.value_counts == {1: 2, 2: 2}
    assert file.null_value_counts == {1: 1, 2: 0}
    assert file.lower_bounds == file.upper_bounds == {1: b"\x01\x00\x00\x00"}


def test_batches_may_differ_in_their_schemas() -> None:
    other = pa.RecordBatch.from_pydict({"v": pa.array([9], pa.int32())})
    [file], store = write(a_context(), [numbers([1]), other, numbers([2], start=5)])
    assert rows(store, [file]) == [{"p": 1, "v": 0}, {"p": None, "v": 9}, {"p": 2, "v": 5}]


@pytest.fixture
def threads_of_few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_files, "_BYTES_PER_THREAD", 900)
    monkeypatch.setattr(pa, "cpu_count", lambda: 3)


@pytest.mark.usefixtures("threads_of_few_bytes")
def test_threads_write_files_in_the_order_of_the_rows() -> None:
    store = MemoryFileIO()
    batches = [numbers([1] * n, start=100 * i) for i, n in enumerate((100, 1, 0, 100, 30))]
    files = write_in_threads(a_context(), batches, store)
    assert [f.record_count for f in files] == [77, 77, 77]
    assert len({f.file_path for f in files}) == 3
    assert rows(store, files) == [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.usefixtures("threads_of_few_bytes")
def test_few_rows_streams_and_partitions_have_one_thread() -> None:
    batches = [numbers([1, 2] * 200)]
    assert len(write_in_threads(a_context(), iter(batches), MemoryFileIO())) == 1
    assert len(write_in_threads(a_context(), [batches[0].slice(0, 100)], MemoryFileIO())) == 1
    by_p = a_context(spec=spec_of(1, IdentityTransform()))
    assert len(write_in_threads(by_p, batches, MemoryFileIO())) == 2


@pytest.mark.usefixtures("threads_of_few_bytes")
@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_a_failure_in_one_thread_leaves_no_file(wrong: int) -> None:
    batches = [numbers([1] * 100), numbers([2] * 100), numbers([3] * 100)]
    batches[wrong] = pa.RecordBatch.from_pydict({"p": ["text"] * 100, "v": [1] * 100})
    store = MemoryFileIO()
    with pytest.raises(InvalidRequestError, match="column 'p' is string in the rows"):
        write_in_threads(a_context(), batches, store)
    assert list(store.list_files("mem")) == []


def test_partitions_by_day_before_1970() -> None:
    schema = Schema(fields=(a_field(1, "ts", TimestampType()),))
    batch = pa.RecordBatch.from_pydict({"ts": pa.array([-1, 0], pa.timestamp("us"))})
    files, _ = write(a_context(schema, spec_of(1, DayTransform(), "ts_day")), [batch])
    assert [(f.partition, f.file_path.split("/")[3]) for f in files] == [
        ((-1,), "ts_day=1969-12-31"),
        ((0,), "ts_day=1970-01-01"),
    ]


def test_a_context_pickles() -> None:
    context = a_context(properties={"write.parquet.compression-codec": "gzip"})
    assert pickle.loads(pickle.dumps(context)) == context


def test_formats_that_are_not_written_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match="not puffin"):
        write(a_context(file_format="puffin"), [numbers([1])])


def test_line_64_a_spec_with_an_unknown_transform_is_not_written_with() -> None:
    with pytest.raises(InvalidRequestError, match="zorder"):
        a_context(spec=spec_of(1, UnknownTransform("zorder")))
