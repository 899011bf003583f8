"""The files of a write job are reported once, or deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext

from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.spark.write.file_job import write_frame
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import LongType, NestedField
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Frame:
    """A DataFrame with tasks that run in this process; each takes its rows, or fails if None."""

    def __init__(self, tasks: list[list[int] | None]) -> None:
        self._tasks = tasks
        self.columns = ["id"]
        self.accumulated: list[str] = []
        self.sparkSession = SimpleNamespace(sparkContext=self)

    def accumulator(self, value: list[str], param: Any) -> Any:
        del value
        frame = self

        class Accumulator:
            value: list[str] = frame.accumulated

            def add(self, term: list[str]) -> None:
                param.addInPlace(frame.accumulated, term)

        return Accumulator()

    def mapInArrow(self, task: Task, schema: str) -> Frame:  # noqa: N802
        assert schema == "files binary"
        self._task = task
        return self

    def collect(self) -> list[Any]:
        results = []
        for rows in self._tasks:
            if rows is None:
                raise RuntimeError("a task failed")
            batches = [pa.RecordBatch.from_pydict({"id": pa.array(rows, pa.int64())})]
            for table in self._task(iter(batches if rows else [])):
                results += [SimpleNamespace(files=r["files"]) for r in table.to_pylist()]
        return results


@pytest.fixture(autouse=True)
def in_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = iter(range(100))
    task = SimpleNamespace(partitionId=lambda: 0, taskAttemptId=lambda: next(attempts))
    monkeypatch.setattr(TaskContext, "get", staticmethod(lambda: task))


def context() -> WriteContext:
    schema = Schema(fields=(NestedField(field_id=1, name="id", type=LongType(), required=False),))
    return WriteContext(
        table="t",
        table_location="memory:/t",
        schema=schema,
        spec=PartitionSpec(spec_id=0),
        write_id="w",
    )


def test_the_files_of_all_tasks_are_given_back() -> None:
    io = MemoryFileIO()
    files = write_frame(Frame([[1, 2], [], [3]]), context(), io)  # type: ignore[arg-type]
    assert [f.record_count for f in files] == [2, 1]
    assert sorted(f.file_path for f in files) == [f.location for f in io.list_files("memory:/t")]


def test_a_job_that_fails_removes_what_its_finished_tasks_wrote() -> None:
    io = MemoryFileIO()
    with pytest.raises(RuntimeError, match="a task failed"):
        write_frame(Frame([[1, 2], [3], None]), context(), io)  # type: ignore[arg-type]
    assert list(io.list_files("memory:/t")) == []
