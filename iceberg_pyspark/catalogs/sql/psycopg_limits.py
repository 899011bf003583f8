"""Connections of psycopg that do not wait for ever for a server that keeps silent."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from typing import Any

import psycopg


class _AnsweringConnection(psycopg.Connection[Any]):
    """A connection that is closed if no bytes come or go for `limit_s` seconds."""

    limit_s = math.inf

    def wait(self, gen: Generator[Any, Any, Any], *given: Any, **options: Any) -> Any:
        """Wait for the socket as `gen` asks; see `psycopg.Connection.wait`."""
        return super().wait(self._limited(gen), *given, **options)

    def _limited(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        try:
            wanted = next(gen)
            last_s = time.monotonic()
            while True:
                # nothing is ready if psycopg's own short interval is over
                ready = yield wanted
                if ready:
                    last_s = time.monotonic()
                elif time.monotonic() - last_s > self.limit_s:
                    # its answer, if it still came, would be taken for that of the next statement
                    self.close()
                    raise psycopg.OperationalError(f"no answer within {self.limit_s:g} s")
                wanted = gen.send(ready)
        except StopIteration as e:
            return e.value


def limited_connect(limit_s: float) -> Callable[..., psycopg.Connection[Any]]:
    """Return a listener to SQLAlchemy's event `do_connect` that opens connections with a limit."""

    def connect(
        _dialect: object, _record: object, arguments: Any, options: Any
    ) -> psycopg.Connection[Any]:
        connection = _AnsweringConnection.connect(*arguments, **options)
        connection.limit_s = limit_s
        return connection

    return connect
