"""The driver's part of the portable sink: prepares a batch, and commits it exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql.types import StructType

from iceberg_pyspark.errors import (
    CommitConflictError,
    InvalidRequestError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.data_source.pinned_table import PreparedWrite, StreamFiles
from iceberg_pyspark.spark.data_source.table_access import find_table, load_table
from iceberg_pyspark.spark.data_source.write_job import commit_write, prepare_write
from iceberg_pyspark.table.commits.commit import MetadataStep
from iceberg_pyspark.table.commits.stream_epochs import EPOCH_ID, QUERY_ID, StreamEpoch

_log = get_logger(__name__)

_OF_SPARK = frozenset({"checkpointlocation"})


def prepare_stream_write(
    values: Mapping[str, str], frame: StructType, *, overwrite: bool
) -> PreparedWrite:
    """Check the options and the frame's schema; raise `NoSuchTableError` if there is no table."""
    options = {k: v for k, v in values.items() if k.lower() not in _OF_SPARK}
    write = prepare_write(options, frame, overwrite=overwrite)
    # Spark passes the names of options in lower case
    own = {QUERY_ID.lower(), EPOCH_ID.lower()}
    for name in write.options.snapshot_properties:
        if name.lower() in own:
            raise InvalidRequestError(
                f"snapshot-property.{name} is written by the stream itself; leave it out"
            )
    if write.new_table is not None:
        # the writer of the tasks and the writer of the commit would each plan a table
        raise NoSuchTableError(
            f"table {write.table.table} does not exist, and a stream does not create it: create it "
            "first, for example by writing an empty DataFrame with df.write"
        )
    return write


def commit_batch(write: PreparedWrite, messages: Sequence[StreamFiles], batch_id: int) -> None:
    """Commit the files of all tasks of a batch; if it is in the table already, remove them.

    The commit itself looks for the batch: another process may run the same query.
    """
    files = [f for message in messages for f in message.data_files]
    if not files and write.overwrite is None:
        return
    ids = {m.query_id for m in messages}
    query_id = next(iter(ids), None)
    if len(ids) != 1 or query_id is None:
        raise UnsupportedFeatureError(
            f"table {write.table.table}: the tasks do not know which query they belong to, so a "
            "batch that runs again could not be told from a new one; write with foreachBatch"
        )
    epoch, branch = StreamEpoch(query_id=query_id, epoch=batch_id), write.options.branch
    properties = {**write.options.snapshot_properties, **epoch.summary()}
    # the files are of the table and the schema that the tasks saw
    of_batch = replace(
        write,
        options=replace(write.options, snapshot_properties=properties),
        table_uuid=messages[0].table_uuid,
        context=replace(write.context, schema=messages[0].schema),
    )
    unless_committed = MetadataStep(lambda metadata: epoch.check_absent(metadata, branch))
    try:
        commit_write(of_batch, files, before=(unless_committed,))
    except CommitConflictError:
        now = load_table(*find_table(write.table), write.table).metadata
        if not epoch.is_in(now, branch):
            raise
        _log.info("%s already has batch %s of query %s", write.table.table, batch_id, query_id)
