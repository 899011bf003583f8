"""Writes the rows of a DataFrame to data files with Spark's own Parquet writer.

If its files are equivalent to those of `spark/write/file_job.py`, no rows need to go through
Python. All settings are set explicitly for this write, whatever the session or Hadoop's
configuration has.

On a local file system Spark writes to a temporary folder beside the table's files, from which the
files are moved. In an object store tasks write the files directly to their final names, because a
rename there copies the file, and an incomplete file is invisible. The JVM names the files
(`IcebergPyDirectNames`) in the same way as `formats/locations.py`.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.arrow.formats.parquet_writer import ParquetOptions, sets_columns_apart
from iceberg_pyspark.arrow.write.imported_files import written_file
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.changes.outcomes import NeverSent
from iceberg_pyspark.formats.locations import LocationProvider, data_file_name, location_provider
from iceberg_pyspark.spark.bridge.call_arguments import DirectFiles, WrittenColumn
from iceberg_pyspark.spark.bridge.features import STORE_WRITE
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.rows.spark_types import to_spark_schema
from iceberg_pyspark.spark.storage.jvm_access import NativeStorage, local_location
from iceberg_pyspark.spark.write.distribution import (
    WriteDistribution,
    distribute,
    sort_within_tasks,
)
from iceberg_pyspark.spark.write.native_columns import (
    are_numeric_transforms,
    columns_to_write,
    field_ids,
    partition_columns,
)
from iceberg_pyspark.spec import types as ice
from iceberg_pyspark.spec.encryption import FileKey
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.partitioning import PartitionField, java_url_encode, partition_path
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_properties import (
    NATIVE_WRITER,
    PARQUET_DICTIONARY_SIZE,
    PARQUET_PAGE_SIZE,
    PARQUET_ROW_GROUP_SIZE,
    SHRED_VARIANTS,
)
from iceberg_pyspark.spec.transforms import (
    DayTransform,
    HourTransform,
    MonthTransform,
    VoidTransform,
    YearTransform,
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
from iceberg_pyspark.storage.encryption.encrypted_io import encryption_of
from iceberg_pyspark.storage.files.file_io import FileIO, writing_folder_name
from iceberg_pyspark.storage.files.local import files_below, is_local, move_file, remove_folder
from iceberg_pyspark.storage.objects.object_stores import is_object
from iceberg_pyspark.storage.open_storage import RoutingFileIO
from iceberg_pyspark.storage.restricted_io import check_write, store_behind
from iceberg_pyspark.storage.threaded_map import threaded_map
from iceberg_pyspark.table.commits.written_files import remove_files
from iceberg_pyspark.table.row_level.change_task import FILE, OP, POS

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
    # IcebergPyFieldIds writes them
    "spark.sql.parquet.fieldId.write.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.variant.annotateLogicalType.enabled": "true",
    "spark.sql.variant.inferShreddingSchema": "true",
}
_FIELD_IDS = "iceberg-py.field-ids"
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


def _session_settings(open_files: int, *, shred_variants: bool) -> Mapping[str, str]:
    """Return the session settings; with 0 `open_files`, Spark first sorts the rows by partition."""
    return {
        **_SETTINGS,
        "spark.sql.maxConcurrentOutputFileWriters": str(open_files),
        "spark.sql.variant.writeShredding.enabled": str(shred_variants).lower(),
    }


@dataclass(frozen=True)
class KeysOfNames:
    """The keys that `IcebergPyFileKeys` makes of a write's secret and the names of its files."""

    secret: bytes = field(repr=False)
    key_length: int

    def __call__(self, location: str) -> FileKey:
        """Return the key of a written file."""
        name = location.rpartition("/")[2]

        def derived(use: str, length: int) -> bytes:
            return hmac.digest(self.secret, f"{use} {name}".encode(), "sha256")[:length]

        return FileKey(derived("key", self.key_length), derived("aad", 16))


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


_BY_TIME = {
    YearTransform: "year",
    MonthTransform: "month",
    DayTransform: "day",
    HourTransform: "hour",
}


