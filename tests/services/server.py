"""Server processes for tests, each on a free loopback port, stopped when its tests end.

What a server needs (binaries, jars) is built or downloaded once into `.services/`, by coordinates
of a package registry. If this fails, a test skips and gives the reason; where CI is set, it fails.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import psutil
import pytest

from tests.support.ports import LOOPBACK

SERVICES = Path(__file__).resolve().parents[2] / ".services"


@dataclass(frozen=True)
class Server:
    """A running process; `log` is the file with its output."""

    name: str
    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def endpoint(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"


def absent(service: str, reason: str) -> NoReturn:
    """Skip the test, or fail it where CI is set."""
    message = f"{service} cannot be had: {reason}"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@contextlib.contextmanager
def build_lock(name: str) -> Iterator[Path]:
    """Lock a service's folder below `.services`, so that only one process builds the service."""
    folder = SERVICES / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


@contextlib.contextmanager
def running(
    name: str,
    command: Sequence[str],
    *,
    port: int,
    log: Path,
    environment: Mapping[str, str] | None = None,
    ready: Callable[[], bool] | None = None,
    seconds: float = 60,
    user: str | None = None,
    stop_signal: signal.Signals = signal.SIGTERM,
) -> Iterator[Server]:
    """Start `command`, wait until it listens on `port` and is `ready`, and stop it at the end.

    The test fails unless the server listens on loopback alone, because nobody else may reach it.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
            user=user,
        )
    server = Server(name, process, port, log)
    try:
        _wait(server, ready or (lambda: True), seconds)
        _check_loopback(server)
        yield server
    finally:
        _stop(process, stop_signal)


def _wait(server: Server, ready: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not (_listens(server) and ready()):
        code = server.process.poll()
        if code is not None or time.monotonic() > end:
            outcome = f"ended with {code}" if code is not None else f"was not ready in {seconds} s"
            tail = server.log.read_text(errors="replace")[-2000:]
            pytest.fail(f"{server.name} {outcome}; its log ends with:\n{tail}")
        time.sleep(0.05)


def _listens(server: Server) -> bool:
    """Return whether this server, and no other process, listens on its port."""
    with socket.socket() as client:
        # Somebody must listen: to look for it among all connections takes longer.
        if client.connect_ex((LOOPBACK, server.port)):
            return False
    return any(connection.laddr.port == server.port for connection in _listeners(server))


def _check_loopback(server: Server) -> None:
    for connection in _listeners(server):
        if connection.laddr.ip not in (LOOPBACK, "::1", f"::ffff:{LOOPBACK}"):
            pytest.fail(f"{server.name} listens on {connection.laddr}, not on loopback alone")


def _listeners(server: Server) -> Iterator[Any]:
    # The process has ended; the caller checks its exit code.
    with contextlib.suppress(psutil.NoSuchProcess):
        processes = [psutil.Process(server.process.pid)]
        processes += processes[0].children(recursive=True)
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):  # a child that has ended meanwhile
                connections = process.net_connections(kind="inet")
                yield from (each for each in connections if each.status == psutil.CONN_LISTEN)


def _stop(process: subprocess.Popen[bytes], stop_signal: signal.Signals) -> None:
    # Stop the whole process group, because servers have child processes.
    for number in (stop_signal, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            process.wait(timeout=10)
            return
        except subprocess.TimeoutExpired:
            continue
