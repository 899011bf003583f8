"""Defines the progress callback of long procedures.

The callback is called after every step with the work done so far. The receiver decides how often to
show progress; procedures behave the same with or without a receiver.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

_T = TypeVar("_T")

_LINE_SECONDS = 10.0


class Progress(Protocol):
    """A callback `progress(phase, done, total)`: steps done and total steps, None if unknown.

    The end of a phase is reported with `total` equal to `done`, also if the total was unknown.
    Several phases may advance in turns. The thread that runs the procedure makes all calls.
    """

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        """Receive the progress; must not raise."""
        ...


def no_progress(phase: str, done: int, total: int | None) -> None:
    """Ignore the progress."""


def with_progress(
    progress: Progress, phase: str, items: Iterable[_T], total: int | None
) -> Iterator[_T]:
    """Yield the items, and report progress before the first item and after each.

    If the total is unknown, the number of all items is reported as the total at the end.

    >>> steps = []
    >>> list(with_progress(lambda *step: steps.append(step), "reading", "ab", 2)), steps
    (['a', 'b'], [('reading', 0, 2), ('reading', 1, 2), ('reading', 2, 2)])
    """
    progress(phase, 0, total)
    step_count = 0
    for step_count, item in enumerate(items, start=1):
        yield item
        progress(phase, step_count, total)
    if total is None:
        progress(phase, step_count, step_count)


class LoggedProgress:
    """Writes progress as lines of a logger: at the end of each phase, and every ten seconds."""

    def __init__(
        self,
        logger: logging.Logger,
        *,
        subject: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Log on the level INFO; each line begins with `subject` if it is not empty."""
        self._log = logger
        self._start = f"{subject}: " if subject else ""
        self._clock = clock
        self._last = clock()

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        """Log the progress if the last line is ten seconds old, or if the phase is at its end.

        >>> LoggedProgress(logging.getLogger("x"))("files listed", 7, None)
        """
        now = self._clock()
        if now - self._last >= _LINE_SECONDS or (total is not None and done >= total):
            self._last = now
            self._log.info("%s%s: %s", self._start, phase, steps_text(done, total))


def steps_text(done: int, total: int | None) -> str:
    """Return the count of steps for people.

    >>> steps_text(3, None), steps_text(3, 1000)
    ('3', '3/1,000')
    """
    return f"{done:,}" if total is None else f"{done:,}/{total:,}"


class StepQueue(Generic[_T]):
    """Steps that other threads have done, for the report by the thread that runs the procedure.

    So a receiver of progress need not be thread-safe, and never holds up the other threads.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[_T | Future[Any]] = SimpleQueue()

    def add(self, step: _T) -> None:
        """Add a step; thread-safe."""
        self._queue.put(step)

    def wait_for(self, future: Future[Any]) -> Iterator[_T]:
        """Yield the steps of all threads as they are added, until the future is done."""
        future.add_done_callback(self._queue.put)
        while not isinstance(step := self._queue.get(), Future):
            yield step
