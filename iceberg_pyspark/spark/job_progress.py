"""The progress of Spark jobs: descriptions of jobs, counts of tasks, and a bar for jobs/*.py.

On classic Spark the driver can query the tasks of a job; under Connect the bar has no counts. If
the output is not a terminal, one line reports the work and its time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark import Accumulator
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark import SparkContext
    from rich.console import Console

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


T = TypeVar("T")
_POLL_SECONDS = 0.1
_BAR_WIDTH = 20


def run_with_progress(
    spark: SparkSession, console: Console, description: str, action: Callable[[], T]
) -> T:
    """Run an action that starts Spark jobs, and show how many tasks are done; return its result."""
    start = time.monotonic()
    try:
        with _progress_bar(spark, console, description):
            # In the caller's thread: Spark finds Python data sources by the thread's active
            # session, which a new thread would not have.
            result = action()
    except BaseException:
        _say(console, "[red]✗[/red]", description, f"failed after {_seconds_since(start)}")
        raise
    _say(console, "[green]✓[/green]", description, _seconds_since(start))
    return result


@contextmanager
def _progress_bar(spark: SparkSession, console: Console, description: str) -> Iterator[None]:
    if not console.is_terminal:
        yield
        return
    # executors import this module and may lack rich
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.table import Column  # noqa: PLC0415

    columns = (
        SpinnerColumn(),
        # A description that does not fit is cut off, so that the bar stays one line.
        TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=_BAR_WIDTH),
        TextColumn("{task.fields[tasks]}", table_column=Column(no_wrap=True)),
        TimeElapsedColumn(),
    )
    with (
        Progress(*columns, console=console, transient=True) as progress,
        _job_group(spark, description) as group,
    ):
        bar = progress.add_task(description, total=None, tasks="")
        if group is None:
            yield
            return
        tracker = spark.sparkContext.statusTracker()
        stop = threading.Event()

        def follow() -> None:
            while not stop.wait(_POLL_SECONDS):
                done_tasks, total = _tasks(tracker, group)
                if total:
                    progress.update(
                        bar, total=total, completed=done_tasks, tasks=f"{done_tasks}/{total} tasks"
                    )

        follower = threading.Thread(target=follow, name=group, daemon=True)
        follower.start()
        try:
            yield
        finally:
            stop.set()
            follower.join()


@contextmanager
def _job_group(spark: SparkSession, description: str) -> Iterator[str | None]:
    """Set the job group of this thread and yield its name; yield None under Connect."""
    try:
        context = spark.sparkContext
    except Exception:  # noqa: BLE001 - Connect raises its own error class, absent on classic Spark
        yield None
        return
    group = f"iceberg-py-{time.monotonic_ns()}"
    context.setJobGroup(group, description)
    try:
        yield group
    finally:
        for name in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
            context.setLocalProperty(name, None)  # type: ignore[arg-type]


def _tasks(tracker: Any, group: str) -> tuple[int, int]:
    done_tasks = total = 0
    for job_id in tracker.getJobIdsForGroup(group):
        job = tracker.getJobInfo(job_id)
        for stage_id in job.stageIds if job is not None else ():
            stage = tracker.getStageInfo(stage_id)
            if stage is not None:
                done_tasks += stage.numCompletedTasks
                total += stage.numTasks
    return done_tasks, total


def _say(console: Console, mark: str, description: str, duration: str) -> None:
    console.print(f"{mark} {description} [dim]{duration}[/dim]", highlight=False)


def _seconds_since(start: float) -> str:
    return f"{time.monotonic() - start:.1f} s"
