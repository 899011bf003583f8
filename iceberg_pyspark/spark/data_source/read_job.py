"""The driver's part of a read: turns options into the schema and reader of a pinned snapshot.

Reports the scans of pinned tables to their catalog, in the background.

A step that plans a pinned table has no catalog, and opening one takes requests to its server. So a
thread opens the catalog and sends the report, after the plan. A report never delays or fails a
read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructField, StructType

from iceberg_pyspark.catalogs.background_calls import BackgroundCalls
from iceberg_pyspark.catalogs.catalog import (
    LoadedTable,
    ReportingCatalog,
    ScanReport,
    TableIdentifier,
    check_same_table,
)
from iceberg_pyspark.errors import NoSuchNamespaceError, NoSuchTableError
from iceberg_pyspark.expressions.json import predicate_from_json
from iceberg_pyspark.expressions.predicates import Filter
from iceberg_pyspark.formats.metadata_files import read_table_metadata
from iceberg_pyspark.spark.data_source.pinned_table import PinnedTable
from iceberg_pyspark.spark.data_source.read_options import (
    ReadOptions,
    TableOptions,
    parse_read_options,
    parse_table_options,
)
from iceberg_pyspark.spark.data_source.reader import IcebergReader
from iceberg_pyspark.spark.data_source.table_access import find_table, load_table, load_table_at
from iceberg_pyspark.spark.rows.nanoseconds import with_shown_nanos, with_stored_nanos
from iceberg_pyspark.spark.rows.spark_types import (
    project_with_hidden_columns,
    refuse_nanos,
    to_spark_schema,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import metadata_from_bytes
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.storage.open_storage import open_storage
from iceberg_pyspark.table.reading.table_scan import TableScan, scan_table
from iceberg_pyspark.table.table_storage import table_io

if TYPE_CHECKING:
    from iceberg_pyspark.spark.data_source.metadata_tables import MetadataTableReadJob
    from iceberg_pyspark.spark.data_source.table_state import StateReadJob


_calls = BackgroundCalls(max_waiting=8)


class LaterReports:
    """A callable that reports the scans of a pinned table; it returns at once and never raises.

    A report is dropped if too many others are not sent yet.
    """

    def __init__(self, table: TableOptions) -> None:
        """`table` has the options that name the table and its catalog."""
        self._table = table

    def __call__(self, scan: ScanReport) -> None:
        """Report a planned scan."""
        _calls.put("a report of a scan", lambda: self._send(scan))

    def _send(self, scan: ScanReport) -> None:
        catalog, identifier = find_table(self._table)
        if isinstance(catalog, ReportingCatalog):
            catalog.report_scan(identifier, scan)

    def __reduce__(self) -> tuple[Any, ...]:
        # tasks plan no scans, and must not get the options of a catalog
        return type(None), ()


@dataclass(frozen=True, kw_only=True)
class ReadJob:
    """A read of a table in its state when the DataFrame was made; made by `open_read_job`."""

    table: TableOptions
    options: ReadOptions
    loaded_table: LoadedTable

    @property
    def pinned_table(self) -> PinnedTable:
        """The table's state for the next step of the read."""
        return PinnedTable.of(self.loaded_table)

    def schema(self) -> StructType:
        """Return the schema of the rows that will be read."""
        return self._shown(self._scan().context.projection)

    def reader(self, schema: StructType) -> IcebergReader:
        """Return a reader; with a user-given schema, a reader of only its columns."""
        self.options.require_batch()
        scan = self._scan()
        if self._shown(scan.context.projection) != schema:
            scan = self._scan_with_hidden_columns(schema)
        pinned = self.options.pinned
        if pinned is not None and pinned.without_whole_files:
            from iceberg_pyspark.table.reading.whole_files import select_files  # noqa: PLC0415

            scan = scan.of_files(frozenset(select_files(scan).partial))
        return IcebergReader(scan, self.options.nanos_as)

    def _shown(self, projection: Schema) -> StructType:
        if self.options.nanos_as == "refused":
            refuse_nanos(projection)
        return to_spark_schema(with_shown_nanos(projection, self.options.nanos_as))

    def scan_of(self, required_schema: StructType) -> TableScan:
        """Return a scan of some columns of `schema()` or of a user-given schema."""
        self.options.require_batch()
        return self.stream_scan_of(required_schema)

    def stream_scan_of(self, required_schema: StructType) -> TableScan:
        """Return a scan whose columns a stream reads."""
        whole = self._scan().context.projection
        fields = [whole.as_struct.field_named(f.name) for f in required_schema.fields]
        if all(
            f is not None and _is_as(f, required)
            for f, required in zip(fields, required_schema.fields, strict=True)
        ):
            projection = Schema(fields=tuple(f for f in fields if f), schema_id=whole.schema_id)
            return self._scan(lambda _: projection)
        return self._scan_with_hidden_columns(required_schema)

    def _scan_with_hidden_columns(self, required_schema: StructType) -> TableScan:
        """Return a scan of columns of the table, including hidden columns."""
        metadata = self.loaded_table.metadata

        def projection(schema: Schema) -> Schema:
            shown = with_shown_nanos(schema, self.options.nanos_as)
            projected = project_with_hidden_columns(shown, required_schema, metadata)
            return with_stored_nanos(projected, schema)

        return self._scan(projection)

    def _scan(self, projection: Callable[[Schema], Schema] | None = None) -> TableScan:
        pinned = self.options.pinned
        scan = scan_table(
            self.table.table,
            self.loaded_table.metadata,
            table_io(self.loaded_table),
            selector=self.options.selector,
            columns=self.options.columns,
            projection=projection,
            filter=self._filter(),
            case_sensitive=self.options.case_sensitive,
            overrides=self.options.read_properties,
            report=self.loaded_table.report_scan,
            planner=self.loaded_table.plan_scan,
        )
        if pinned is None or pinned.data_files is None:
            return scan
        return scan.of_files(frozenset(pinned.data_files))

    def _filter(self) -> Filter | None:
        pinned = self.options.pinned
        if pinned is None or pinned.filter is None:
            return self.options.filter
        return predicate_from_json(pinned.filter, self.loaded_table.metadata.current_schema)


