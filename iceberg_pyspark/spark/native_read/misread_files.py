"""Finds files that Spark's readers would misread, by their manifest entries.

Spark finds columns of Parquet files by field id, and fails for a file without ids. Iceberg's
writers record split offsets. Files of other writers, added by `add_files`, have no split offsets,
so their footers are read. For ORC files see `spark/native_read/misread_orc.py`. Spark splits a file
by the size in its manifest entry: if the size is too large, the driver runs out of memory. If the
size is too small, the last split reads the rest of the file (`IcebergPySizedSplits`), but a file
whose row groups begin beyond the size is read by Python. For ORC files Spark gets the size from the
file system.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.formats.file_fields import has_field_ids
from iceberg_pyspark.arrow.formats.open_data_file import open_data_file
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.formats.encoding.decoded_cache import DecodedCache
from iceberg_pyspark.storage.files.file_io import FileIO

Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

_MIN_BYTES = 12
"""The size of a Parquet file without rows: magic bytes at both ends and the footer's length."""
_MAX_BYTES = 2**42
_FOOTERS_AT_ONCE = 16
_ENTRY_BYTES = 100
_LACKS_IDS: DecodedCache[bool] = DecodedCache(100_000 * _ENTRY_BYTES, lambda _: _ENTRY_BYTES)


def misread_files(io: FileIO, entries: pa.Table) -> frozenset[str]:
    """Return the locations of misread files; `entries` is as in `spec/entry_columns.py`."""
    of_parquet = pc.equal(entries["file_format"], "parquet").to_numpy()
    of_orc = pc.equal(entries["file_format"], "orc").to_numpy()
    size = entries["file_size_in_bytes"].to_numpy()
    offsets = entries["split_offsets"].combine_chunks()
    counts = offsets.value_lengths().fill_null(0).to_numpy()
    may_be = (size > _MIN_BYTES) & (size <= _MAX_BYTES)
    wrong = (of_parquet & (~may_be | _begins_beyond(size, offsets, counts))) | (of_orc & ~may_be)
    paths = entries["file_path"]
    without_ids = _without_ids(io, _paths_where(paths, of_parquet & (counts == 0)))
    return without_ids | frozenset(_paths_where(paths, wrong))


def _begins_beyond(size: Numbers, offsets: pa.ListArray, counts: Numbers) -> Mask:
    """Return a mask of the files in which a row group begins beyond the file size in the entry."""
    row = np.repeat(np.arange(len(size)), counts)
    begins = offsets.flatten()
    beyond = np.zeros(len(size), np.bool_)
    # A missing offset becomes -1, which is within every size.
    beyond[row[begins.fill_null(-1).to_numpy() >= np.maximum(size[row], 0)]] = True
    return beyond


def _paths_where(paths: pa.ChunkedArray, mask: Mask) -> list[str]:
    texts: list[str] = paths.filter(pa.array(mask)).to_pylist() if mask.any() else []
    return texts


def _without_ids(io: FileIO, unsure: Sequence[str]) -> frozenset[str]:
    if not unsure:
        return frozenset()
    with ThreadPoolExecutor(min(_FOOTERS_AT_ONCE, len(unsure))) as pool:
        lacks = pool.map(partial(_lacks_ids, io), unsure)
        return frozenset(path for path, without in zip(unsure, lacks, strict=True) if without)


def _lacks_ids(io: FileIO, path: str) -> bool:
    def read_footer() -> bool:
        with open_data_file(io, path, "parquet") as file:
            return not has_field_ids(file.schema)

    try:
        return _LACKS_IDS.get_or_read(io, path, read_footer)
    except (IcebergError, pa.ArrowException, OSError):
        # The reader of the file reports what is wrong with it.
        return False
