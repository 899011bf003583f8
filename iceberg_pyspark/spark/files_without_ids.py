"""Which Parquet files Spark's reader cannot read because they have no field ids.

Spark finds columns by field id and fails where a file has none. Whoever writes for Iceberg notes
where the row groups of a file begin; files that others wrote, added as they are, have entries
without that, and only their footers tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.file_fields import has_field_ids
from iceberg_pyspark.arrow.open_data_file import open_data_file
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.storage.decoded_cache import DecodedCache
from iceberg_pyspark.storage.file_io import FileIO

_FOOTERS_AT_ONCE = 16
_ANSWER_BYTES = 100
_KNOWN: DecodedCache[bool] = DecodedCache(100_000 * _ANSWER_BYTES, lambda _: _ANSWER_BYTES)


def files_without_ids(io: FileIO, entries: pa.Table) -> frozenset[str]:
    """The locations of those data files, of the columns of `spec/entry_columns.py`."""
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
