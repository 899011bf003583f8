"""A loaded table as Spark sees it: columns, partitioning, size, properties, sort order.

The names and values are those of Iceberg's own catalog.
"""

from __future__ import annotations

import msgspec
from pyspark.sql import types as spark_types

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.spark.bridge.protocol.table_messages import PartitionTransform, TableDefinition
from iceberg_pyspark.spark.native_read.filter_conditions import columns_for_skipping
from iceberg_pyspark.spark.native_read.scan_definition import (
    UNKNOWN_TOTAL,
    relation_definition,
    spark_partitioning,
)
from iceberg_pyspark.spark.rows.spark_types import (
    hidden_columns,
    shown_spark_schema,
    to_spark_schema,
)
from iceberg_pyspark.spark.sql_catalog.character_types import with_character_types
from iceberg_pyspark.spark.table_states import TableState
from iceberg_pyspark.spark.write.default_expressions import with_shown_defaults
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import SortField
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import ACCEPT_ANY_SCHEMA, DATA_FORMAT
from iceberg_pyspark.spec.transforms import VoidTransform, transform_text
from iceberg_pyspark.sql_text.names import quoted_name
from iceberg_pyspark.table.change_feed.changelog_range import FORMS, feed_columns
from iceberg_pyspark.table.metadata_tables.lookup import metadata_table
from iceberg_pyspark.table.reading.metadata_aggregates import distinct_counts
from iceberg_pyspark.table.reading.snapshot_selection import SelectedSnapshot, select_snapshot
from iceberg_pyspark.table.reading.whole_files import MIN_CLUSTERED_FILES, has_known_range
from iceberg_pyspark.table.table_storage import table_io


def table_definition(handle: str, catalog: str, state: TableState) -> TableDefinition:
    """Return the definition of a table, or of one of its metadata tables, under a bridge handle."""
    loaded_table, name = state.loaded_table, state.metadata_table
    if name is None:
        selected_snapshot = select_snapshot(loaded_table.metadata, state.selector)
        return definition_of_snapshot(handle, catalog, loaded_table, selected_snapshot)
    if name in FORMS:
        metadata, identifier = loaded_table.metadata, str(loaded_table.identifier)
        described = feed_columns(identifier, metadata, metadata.current_schema)
        columns = Schema(fields=(*metadata.current_schema.fields, *described.fields))
        return TableDefinition(
            handle=handle,
            name=f"{catalog}.{identifier}",
            schema=to_spark_schema(columns).json(),
            size_in_bytes=UNKNOWN_TOTAL,
        )
    rows = metadata_table(loaded_table, table_io(loaded_table), name, selector=state.selector)
    return TableDefinition(
        handle=handle,
        name=f"{catalog}.{rows.name}",
        schema=to_spark_schema(rows.schema).json(),
        metadata_columns=to_spark_schema(rows.hidden).json(),
        properties=_shown_values(loaded_table.metadata),
        partitioning=_partitioning_of_metadata_table(name, loaded_table.metadata),
        size_in_bytes=UNKNOWN_TOTAL if name == "changes" else 2**20,
    )


def definition_of_snapshot(
    handle: str, catalog: str, loaded_table: LoadedTable, selected_snapshot: SelectedSnapshot
) -> TableDefinition:
    """Return the definition of a table at a snapshot."""
    metadata, snapshot = loaded_table.metadata, selected_snapshot.snapshot
    schema = selected_snapshot.schema

    def shown(nanos: bool) -> spark_types.StructType:
        struct = with_shown_defaults(shown_spark_schema(schema, nanos=nanos), schema)
        return with_character_types(struct, schema, metadata.properties)

    definition = relation_definition(
        handle,
        f"{catalog}.{loaded_table.identifier}",
        metadata,
        snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        schema=schema,
        shown=shown,
        size_in_bytes=_total(selected_snapshot, "files-size"),
    )
    return msgspec.structs.replace(
        definition,
        metadata_columns=to_spark_schema(hidden_columns(metadata)).json(),
        properties=_shown_properties(metadata),
        partitioning=spark_partitioning(metadata),
        rows=_total(selected_snapshot, "records") or 0,
        compared_columns=_compared_columns(loaded_table, selected_snapshot),
        has_column_statistics=selected_snapshot.appends is None
        and bool(distinct_counts(metadata, snapshot)),
        accept_any_schema=ACCEPT_ANY_SCHEMA.of(metadata.properties),
    )


