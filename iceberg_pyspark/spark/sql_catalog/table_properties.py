"""What Spark shows of a table besides its columns and partitioning: properties, sort order.

Names and forms are those that Iceberg's own catalog shows.
"""

from __future__ import annotations

from iceberg_pyspark.spec.display import transform_text
from iceberg_pyspark.spec.properties import DATA_FORMAT
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import SortField
from iceberg_pyspark.spec.table_metadata import TableMetadata


def shown_properties(metadata: TableMetadata) -> dict[str, str]:
    """The table properties, and facts about the table under reserved names."""
    current = metadata.current_snapshot_id
    shown = {
        **metadata.properties,
        "provider": "iceberg",
        "format": "iceberg/" + metadata.properties.get(DATA_FORMAT.name, DATA_FORMAT.default),
        "format-version": str(metadata.format_version),
        "location": metadata.location,
        "current-snapshot-id": "none" if current is None else str(current),
        "table_type": "EXTERNAL",
    }
    schema = metadata.current_schema
    if metadata.default_sort_order.fields:
        terms = [_sort_term(f, schema) for f in metadata.default_sort_order.fields]
        shown["sort-order"] = ", ".join(terms)
    if schema.identifier_field_ids:
        names = [schema.name_by_id[i] for i in schema.identifier_field_ids]
        shown["identifier-fields"] = f"[{','.join(names)}]"
    return shown


def _sort_term(f: SortField, schema: Schema) -> str:
    name = schema.name_by_id.get(f.source_id, str(f.source_id))
    term = transform_text(f.transform, name)
    return f"{term} {f.direction.upper()} {f.null_order.replace('-', ' ').upper()}"
