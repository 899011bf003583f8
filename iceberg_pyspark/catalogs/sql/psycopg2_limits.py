"""Connections of psycopg2 that do not wait for ever for a server that keeps silent.

psycopg2 waits in libpq, which has no limit for a statement. A timer therefore shuts the socket
down, after which libpq says that the server is gone.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg2
from psycopg2 import extensions


class _AnsweringConnection(extensions.connection):  # type: ignore[misc]  # no types
    """A connection that is cut if a statement is not answered after `limit_s` seconds."""

    limit_s = math.inf

    def cursor(self, *arguments: Any, **options: Any) -> Any:
        return super().cursor(*arguments, **{**options, "cursor_factory": _AnsweringCursor})

    def commit(self) -> None:
        with self.answered():
            super().commit()

    def rollback(self) -> None:
        with self.answered():
            super().rollback()

    @contextlib.contextmanager
    def answered(self) -> Iterator[None]:
        """Cut the connection if the block takes longer than the limit."""
        if self.closed or math.isinf(self.limit_s):
            yield
            return
        was_late = threading.Event()
        # the descriptor of libpq may be closed, and its number used again, before the timer ends
        with socket.socket(fileno=os.dup(self.fileno())) as connected:

            def cut() -> None:
                was_late.set()
                with contextlib.suppress(OSError):
                    connected.shutdown(socket.SHUT_RDWR)

            timer = threading.Timer(self.limit_s, cut)
            timer.daemon = True
            timer.start()
            try:
                yield
            except psycopg2.Error:
                if was_late.is_set():
                    text = f"no answer within {self.limit_s:g} s"
                    raise psycopg2.OperationalError(text) from None
                raise
            finally:
                timer.cancel()
                timer.join()


class _AnsweringCursor(extensions.cursor):  # type: ignore[misc]  # no types
    def execute(self, *arguments: Any, **options: Any) -> None:
        with self.connection.answered():
            super().execute(*arguments, **options)

    def executemany(self, *arguments: Any, **options: Any) -> None:
        with self.connection.answered():
            super().executemany(*arguments, **options)


def limited_connect(limit_s: float) -> Callable[..., Any]:
    """Return a listener to SQLAlchemy's event `do_connect` that opens connections with a limit."""

    def connect(_dialect: object, _record: object, arguments: Any, options: Any) -> Any:
        options = {**options, "connection_factory": _AnsweringConnection}
        connection = psycopg2.connect(*arguments, **options)
        connection.limit_s = limit_s
        return connection

    return connect
