"""A proxy in front of a database that cuts a connection at its COMMIT, either before the server
gets the statement or after the server has run it, or that keeps connections open in silence.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from typing import Literal

When = Literal["before", "after", "silent"]
# Match the whole protocol message of PostgreSQL or MySQL: file names contain the word COMMIT too.
_COMMITS = (b"\x0bCOMMIT\0", b"\x03COMMIT")


class CuttingProxy:
    """A proxy that forwards bytes until the next COMMIT after `cut_next`."""

    def __init__(self, upstream: tuple[str, int], listener: socket.socket) -> None:
        self._upstream = upstream
        self._listener = listener
        self.port: int = listener.getsockname()[1]
        self._cut: When | None = None
        self._closed = threading.Event()

    @property
    def is_armed(self) -> bool:
        """Whether a requested cut has not happened yet."""
        return self._cut is not None

    def cut_next(self, when: When) -> None:
        """Cut the connection that sends the next COMMIT; "silent" runs it and says nothing more."""
        self._cut = when

    def close(self) -> None:
        """End the silent connections."""
        self._closed.set()

    def serve(self) -> None:
        """Serve each connection in a separate thread until the listener is closed."""
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._hand_on, args=(client,), daemon=True).start()

    def _hand_on(self, client: socket.socket) -> None:
        with (
            client,
            socket.create_connection(self._upstream) as server,
            contextlib.suppress(OSError),
        ):
            while True:
                for source in select.select((client, server), (), ())[0]:
                    data = source.recv(65536)
                    if not data:
                        return
                    if source is client and self._cut and data.endswith(_COMMITS):
                        when, self._cut = self._cut, None
                        if when != "before":
                            server.sendall(data)
                            # The server answers once it has run the COMMIT.
                            server.recv(65536)
                        if when == "silent":
                            self._closed.wait(60)
                        return
                    (server if source is client else client).sendall(data)


@contextlib.contextmanager
def cutting_proxy(host: str, port: int) -> Iterator[CuttingProxy]:
    """Yield a running proxy on a free port."""
    with socket.create_server((host, 0)) as listener:
        proxy = CuttingProxy((host, port), listener)
        threading.Thread(target=proxy.serve, daemon=True).start()
        try:
            yield proxy
        finally:
            proxy.close()
