"""Counts what the tasks of a Spark job have done, and tells the driver when each task ends.

Describes the Spark jobs of a step, and keeps the properties of the thread that starts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark import Accumulator
from pyspark.accumulators import AccumulatorParam

if TYPE_CHECKING:
    from pyspark import SparkContext


_DESCRIPTION = "spark.job.description"


@contextmanager
def described_jobs(context: SparkContext, description: str) -> Iterator[None]:
    """Describe the jobs that this thread starts in the block; then restore its description.

    The job group, the tags and the other properties of the thread stay as they are.
    """
    of_the_caller = context.getLocalProperty(_DESCRIPTION)
    context.setJobDescription(description)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, of_the_caller)  # type: ignore[arg-type]


class _ReportedCount(AccumulatorParam[int]):
    """Adds counts; in the driver, it passes each count to a function."""

    def __init__(self) -> None:
        self.report: Callable[[int], None] | None = None

    def zero(self, value: int) -> int:
        return 0

    def addInPlace(self, value1: int, value2: int) -> int:
        if self.report is not None and value2:
            self.report(value2)
        return value1 + value2

    def __reduce__(self) -> tuple[Any, ...]:
        # the function stays in the driver
        return _ReportedCount, ()


@contextmanager
def task_count(context: SparkContext, report: Callable[[int], None]) -> Iterator[Accumulator[int]]:
    """Yield an accumulator; `report` gets its count of each task that succeeds.

    A thread of Spark calls `report` and waits for it, so it must return at once. A task that runs
    again because its output was lost is counted again.
    """
    count = _ReportedCount()
    accumulator = context.accumulator(0, count)
    count.report = report
    try:
        yield accumulator
    finally:
        # Spark keeps the accumulator until the process ends.
        count.report = None
