"""Handles requests about scans: their plans, aggregates from metadata, and run-time filters.

A scan reads a table of a catalog, or a relation of the format `iceberg-py`, for which Spark falls
back to the portable reader if there is no native plan. Aggregates are answered only for columns
that Spark sees unchanged and for conditions with an exact predicate; statistics of columns are for
Spark's cost-based optimizer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from pyspark.sql import types as spark_types

from iceberg_pyspark.errors import IcebergError, LocationRefusedError
from iceberg_pyspark.expressions.binding import bind_column
from iceberg_pyspark.planning.top_rows import TopRows
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.bridge.protocol.messages import Expression, Operator, wire_value
from iceberg_pyspark.spark.bridge.protocol.scan_messages import (
    AggregateRows,
    ColumnValueStatistics,
    FilterColumns,
    PlannedScan,
    RemainingFiles,
    ScanAggregate,
    ScanDefinition,
    ScanFilterColumns,
    ScannedTable,
    ScanParts,
    ScanRuntimeFilter,
    ScanStatistics,
    TableStatistics,
)
from iceberg_pyspark.spark.bridge.scan_relations import PlanRequest
from iceberg_pyspark.spark.bridge.spark_conditions import (
    comparable_predicate_of,
    inclusive_predicate_of,
)
from iceberg_pyspark.spark.bridge.type_agreement import COMPARED_TYPES
from iceberg_pyspark.spark.data_source.metadata_tables import metadata_table_frame
from iceberg_pyspark.spark.data_source.open_stream import OpenStream
from iceberg_pyspark.spark.data_source.read_job import ReadJob
from iceberg_pyspark.spark.data_source.source import IcebergDataSource
from iceberg_pyspark.spark.native_read.filter_conditions import is_exact, remaining_locations
from iceberg_pyspark.spark.native_read.native_scan import NativeScan, Part
from iceberg_pyspark.spark.native_read.scan_request import ScanCondition, ScanRequest
from iceberg_pyspark.spark.options.option_values import with_location_settings
from iceberg_pyspark.spark.requests.sessions import BridgeSession, BridgeSessions
from iceberg_pyspark.spark.rows.spark_types import (
    project_with_hidden_columns,
    struct_from_json,
    to_spark_schema,
)
from iceberg_pyspark.spark.table_states import TableState
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import DoubleType, FloatType, NestedField
from iceberg_pyspark.storage.lru_map import LruMap
from iceberg_pyspark.table.change_feed.change_stream import NET
from iceberg_pyspark.table.change_feed.changelog_range import FORMS, check_row_ids, feed_columns
from iceberg_pyspark.table.metadata_tables.changes_table import RAW, describing_columns
from iceberg_pyspark.table.metadata_tables.lookup import CHANGES, metadata_table, plan_of_changes
from iceberg_pyspark.table.reading.metadata_aggregates import (
    Aggregate,
    KnownAggregates,
    column_statistics,
    known_aggregates,
)
from iceberg_pyspark.table.reading.stream_offsets import read_offset
from iceberg_pyspark.table.reading.table_scan import TableScan, scan_table
from iceberg_pyspark.table.reading.whole_files import clustered_columns

_log = get_logger(__name__)


T = TypeVar("T")

_STAYS = PlannedScan()
_ALL = RemainingFiles(locations=None)
_filter_columns: LruMap[tuple[str, tuple[str, ...]], FilterColumns] = LruMap(256)
"""The answers by the table's handle, which names its metadata, and by the columns."""


def scan_plan(sessions: BridgeSessions, request: ScanParts) -> PlannedScan:
    """Return the parts of a scan, and the conditions that every row of the parts fulfils."""
    session = sessions.of_handle(request.scan.table.session)
    if request.scan.batch is not None:
        return _plan_batch(session, sessions.streams.of(request.scan.batch.stream), request.scan)
    if request.scan.table.handle is not None:
        return _plan_table(session, sessions.state(request.scan.table.handle), request.scan)
    return _with_fallback(lambda: _plan_source(session, request.scan), _STAYS)


def scan_aggregate(sessions: BridgeSessions, request: ScanAggregate) -> AggregateRows:
    """Return the aggregates of a scan if the table's metadata suffice to compute them."""
    session = sessions.of_handle(request.table.session)
    struct = struct_from_json(request.columns)
    if request.table.handle is not None:
        state = sessions.state(request.table.handle)
        if state.metadata_table is not None or state.reads is not None:
            return _UNKNOWN
        return aggregate_rows(_whole_scan(session, state, struct, request.table.locations), request)

    def of_source() -> AggregateRows:
        job = _read_job(request.table)
        rows = _UNKNOWN if job is None else aggregate_rows(job.scan_of(struct), request)
        # Spark's scan of a data source cannot be limited to some files.
        return _UNKNOWN if rows.other_files else rows

    return _with_fallback(of_source, _UNKNOWN)


