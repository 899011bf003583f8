"""Servers that accept a request and then are silent, send a byte now and then, or send for ever."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

Send = Callable[[bytes], None]
Answer = Callable[[Send, threading.Event], None]


def silent(_send: Send, ended: threading.Event) -> None:
    ended.wait(60)


def slow_headers(send: Send, ended: threading.Event) -> None:
    send(OK + b"X-Slow: ")
    while not ended.wait(0.05):
        send(b"x")


def slow_body(send: Send, ended: threading.Event) -> None:
    send(CHUNKED)
    while not ended.wait(0.05):
        send(b"1\r\n \r\n")


def endless_body(send: Send, ended: threading.Event) -> None:
    send(CHUNKED)
    while not ended.is_set():
        send(b"10000\r\n" + b" " * 65536 + b"\r\n")


def slowly(content: bytes, send: Send, ended: threading.Event) -> None:
    """Send the content, and then a NUL now and then."""
    send(content)
    while not ended.wait(0.05):
        send(b"\0")


@contextlib.contextmanager
def serving(*answers: Answer) -> Iterator[str]:
    """Serve one connection after another; the last answer is that of all further connections."""
    ended = threading.Event()

    def serve_all() -> None:
        queue = list(answers)
        while True:
            with listener.accept()[0] as connection, contextlib.suppress(OSError):
                if ended.is_set():
                    return
                connection.recv(65536)
                (queue.pop(0) if len(queue) > 1 else queue[0])(connection.sendall, ended)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve_all, daemon=True)
        thread.start()
        try:
            yield "http://127.0.0.1:%d" % listener.getsockname()[1]  # noqa: UP031
        finally:
            ended.set()
            socket.create_connection(listener.getsockname()).close()
            thread.join(30)