def reach_store(bridge: Bridge, folder: str, io: FileIO) -> tuple[str, Mapping[str, str]] | None:
    """Return an object store's folder as the JVM addresses it, and the Hadoop options for it.

    Return None if the JVM cannot reach the store; if a package is missing, one log line says which.
    """
    if not is_object(folder):
        return None
    store = store_behind(io)
    if not isinstance(store, RoutingFileIO):
        return None
    storage = NativeStorage(
        bridge.file_system,
        store.object_properties,
        writes=True,
        open_in_tasks=bridge.open_in_tasks,
    )
    location = storage.location(folder)
    return None if location is None else (location, storage.options)


def direct_files(context: WriteContext, locations: LocationProvider, folder: str) -> DirectFiles:
    """Return what tasks need to name files; `folder` is the data folder as the JVM addresses it."""
    spec = context.spec
    fields = () if spec.is_unpartitioned else spec.fields
    return DirectFiles(
        folder=folder,
        write=context.write_id,
        fields=[java_url_encode(f.name) for f in fields],
        kinds=[_kind(f, context.schema) for f in fields],
        hashed=locations.object_storage,
        has_parts=not locations.object_storage or locations.partitioned_paths,
        context=locations.context,
    )


def _kind(field: PartitionField, schema: Schema) -> str:
    """Return how to show a value that `spark/write/native_columns.py` has put into a folder."""
    if isinstance(field.transform, VoidTransform):
        return "void"
    if (kind := _BY_TIME.get(type(field.transform))) is not None:
        return kind
    match schema.field_by_id[field.source_id].type:
        case ice.DateType():
            return "day"
        case ice.TimestampType():
            return "time"
        case ice.TimestamptzType():
            return "utc"
        case ice.StringType():
            return "text"
        case ice.BinaryType():
            return "bytes"
        case _:
            return "plain"


_MAX_BY_THREADS = 500
_FILE = re.compile(r"part-(\d+)-.*\.parquet")


def write_natively(
    bridge: Bridge,
    frame: DataFrame,
    context: WriteContext,
    distribution: WriteDistribution,
    io: FileIO,
    change_format: Any = None,
) -> list[DataFile] | None:
    """Write all rows, or return None if Spark's writer would not write equivalent files.

    With a `change_format` (`Writes.change_format`), the frame also has the columns of `ChangeTask`.
    """
    locations = location_provider(context.table_location, context.properties)
    data = locations.data_location
    # A JVM that was started without a locale supports only ASCII file names.
    if not data.isascii():
        return None
    check_write(io, data)
    options = parquet_options(context)
    of_changes = () if change_format is None else (OP, FILE, POS)
    columns = columns_to_write(
        [f for f in frame.schema.fields if f.name not in of_changes], context.schema
    )
    parts = partition_columns(bridge, context.schema, context.spec)
    if options is None or columns is None or parts is None:
        return None
    options = {**options, _FIELD_IDS: field_ids(context.schema)}
    encryption = encryption_of(io)
    store = None
    if not is_local(data):
        if encryption is not None:
            return None
        store = reach_store(bridge, data, io) if bridge.has(STORE_WRITE) else None
        if store is None:
            return None
    columns += [WrittenColumn(source=name, type=None, name=name) for name in of_changes]
    rows = bridge.writes.written_columns(frame, columns)
    if parts and distribution.mode == "hash" and are_numeric_transforms(context.spec):
        # Computed once: an extra number costs less in a shuffle than computing it again.
        rows = distribute(bridge, rows.select("*", *parts.values()), distribution, list(parts))
    else:
        rows = distribute(bridge, rows, distribution)
        rows = rows.select("*", *parts.values()) if parts else rows
    rows = sort_within_tasks(bridge, rows, distribution, list(parts))
    # Shuffled rows have no order to keep. Sorted by partition they are written in half the time
    # that many open files take.
    keeps_order = distribution.mode == "none" and not distribution.sorts_rows
    job = partial(
        bridge.writes.write_parquet,
        rows,
        columns=to_spark_schema(context.schema),
        job=context.write_id,
        partitioned_by=list(parts),
        settings=_session_settings(
            context.max_open_files if keeps_order else 0,
            shred_variants=SHRED_VARIANTS.of(context.properties),
        ),
        file_format=change_format,
    )
    spark = frame.sparkSession
    if store is None:
        folder = f"{data}/{writing_folder_name()}"
        jvm_folder = local_location(folder, bridge.local_files)
        if jvm_folder is None:
            return None
        keys = None
        if encryption is not None:
            keys = KeysOfNames(secrets.token_bytes(32), encryption.key_length)
            commit = bridge.writes.encrypting_commit(
                context.write_id, jvm_folder, keys.secret, keys.key_length
            )
            options = {**options, "parquet.crypto.factory.class": "IcebergPyFileKeys"}
            job = partial(job, commit=commit)
        job = partial(job, jvm_folder, options=options)
        return _write_and_move(spark, context, folder, io, job, keys)
    folder, store_options = store
    commit = bridge.writes.direct_commit(direct_files(context, locations, folder))
    job = partial(job, folder, options={**options, **store_options}, commit=commit)
    return _write_in_place(
        spark, context, io, job, lambda: [f"{data}/{f}" for f in bridge.writes.direct_files(commit)]
    )