def scan_runtime_filter(sessions: BridgeSessions, request: ScanRuntimeFilter) -> RemainingFiles:
    """Return the files that may have matching rows, for any columns and any limit of the scan."""
    session = sessions.of_handle(request.scan.table.session)
    all_conditions = Operator(
        op="and", args=(*(c.condition for c in request.scan.conditions), *request.filters)
    )
    nothing = spark_types.StructType()
    try:
        if request.scan.table.handle is None:
            job = _read_job(request.scan.table)
            if job is None:
                return _ALL
            scan = job.scan_of(nothing)
        else:
            state = sessions.state(request.scan.table.handle)
            if state.metadata_table is not None:
                return _ALL
            scan = _whole_scan(session, state, nothing, request.scan.table.locations)
        return RemainingFiles(locations=remaining_locations(_prune(scan, all_conditions)))
    except IcebergError as e:
        _log.info("run-time filters skip no files: %s", e)
        return _ALL


def scan_filter_columns(sessions: BridgeSessions, request: ScanFilterColumns) -> FilterColumns:
    """Return those of the columns by whose values most files can be skipped."""
    assert request.table.handle is not None, "a relation of the data source compares no columns"
    key = (request.table.handle, request.columns)
    known = _filter_columns.get(key)
    if known is not None:
        return known
    session, state = sessions.of_handle(request.table.session), sessions.state(key[0])
    try:
        whole = _whole_scan(session, state, spark_types.StructType(), request.table.locations)
        scan = replace(whole, report=None)
        schema = scan.context.schemas[0].as_struct
        columns = clustered_columns(scan, [f for f in schema.fields if f.name in request.columns])
    except IcebergError as e:
        _log.info("bounds of table %s are not compared: %s", state.loaded_table.identifier, e)
        return FilterColumns(columns=())
    answer = FilterColumns(columns=tuple(c.name for c in columns))
    _filter_columns.put(key, answer)
    return answer


def scan_statistics(sessions: BridgeSessions, request: ScanStatistics) -> TableStatistics:
    """Return the column statistics of a table in a catalog."""
    assert request.table.handle is not None, (
        "a relation of the data source has no statistics of columns"
    )
    state = sessions.state(request.table.handle)
    session, nothing = sessions.of_handle(request.table.session), spark_types.StructType()
    try:
        scan = _whole_scan(session, state, nothing, request.table.locations)
        return TableStatistics(columns=_spark_column_statistics(scan))
    except IcebergError as e:
        _log.info(
            "table %s is planned without column statistics: %s", state.loaded_table.identifier, e
        )
        return TableStatistics(columns=())


def _plan_table(
    session: BridgeSession, state: TableState, definition: ScanDefinition
) -> PlannedScan:
    struct = struct_from_json(definition.schema)
    if state.metadata_table in (CHANGES, *FORMS):
        return _plan_changes(session, state, struct, definition)
    if state.metadata_table is not None:
        rows = metadata_table(
            state.loaded_table,
            session.io_of(state, definition.table.locations),
            state.metadata_table,
            selector=state.selector,
        )
        frame = metadata_table_frame(session.bridge, rows, struct)
        return _planned_scan(session, [Part(plan=session.bridge.analyse(frame))], ())
    scan = _prune(
        _whole_scan(session, state, struct, definition.table.locations), _all_of(definition)
    )
    if definition.files is not None:
        scan = scan.of_files(frozenset(definition.files))
    if state.reads is not None:
        scan = state.reads.record_scan(scan)
    native = NativeScan(
        session.spark,
        session.bridge,
        scan,
        storage=state.loaded_table.config,
        request=_scan_request(definition, scan),
    )
    return _planned_scan(session, native.parts(), sorted(native.proven_numbers))


def _plan_batch(
    session: BridgeSession, stream: OpenStream, definition: ScanDefinition
) -> PlannedScan:
    assert definition.batch is not None
    struct = struct_from_json(definition.schema)
    if stream.has_changes:
        return _plan_changed_batch(session, stream, struct, definition)
    scan = stream.scan(
        read_offset(definition.batch.start),
        read_offset(definition.batch.end),
        lambda schema, metadata: project_with_hidden_columns(schema, struct, metadata),
    )
    scan = _prune(scan, _all_of(definition))
    native = NativeScan(
        session.spark,
        session.bridge,
        scan,
        storage=stream.loaded_table.config,
        request=_scan_request(definition, scan),
    )
    return _planned_scan(session, native.parts(), sorted(native.proven_numbers))


