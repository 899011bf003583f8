"""The batch of `foreachBatch` in which a table is changed, so that its changes are made once.

Spark tells a user's function the number of the batch alone, and this package not even that: what
calls the function is found on the stack of its thread. A classic session has the query's id in a
local property of the thread. Under Connect the function runs in a process of its query, whose
session has a list of the queries that run; if two of them may be the one of this batch, neither is
taken.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePath
from types import FrameType
from typing import Any

from pyspark.sql import SparkSession

from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.table.commits.stream_epochs import StreamEpoch

_log = get_logger(__name__)

_QUERY = "sql.streaming.queryId"
_PROGRAM_OF_CONNECT = "foreach_batch_worker.py"


@dataclass
class _Batch:
    """One call of a function of `foreachBatch`; no other call has its `key`."""

    key: str
    number: int
    query_id: str | None
    made: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many changes of each table and branch have been made."""


_batches: dict[str | None, _Batch] = {}
"""The last batch of each query."""


@contextmanager
def change_of_batch(
    spark: SparkSession,
    metadata: TableMetadata,
    branch: str | None,
    operation: str,
    transaction: tuple[str, int] | None = None,
) -> Iterator[StreamEpoch | None]:
    """Yield which change of its batch the block makes; None outside of a function of a batch.

    A change with a transaction has no number. A block that ends with an error has made none, so the
    next one has the same number.
    """
    batch = None if transaction is not None else _running_batch(spark)
    if batch is None:
        yield None
        return
    if batch.query_id is None:
        _log.warning(
            "it is not known which query of this session runs batch %d, which changes table %s: if "
            "Spark runs the batch again, the change is made again; name it by the argument "
            "transaction",
            batch.number,
            metadata.location,
        )
        yield None
        return
    table = metadata.table_uuid or metadata.location, branch or MAIN
    yield StreamEpoch(
        query_id=batch.query_id,
        epoch=batch.number,
        change=batch.made[table],
        operation=operation,
    )
    batch.made[table] += 1


def _running_batch(spark: SparkSession) -> _Batch | None:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        name = frame.f_code.co_name
        if name == "call" and frame.f_globals.get("__name__") == "pyspark.sql.utils":
            return _batch_of_classic(spark, frame.f_locals)
        if name == "process" and PurePath(frame.f_code.co_filename).name == _PROGRAM_OF_CONNECT:
            caller = frame.f_back
            assert caller is not None, "the program calls its function"
            root = {**caller.f_locals, **frame.f_locals}.get("spark_connect_session", spark)
            return _batch_of_connect(root, frame.f_locals)
        frame = frame.f_back
    return None


def _batch_of_classic(spark: SparkSession, call: Any) -> _Batch | None:
    query_id = spark.sparkContext.getLocalProperty(_QUERY)
    if query_id is None or "batch_id" not in call or "jdf" not in call:
        return None
    # py4j gives each object that it sees an id of its own
    return _known(_Batch(call["jdf"]._target_id, call["batch_id"], query_id))


def _batch_of_connect(session: SparkSession, call: Any) -> _Batch | None:
    if "batch_id" not in call or "df_id" not in call:
        return None
    key, number = call["df_id"], call["batch_id"]
    for batch in _batches.values():
        if batch.key == key:
            return batch
    queries = list(session.streams.active)
    if len(queries) > 1:
        queries = [q for q in queries if _may_run(q, number)]
    return _known(_Batch(key, number, queries[0].id if len(queries) == 1 else None))


def _known(batch: _Batch) -> _Batch:
    """Return the batch as it was seen before, with the changes that it has made."""
    before = _batches.get(batch.query_id)
    if before is not None and before.key == batch.key:
        return before
    _batches[batch.query_id] = batch
    return batch


def _may_run(query: Any, number: int) -> bool:
    """Return whether a query may be running a batch: its last progress is of the one before, or of
    a trigger without data, or there is none.
    """
    last = query.lastProgress
    return query.status["isTriggerActive"] and (
        last is None or last["batchId"] in (number - 1, number)
    )