def _is_as(field: NestedField, required_field: StructField) -> bool:
    """Return whether Spark requires the field with its own type and nullability."""
    (own,) = to_spark_schema(Schema(fields=(field,))).fields
    return own.dataType == required_field.dataType and own.nullable == required_field.nullable


def open_read_job(
    options: Mapping[str, str], pinned_table: PinnedTable | None = None
) -> ReadJob | MetadataTableReadJob | StateReadJob:
    """Load the table that the options name, or the state that an earlier step pinned."""
    table = parse_table_options(options)
    read_options = parse_read_options(options)
    if pinned_table is not None:
        loaded_table, metadata_name = (
            _load_pinned_table(pinned_table, table),
            pinned_table.metadata_table,
        )
    elif read_options.pinned is not None:
        location = read_options.pinned.metadata_location
        loaded_table, metadata_name = load_table_at(table, location)[1], None
    else:
        loaded_table, metadata_name = _load(table)
    if read_options.reads_state:
        from iceberg_pyspark.spark.data_source.table_state import StateReadJob  # noqa: PLC0415

        return StateReadJob(table=table, loaded_table=loaded_table)
    if read_options.call is not None:
        from iceberg_pyspark.spark.data_source.table_calls import CallReadJob  # noqa: PLC0415

        return CallReadJob(
            table=table,
            options=read_options,
            loaded_table=loaded_table,
            name="answer",
            call=read_options.call,
        )
    if read_options.rewrite is not None:
        from iceberg_pyspark.spark.data_source.rewrite_job import RewriteReadJob  # noqa: PLC0415

        return RewriteReadJob(
            table=table,
            options=read_options,
            loaded_table=loaded_table,
            name="parts",
            rewrite=read_options.rewrite,
        )
    if metadata_name is not None:
        # Metadata tables import as many modules as all other reads together.
        from iceberg_pyspark.spark.data_source.metadata_tables import (  # noqa: PLC0415
            MetadataTableReadJob,
        )

        return MetadataTableReadJob(
            table=table, options=read_options, loaded_table=loaded_table, name=metadata_name
        )
    return ReadJob(table=table, options=read_options, loaded_table=loaded_table)


def _load(table: TableOptions) -> tuple[LoadedTable, str | None]:
    """Return the table, and the metadata table's name if the name is one of its metadata tables."""
    catalog, identifier = find_table(table)
    try:
        return load_table(catalog, identifier, table), None
    except (NoSuchTableError, NoSuchNamespaceError):
        from iceberg_pyspark.table.metadata_tables.lookup import table_of_metadata_table  # noqa: PLC0415

        owner_and_name = table_of_metadata_table(identifier)
        if owner_and_name is None:
            raise
        owner, metadata_name = owner_and_name
        return load_table(catalog, owner, table), metadata_name


def _load_pinned_table(pinned_table: PinnedTable, table: TableOptions) -> LoadedTable:
    location = pinned_table.metadata_location
    text = pinned_table.metadata
    loaded_table = LoadedTable(
        identifier=TableIdentifier(namespace=pinned_table.namespace, name=pinned_table.name),
        metadata=read_table_metadata(open_storage(location, pinned_table.config), location)
        if text is None
        else metadata_from_bytes(text.encode(), location),
        metadata_location=location,
        config=pinned_table.config,
        store_location=pinned_table.store_location,
        report_scan=LaterReports(table) if pinned_table.reports_scans else None,
    )
    if not pinned_table.planned_by_server:
        return loaded_table
    current = check_same_table(loaded_table, load_table(*find_table(table), table))
    return replace(loaded_table, plan_scan=current.plan_scan)
