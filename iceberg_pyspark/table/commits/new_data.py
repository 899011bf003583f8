"""Describes how new data files of a table are written, and writes Arrow rows.

This process writes Arrow rows; Spark's tasks write their rows with the same context.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import cast

from iceberg_pyspark.arrow.row_sources import Rows, batches_of
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.arrow.write.write_files import write_in_threads
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.changes.compatibility import check_may_change
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.manifests import DataFile, FileFormat
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.property_types import ChoiceProperty
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import (
    DATA_FORMAT,
    DELETE_FORMAT,
    TARGET_FILE_SIZE,
    check_commit_properties,
)
from iceberg_pyspark.storage.encryption.encrypted_io import encryption_of
from iceberg_pyspark.storage.files.file_io import FileIO

_MIN_ROWS = 10_000


def partition_spec(table: str, metadata: TableMetadata, spec_id: int | None) -> PartitionSpec:
    """Return the partition spec to write with, None: the default spec.

    Raise `InvalidRequestError` for an unknown id.
    """
    spec = metadata.default_spec if spec_id is None else metadata.spec_by_id.get(spec_id)
    if spec is None:
        raise InvalidRequestError(
            f"table {table} has no partition spec {spec_id}; its specs are "
            f"{', '.join(map(str, sorted(metadata.spec_by_id)))}"
        )
    return spec


def write_context_of(
    table: str,
    metadata: TableMetadata,
    io: FileIO,
    *,
    write_id: str,
    spec: PartitionSpec | None = None,
    overrides: Mapping[str, str] | None = None,
    case_sensitive: bool = True,
) -> WriteContext:
    """Return the context for writing new data files; `spec` None is the table's default spec.

    `overrides` are table properties for this write only. Raises `InvalidRequestError` for an
    invalid property that the commit of the files will need, and the error of a key management
    service that refuses the keys of an encrypted table.
    """
    check_may_change(metadata)
    properties = {**metadata.properties, **(overrides or {})}
    check_commit_properties(properties)
    encryption = encryption_of(io)
    if encryption is not None:
        encryption.check_service()
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
    """Return the average bytes per row, or None if the table has too few rows for an estimate."""
    snapshot = metadata.current_snapshot
    if snapshot is None:
        return None
    rows, size = snapshot.number("total-records"), snapshot.number("total-files-size")
    if rows is None or size is None or rows < _MIN_ROWS:
        return None
    return size / rows


def data_format(properties: Mapping[str, str]) -> FileFormat:
    """Return the format of new data files."""
    return _format(properties, DATA_FORMAT)


def delete_format(properties: Mapping[str, str]) -> FileFormat:
    """Return the format of new delete files; by default that of data files. Not for vectors."""
    format_property = DELETE_FORMAT if DELETE_FORMAT.name in properties else DATA_FORMAT
    return _format(properties, format_property)


def _format(properties: Mapping[str, str], prop: ChoiceProperty) -> FileFormat:
    return cast("FileFormat", prop.of(properties))


def write_rows(
    identifier: TableIdentifier, metadata: TableMetadata, io: FileIO, rows: Rows
) -> tuple[str, list[DataFile]]:
    """Write rows with the table's current schema and spec; return the write id and the files."""
    write_id = str(uuid.uuid4())
    context = write_context_of(str(identifier), metadata, io, write_id=write_id)
    return write_id, write_in_threads(context, batches_of(rows)[1], io)
