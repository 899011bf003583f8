"""The format `iceberg-py` in a session: names in its options, and hidden columns."""

from __future__ import annotations

from iceberg_pyspark.spark.answers.asking import AskingSessions
from iceberg_pyspark.spark.answers.source_names import options_in_session, table_there
from iceberg_pyspark.spark.bridge.protocol.sources import (
    ExistingTable,
    HiddenColumns,
    SessionOptions,
    SourceHidden,
    SourceOptions,
    SourceTable,
)
from iceberg_pyspark.spark.data_source.read_job import ReadJob, open_read_job
from iceberg_pyspark.spark.rows.hidden_columns import hidden_columns
from iceberg_pyspark.spark.rows.types import to_spark_schema
from iceberg_pyspark.spec.schema import Schema


def source_options(sessions: AskingSessions, q: SourceOptions) -> SessionOptions:
    """Options as the session understands them."""
    return SessionOptions(options=options_in_session(sessions.named(q.session).spark, q.options))


def source_table(_sessions: AskingSessions, q: SourceTable) -> ExistingTable:
    """The table that options name, if it is there."""
    return table_there(q.options)


def source_hidden(sessions: AskingSessions, q: SourceHidden) -> HiddenColumns:
    """The hidden columns of the table that options name."""
    job = open_read_job(options_in_session(sessions.named(q.session).spark, q.options))
    hidden = Schema(fields=())
    if isinstance(job, ReadJob):
        hidden = hidden_columns(job.loaded.metadata)
    return HiddenColumns(columns=to_spark_schema(hidden).json())
