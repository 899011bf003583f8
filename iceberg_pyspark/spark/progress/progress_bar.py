"""A progress bar of Spark's task counts, for interactive jobs.

On classic Spark the driver can query the tasks of a job; under Connect the bar has no counts. If
the output is not a terminal, one line reports the work and its time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column

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
