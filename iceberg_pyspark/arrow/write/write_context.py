"""Holds the context of write tasks, which is fixed on the driver before the first task runs.

The context is plain data that is small when pickled. `planning/scan_tasks.py` is the counterpart
for reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from iceberg_pyspark.spec.manifests import FileFormat
from iceberg_pyspark.spec.partitioning import PartitionSpec, check_writable
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import UNSORTED
from iceberg_pyspark.spec.table_properties import TARGET_FILE_SIZE


@dataclass(frozen=True, kw_only=True)
class WriteContext:
    """The context of one write: the table's schema and spec, and where and how files are written.

    `schemas` are the table's other schemas, which give partition sources their type. `properties`
    are the table's properties, overridden by the options of the write. `write_id` is in every file
    name. Each task keeps at most `max_open_files` files open and buffers about `buffer_bytes` of
    rows. `bytes_per_row` is the size of a row on disk according to the table's newest snapshot, or
    None if its summary has no sizes. `sort_order_id` is the sort order of the rows.
    """

    table: str
    table_location: str
    schema: Schema
    spec: PartitionSpec
    write_id: str
    schemas: tuple[Schema, ...] = ()
    sort_order_id: int = UNSORTED.order_id
    file_format: FileFormat = "parquet"
    target_file_size_in_bytes: int = TARGET_FILE_SIZE.default
    max_open_files: int = 100
    buffer_bytes: int = 100_663_296
    bytes_per_row: float | None = None
    case_sensitive: bool = True
    properties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_writable(self.spec)
