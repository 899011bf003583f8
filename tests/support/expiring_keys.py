"""Credentials of a few seconds' life, and requests that wait until these have expired.

A store reports each request for a data file after it is served. In a phase, those requests get no
reply until all credentials that were vended before have expired, and from then on the store refuses
these. So a job lives longer than its credentials, however fast the machine and many the tasks are.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

LIFETIME_S = 2
GRACE_S = 0.5
"""How long a store accepts expired credentials: those of requests that were under way."""

REFUSAL = "no more keys for you"


@dataclass
class ExpiringKeys:
    """The credentials of a store, and the phases of a program.

    In the phases `write` and `read`, and in those whose names begin so, credentials expire during
    the first such requests. In phases that begin with `refuse` they expire during the first reads,
    and no others are vended until the next phase.
    """

    accepted: set[str] = field(default_factory=set)
    """The credentials that the store accepts."""

    phase: str = ""
    vends: bool = True
    used: dict[str, list[str]] = field(default_factory=dict)
    """The credentials of the requests that a phase waits for."""

    late: list[str] = field(default_factory=list)
    """Credentials that were used although the store no longer accepts them."""

    _ends: dict[str, float] = field(default_factory=dict)
    _releases: dict[str, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, phase: str) -> None:
        """Begin a phase."""
        self.phase, self.vends = phase, True

    def add(self, credential: str, end_s: float) -> None:
        """Let the store accept a new credential."""
        with self.lock:
            self._ends[credential] = end_s
            self.accepted.add(credential)

    def serve(self, kind: str, credential: str) -> None:
        """Record a `write` or `read` of a data file; return when its reply may be sent."""
        phase = self.phase
        if kind != ("read" if phase.startswith("refuse") else phase.partition(" ")[0]):
            return
        with self.lock:
            self.used.setdefault(phase, []).append(credential)
            if credential not in self.accepted:
                self.late.append(credential)
            release_s = self._releases.setdefault(phase, max(self._ends.values()) + GRACE_S)
            self.vends = not phase.startswith("refuse")
        if (wait_s := release_s - time.time()) > 0:
            time.sleep(wait_s)
            expired = {c for c, end_s in self._ends.items() if end_s <= release_s - GRACE_S}
            self.accepted -= expired