def _write_and_move(
    spark: SparkSession,
    context: WriteContext,
    folder: str,
    io: FileIO,
    job: Callable[[], None],
    keys: KeysOfNames | None,
) -> list[DataFile]:
    """Write below a folder that no other write uses, because a failed write empties its folder."""
    try:
        job()
        locations = [
            f"{folder}/{below}/{name}"
            for below, name in files_below(folder)
            if _FILE.fullmatch(name)
        ]
        files = _describe(spark, context, locations, io, keys)
        return _publish(context, [f for f in files if f.record_count], io)
    finally:
        remove_folder(folder)


def _write_in_place(
    spark: SparkSession,
    context: WriteContext,
    io: FileIO,
    job: Callable[[], None],
    written_locations: Callable[[], list[str]],
) -> list[DataFile]:
    """Write to the final locations; if the job fails, remove the files at `written_locations`."""
    try:
        job()
        locations = written_locations()
        for location in locations:
            check_write(io, location)
        files = _describe(spark, context, locations, io)
    except BaseException:
        remove_files(io, written_locations(), NeverSent())
        raise
    # A job without rows writes an empty file, too.
    remove_files(io, [f.file_path for f in files if not f.record_count], NeverSent())
    return [f for f in files if f.record_count]


def _describe(
    spark: SparkSession,
    context: WriteContext,
    locations: Sequence[str],
    io: FileIO,
    keys: KeysOfNames | None = None,
) -> list[DataFile]:
    """Return the data files of all tasks, from their footers; many footers are read in a job."""
    describe = partial(written_file, context, io, key_of=keys)
    if len(locations) > _MAX_BY_THREADS:
        tasks = min(len(locations) // _MAX_BY_THREADS, spark.sparkContext.defaultParallelism)
        return spark.sparkContext.parallelize(locations, max(tasks, 1)).map(describe).collect()
    return list(threaded_map(describe, locations, str))


def _publish(context: WriteContext, files: Sequence[DataFile], io: FileIO) -> list[DataFile]:
    """Move files to the table's data folder under their final names, and return them."""
    locations = location_provider(context.table_location, context.properties)
    schemas = (context.schema, *context.schemas)
    count_by_task: Counter[int] = Counter()
    published_files: list[DataFile] = []
    try:
        for file in files:
            task = _task_of(file.file_path)
            count_by_task[task] += 1
            path = None
            if not context.spec.is_unpartitioned:
                path = partition_path(context.spec, schemas, file.partition)
            name = data_file_name(
                partition_id=task,
                task_id=task,
                operation_id=context.write_id,
                file_count=count_by_task[task],
                extension=context.file_format,
            )
            location = locations.new_data_location(name, path)
            move_file(file.file_path, location)
            published_files.append(replace(file, file_path=location))
    except BaseException:
        remove_files(io, [f.file_path for f in published_files], NeverSent())
        raise
    return published_files


def _task_of(location: str) -> int:
    name = _FILE.fullmatch(location.rpartition("/")[2])
    assert name is not None, "only such files are described"
    return int(name[1])
