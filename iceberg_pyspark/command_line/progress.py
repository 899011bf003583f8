"""Shows the progress of long work: a bar on a terminal, otherwise log lines."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from iceberg_pyspark.maintenance.progress import Progress as ProgressCallback
from iceberg_pyspark.spec.display import escaped

_LINE_SECONDS = 10.0
_BAR_WIDTH = 20

_log = logging.getLogger(__name__)


@contextmanager
def shown_progress(
    console: Console, *, clock: Callable[[], float] = time.monotonic
) -> Iterator[ProgressCallback]:
    """Yield a callback that shows progress: a bar on a terminal, else log lines.

    A log line is written at the end of each step and every ten seconds.
    """
    if not console.is_terminal:
        yield _Lines(clock)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=_BAR_WIDTH),
        TextColumn("{task.fields[steps]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        yield _Bar(bars)


class _Bar:
    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task = bars.add_task("planning", total=None, steps="")
        self._phase = ""

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        if phase != self._phase:
            self._phase = phase
            self._bars.reset(self._task, total=total, description=escaped(phase), steps="")
        self._bars.update(self._task, completed=done, total=total, steps=_steps(done, total))


class _Lines:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last = clock()

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        now = self._clock()
        if now - self._last < _LINE_SECONDS and (total is None or done < total):
            return
        self._last = now
        _log.info("%s: %s", phase, _steps(done, total))


def _steps(done: int, total: int | None) -> str:
    return f"{done:,}" if total is None else f"{done:,}/{total:,}"
