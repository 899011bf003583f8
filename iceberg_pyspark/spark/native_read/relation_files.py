"""The data files of a relation, as columns.

Files without deletes come as they are in the columns of the entries: objects for the files, and
loops over them, took two thirds of Python's time in a plan of 100,000 files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.planning.scan_plan import PlannedFiles, partition_tuples
from iceberg_pyspark.planning.scan_tasks import RowChange, ScanTask
from iceberg_pyspark.planning.split_pack import MAX_RANGES_OF_A_FILE
from iceberg_pyspark.spark.native_read.reader_differences import Mask, Numbers
from iceberg_pyspark.spark.storage.jvm_access import NativeStorage
from iceberg_pyspark.spec.manifests import FileFormat

LOCATION = "location"
"""The column of the locations by which the JVM opens the files."""

SPLIT_OFFSETS = "split_offsets"
_OFFSETS = pa.list_(pa.int64())
_TYPES = {
    LOCATION: pa.string(),
    "file_path": pa.string(),
    "file_size_in_bytes": pa.int64(),
    "record_count": pa.int64(),
    "sequence_number": pa.int64(),
    "first_row_id": pa.int64(),
    "key_metadata": pa.binary(),
}


@dataclass(frozen=True, kw_only=True)
class RelationFiles:
    """Data files of one format."""

    file_format: FileFormat
    table: pa.Table
    """The columns `location`, `spec_id` and, as in `spec/entry_columns.py`, others; the split
    offsets are null for a file that has no usable ones."""

    partitions: Callable[[], Iterable[tuple[int, tuple[Any, ...]]]]
    """Return the id of the partition spec and the partition tuple of each file."""

    changes: Callable[[], Iterable[RowChange | None]]
    """Return the change of each file's rows, in a changelog."""

    @staticmethod
    def of_plan(groups: Sequence[PlannedFiles]) -> RelationFiles:
        """Return planned files; their entries have the column `location`."""
        columns = {name: _column(groups, name, type_) for name, type_ in _TYPES.items()}
        counts = [g.entries.num_rows for g in groups]
        spec_ids = [g.spec.spec_id for g in groups]
        columns["spec_id"] = pa.array(np.repeat(spec_ids, counts), pa.int32())
        file_format = format_of(groups)
        columns[SPLIT_OFFSETS] = usable_offsets(
            _column(groups, SPLIT_OFFSETS, _OFFSETS), columns["file_size_in_bytes"], file_format
        )
        return RelationFiles(
            file_format=file_format,
            table=pa.table(columns),
            partitions=lambda: chain.from_iterable(
                zip(repeat(g.spec.spec_id, n), partition_tuples(g.entries), strict=False)
                for g, n in zip(groups, counts, strict=True)
            ),
            changes=lambda: chain.from_iterable(
                repeat(g.change, n) for g, n in zip(groups, counts, strict=True)
            ),
        )

    @staticmethod
    def of_tasks(
        tasks: Sequence[ScanTask], storage: NativeStorage, split_offsets: SplitOffsets
    ) -> RelationFiles:
        """Return the files of tasks; the JVM can open all of them."""
        paths = [t.file_path for t in tasks]
        file_format = tasks[0].file_format
        values: dict[str, Sequence[object]] = {
            LOCATION: [storage.location(path) for path in paths],
            "file_path": paths,
            "file_size_in_bytes": [t.file_size_in_bytes for t in tasks],
            "record_count": [t.record_count for t in tasks],
            "sequence_number": [t.data_sequence_number for t in tasks],
            "first_row_id": [t.first_row_id for t in tasks],
            "key_metadata": [t.key_metadata for t in tasks],
        }
        columns = {name: pa.array(values[name], type_) for name, type_ in _TYPES.items()}
        columns["spec_id"] = pa.array([t.spec_id for t in tasks], pa.int32())
        offsets = split_offsets.of(columns["file_path"])
        columns[SPLIT_OFFSETS] = usable_offsets(offsets, columns["file_size_in_bytes"], file_format)
        return RelationFiles(
            file_format=file_format,
            table=pa.table(columns),
            partitions=lambda: [(t.spec_id, t.partition) for t in tasks],
            changes=lambda: [t.change for t in tasks],
        )


def format_of(groups: Sequence[PlannedFiles]) -> FileFormat:
    """Return the common format of planned files; Parquet if there are none."""
    formats = (g.entries["file_format"] for g in groups if g.entries.num_rows)
    first: FileFormat = next((f[0].as_py() for f in formats), "parquet")
    return first


def _column(groups: Iterable[PlannedFiles], name: str, type_: pa.DataType) -> pa.Array:
    # Avro, Parquet and a catalog's server give lists with different names of their elements.
    chunks = chain.from_iterable(g.entries[name].cast(type_).chunks for g in groups)
    return pa.chunked_array(list(chunks), type_).combine_chunks()


class SplitOffsets:
    """The split offsets of the planned files of a scan, by path."""

    def __init__(self, groups: Iterable[PlannedFiles]) -> None:
        """The files are read when the offsets are needed first."""
        self._groups = groups

    def of(self, paths: pa.Array) -> pa.Array:
        """Return the offsets of each file."""
        groups = list(self._groups)
        rows = pc.index_in(paths, value_set=_column(groups, "file_path", pa.string()))
        return _column(groups, SPLIT_OFFSETS, _OFFSETS).take(rows)


def usable_offsets(offsets: pa.ListArray, sizes: pa.Array, file_format: FileFormat) -> pa.Array:
    """Return the usable split offsets of each file, null for a file without any.

    Offsets are usable if the file is a Parquet file, and if they ascend and are within the file, as
    in `planning/split_pack.py`. `sizes` are in bytes.
    """
    if file_format != "parquet":
        return pa.nulls(len(offsets), _OFFSETS)
    usable = _are_usable(offsets, sizes.to_numpy())
    if usable.all():
        return offsets
    return offsets.take(pa.array(np.arange(len(offsets)), mask=~usable))


def _are_usable(offsets: pa.ListArray, sizes: Numbers) -> Mask:
    counts = offsets.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    row = np.repeat(np.arange(len(sizes)), counts)
    # A missing offset becomes -1, which is outside of every file.
    begins = offsets.flatten().fill_null(-1).to_numpy(zero_copy_only=False)
    usable: Mask = (counts > 0) & (counts <= MAX_RANGES_OF_A_FILE)
    usable[row[(begins < 0) | (begins >= sizes[row])]] = False
    usable[row[1:][(begins[1:] <= begins[:-1]) & (row[1:] == row[:-1])]] = False
    return usable
