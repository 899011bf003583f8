"""The clock of commits."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The time and the random numbers that a commit uses, which tests replace."""

    now_ms: Callable[[], int]
    sleep_ms: Callable[[float], None]
    random: Callable[[], float]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _sleep_ms(ms: float) -> None:
    time.sleep(ms / 1000)


def _random() -> float:
    # the method of `random` itself would be pickled with its state
    return random.random()


SYSTEM_CLOCK = Clock(now_ms=_now_ms, sleep_ms=_sleep_ms, random=_random)
