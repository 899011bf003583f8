"""Computes the waits between attempts: `commit.retry.*` and `commit.status-check.*`.

The caller waits, and supplies the clock and the random numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iceberg_pyspark.spec.table_properties import (
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
    """Exponential back-off: waits double from `min_wait_ms` to at most `max_wait_ms`, plus jitter.

    The jitter adds up to a tenth. With `endures`, retries after another writer's commit do not
    count, since each such commit is progress of the table; only the total timeout ends them. The
    jitter then at most doubles a wait, and the longest wait becomes shorter after the fifth retry.
    """

    num_retries: int
    min_wait_ms: int
    max_wait_ms: int
    total_timeout_ms: int
    endures: bool = False

    def wait_ms(
        self, retry: int, *, elapsed_ms: float, jitter: float, overtaken: int = 0
    ) -> float | None:
        """Return the wait before retry number `retry` (from 1), or None to give up.

        `elapsed_ms` is the time since the first attempt. `jitter` is a random number in [0, 1) that
        keeps competing writers apart. `overtaken` is the number of earlier attempts that failed
        because another writer committed first.
        """
        attempt = retry - overtaken if self.endures else retry
        if attempt > self.num_retries or (retry > 1 and elapsed_ms > self.total_timeout_ms):
            return None
        # 2 ** 40 ms is decades; a larger exponent would only overflow.
        base: float = min(self.min_wait_ms * 2 ** min(retry - 1, 40), self.max_wait_ms)
        if not self.endures:
            return base * (1 + jitter / 10)
        # Waits become shorter, since otherwise newly arrived writers would always commit first.
        return min(base, self.max_wait_ms / max(retry - _DOUBLINGS, 1)) * (1 + jitter)


_ENDURING_MAX_WAIT_MS = 1_000
"""Many writers wait for each other's commits, which take some tens of milliseconds each."""


def commit_retry_policy(properties: Mapping[str, str]) -> RetryPolicy:
    """Return the policy after a conflict, from table properties.

    Without `commit.retry.num-retries`, a writer that competes with others retries until the total
    timeout.
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
    """Return the policy for checking a commit of unknown state, from table properties."""
    return RetryPolicy(
        num_retries=STATUS_CHECK_NUM_RETRIES.of(properties),
        min_wait_ms=STATUS_CHECK_MIN_WAIT_MS.of(properties),
        max_wait_ms=STATUS_CHECK_MAX_WAIT_MS.of(properties),
        total_timeout_ms=STATUS_CHECK_TOTAL_TIMEOUT_MS.of(properties),
    )
