"""The write context of a table: what its properties and a write's options say about new files."""

from __future__ import annotations

from collections.abc import Mapping

from iceberg_pyspark.arrow.write_context import DEFAULT_TARGET_FILE_SIZE, WriteContext
from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spec.properties import int_property
from iceberg_pyspark.spec.table_metadata import TableMetadata

_TARGET_FILE_SIZE = "write.target-file-size-bytes"
_FORMAT = "write.format.default"


def write_context_of(
    table: str,
    metadata: TableMetadata,
    *,
    write_id: str,
    overrides: Mapping[str, str] | None = None,
    case_sensitive: bool = True,
) -> WriteContext:
    """How to write new data files; `overrides` are table properties for this write alone."""
    properties = {**metadata.properties, **(overrides or {})}
    file_format = properties.get(_FORMAT, "parquet").lower()
    if file_format != "parquet":
        raise UnsupportedFeatureError(
            f"table {table}: data files are written as parquet only, not {file_format}; set "
            f"{_FORMAT} to parquet or pass the option write-format=parquet"
        )
    return WriteContext(
        table=table,
        table_location=metadata.location,
        schema=metadata.current_schema,
        schemas=metadata.schemas_newest_first[1:],
        spec=metadata.default_spec,
        write_id=write_id,
        format_version=metadata.format_version,
        target_file_size_in_bytes=int_property(
            properties, _TARGET_FILE_SIZE, DEFAULT_TARGET_FILE_SIZE
        ),
        case_sensitive=case_sensitive,
        properties=properties,
    )