_MAX_COMPARED_FILES = 10_000
"""The bounds of a table with more files are not compared before each join."""


def _compared_columns(
    loaded_table: LoadedTable, selected_snapshot: SelectedSnapshot
) -> tuple[str, ...]:
    """Return the columns whose bounds are worth to be compared, for filters at run time.

    Every scan of a table without partitions reads all manifests, unless a server plans it, so this
    needs no further request.
    """
    metadata = loaded_table.metadata
    files = _total(selected_snapshot, "data-files") if selected_snapshot.appends is None else None
    if files is None or not MIN_CLUSTERED_FILES <= files <= _MAX_COMPARED_FILES:
        return ()
    has_partitions = not all(spec.is_unpartitioned for spec in metadata.partition_specs)
    if has_partitions or loaded_table.plan_scan is not None:
        return ()
    others = {f.name for f in columns_for_skipping(metadata)}
    fields = selected_snapshot.schema.fields
    return tuple(f.name for f in fields if has_known_range(f) and f.name not in others)


def _total(selected_snapshot: SelectedSnapshot, of: str) -> int | None:
    """Return a total of the rows or files to read, from snapshot summaries; None if unknown."""
    snapshot, appends = selected_snapshot.snapshot, selected_snapshot.appends
    if appends is None:
        return 0 if snapshot is None else snapshot.number(f"total-{of}")
    added_counts = [s.number(f"added-{of}") for s in appends]
    return None if None in added_counts else sum(n for n in added_counts if n is not None)


def _shown_values(metadata: TableMetadata) -> dict[str, str]:
    """Return the values that Java shows for a table and for its metadata tables."""
    current = metadata.current_snapshot_id
    return {
        "provider": "iceberg",
        "format": "iceberg/" + metadata.properties.get(DATA_FORMAT.name, DATA_FORMAT.default),
        "location": metadata.location,
        "current-snapshot-id": "none" if current is None else str(current),
        "table_type": "EXTERNAL",
    }


def _shown_properties(metadata: TableMetadata) -> dict[str, str]:
    """Return the table properties, and values of its metadata under reserved names."""
    properties = {
        **metadata.properties,
        **_shown_values(metadata),
        "format-version": str(metadata.format_version),
    }
    schema = metadata.current_schema
    if metadata.default_sort_order.fields:
        terms = [_sort_term(f, schema) for f in metadata.default_sort_order.fields]
        properties["sort-order"] = ", ".join(terms)
    if schema.identifier_field_ids:
        names = [schema.name_by_id[i] for i in schema.identifier_field_ids]
        properties["identifier-fields"] = f"[{','.join(names)}]"
    return properties


def _sort_term(f: SortField, schema: Schema) -> str:
    name = schema.name_by_id.get(f.source_id, str(f.source_id))
    term = transform_text(f.transform, name)
    return f"{term} {f.direction.upper()} {f.null_order.replace('-', ' ').upper()}"


def _partitioning_of_metadata_table(
    name: str, metadata: TableMetadata
) -> tuple[PartitionTransform, ...]:
    """Return a metadata table's partitioning; as in Java, only position deletes have one."""
    if name != "position_deletes":
        return ()
    return tuple(
        PartitionTransform(transform="identity", column=quoted_name(("partition", f.name)))
        for f in metadata.default_spec.fields
        if not isinstance(f.transform, VoidTransform)
    )
