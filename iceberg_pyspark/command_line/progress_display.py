"""Shows the progress of long work: bars on a terminal, otherwise log lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from iceberg_pyspark.display import escape_text
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.table.progress import LoggedProgress, steps_text
from iceberg_pyspark.table.progress import Progress as ProgressCallback

_BAR_WIDTH = 20

_log = get_logger(__name__)


@contextmanager
def shown_progress(
    console: Console, *, clock: Callable[[], float] = time.monotonic
) -> Iterator[ProgressCallback]:
    """Yield a callback that shows progress: a bar of each phase on a terminal, else log lines.

    A log line is written at the end of each phase, and every ten seconds.
    """
    if not console.is_terminal:
        yield LoggedProgress(_log, clock=clock)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=_BAR_WIDTH),
        TextColumn("{task.fields[steps]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        yield _Bars(bars)


class _Bars:
    """One bar for each phase; the first phase replaces the bar of the planning."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._planning: TaskID | None = bars.add_task("planning", total=None, steps="")
        self._bar_by_phase: dict[str, TaskID] = {}

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        before = self._bar_by_phase.get(phase, self._planning)
        # a phase that begins again may have no total now
        if phase not in self._bar_by_phase or done == 0:
            if before is not None:
                self._bars.remove_task(before)
            self._planning = None
            self._bar_by_phase[phase] = self._bars.add_task(
                escape_text(phase), total=total, steps=""
            )
        bar = self._bar_by_phase[phase]
        self._bars.update(bar, completed=done, total=total, steps=steps_text(done, total))
