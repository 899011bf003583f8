"""Table properties for single columns take effect in Parquet files."""

from __future__ import annotations

import io as streams

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark.arrow.formats.parquet_writer import WRITES_BLOOM_FILTERS
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.types import BooleanType, ListType, LongType, MapType, StringType
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.scan_tasks import optional, schema_of

SCHEMA = schema_of(
    optional(1, "id", LongType()),
    optional(2, "s", StringType()),
    optional(3, "l", ListType(element_id=4, element_type=LongType())),
    optional(5, "m", MapType(key_id=6, key_type=StringType(), value_id=7, value_type=LongType())),
    optional(8, "b", BooleanType()),
)
PATHS = ("id", "s", "l.list.element", "m.key_value.key", "m.key_value.value", "b")
NAMES = ("id", "s", "l.element", "m.key", "m.value", "b")
ROWS = pa.table(
    {
        "id": pa.array(range(2000), pa.int64()),
        "s": [f"s{i}" for i in range(2000)],
        "l": [[i] for i in range(2000)],
        "m": pa.array([[("k", i)] for i in range(2000)], pa.map_(pa.string(), pa.int64())),
        "b": [True] * 2000,
    }
)


def write(properties: dict[str, str]) -> tuple[DataFile, pq.FileMetaData]:
    store = MemoryFileIO()
    context = WriteContext(
        table="t",
        table_location="mem/t",
        schema=SCHEMA,
        spec=PartitionSpec(spec_id=0),
        write_id="w",
        properties={"write.parquet.compression-codec": "none", **properties},
    )
    [file] = write_data_files(context, ROWS.to_batches(), store, partition_id=0, task_id=0)
    return file, pq.read_metadata(streams.BytesIO(store.read_bytes(file.file_path)))


PLAIN = write({})[0].file_size_in_bytes


@pytest.mark.skipif(not WRITES_BLOOM_FILTERS, reason="this pyarrow writes none")
def test_bloom_filters_have_the_size_asked_for() -> None:
    enabled = "write.parquet.bloom-filter-enabled.column."
    sizes = {}
    for name in NAMES:
        properties = {f"{enabled}{name}": "true", "write.parquet.bloom-filter-max-bytes": "1024"}
        sizes[name] = write(properties)[0].file_size_in_bytes - PLAIN
    # Two values need no filter, and a filter with few values is folded.
    assert sizes.pop("b") == 0
    assert 0 < sizes.pop("m.key") < 100
    assert all(1024 <= size < 1124 for size in sizes.values()), sizes
    by_id = {f"{enabled}id": "true"}
    for more, size in (
        ({}, 4096),
        ({"write.parquet.bloom-filter-ndv.column.id": "100"}, 128),
        ({"write.parquet.bloom-filter-ndv.column.id": "1000"}, 2048),
        (
            {
                "write.parquet.bloom-filter-ndv.column.id": "1000",
                "write.parquet.bloom-filter-fpp.column.id": "0.5",
            },
            512,
        ),
        ({"write.parquet.bloom-filter-ndv.column.id": "9999999999"}, 4096),
    ):
        grown = write({**by_id, **more})[0].file_size_in_bytes - PLAIN
        assert size <= grown < size + 100, more
    for properties in (
        {f"{enabled}id": "false"},
        {f"{enabled}gone": "true"},
        {f"{enabled}l": "true"},
    ):
        assert write(properties)[0].file_size_in_bytes == PLAIN


def test_statistics_and_dictionaries_of_single_columns() -> None:
    for name, path in zip(NAMES, PATHS, strict=True):
        file, footer = write({f"write.parquet.stats-enabled.column.{name}": "false"})
        columns = [footer.row_group(0).column(i) for i in range(len(PATHS))]
        assert [c.path_in_schema for c in columns if not c.is_stats_set] == [path]
        field_id = SCHEMA.id_by_name[name]
        assert field_id not in (file.lower_bounds or {})
        assert field_id not in (file.null_value_counts or {})
        _, footer = write({f"write.parquet.dict-encoding-enabled.column.{name}": "false"})
        columns = [footer.row_group(0).column(i) for i in range(len(PATHS))]
        plain = [c.path_in_schema for c in columns if not c.has_dictionary_page]
        assert set(plain) == {path, "b"}


def test_pages_have_the_rows_and_version_asked_for() -> None:
    small = write({"write.parquet.page-row-limit": "50"})[0].file_size_in_bytes
    assert small > PLAIN + 1000
    other = write({"write.parquet.page-version": "v2"})[0].file_size_in_bytes
    assert other != PLAIN


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.parquet.page-version", "v3"),
        ("write.parquet.page-row-limit", "0"),
        ("write.parquet.bloom-filter-fpp.column.id", "1"),
        ("write.parquet.bloom-filter-ndv.column.id", "0"),
        ("write.parquet.bloom-filter-max-bytes", "0"),
    ],
)
def test_wrong_bloom_filter_property_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(InvalidRequestError, match=name):
        write({"write.parquet.bloom-filter-enabled.column.id": "true", name: value})
