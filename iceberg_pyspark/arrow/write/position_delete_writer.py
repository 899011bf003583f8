"""Writes a position delete file: the deleted rows of one or more data files.

Specification, "Position Delete Files": columns `file_path` and `pos` with reserved ids, sorted by
both. The bounds of `file_path` are exact, so readers can use them to match the file with a single
data file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from iceberg_pyspark.arrow.formats.data_file_formats import ClosedFile
from iceberg_pyspark.arrow.formats.file_writers import file_writers
from iceberg_pyspark.arrow.read.position_deletes import stored_positions
from iceberg_pyspark.spec.manifests import DataFile, FileContent, FileFormat
from iceberg_pyspark.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POS
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_properties import METRICS_DEFAULT
from iceberg_pyspark.storage.files.file_io import FileIO

_SCHEMA = Schema(fields=(DELETE_FILE_PATH, DELETE_FILE_POS))
_ROWS_AT_ONCE = 1_000_000
_METRICS = {METRICS_DEFAULT.name: "full"}
_DELETES, _DATA = "write.delete.", "write."
_FORMATS = ("parquet", "orc", "avro")
_TARGET_SIZE = 67_108_864


def write_position_deletes(
    io: FileIO,
    location: str,
    positions: Mapping[str, BitMap64],
    *,
    spec_id: int,
    partition: tuple[Any, ...],
    file_format: FileFormat = "parquet",
    properties: Mapping[str, str],
) -> DataFile:
    """Write the positions by data file, all of one partition, and return the manifest entry."""
    closed_file = _write(io, location, _row_groups(positions), file_format, properties)
    return DataFile(
        content=FileContent.POSITION_DELETES,
        file_path=location,
        file_format=file_format,
        spec_id=spec_id,
        partition=partition,
        file_size_in_bytes=closed_file.file_size_in_bytes,
        referenced_data_file=next(iter(positions)) if len(positions) == 1 else None,
        key_metadata=closed_file.key_metadata,
        **closed_file.metrics,
    )


def copy_position_deletes(
    io: FileIO,
    source: str,
    target_io: FileIO,
    target: str,
    file_format: FileFormat,
    move: Callable[[str], str],
    properties: Mapping[str, str],
) -> ClosedFile:
    """Copy a position delete file row by row, with other paths of data files.

    The optional column `row` is left out, because readers do not need it.
    """

    def tables() -> Iterator[pa.Table]:
        for paths, positions in stored_positions(io, source, file_format):
            distinct = paths.dictionary_encode()
            new = pa.array([move(p) for p in distinct.dictionary.to_pylist()], pa.string())
            columns = [new.take(distinct.indices), positions]
            yield pa.Table.from_arrays(columns, [DELETE_FILE_PATH.name, DELETE_FILE_POS.name])

    return _write(target_io, target, _together(tables()), file_format, properties)


def _write(
    io: FileIO,
    location: str,
    tables: Iterator[pa.Table],
    file_format: FileFormat,
    properties: Mapping[str, str],
) -> ClosedFile:
    writers = file_writers(
        file_format,
        _SCHEMA,
        {**_without_metrics(delete_properties(properties)), **_METRICS},
        target_file_size_in_bytes=_TARGET_SIZE,
    )
    file = writers.create(io, location)
    try:
        for rows in tables:
            file.write(rows)
    except BaseException:
        file.abort()
        raise
    return file.close()


def _together(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Combine small tables into larger ones; each yielded table becomes a row group."""
    waiting: list[pa.Table] = []
    count = 0
    for table in tables:
        waiting.append(table)
        count += table.num_rows
        if count >= _ROWS_AT_ONCE:
            yield pa.concat_tables(waiting)
            waiting, count = [], 0
    if waiting:
        yield pa.concat_tables(waiting)


def _row_groups(positions: Mapping[str, BitMap64]) -> Iterator[pa.Table]:
    """Yield the positions as sorted tables; data files with few rows share a table."""

    def tables() -> Iterator[pa.Table]:
        for path in sorted(positions, key=str.encode):
            sorted_positions = np.frombuffer(positions[path].to_array(), dtype=np.uint64).astype(
                np.int64
            )
            for start in range(0, len(sorted_positions), _ROWS_AT_ONCE):
                group = sorted_positions[start : start + _ROWS_AT_ONCE]
                yield pa.table(
                    {
                        DELETE_FILE_PATH.name: pa.repeat(pa.scalar(path), len(group)),
                        DELETE_FILE_POS.name: pa.array(group),
                    }
                )

    return _together(tables())


def _without_metrics(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties without metrics modes: a column of the table may be called `pos`."""
    return {k: v for k, v in properties.items() if not k.startswith("write.metadata.metrics.")}


def delete_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the table properties with `write.delete.<format>.*` in place of `write.<format>.*`."""
    of_deletes = {
        _DATA + key.removeprefix(_DELETES): value
        for key, value in properties.items()
        if key.startswith(tuple(f"{_DELETES}{name}." for name in _FORMATS))
    }
    return {**properties, **of_deletes}
