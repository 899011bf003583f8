"""Under Connect the batch is found on the stack, and the query among those of the session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from iceberg_pyspark.spark.row_changes.batch_changes import change_of_batch
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.table.commits.stream_epochs import StreamEpoch
from tests.support.commit_tables import commit_table

# As `pyspark/sql/connect/streaming/worker/foreach_batch_worker.py` of Spark 4.1 and of 4.3.
WORKERS = {
    "4.1": """
def main(spark_connect_session, func, df_id, batch_id):
    def process(df_id, batch_id):
        func(spark_connect_session, batch_id)
    process(df_id, batch_id)
""",
    "4.3": """
def main(spark_connect_session, func, df_id, batch_id):
    def process(df_id, batch_id, cloned_session_id):
        func(None, batch_id)
    process(df_id, batch_id, "cloned")
""",
}


def running(query_id: str, last: int | None = None, *, active: bool = True) -> SimpleNamespace:
    """Return what a session tells of a query; `last` is the batch of its last progress."""
    progress = None if last is None else {"batchId": last}
    return SimpleNamespace(id=query_id, lastProgress=progress, status={"isTriggerActive": active})


def run(
    worker: str, queries: list[SimpleNamespace], batches: list[tuple[str, int]], times: int = 2
) -> Any:
    """Return the places of the changes that a function makes in batches."""
    metadata = commit_table().loaded.metadata
    found: list[StreamEpoch | None] = []
    session = SimpleNamespace(streams=SimpleNamespace(active=queries))

    def function(batch: Any, number: int) -> None:
        for _ in range(times):
            with change_of_batch(batch, metadata, MAIN, "merge") as epoch:
                found.append(epoch)

    names: dict[str, Any] = {}
    exec(compile(WORKERS[worker], "/site-packages/pyspark/foreach_batch_worker.py", "exec"), names)
    for df_id, number in batches:
        names["main"](session, function, df_id, number)
    return [None if e is None else (e.query_id, e.epoch, e.change, e.operation) for e in found]


@pytest.mark.parametrize("worker", sorted(WORKERS))
def test_the_changes_of_a_call_are_numbered(worker: str) -> None:
    query = f"only {worker}"
    calls = [(f"{worker} a", 4), (f"{worker} b", 4), (f"{worker} c", 5)]
    places = run(worker, [running(query)], calls)
    of_call = [(query, 4, i, "merge") for i in range(2)]
    assert places == [*of_call, *of_call, *((query, 5, i, "merge") for i in range(2))]


@pytest.mark.parametrize(
    ("others", "known"),
    [
        ([running("b", 7)], True),
        ([running("b", 3, active=False)], True),
        ([running("b", 3)], False),
        ([running("b")], False),
        ([running("b", 4)], False),
    ],
)
def test_of_several_queries_only_a_sure_one_is_taken(
    others: list[SimpleNamespace], known: bool, caplog: pytest.LogCaptureFixture
) -> None:
    queries = [running("a", 3), *others]
    (place,) = run("4.3", queries, [(f"df of {queries}", 4)], times=1)
    assert place == (("a", 4, 0, "merge") if known else None)
    warned = "is not known which query" in caplog.text
    assert warned is not known


def test_a_session_without_a_query_and_another_caller_know_none() -> None:
    assert run("4.1", [], [("nothing", 0)], times=1) == [None]
    with change_of_batch(None, commit_table().loaded.metadata, MAIN, "merge") as epoch:  # type: ignore[arg-type]
        assert epoch is None
