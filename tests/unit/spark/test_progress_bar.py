"""The progress bar over Spark's tasks: what it runs, in which thread, and what it prints."""

from __future__ import annotations

import io
import re
import threading
import time
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from iceberg_pyspark.spark.job_progress import run_with_progress


class _Context:
    """The part of a SparkContext that a progress bar uses: one job with one stage of 4 tasks."""

    def __init__(self) -> None:
        self.properties: dict[str, str | None] = {}

    def setJobGroup(self, group: str, description: str) -> None:  # noqa: N802
        self.properties["spark.jobGroup.id"] = group

    def setLocalProperty(self, name: str, value: str | None) -> None:  # noqa: N802
        self.properties[name] = value

    def statusTracker(self) -> _Tracker:  # noqa: N802
        return _Tracker(self)


class _Tracker:
    def __init__(self, context: _Context) -> None:
        self._group = context.properties["spark.jobGroup.id"]

    def getJobIdsForGroup(self, group: str) -> list[int]:  # noqa: N802
        return [7] if group == self._group else []

    def getJobInfo(self, job_id: int) -> Any:  # noqa: N802
        return type("Job", (), {"stageIds": [1, 2]})

    def getStageInfo(self, stage_id: int) -> Any:  # noqa: N802
        return type("Stage", (), {"numTasks": 4, "numCompletedTasks": 3}) if stage_id == 1 else None


class _Classic:
    def __init__(self) -> None:
        self.sparkContext = _Context()


class _Connect:
    @property
    def sparkContext(self) -> Any:  # noqa: N802
        raise RuntimeError("not supported under Connect")


def _console(*, terminal: bool) -> tuple[Console, io.StringIO]:
    output = io.StringIO()
    return Console(file=output, force_terminal=terminal, width=80, color_system=None), output


@pytest.mark.parametrize("session", [_Classic(), _Connect()])
@pytest.mark.parametrize("terminal", [True, False])
def test_the_action_runs_in_the_callers_thread(session: object, terminal: bool) -> None:
    # Spark finds a Python data source through the active session of the thread.
    console, output = _console(terminal=terminal)
    ran_in = run_with_progress(
        cast(SparkSession, session), console, "count", threading.current_thread
    )
    assert ran_in is threading.current_thread()
    assert re.search(r"✓ count \d+\.\d s", output.getvalue())


def test_tasks_are_counted_and_later_jobs_are_not_in_the_group() -> None:
    session = _Classic()
    console, output = _console(terminal=True)
    run_with_progress(cast(SparkSession, session), console, "write", lambda: time.sleep(0.5))
    assert "3/4 tasks" in output.getvalue()
    assert session.sparkContext.properties["spark.jobGroup.id"] is None


def test_error_of_the_action_is_raised_and_shown() -> None:
    console, output = _console(terminal=False)

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run_with_progress(cast(SparkSession, _Classic()), console, "write", fail)
    assert re.fullmatch(r"✗ write failed after \d+\.\d s\n", output.getvalue())
