"""Carries out writes and row-level changes that Spark has planned as commands."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from iceberg_pyspark.catalogs.catalog import check_same_table
from iceberg_pyspark.errors import ConcurrentChangeError, TableAlreadyExistsError
from iceberg_pyspark.spark.bridge.jvm import recache_table
from iceberg_pyspark.spark.bridge.protocol.messages import Acknowledgement
from iceberg_pyspark.spark.bridge.protocol.write_messages import (
    DmlRun,
    EpochRows,
    EpochWrite,
    SourceWrite,
    TableTruncate,
    WriteRun,
)
from iceberg_pyspark.spark.data_source.write_job import commit_write, prepare_write
from iceberg_pyspark.spark.options.option_values import with_prefix
from iceberg_pyspark.spark.requests.sessions import BridgeSessions
from iceberg_pyspark.spark.requests.source_requests import options_in_session
from iceberg_pyspark.spark.row_level.execution import RowLevelRequest, run
from iceberg_pyspark.spark.row_level.statement import read_statement
from iceberg_pyspark.spark.row_level.target import table_to_pin
from iceberg_pyspark.spark.sql_catalog.cached_catalog import invalidate_table
from iceberg_pyspark.spark.sql_catalog.staged_tables import write_staged_table
from iceberg_pyspark.spark.write.command import (
    WriteCommand,
    run_truncate,
    run_write,
    write_epoch,
    write_files,
)
from iceberg_pyspark.spark.write.distribution import with_distribution
from iceberg_pyspark.spark.write.write_options import SNAPSHOT_PROPERTY
from iceberg_pyspark.sql_text.names import parse_levels
from iceberg_pyspark.table.commits.stream_epochs import StreamEpoch, refuse_own_entries

_ACKNOWLEDGEMENT = Acknowledgement()


def write_run(sessions: BridgeSessions, request: WriteRun) -> Acknowledgement:
    """Carry out INSERT, `writeTo` or the query of CREATE TABLE AS SELECT."""
    session = sessions.of_handle(request.session)
    command = WriteCommand(
        kind=request.kind,
        frame=DataFrame(request.plan, session.spark),
        options=request.options,
        condition=request.condition,
        environment=request.environment,
    )
    staged_table = sessions.of_table(request.handle).staged_tables.get(request.handle)
    if staged_table is not None:
        write_staged_table(session.bridge, staged_table, command)
        return _ACKNOWLEDGEMENT
    state = sessions.state(request.handle)
    run_write(session.bridge, sessions.catalog_of(state), state, command)
    return _ACKNOWLEDGEMENT


def epoch_write(sessions: BridgeSessions, request: EpochWrite) -> EpochRows:
    """Write one batch of a stream to the table as it is now, unless it has the batch."""
    session = sessions.of_handle(request.session)
    state = sessions.state(request.handle)
    catalog = sessions.catalog_of(state)
    now = catalog.load_table(state.loaded_table.identifier)
    state = replace(state, loaded_table=check_same_table(state.loaded_table, now))
    refuse_own_entries(with_prefix(request.options, SNAPSHOT_PROPERTY))
    epoch = StreamEpoch(query_id=request.query, epoch=request.epoch)
    rows = DataFrame(request.plan, session.spark)
    if request.mode == "update":
        row_level = session.row_level(sessions.state)
        row_level.check()
        row_level_request = RowLevelRequest(
            session=row_level,
            catalog=catalog,
            table=state.loaded_table,
            branch=state.branch_to_write(),
            options=request.options,
        )
        # few sessions have such a stream
        from iceberg_pyspark.spark.row_level.stream_upserts import upsert_epoch  # noqa: PLC0415

        count = upsert_epoch(row_level_request, rows, epoch, is_stateful=request.stateful)
        return EpochRows(rows=count)
    command = WriteCommand(
        kind="overwrite" if request.mode == "complete" else "append",
        frame=rows,
        options=request.options,
        condition=None,
        environment=request.environment,
    )
    count = write_epoch(
        session.bridge, catalog, state, command, epoch, is_stateful=request.stateful
    )
    return EpochRows(rows=count)


def source_write(sessions: BridgeSessions, request: SourceWrite) -> Acknowledgement:
    """Carry out `df.write.format("iceberg-py")`, distributed and sorted as the table requires."""
    session = sessions.of_handle(request.session)
    frame = DataFrame(request.plan, session.spark)
    options = options_in_session(session.spark, request.options)
    prepared_write = prepare_write(options, frame.schema, overwrite=request.overwrite)
    if request.creates and prepared_write.new_table is None:
        raise TableAlreadyExistsError(
            f"table {prepared_write.table.table} was created by another writer in the meantime, "
            "and nothing was written; choose another mode or name"
        )
    context, distribution = with_distribution(prepared_write.context, prepared_write.sort_order)
    files = write_files(session.bridge, frame, context, distribution, prepared_write.io)
    commit_write(prepared_write, files)
    table = prepared_write.table
    if table.catalog is not None:
        full_name = (table.catalog, *parse_levels(table.table))
        recache_table(session.bridge, full_name, prepared_write.options.branch)
    return _ACKNOWLEDGEMENT


def table_truncate(sessions: BridgeSessions, request: TableTruncate) -> Acknowledgement:
    """Carry out TRUNCATE TABLE."""
    state = sessions.state(request.handle)
    run_truncate(sessions.catalog_of(state), state, request.environment)
    return _ACKNOWLEDGEMENT


def dml_run(sessions: BridgeSessions, request: DmlRun) -> Acknowledgement:
    """Carry out a DELETE, UPDATE or MERGE, given as Spark's optimized plan."""
    session = sessions.of_handle(request.session)
    row_level = session.row_level(sessions.state)
    row_level.check()
    statement = read_statement(
        session.bridge, request.plan, reads_iceberg=bool(request.referenced_tables)
    )
    state = sessions.state(statement.handle)
    row_level_request = RowLevelRequest(
        session=row_level,
        catalog=sessions.catalog_of(state),
        table=state.loaded_table,
        branch=state.branch_to_write(),
        statement_columns=statement.columns,
        schema_id=state.loaded_table.metadata.current_schema_id,
        analysed_table=table_to_pin(state, map(sessions.state, request.referenced_tables)),
    )
    try:
        run(row_level_request, statement.operation)
    except ConcurrentChangeError:
        # The user is told to run the statement again, which must not read the same state again,
        # neither from the catalog's cache nor from rows that Spark has cached.
        invalidate_table(row_level_request.catalog, row_level_request.identifier)
        full_name = (row_level_request.catalog.name, *row_level_request.identifier.levels)
        recache_table(session.bridge, full_name, row_level_request.branch)
        raise
    return _ACKNOWLEDGEMENT
