"""Which files Spark's readers would not read right, by what their entries say.

Spark finds columns of Parquet files by field id and fails where a file has none. Whoever writes for
Iceberg notes where the row groups of a file begin; files that others wrote, added as they are, have
entries without that, and only their footers tell. Of ORC files see
`spark/native_read/misread_orc.py`.

Spark cuts a file by the size that it is told, in memory, and leaves out what lies beyond: a size
that is too large takes all memory, and one that is too small loses rows of Parquet files. Of ORC
files the file system is asked, and sizes that cannot be are kept out of plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.formats.file_fields import has_field_ids
from iceberg_pyspark.arrow.formats.open_data_file import open_data_file
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.storage.decoded_cache import DecodedCache
from iceberg_pyspark.storage.file_io import FileIO

_LEAST_BYTES = 12
"""Of Parquet: magic bytes at both ends and the length of a footer."""
_MOST_BYTES = 2**42
_FOOTERS_AT_ONCE = 16
_ANSWER_BYTES = 100
_KNOWN: DecodedCache[bool] = DecodedCache(100_000 * _ANSWER_BYTES, lambda _: _ANSWER_BYTES)


def misread_files(io: FileIO, entries: pa.Table) -> frozenset[str]:
    """The locations of those files among data entries, columns of `spec/entry_columns.py`."""
    of_format = entries["file_format"]
    wrong = pc.or_(
        pc.and_(pc.equal(of_format, "parquet"), pc.invert(_may_be_true(entries))),
        pc.and_(pc.equal(of_format, "orc"), pc.invert(_may_be(entries["file_size_in_bytes"]))),
    )
    return _without_ids(io, entries) | frozenset(entries["file_path"].filter(wrong).to_pylist())


def _may_be_true(entries: pa.Table) -> pa.ChunkedArray:
    """Whether a file may be as large as its entry says: its row groups begin before its end."""
    size = entries["file_size_in_bytes"]
    lists = entries["split_offsets"].combine_chunks()
    parents = pc.list_parent_indices(lists)
    beyond = pc.greater_equal(lists.flatten(), size.combine_chunks().take(parents))
    outside = np.zeros(len(lists), np.bool_)
    outside[parents.filter(pc.fill_null(beyond, False)).to_numpy()] = True
    return pc.and_not(_may_be(size), pa.chunked_array([pa.array(outside)]))


def _may_be(size: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.and_(pc.greater(size, _LEAST_BYTES), pc.less_equal(size, _MOST_BYTES))


def _without_ids(io: FileIO, entries: pa.Table) -> frozenset[str]:
    offsets = pc.fill_null(pc.list_value_length(entries["split_offsets"]), 0)
    is_unsure = pc.and_(pc.equal(entries["file_format"], "parquet"), pc.equal(offsets, 0))
    unsure: Sequence[str] = entries["file_path"].filter(is_unsure).to_pylist()
    if not unsure:
        return frozenset()
    with ThreadPoolExecutor(min(_FOOTERS_AT_ONCE, len(unsure))) as pool:
        lacks = pool.map(partial(_lacks_ids, io), unsure)
        return frozenset(path for path, without in zip(unsure, lacks, strict=True) if without)


def _lacks_ids(io: FileIO, path: str) -> bool:
    def read() -> bool:
        with open_data_file(io, path, "parquet") as file:
            return not has_field_ids(file.schema)

    try:
        return _KNOWN.get_or_read(io, path, read)
    except (IcebergError, pa.ArrowException, OSError):
        # whoever reads the file says what is wrong with it
        return False
