"""A proxy in front of a database that cuts a connection at its COMMIT: before the server has the
statement, or after it has carried it out.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from typing import Literal

When = Literal["before", "after"]
# the messages of PostgreSQL and of MySQL, whole: file names have the word too
_COMMITS = (b"\x0bCOMMIT\0", b"\x03COMMIT")


class CuttingProxy:
    """Hands bytes on, until the next COMMIT where it was told to cut."""

    def __init__(self, upstream: tuple[str, int], listener: socket.socket) -> None:
        self._upstream = upstream
        self._listener = listener
        self.port: int = listener.getsockname()[1]
        self._cut: When | None = None

    @property
    def is_armed(self) -> bool:
        """Whether the cut is still to come."""
        return self._cut is not None

    def cut_next(self, when: When) -> None:
        """Cut the connection whose COMMIT is the next."""
        self._cut = when

    def serve(self) -> None:
        """Serve each connection in a thread of its own, until the listener is closed."""
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
                        if when == "after":
                            server.sendall(data)
                            # the answer comes when it is carried out
                            server.recv(65536)
                        return
                    (server if source is client else client).sendall(data)


@contextlib.contextmanager
def cutting_proxy(host: str, port: int) -> Iterator[CuttingProxy]:
    """A proxy on a port of its own."""
    with socket.create_server((host, 0)) as listener:
        proxy = CuttingProxy((host, port), listener)
        threading.Thread(target=proxy.serve, daemon=True).start()
        yield proxy
