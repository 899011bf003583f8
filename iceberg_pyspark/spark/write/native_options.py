"""Converts a table's properties to settings of Spark's own Parquet writer.

All settings are set explicitly for this write, whatever the session or Hadoop's configuration has.
"""

from __future__ import annotations

from collections.abc import Mapping

from iceberg_pyspark.arrow.formats.parquet_writer import ParquetOptions, sets_columns_apart
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_properties import (
    NATIVE_WRITER,
    PARQUET_DICTIONARY_SIZE,
    PARQUET_PAGE_SIZE,
    PARQUET_ROW_GROUP_SIZE,
)
from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    FloatType,
    IntegerType,
    StringType,
    walk_fields,
)

# Spark's names for the codecs of `arrow/formats/parquet_writer.py`; Spark has no brotli codec.
_CODECS = {"zstd": "zstd", "gzip": "gzip", "snappy": "snappy", "lz4": "lz4_raw", "none": "none"}
_ZSTD_LEVEL = 3
_GZIP_LEVELS = {
    1: "BEST_SPEED",
    2: "TWO",
    3: "THREE",
    4: "FOUR",
    5: "FIVE",
    6: "SIX",
    7: "SEVEN",
    8: "EIGHT",
    9: "BEST_COMPRESSION",
}
_OPTIONS = {
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.output.basename": "part",
    "parquet.summary.metadata.level": "NONE",
    "parquet.enable.dictionary": "true",
    "parquet.page.write-checksum.enabled": "true",
    "parquet.column.statistics.enabled": "true",
    "parquet.statistics.truncate.length": str(2**31 - 1),
}
_SETTINGS = {
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}
_FEWEST_ROWS = 1000
_SHRINKS_BY = 3


def parquet_options(context: WriteContext) -> Mapping[str, str] | None:
    """Return the options of Hadoop and of the format, or None if another writer must be used."""
    properties = context.properties
    if (
        context.file_format != "parquet"
        or sets_columns_apart(properties)
        or not NATIVE_WRITER.of(properties)
    ):
        return None
    parquet = ParquetOptions.of(properties)
    codec = _CODECS.get(parquet.codec)
    options = {
        **_OPTIONS,
        "parquet.block.size": str(PARQUET_ROW_GROUP_SIZE.of(properties)),
        "parquet.page.size": str(PARQUET_PAGE_SIZE.of(properties)),
        "parquet.dictionary.page.size": str(PARQUET_DICTIONARY_SIZE.of(properties)),
        "parquet.page.row.count.limit": str(parquet.page_rows),
        "parquet.writer.version": "PARQUET_1_0" if parquet.page_version == "1.0" else "PARQUET_2_0",
        "maxRecordsPerFile": str(max_rows_per_file(context)),
    }
    if codec == "zstd":
        options["parquet.compression.codec.zstd.level"] = str(parquet.level or _ZSTD_LEVEL)
    if codec == "gzip":
        level = _GZIP_LEVELS.get(parquet.level or 0)
        if level is None:
            return None
        options["zlib.compress.level"] = level
    return None if codec is None else {**options, "compression": codec}


def session_settings(open_files: int) -> Mapping[str, str]:
    """Return the session settings; with 0 `open_files`, Spark first sorts the rows by partition."""
    return {**_SETTINGS, "spark.sql.maxConcurrentOutputFileWriters": str(open_files)}


def max_rows_per_file(context: WriteContext) -> int:
    """Return the row count of a file of about the target size, for a writer that counts rows.

    The count is based on the bytes per row of the table's files. If the table has no rows, it is
    based on a third of the width of the columns, with 20 bytes for a string.
    """
    width = context.bytes_per_row
    if width is None:
        width = _width(context.schema) / _SHRINKS_BY
    return max(int(context.target_file_size_in_bytes / max(width, 0.01)), _FEWEST_ROWS)


def _width(schema: Schema) -> int:
    total = 0
    for f in walk_fields(schema.as_struct):
        match f.type:
            case BooleanType():
                total += 1
            case IntegerType() | FloatType() | DateType():
                total += 4
            case StringType() | BinaryType():
                total += 20
            case DecimalType(precision=precision):
                total += 4 if precision <= 9 else 8 if precision <= 18 else 16
            case _:
                total += 8
    return total
