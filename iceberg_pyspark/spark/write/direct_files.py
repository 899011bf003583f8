"""The locations of files in object stores that Spark's own Parquet writer writes.

Tasks write the files directly to their final names, because a rename in an object store copies the
file, and an incomplete file is invisible. The JVM names the files (`IcebergPyDirectNames`) in the
same way as `formats/locations.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.formats.locations import LocationProvider
from iceberg_pyspark.spark.bridge.calls import DirectFiles
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.native_read.storage import NativeStorage
from iceberg_pyspark.spec import types as ice
from iceberg_pyspark.spec.partitioning import PartitionField, java_url_encode
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.transforms import (
    DayTransform,
    HourTransform,
    MonthTransform,
    VoidTransform,
    YearTransform,
)
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.objects.object_stores import is_object
from iceberg_pyspark.storage.open_storage import RoutingFileIO
from iceberg_pyspark.storage.restricted_io import store_behind

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
