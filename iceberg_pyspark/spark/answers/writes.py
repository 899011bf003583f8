"""Carries out writes and row-level changes that Spark has planned as commands."""

from __future__ import annotations

from pyspark.sql import DataFrame

from iceberg_pyspark.errors import ConcurrentChangeError, TableAlreadyExistsError
from iceberg_pyspark.spark.answers.asking import AskingSessions
from iceberg_pyspark.spark.answers.sources import options_in_session
from iceberg_pyspark.spark.bridge.cached_rows import read_cached_anew
from iceberg_pyspark.spark.bridge.protocol.messages import Acknowledgement
from iceberg_pyspark.spark.bridge.protocol.writes import (
    DmlRun,
    SourceWrite,
    TableTruncate,
    WriteRun,
)
from iceberg_pyspark.spark.data_source.write_job import commit_write, prepare_write
from iceberg_pyspark.spark.row_level.own_reads import table_to_pin
from iceberg_pyspark.spark.row_level.run import Request, run
from iceberg_pyspark.spark.row_level.statement import read_statement
from iceberg_pyspark.spark.sql_catalog.cached_catalog import forget_table
from iceberg_pyspark.spark.sql_catalog.staged_tables import write_staged_table
from iceberg_pyspark.spark.write.command import WriteCommand, run_truncate, run_write
from iceberg_pyspark.spark.write.context import with_distribution
from iceberg_pyspark.spark.write.files import write_files
from iceberg_pyspark.sql_text.names import parse_levels

_ACKNOWLEDGEMENT = Acknowledgement()


def write_run(sessions: AskingSessions, q: WriteRun) -> Acknowledgement:
    """Carry out INSERT, `writeTo` or the query of CREATE TABLE AS SELECT."""
    session = sessions.of_handle(q.session)
    command = WriteCommand(
        kind=q.kind,
        frame=DataFrame(q.plan, session.spark),
        options=q.options,
        condition=q.condition,
        environment=q.environment,
    )
    staged_table = sessions.of_table(q.handle).staged_tables.get(q.handle)
    if staged_table is not None:
        write_staged_table(session.bridge, staged_table, command)
        return _ACKNOWLEDGEMENT
    state = sessions.state(q.handle)
    run_write(session.bridge, sessions.catalog_of(state), state, command)
    return _ACKNOWLEDGEMENT


def source_write(sessions: AskingSessions, q: SourceWrite) -> Acknowledgement:
    """Carry out `df.write.format("iceberg-py")`, distributed and sorted as the table requires."""
    session = sessions.of_handle(q.session)
    frame = DataFrame(q.plan, session.spark)
    options = options_in_session(session.spark, q.options)
    prepared_write = prepare_write(options, frame.schema, overwrite=q.overwrite)
    if q.creates and prepared_write.new_table is None:
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
        read_cached_anew(session.bridge, full_name, prepared_write.options.branch)
    return _ACKNOWLEDGEMENT


def table_truncate(sessions: AskingSessions, q: TableTruncate) -> Acknowledgement:
    """Carry out TRUNCATE TABLE."""
    state = sessions.state(q.handle)
    run_truncate(sessions.catalog_of(state), state, q.environment)
    return _ACKNOWLEDGEMENT


def dml_run(sessions: AskingSessions, q: DmlRun) -> Acknowledgement:
    """Carry out a DELETE, UPDATE or MERGE, given as Spark's optimized plan."""
    session = sessions.of_handle(q.session)
    row_level = session.row_level(sessions.state)
    row_level.check()
    statement = read_statement(session.bridge, q.plan, reads_iceberg=bool(q.tables_read))
    state = sessions.state(statement.handle)
    request = Request(
        session=row_level,
        catalog=sessions.catalog_of(state),
        table=state.loaded_table,
        branch=state.branch_to_write(),
        statement_columns=statement.columns,
        schema_id=state.loaded_table.metadata.current_schema_id,
        analysed_table=table_to_pin(state, map(sessions.state, q.tables_read)),
    )
    try:
        run(request, statement.operation)
    except ConcurrentChangeError:
        # The user is told to run the statement again, which must not read the same state again,
        # neither from the catalog's cache nor from rows that Spark has cached.
        forget_table(request.catalog, request.identifier)
        full_name = (request.catalog.name, *request.identifier.levels)
        read_cached_anew(session.bridge, full_name, request.branch)
        raise
    return _ACKNOWLEDGEMENT
