"""What a write job is checked against and fixes before any of its tasks runs, on the driver."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping

from pyspark.sql.types import StructType

from iceberg_pyspark.arrow.write.cast_to_table_schema import check_write_schema
from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.properties import storage_properties
from iceberg_pyspark.commits.new_table import new_table_metadata
from iceberg_pyspark.errors import InvalidRequestError, NoSuchTableError
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.spark.data_source.options import (
    WriteOptions,
    parse_table_options,
    parse_write_options,
)
from iceberg_pyspark.spark.data_source.prepared_write import PreparedWrite
from iceberg_pyspark.spark.data_source.table_access import find_table, load_table
from iceberg_pyspark.spark.rows.types import from_spark_schema
from iceberg_pyspark.spec.properties import FORMAT_VERSION
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.sql_text.ddl import parse_partitioning
from iceberg_pyspark.sql_text.on_demand import as_predicate
from iceberg_pyspark.table.changes.commit_files import OverwriteMode
from iceberg_pyspark.table.changes.create_table import new_table_properties
from iceberg_pyspark.table.changes.new_data import write_context_of
from iceberg_pyspark.table.table_storage import table_io


def prepare_write(given: Mapping[str, str], frame: StructType, *, overwrite: bool) -> PreparedWrite:
    """Check the options and the frame's schema, and fix everything the tasks need."""
    table, options = parse_table_options(given), parse_write_options(given)
    catalog, identifier = find_table(table)
    written = from_spark_schema(frame)
    new_table = None
    try:
        loaded = load_table(catalog, identifier, table)
        _check_layout_asked_for(options, loaded.metadata, table.table)
    except NoSuchTableError:
        new_table = _new_metadata(
            catalog, identifier, options, from_spark_schema(frame, all_optional=True)
        )
        loaded = LoadedTable(
            identifier=identifier,
            metadata=new_table,
            metadata_location="",
            config={**storage_properties(catalog.properties), **table.storage_properties},
        )
    metadata = loaded.metadata
    if options.branch is not None and options.branch != MAIN:
        metadata.ref_snapshot(options.branch)
    schema = metadata.current_schema
    check_write_schema(written, schema, table=table.table, case_sensitive=False)
    context = write_context_of(
        table.table,
        metadata,
        write_id=str(uuid.uuid4()),
        overrides=options.write_properties,
        case_sensitive=False,
    )
    return PreparedWrite(
        table=table,
        options=options,
        context=context,
        io=table_io(loaded, catalog),
        overwrite=_overwrite_mode(options, schema) if overwrite else None,
        table_uuid=metadata.table_uuid,
        new_table=new_table,
        sort_order=metadata.default_sort_order,
    )


def _overwrite_mode(options: WriteOptions, schema: Schema) -> OverwriteMode:
    if options.overwrite_filter is not None:
        # bound now: a wrong filter must not wait for the rows to be written
        return bind(as_predicate(options.overwrite_filter), schema, case_sensitive=False)
    return "dynamic" if options.overwrite_mode == "dynamic" else "static"


def _new_metadata(
    catalog: Catalog, identifier: TableIdentifier, options: WriteOptions, written: Schema
) -> TableMetadata:
    return new_table_metadata(
        written,
        parse_partitioning(options.partitioned_by, written),
        None,
        options.location or catalog.default_table_location(identifier),
        new_table_properties(catalog.properties, options.table_properties),
        table_uuid=str(uuid.uuid4()),
        now_ms=time.time_ns() // 1_000_000,
    )


def _check_layout_asked_for(options: WriteOptions, metadata: TableMetadata, table: str) -> None:
    """Options that shape a new table may be given again, but change no table that is there."""
    version = options.table_properties.get(FORMAT_VERSION)
    if version is not None and version != str(metadata.format_version):
        raise InvalidRequestError(
            f"table {table} exists and has format version {metadata.format_version}, not "
            f"{version}; leave the option format-version out"
        )
    if not options.partitioned_by:
        return
    asked = parse_partitioning(options.partitioned_by, metadata.current_schema)
    has = metadata.default_spec
    if [(f.source_ids, str(f.transform)) for f in asked.fields] != [
        (f.source_ids, str(f.transform)) for f in has.fields
    ]:
        shown = ", ".join(f"{f.transform} of {f.name}" for f in has.fields) or "nothing"
        raise InvalidRequestError(
            f"table {table} exists and is partitioned by {shown}, not by "
            f"{', '.join(options.partitioned_by)}; leave the option partitioned-by out"
        )
