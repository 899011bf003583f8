"""Computes the waits between attempts: `commit.retry.*` and `commit.status-check.*`.

The caller waits, and supplies the clock and the random numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iceberg_pyspark.spec.properties import (
    COMMIT_MAX_WAIT_MS,
    COMMIT_MIN_WAIT_MS,
    COMMIT_NUM_RETRIES,
    COMMIT_TOTAL_TIMEOUT_MS,
    STATUS_CHECK_MAX_WAIT_MS,
    STATUS_CHECK_MIN_WAIT_MS,
    STATUS_CHECK_NUM_RETRIES,
    STATUS_CHECK_TOTAL_TIMEOUT_MS,
)

_DOUBLINGS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Exponential back-off: doubling from `min_wait_ms`, at most `max_wait_ms`, plus a tenth.

    `endures`: retries that another writer's commit made necessary do not count, since the table
    moves on with each; only the time ends them. After the fourth, waits become shorter again.
    """

    num_retries: int
    min_wait_ms: int
    max_wait_ms: int
    total_timeout_ms: int
    endures: bool = False

    def wait_ms(
        self, retry: int, *, elapsed_ms: float, jitter: float, overtaken: int = 0
    ) -> float | None:
        """The wait before retry number `retry` (from 1), or None to give up.

        `elapsed_ms` is the time since the first attempt, `jitter` a random number in [0, 1) that
        keeps competing writers from meeting again, `overtaken` how many of the attempts so far
        another writer's commit came before.
        """
        attempt = retry - overtaken if self.endures else retry
        if attempt > self.num_retries or (retry > 1 and elapsed_ms > self.total_timeout_ms):
            return None
        # 2 ** 40 ms is decades: a larger exponent would only overflow
        base: float = min(self.min_wait_ms * 2 ** min(retry - 1, 40), self.max_wait_ms)
        if not self.endures:
            return base * (1 + jitter / 10)
        # the longer a writer has waited, the sooner it is back: else new ones come first for ever
        return min(base, self.max_wait_ms / max(retry - _DOUBLINGS, 1)) * (1 + jitter)


_ENDURING_MAX_WAIT_MS = 1_000
"""Many writers wait for each other's commits, which take some tens of milliseconds."""


def commit_retry_policy(properties: Mapping[str, str]) -> RetryPolicy:
    """The policy after a conflict, from table properties.

    Without `commit.retry.num-retries`, a writer among many retries until the total timeout.
    """
    endures = COMMIT_NUM_RETRIES.name not in properties
    max_wait_ms = COMMIT_MAX_WAIT_MS.of(properties)
    if endures and COMMIT_MAX_WAIT_MS.name not in properties:
        max_wait_ms = _ENDURING_MAX_WAIT_MS
    return RetryPolicy(
        num_retries=COMMIT_NUM_RETRIES.of(properties),
        min_wait_ms=COMMIT_MIN_WAIT_MS.of(properties),
        max_wait_ms=max_wait_ms,
        total_timeout_ms=COMMIT_TOTAL_TIMEOUT_MS.of(properties),
        endures=endures,
    )


def status_check_policy(properties: Mapping[str, str]) -> RetryPolicy:
    """The policy for asking what became of a commit in unknown state, from table properties."""
    return RetryPolicy(
        num_retries=STATUS_CHECK_NUM_RETRIES.of(properties),
        min_wait_ms=STATUS_CHECK_MIN_WAIT_MS.of(properties),
        max_wait_ms=STATUS_CHECK_MAX_WAIT_MS.of(properties),
        total_timeout_ms=STATUS_CHECK_TOTAL_TIMEOUT_MS.of(properties),
    )
