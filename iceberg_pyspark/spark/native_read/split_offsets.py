"""The offsets of row groups, at which Spark's tasks may begin to read a Parquet file.

Spark's reader assigns a row group to the split that has the group's middle. A split without the
middle of any row group costs a task and the requests for a footer, and returns no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.planning.split_pack import MAX_RANGES_OF_A_FILE
from iceberg_pyspark.spark.native_read.reader_differences import Mask, Numbers
from iceberg_pyspark.spec.manifests import FileFormat

_OFFSETS = pa.list_(pa.int64())


class SplitOffsets:
    """The split offsets of the planned files of a scan, by path."""

    def __init__(self, entries: Iterable[pa.Table]) -> None:
        """Each table of `entries` is as in `spec/entry_columns.py`."""
        tables = list(entries)
        self._paths = _column(tables, "file_path", pa.string())
        self._offsets = _column(tables, "split_offsets", _OFFSETS)

    def of(self, paths: Sequence[str], sizes: pa.Array, file_format: FileFormat) -> pa.Array:
        """Return the usable offsets of each file, null for a file without any.

        Offsets are usable if the file is a Parquet file, and if they ascend and are within the
        file, as in `planning/split_pack.py`. `sizes` are in bytes.
        """
        if not paths or file_format != "parquet":
            return pa.nulls(len(paths), _OFFSETS)
        rows = pc.index_in(pa.array(paths, pa.string()), value_set=self._paths)
        offsets = self._offsets.take(rows).combine_chunks()
        usable = _are_usable(offsets, sizes.to_numpy())
        return offsets.take(pa.array(np.arange(len(paths)), mask=~usable))


def _column(tables: Sequence[pa.Table], name: str, type_: pa.DataType) -> pa.ChunkedArray:
    # Avro, Parquet and a catalog's server give lists with different names of their elements.
    chunks = [chunk for table in tables for chunk in table[name].cast(type_).chunks]
    return pa.chunked_array(chunks, type_)


def _are_usable(offsets: pa.ListArray, sizes: Numbers) -> Mask:
    counts = offsets.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    row = np.repeat(np.arange(len(sizes)), counts)
    # A missing offset becomes -1, which is outside of every file.
    begins = offsets.flatten().fill_null(-1).to_numpy(zero_copy_only=False)
    usable: Mask = (counts > 0) & (counts <= MAX_RANGES_OF_A_FILE)
    usable[row[(begins < 0) | (begins >= sizes[row])]] = False
    usable[row[1:][(begins[1:] <= begins[:-1]) & (row[1:] == row[:-1])]] = False
    return usable