def _plan_changed_batch(
    session: BridgeSession,
    stream: OpenStream,
    struct: spark_types.StructType,
    definition: ScanDefinition,
) -> PlannedScan:
    assert definition.batch is not None
    start, end = (read_offset(o) for o in (definition.batch.start, definition.batch.end))
    scan, changes = stream.changes(
        end, lambda schema, metadata: project_with_hidden_columns(schema, struct, metadata)
    )
    condition = _all_of(definition)
    scan = _prune(scan, condition)
    plan = changes.plan(
        start,
        end,
        predicate=scan.context.predicate,
        of_changes=inclusive_predicate_of(condition, stream.described()),
        form=FORMS.get(stream.kind, NET),
    )
    if stream.kind in FORMS:
        check_row_ids(changes.table, changes.metadata, plan.snapshots)
    config = stream.loaded_table.config
    # few sessions read changes
    from iceberg_pyspark.spark.native_read.change_scan import changes_parts  # noqa: PLC0415

    parts = changes_parts(session.spark, session.bridge, scan, plan, config)
    return _planned_scan(session, parts, ())


def _plan_changes(
    session: BridgeSession,
    state: TableState,
    struct: spark_types.StructType,
    definition: ScanDefinition,
) -> PlannedScan:
    loaded_table, io = state.loaded_table, session.io_of(state, definition.table.locations)
    metadata, condition = loaded_table.metadata, _all_of(definition)
    name, schema = str(loaded_table.identifier), metadata.current_schema
    form = FORMS.get(state.metadata_table or "")
    described = describing_columns(schema) if form is None else feed_columns(name, metadata, schema)
    columns = Schema(fields=(*schema.fields, *described.fields))
    scan = _prune(
        scan_table(
            name,
            metadata,
            io,
            projection=lambda _: project_with_hidden_columns(columns, struct, metadata),
        ),
        condition,
    )
    plan = plan_of_changes(
        loaded_table,
        io,
        selector=state.selector,
        predicate=scan.context.predicate,
        of_changes=inclusive_predicate_of(condition, described),
        form=form or RAW,
    )
    if form is not None:
        check_row_ids(name, metadata, plan.snapshots)
    # few sessions read changes
    from iceberg_pyspark.spark.native_read.change_scan import changes_parts  # noqa: PLC0415

    parts = changes_parts(session.spark, session.bridge, scan, plan, loaded_table.config)
    return _planned_scan(session, parts, ())


def _plan_source(session: BridgeSession, definition: ScanDefinition) -> PlannedScan:
    job = _read_job(definition.table)
    if job is None:
        return _STAYS
    scan = job.scan_of(struct_from_json(definition.schema))
    # With location restrictions the scan stays native: the portable source does not know the
    # session.
    if not is_exact(scan.context.predicate) and not definition.table.locations:
        return _STAYS
    native = NativeScan(
        session.spark,
        session.bridge,
        _prune(scan, _all_of(definition)),
        scan.context.predicate,
        job.loaded_table.config,
        _scan_request(definition, scan),
    )
    return _planned_scan(session, native.parts(), sorted(native.proven_numbers))


def _planned_scan(
    session: BridgeSession, parts: Sequence[Part], condition_numbers: Sequence[int]
) -> PlannedScan:
    return PlannedScan(
        proven_conditions=tuple(condition_numbers),
        parts=partial(_with_parts, session.bridge, parts),
    )


def _with_parts(bridge: Any, parts: Sequence[Part], text: str) -> Any:
    # Each call of the JVM costs a millisecond, and most scans have one part.
    if len(parts) == 1 and isinstance(parts[0].plan, PlanRequest):
        return bridge.scans.response(text, parts[0].plan)
    plans = [
        bridge.scans.plan(p.plan) if isinstance(p.plan, PlanRequest) else p.plan for p in parts
    ]
    part_texts = [(plan, p.not_deleted, p.anti_joins) for plan, p in zip(plans, parts, strict=True)]
    return bridge.java_list([text, *part_texts])


def _scan_request(definition: ScanDefinition, scan: TableScan) -> ScanRequest:
    schema = scan.context.schemas[0]
    return ScanRequest(
        conditions=[
            ScanCondition(
                predicate=comparable_predicate_of(c.condition, schema),
                columns=frozenset(c.columns),
            )
            for c in definition.conditions
        ],
        required_columns=None
        if definition.required_columns is None
        else frozenset(definition.required_columns),
        limit=definition.limit if definition.order is None else None,
        top=_top_rows(definition, schema),
        grouped=definition.grouped,
    )


def _top_rows(definition: ScanDefinition, schema: Schema) -> TopRows | None:
    """Return the first rows that a query takes, if Spark orders the column like its bounds."""
    order = definition.order
    if order is None or definition.limit is None:
        return None
    column = _column(schema, struct_from_json(definition.schema)[order.column])
    if column is None or not isinstance(column.type, (*COMPARED_TYPES, FloatType, DoubleType)):
        return None
    return TopRows(
        column=bind_column(column.name, schema),
        limit=definition.limit,
        descending=order.descending,
        nulls_first=order.nulls_first,
    )


