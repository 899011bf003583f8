"""New data files of a table: how they are written, and Arrow rows written so.

Arrow rows are written by this process; Spark's tasks each write theirs by the same context.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import TypeAlias, cast

import pyarrow as pa

from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.commits.compatibility import check_may_change
from iceberg_pyspark.spec.manifests import DataFile, FileFormat
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.properties import (
    DATA_FORMAT,
    DELETE_FORMAT,
    TARGET_FILE_SIZE,
    check_commit_properties,
)
from iceberg_pyspark.spec.property_types import ChoiceProperty
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.file_io import FileIO

Rows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader

_LEAST_ROWS = 10_000


def write_context_of(
    table: str,
    metadata: TableMetadata,
    *,
    write_id: str,
    spec: PartitionSpec | None = None,
    overrides: Mapping[str, str] | None = None,
    case_sensitive: bool = True,
) -> WriteContext:
    """How to write new data files; `spec` None is the table's default.

    `overrides` are table properties for this write alone.
    Raises `InvalidRequestError` for a property that the commit of the files could not work with.
    """
    check_may_change(metadata)
    properties = {**metadata.properties, **(overrides or {})}
    check_commit_properties(properties)
    return WriteContext(
        table=table,
        table_location=metadata.location,
        schema=metadata.current_schema,
        schemas=metadata.schemas_newest_first[1:],
        spec=metadata.default_spec if spec is None else spec,
        write_id=write_id,
        file_format=data_format(properties),
        target_file_size_in_bytes=TARGET_FILE_SIZE.of(properties),
        bytes_per_row=_bytes_per_row(metadata),
        case_sensitive=case_sensitive,
        properties=properties,
    )


def _bytes_per_row(metadata: TableMetadata) -> float | None:
    """None where the table has too few rows to tell."""
    snapshot = metadata.current_snapshot
    if snapshot is None:
        return None
    rows, size = snapshot.number("total-records"), snapshot.number("total-files-size")
    if rows is None or size is None or rows < _LEAST_ROWS:
        return None
    return size / rows


def data_format(properties: Mapping[str, str]) -> FileFormat:
    """The format of new data files."""
    return _format(properties, DATA_FORMAT)


def delete_format(properties: Mapping[str, str]) -> FileFormat:
    """The format of new delete files that are no vectors: that of data files unless one is said."""
    format_property = DELETE_FORMAT if DELETE_FORMAT.name in properties else DATA_FORMAT
    return _format(properties, format_property)


def _format(properties: Mapping[str, str], prop: ChoiceProperty) -> FileFormat:
    return cast("FileFormat", prop.of(properties))


def write_rows(
    identifier: TableIdentifier, metadata: TableMetadata, io: FileIO, rows: Rows
) -> tuple[str, list[DataFile]]:
    """Write rows by the table's current schema and spec; returns the write id and the files."""
    write_id = str(uuid.uuid4())
    context = write_context_of(str(identifier), metadata, write_id=write_id)
    return write_id, write_data_files(context, _batches(rows), io, partition_id=0, task_id=0)


def _batches(rows: Rows) -> Iterable[pa.RecordBatch]:
    if isinstance(rows, pa.Table):
        return rows.to_batches()  # type: ignore[no-any-return]
    return [rows] if isinstance(rows, pa.RecordBatch) else rows
