"""Writes and changes of rows: what Spark planned as a command, carried out."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from iceberg_pyspark.errors import TableAlreadyExistsError
from iceberg_pyspark.spark.answers.asking import AskingSessions
from iceberg_pyspark.spark.answers.source_names import options_in_session
from iceberg_pyspark.spark.bridge.protocol.messages import Acknowledgement
from iceberg_pyspark.spark.bridge.protocol.writes import (
    DmlRun,
    SourceWrite,
    TableTruncate,
    WriteRun,
)
from iceberg_pyspark.spark.data_source.commit_write import commit_write
from iceberg_pyspark.spark.data_source.prepare_write import prepare_write
from iceberg_pyspark.spark.row_level.run import Request, run
from iceberg_pyspark.spark.row_level.statement import read_statement
from iceberg_pyspark.spark.row_level.target import branch_to_change
from iceberg_pyspark.spark.sql_catalog.staged_tables import write_staged
from iceberg_pyspark.spark.write.command import (
    WriteCommand,
    run_truncate,
    run_write,
    write_laid_out,
)
from iceberg_pyspark.spark.write.distribution import write_distribution

_DONE = Acknowledgement()


def write_run(sessions: AskingSessions, q: WriteRun) -> Acknowledgement:
    """INSERT, `writeTo` and the query of CREATE TABLE AS SELECT."""
    session = sessions.named(q.session)
    command = WriteCommand(
        kind=q.kind,
        frame=DataFrame(q.plan, session.spark),
        options=q.options,
        condition=q.condition,
        environment=q.environment,
    )
    staged = sessions.of_table(q.handle).staged.get(q.handle)
    if staged is not None:
        write_staged(session.bridge, staged, command)
        return _DONE
    state = sessions.state(q.handle)
    run_write(session.bridge, sessions.catalog_of(state), state, command)
    return _DONE


def source_write(sessions: AskingSessions, q: SourceWrite) -> Acknowledgement:
    """A `df.write.format("iceberg-py")`, laid out as the table asks."""
    session = sessions.named(q.session)
    frame = DataFrame(q.plan, session.spark)
    options = options_in_session(session.spark, q.options)
    prepared = prepare_write(options, frame.schema, overwrite=q.overwrite)
    if q.creates and prepared.new_table is None:
        raise TableAlreadyExistsError(
            f"table {prepared.table.table} was created by somebody else meanwhile: nothing was "
            "written; choose another mode or name"
        )
    context = prepared.context
    layout = write_distribution(
        context.schema, context.spec, prepared.sort_order, context.properties
    )
    context = replace(context, sort_order_id=layout.sort_order.order_id)
    commit_write(prepared, write_laid_out(session.bridge, frame, context, layout, prepared.io))
    return _DONE


def table_truncate(sessions: AskingSessions, q: TableTruncate) -> Acknowledgement:
    """TRUNCATE TABLE."""
    state = sessions.state(q.handle)
    run_truncate(sessions.catalog_of(state), state, q.environment)
    return _DONE


def dml_run(sessions: AskingSessions, q: DmlRun) -> Acknowledgement:
    """DELETE, UPDATE and MERGE: the statement as Spark's optimized plan."""
    session = sessions.named(q.session)
    row_level = session.row_level()
    row_level.check()
    statement = read_statement(session.bridge, q.plan)
    state = sessions.state(statement.handle)
    request = Request(
        session=row_level,
        catalog=sessions.catalog_of(state),
        table=state.loaded,
        branch=branch_to_change(state),
        statement_columns=statement.known,
        schema_id=state.loaded.metadata.current_schema_id,
    )
    run(request, statement.operation)
    return _DONE