def _all_of(definition: ScanDefinition) -> Expression | None:
    """Return the conjunction of the conditions, or None without any condition."""
    conditions = tuple(c.condition for c in definition.conditions)
    return Operator(op="and", args=conditions) if conditions else None


def _whole_scan(
    session: BridgeSession,
    state: TableState,
    struct: spark_types.StructType,
    locations: Mapping[str, str],
) -> TableScan:
    return scan_table(
        str(state.loaded_table.identifier),
        state.loaded_table.metadata,
        session.io_of(state, locations),
        selector=state.selector,
        projection=lambda schema: project_with_hidden_columns(
            schema, struct, state.loaded_table.metadata
        ),
        report=state.loaded_table.report_scan,
        planner=state.loaded_table.plan_scan,
    )


def _with_fallback(plan: Callable[[], T], otherwise: T) -> T:
    """Return `otherwise` on an error: the portable source will meet the same error and report it.

    `LocationRefusedError` is raised, because the portable source does not know the session's
    restrictions.
    """
    try:
        return plan()
    except LocationRefusedError:
        raise
    except IcebergError as e:
        _log.info("a scan of iceberg-py uses the portable reader: %s", e)
        return otherwise


def _read_job(table: ScannedTable) -> ReadJob | None:
    """Return the read of a relation of the Python data source, or None for a metadata table."""
    assert table.source is not None, "a scan is of a catalog's table or of a source"
    job = IcebergDataSource.of_state(table.source).read_job()
    if not isinstance(job, ReadJob):
        return None
    options = job.table.storage_properties
    return replace(
        job, loaded_table=with_location_settings(job.loaded_table, table.locations, options)
    )


def _prune(scan: TableScan, condition: Expression | None) -> TableScan:
    """Return the scan without the files that the condition excludes; Spark still filters rows."""
    return scan.pruned_by(inclusive_predicate_of(condition, scan.context.schemas[0]))


def _spark_column_statistics(scan: TableScan) -> tuple[ColumnValueStatistics, ...]:
    """Return the statistics of the columns that have any."""
    schema = scan.context.schemas[0]
    statistics = column_statistics(scan, schema.as_struct.fields)
    columns = []
    for f in schema.as_struct.fields:
        of_column = statistics.get(f.field_id)
        if of_column is None:
            continue
        (own,) = to_spark_schema(Schema(fields=(f,))).fields
        type_ = own.dataType
        if isinstance(type_, spark_types.StringType) and type_ != spark_types.StringType():
            continue  # Spark makes no estimates for collated strings.
        columns.append(
            ColumnValueStatistics(
                column=f.name,
                type=type_.json(),
                distinct_count=of_column.distinct_count,
                null_count=of_column.null_count,
                min_value=wire_value(of_column.least),
                max_value=wire_value(of_column.greatest),
            )
        )
    return tuple(columns)


_UNKNOWN = AggregateRows(rows=None)


def aggregate_rows(scan: TableScan, request: ScanAggregate) -> AggregateRows:
    """Return the aggregates of a scan as far as metadata suffice to compute them."""
    known = _known_aggregates(scan, request)
    if known is None:
        return _UNKNOWN
    return AggregateRows(
        rows=tuple(tuple(map(wire_value, row)) for row in known.rows),
        other_files=tuple(sorted(known.other_files)),
    )


def _known_aggregates(scan: TableScan, request: ScanAggregate) -> KnownAggregates | None:
    schema = scan.context.schemas[0]
    struct = struct_from_json(request.columns)
    columns = {f.name: _column(schema, f) for f in struct.fields}
    if any(c is None for c in columns.values()):
        return None
    aggregates = [
        Aggregate(kind=a.kind, column=None if a.column is None else columns[a.column])
        for a in request.aggregates
    ]
    if (
        request.condition is None
        and not request.groups
        and all(a.kind == "rows" for a in aggregates)
    ):
        # known_count() can also subtract the positions of deleted rows.
        count = scan.known_count()
        if count is not None:
            return KnownAggregates(rows=[(count,) * len(aggregates)])
    predicate = comparable_predicate_of(request.condition, schema)
    if predicate is None:
        return None
    by = [c for c in (columns[g] for g in request.groups) if c is not None]
    return known_aggregates(scan.pruned_by(predicate), by, aggregates)


def _column(schema: Schema, as_spark_sees_it: spark_types.StructField) -> NestedField | None:
    """Return the table's column if Spark sees it with the same type, else None."""
    column = schema.as_struct.field_named(as_spark_sees_it.name)
    if column is None:
        return None
    (own,) = to_spark_schema(Schema(fields=(column,))).fields
    return column if own.dataType == as_spark_sees_it.dataType else None
