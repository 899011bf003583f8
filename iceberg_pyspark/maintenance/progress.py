"""Defines the progress callback of long procedures.

The callback is called after every step with the work done so far. The receiver decides how often to
show progress; procedures behave the same with or without a receiver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

_T = TypeVar("_T")


class Progress(Protocol):
    """A callback `progress(phase, done, total)`: steps done and total steps, None if unknown."""

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        """Receive the progress; must not raise."""
        ...


def no_progress(phase: str, done: int, total: int | None) -> None:
    """Ignore the progress."""


def with_progress(
    progress: Progress, phase: str, items: Iterable[_T], total: int | None
) -> Iterator[_T]:
    """Yield the items, and report progress before the first item and after each.

    >>> steps = []
    >>> list(with_progress(lambda *step: steps.append(step), "reading", "ab", 2)), steps
    (['a', 'b'], [('reading', 0, 2), ('reading', 1, 2), ('reading', 2, 2)])
    """
    progress(phase, 0, total)
    for done, item in enumerate(items, start=1):
        yield item
        progress(phase, done, total)
