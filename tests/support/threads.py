"""Threads that start together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def at_once(threads: int, run: Callable[[int], T]) -> list[T]:
    """Call `run` with each thread's number; return the results in the order of the numbers."""
    together = threading.Barrier(threads)

    def started(number: int) -> T:
        together.wait()
        return run(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(started, range(threads)))
