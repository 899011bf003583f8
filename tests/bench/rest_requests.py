"""Time that a client waits for a REST server: ours and PyIceberg's.

Requests of other threads are left out: our client reports its commits in the background.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import httpx
import requests


@dataclass
class RequestTimes:
    """Numbers of requests and seconds in requests, one item per measured action."""

    numbers: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def measured(self, action: Callable[[], object]) -> Callable[[], object]:
        """Return the action, which also adds an item."""

        def run() -> object:
            self.numbers.append(0)
            self.seconds.append(0.0)
            with self._counted():
                return action()

        return run

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        with (
            patch.object(httpx.Client, "request", self._timed(httpx.Client.request)),
            patch.object(requests.Session, "send", self._timed(requests.Session.send)),
        ):
            yield

    def _timed(self, send: Callable[..., Any]) -> Callable[..., Any]:
        thread = threading.get_ident()

        def timed(*arguments: Any, **options: Any) -> Any:
            if threading.get_ident() != thread:
                return send(*arguments, **options)
            started = time.perf_counter()
            try:
                return send(*arguments, **options)
            finally:
                self.numbers[-1] += 1
                self.seconds[-1] += time.perf_counter() - started

        return timed
