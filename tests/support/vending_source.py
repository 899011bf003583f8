"""A source of credentials for a few seconds, and a store that holds requests until they expire.

The front of a store calls `served` after each request. The first request for a data file in a phase
gets no reply until all credentials have expired, and from then on the store refuses these. So a job
lives longer than its credentials, however fast the machine is.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.http_server import Reply, Request

LIFETIME_S = 3
REFUSAL = "no more keys for you"


@dataclass
class VendingSource:
    """An HTTP endpoint: `/vend` returns new properties, `/phase/<name>` begins a phase.

    In the phases `write` and `read` credentials expire during the first such request of the JVM for
    a data file. In the phase `refuse` they expire during the first `read`, and the source vends no
    others.
    """

    issue: Callable[[int], dict[str, str]]
    """Return properties whose credentials are valid until an epoch second."""

    expire: Callable[[], None] = lambda: None
    """Let the store refuse all credentials so far."""

    phase: str = ""
    vends: bool = True
    end_s: int = 0
    used: dict[str, list[str]] = field(default_factory=dict)
    """The credentials of the JVM's requests for data files, by phase."""

    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: Request) -> Reply:
        if request.path.startswith("/phase/"):
            self.phase = request.path.removeprefix("/phase/")
            return Reply(200, {})
        with self.lock:
            if not self.vends:
                return Reply(403, REFUSAL)
            self.end_s = math.ceil(time.time()) + LIFETIME_S
            return Reply(200, self.issue(self.end_s))

    def served(self, kind: str, credential: str) -> None:
        """Record a request of the JVM for a data file; hold its reply if it is the first one."""
        if kind != ("read" if self.phase == "refuse" else self.phase):
            return
        with self.lock:
            used = self.used.setdefault(self.phase, [])
            used.append(credential)
            if len(used) > 1:
                return
            self.vends = self.phase != "refuse"
            end_s = self.end_s
        time.sleep(max(end_s - time.time(), 0) + 0.1)
        self.expire()
