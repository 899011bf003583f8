"""The write context of a table: what its properties and a write's options say about new files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.spec.manifests import FileFormat
from iceberg_pyspark.spec.properties import (
    DATA_FORMAT,
    DELETE_FORMAT,
    TARGET_FILE_SIZE,
    check_commit_properties,
)
from iceberg_pyspark.spec.property_types import ChoiceProperty
from iceberg_pyspark.spec.table_metadata import TableMetadata

_TELLING_ROWS = 10_000


def write_context_of(
    table: str,
    metadata: TableMetadata,
    *,
    write_id: str,
    overrides: Mapping[str, str] | None = None,
    case_sensitive: bool = True,
) -> WriteContext:
    """How to write new data files; `overrides` are table properties for this write alone.

    Raises `InvalidRequestError` for a property that the commit of the files could not work with.
    """
    properties = {**metadata.properties, **(overrides or {})}
    check_commit_properties(properties)
    return WriteContext(
        table=table,
        table_location=metadata.location,
        schema=metadata.current_schema,
        schemas=metadata.schemas_newest_first[1:],
        spec=metadata.default_spec,
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
    if rows is None or size is None or rows < _TELLING_ROWS:
        return None
    return size / rows


def data_format(properties: Mapping[str, str]) -> FileFormat:
    """The format of new data files."""
    return _format(properties, DATA_FORMAT)


def delete_format(properties: Mapping[str, str]) -> FileFormat:
    """The format of new delete files that are no vectors: that of data files unless one is said."""
    chosen = DELETE_FORMAT if DELETE_FORMAT.name in properties else DATA_FORMAT
    return _format(properties, chosen)


def _format(properties: Mapping[str, str], prop: ChoiceProperty) -> FileFormat:
    return cast("FileFormat", prop.of(properties))
