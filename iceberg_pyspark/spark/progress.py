"""A progress bar over Spark's own task counts, for jobs that talk to a person.

Works on classic Spark, where the driver can ask for the tasks of a job; under Connect, or where the
output is no terminal, it says what runs and how long it took.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

T = TypeVar("T")
_POLL_SECONDS = 0.1


def run_with_progress(
    spark: SparkSession, console: Console, description: str, action: Callable[[], T]
) -> T:
    """Run an action that starts Spark jobs; show tasks done of all; return or raise what it
    does.
    """
    tracker = _status_tracker(spark)
    outcome: dict[str, Any] = {}
    group = f"iceberg-py-{threading.get_ident()}-{time.monotonic_ns()}"

    def work() -> None:
        try:
            if tracker is not None:
                spark.sparkContext.setJobGroup(group, description)
            outcome["result"] = action()
        except BaseException as e:  # noqa: BLE001 - carried to the caller's thread and raised there
            outcome["error"] = e

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=28),
        TextColumn("{task.fields[tasks]}"),
        TimeElapsedColumn(),
    )
    started = time.monotonic()
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(description, total=None, tasks="")
        worker = threading.Thread(target=work, name=group, daemon=True)
        worker.start()
        while worker.is_alive():
            worker.join(_POLL_SECONDS)
            if tracker is not None:
                done, total = _tasks(tracker, group)
                if total:
                    progress.update(bar, total=total, completed=done, tasks=f"{done}/{total} tasks")
    elapsed = time.monotonic() - started
    if "error" in outcome:
        console.print(f"[red]✗[/red] {description} [dim]failed after {elapsed:.1f} s[/dim]")
        raise outcome["error"]
    console.print(f"[green]✓[/green] {description} [dim]{elapsed:.1f} s[/dim]")
    result: T = outcome["result"]
    return result


def _status_tracker(spark: SparkSession) -> Any:
    try:
        return spark.sparkContext.statusTracker()
    except Exception:  # noqa: BLE001 - Connect raises its own error class, absent on classic Spark
        return None


def _tasks(tracker: Any, group: str) -> tuple[int, int]:
    done = total = 0
    for job_id in tracker.getJobIdsForGroup(group):
        job = tracker.getJobInfo(job_id)
        for stage_id in job.stageIds if job is not None else ():
            stage = tracker.getStageInfo(stage_id)
            if stage is not None:
                done += stage.numCompletedTasks
                total += stage.numTasks
    return done, total
