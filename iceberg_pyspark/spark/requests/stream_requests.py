"""Handles requests about streams: opens and closes them, and computes their offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.errors import IcebergError, InvalidRequestError, NotFoundError
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.bridge.protocol.messages import Acknowledgement
from iceberg_pyspark.spark.bridge.protocol.stream_messages import (
    StreamBacklog,
    StreamBegin,
    StreamClose,
    StreamEnd,
    StreamHandle,
    StreamNext,
    StreamOpen,
    StreamPending,
    StreamPlace,
)
from iceberg_pyspark.spark.data_source.open_stream import APPENDS, OpenStream, no_stream
from iceberg_pyspark.spark.data_source.read_options import parse_table_options
from iceberg_pyspark.spark.data_source.table_access import find_table, load_table
from iceberg_pyspark.spark.options.option_values import with_location_settings
from iceberg_pyspark.spark.options.stream_options import (
    StreamOptions,
    check_options_of_changes,
    parse_stream_options,
)
from iceberg_pyspark.spark.requests.sessions import BridgeSessions
from iceberg_pyspark.spark.table_states import TableState
from iceberg_pyspark.table.change_feed.changelog_range import FORMS
from iceberg_pyspark.table.metadata_tables.lookup import CHANGES, table_of_metadata_table
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from iceberg_pyspark.table.reading.stream_offsets import read_offset
from iceberg_pyspark.table.reading.stream_rules import NO_LIMITS, StreamRules

_log = get_logger(__name__)


def stream_open(sessions: BridgeSessions, request: StreamOpen) -> StreamHandle:
    """Open the stream of a query; raise `InvalidRequestError` for what is no stream."""
    options = parse_stream_options(request.options)
    if request.handle is None:
        load, kind = _load_by_options(request)
    else:
        load, options = _load_of_catalog(sessions, request.handle, options)
        kind = sessions.state(request.handle).metadata_table or APPENDS
    if kind != APPENDS:
        check_options_of_changes(request.options)

    def load_restricted() -> LoadedTable:
        return with_location_settings(load(), request.locations, request.options)

    loaded_table = load_restricted()
    stream = OpenStream(
        schema=loaded_table.metadata.current_schema,
        options=options,
        loaded_table=loaded_table,
        load=load_restricted,
        kind=kind,
    )
    return StreamHandle(stream=sessions.streams.add(stream))


def stream_begin(sessions: BridgeSessions, request: StreamBegin) -> StreamPlace:
    """Return where a new stream begins."""
    stream = sessions.streams.of(request.stream)
    stream.refresh()
    return StreamPlace(offset=stream.offsets().initial().json())


def stream_next(sessions: BridgeSessions, request: StreamNext) -> StreamPlace:
    """Return where the next batch ends, by the table as it is now."""
    stream = sessions.streams.of(request.stream)
    stream.refresh()
    end = stream.offsets().next(
        read_offset(request.start),
        until=None if request.until is None else read_offset(request.until),
        limits=stream.options.limits if request.limited else NO_LIMITS,
    )
    return StreamPlace(offset=None if end is None else end.json())


def stream_end(sessions: BridgeSessions, request: StreamEnd) -> StreamPlace:
    """Return the end of the table as it is now."""
    stream = sessions.streams.of(request.stream)
    stream.refresh()
    return StreamPlace(offset=stream.offsets().end().json())


def stream_pending(sessions: BridgeSessions, request: StreamPending) -> StreamBacklog:
    """Return what the stream has not read of the table as it was last loaded."""
    stream = sessions.streams.of(request.stream)
    try:
        backlog = stream.offsets().backlog(read_offset(request.offset))
    except IcebergError as e:
        # the query itself reports it, if it is still so at the next batch
        _log.info("the backlog of a stream is unknown: %s", e)
        return StreamBacklog(files=None, rows=None, size=None)
    return StreamBacklog(files=backlog.files, rows=backlog.rows, size=backlog.size)


def stream_close(sessions: BridgeSessions, request: StreamClose) -> Acknowledgement:
    """Forget a stream."""
    sessions.streams.close(request.stream)
    return Acknowledgement()


def _load_of_catalog(
    sessions: BridgeSessions, handle: str, options: StreamOptions
) -> tuple[Callable[[], LoadedTable], StreamOptions]:
    state = sessions.state(handle)
    name = state.loaded_table.identifier
    if state.metadata_table in FORMS:
        options = _begin_of_feed(state, options)
    elif state.metadata_table not in (None, CHANGES):
        raise no_stream(f"{name}.{state.metadata_table}")
    elif state.selector != SnapshotSelector(branch=state.selector.branch):
        raise InvalidRequestError(
            f"table {name}: a stream reads the table or one of its branches, and not a tag or an "
            "earlier snapshot; use the option stream-from-snapshot to begin after one"
        )
    catalog = sessions.catalog_of(state)
    return lambda: catalog.load_table(name), replace(options, branch=state.selector.branch)


def _begin_of_feed(state: TableState, options: StreamOptions) -> StreamOptions:
    """Return the options with the beginning of a feed's range."""
    name, selector = state.loaded_table.identifier, state.selector
    if selector.end_snapshot_id is not None:
        raise InvalidRequestError(
            f"table {name}: a stream of changes has no end; leave the ending version or timestamp "
            "out, and use Trigger.AvailableNow to end at the newest snapshot"
        )
    if selector.start_snapshot_id is None:
        return options
    if options.rules != StreamRules():
        raise InvalidRequestError(
            f"table {name}: the stream has a starting version or timestamp, and another beginning "
            "by stream-from-snapshot or stream-from-timestamp; keep one"
        )
    return replace(options, rules=StreamRules(from_snapshot=str(selector.start_snapshot_id)))


def _load_by_options(request: StreamOpen) -> tuple[Callable[[], LoadedTable], str]:
    """Return the function that loads the table of the options, and the kind of the stream."""
    table = parse_table_options(request.options)
    catalog, identifier = find_table(table)
    kind = APPENDS
    try:
        load_table(catalog, identifier, table)
    except NotFoundError:
        metadata_table = table_of_metadata_table(identifier)
        if metadata_table is None:
            raise
        identifier, kind = metadata_table
        if kind != CHANGES:
            raise no_stream(table.table) from None
    return lambda: load_table(catalog, identifier, table), kind
