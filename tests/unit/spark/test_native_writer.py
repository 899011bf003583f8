"""Table properties as options for Spark's own Parquet writer."""

from __future__ import annotations

import pytest

from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.write.native_writer import max_rows_per_file, parquet_options
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    BooleanType,
    DecimalType,
    DoubleType,
    IntegerType,
    NestedField,
    StringType,
)

TYPES = (IntegerType(), DoubleType(), StringType(), BooleanType(), DecimalType(20, 2))
SCHEMA = Schema(
    fields=tuple(
        NestedField(field_id=i, name=f"c{i}", type=t) for i, t in enumerate(TYPES, start=1)
    )
)


def context(bytes_per_row: float | None = None, **properties: str) -> WriteContext:
    return WriteContext(
        table="t",
        table_location="/t",
        schema=SCHEMA,
        spec=PartitionSpec(spec_id=0),
        write_id="w",
        target_file_size_in_bytes=1_000_000,
        bytes_per_row=bytes_per_row,
        properties={f"write.parquet.{k.replace('_', '-')}": v for k, v in properties.items()},
    )


def test_codec_level_and_sizes_are_those_of_the_table() -> None:
    options = parquet_options(
        context(
            compression_codec="gzip",
            compression_level="9",
            row_group_size_bytes="1000",
            page_size_bytes="100",
            dict_size_bytes="10",
        )
    )
    assert options is not None
    assert options["compression"] == "gzip"
    assert options["zlib.compress.level"] == "BEST_COMPRESSION"
    assert options["parquet.block.size"] == "1000"
    assert options["parquet.page.size"] == "100"
    assert options["parquet.dictionary.page.size"] == "10"


def test_compression_level_is_always_set() -> None:
    options = parquet_options(context())
    assert options is not None
    assert (options["compression"], options["parquet.compression.codec.zstd.level"]) == (
        "zstd",
        "3",
    )
    other = parquet_options(context(compression_codec="lz4"))
    assert other is not None
    # Spark's lz4 has a framing that other readers do not support.
    assert other["compression"] == "lz4_raw"


@pytest.mark.parametrize("codec", ["brotli", "gzip"])
def test_codec_that_spark_cannot_set_is_left_to_the_arrow_writer(codec: str) -> None:
    assert parquet_options(context(compression_codec=codec, compression_level="11")) is None


def test_wrong_properties_are_refused_as_by_the_other_writer() -> None:
    with pytest.raises(InvalidRequestError, match="'lzx' is none of"):
        parquet_options(context(compression_codec="lzx"))


def test_rows_per_file_go_by_the_tables_own_rows_else_by_a_third_of_their_width() -> None:
    assert max_rows_per_file(context(bytes_per_row=40.0)) == 25_000
    assert max_rows_per_file(context()) == int(1_000_000 / (49 / 3))
    assert max_rows_per_file(context(bytes_per_row=1e9)) == 1000
