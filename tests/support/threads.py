"""Threads that start together, and waiting for what another thread or process does."""

from __future__ import annotations

import threading
import time
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


def until(is_true: Callable[[], bool]) -> None:
    """Wait until a condition holds; fail after a minute."""
    end = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < end, "the condition did not come true"
        time.sleep(0.01)
