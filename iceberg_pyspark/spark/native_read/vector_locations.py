"""Deletion vectors that executors read: their locations, and their manifest entries.

If a scan has few deletion vectors, the driver reads and broadcasts them
(`spark/native_read/position_bitmaps.py`), which saves requests of executors to the store. With many
deletion vectors the driver would need seconds before the query starts, and much memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from iceberg_pyspark.arrow.read.position_deletes import DeletionVector, deletion_vector_of
from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spark.bridge.call_arguments import VectorPlaces
from iceberg_pyspark.spark.storage.hadoop_options import store_digest
from iceberg_pyspark.storage.files.cache import is_written_once
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.restricted_io import check_read

MAX_DRIVER_BYTES = 2 * 1024 * 1024
"""Executors read a scan's deletion vectors if they exceed this size.

Measured on two cores, 64 files on a local disk: the first query takes as long either way with
2 MiB, 4.4 s against 2.7 s with 8 MiB and 7.5 s against 3.7 s with 64 MiB.
"""

_MAX_BYTES = 2**31 - 1
"""The greatest length of a vector: its blob has the length as a signed 32-bit integer."""


def large_vectors(
    tasks: Sequence[ScanTask], table: str, is_reached: Callable[[str], bool]
) -> dict[str, DeletionVector]:
    """Return the deletion vectors by data file path, if they are too large for the driver.

    Vectors in files that executors cannot reach, according to `is_reached`, are left out.
    """
    of_tasks = ((t.file_path, deletion_vector_of(t, table)) for t in tasks)
    vectors = {path: vector for path, vector in of_tasks if vector is not None}
    if sum(v.content_size_in_bytes for v in vectors.values()) <= MAX_DRIVER_BYTES:
        return {}
    return {path: v for path, v in vectors.items() if is_reached(v.file_path)}


def vector_places(
    io: FileIO,
    table: str,
    vectors: Sequence[DeletionVector | None],
    location_of: Callable[[str], str],
    options: Mapping[str, str],
) -> VectorPlaces:
    """Return what executors must know about the vectors of data files, in the order of the files.

    `location_of` returns the location by which the JVM opens a file, with Hadoop's `options`. Raise
    `LocationRefusedError` for a file that the table may not read.
    """
    numbers: dict[str, int] = {}
    for vector in vectors:
        if vector is None:
            continue
        _check(table, vector)
        if vector.file_path not in numbers:
            check_read(io, vector.file_path)
            numbers[vector.file_path] = len(numbers)
    locations = [location_of(path) for path in numbers]
    return VectorPlaces(
        table=table,
        store=store_digest(options),
        options=options,
        locations=locations,
        lasting=[is_written_once(path.rpartition("/")[2]) for path in numbers],
        places=[0 if v is None else numbers[v.file_path] for v in vectors],
        offsets=[0 if v is None else v.content_offset for v in vectors],
        sizes=[0 if v is None else v.content_size_in_bytes for v in vectors],
        cardinalities=[0 if v is None else v.cardinality for v in vectors],
    )


def _check(table: str, vector: DeletionVector) -> None:
    size, offset = vector.content_size_in_bytes, vector.content_offset
    if offset < 0 or not 0 < size <= _MAX_BYTES:
        raise InvalidMetadataError(
            f"table {table}: deletion vector at {offset} of {vector.file_path}: "
            f"no file has a vector of {size} bytes there"
        )
