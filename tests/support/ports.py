"""TCP ports on loopback for test servers, each given to only one process at a time.

A port from the operating system may be assigned again, to an outgoing connection or to another
process, before a server that takes seconds to start binds it. The ports here are below the system's
range, and each is locked for as long as the process that asked for it runs.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

LOOPBACK = "127.0.0.1"
# below the range of outgoing connections: from 32768 by default, from 16000 in sandboxes
_PORTS = range(10_000, 16_000)
_locks: dict[int, IO[bytes]] = {}


def free_port() -> int:
    """Return a port that nothing listens on, and lock it until this process ends."""
    folder = Path(tempfile.gettempdir()) / f"iceberg-py-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for port in random.sample(_PORTS, len(_PORTS)):
        if port not in _locks and _claimed(folder / str(port), port):
            return port
    raise AssertionError(f"no port of {_PORTS.start} to {_PORTS.stop - 1} is free on {LOOPBACK}")


def _claimed(path: Path, port: int) -> bool:
    lock = path.open("wb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with socket.create_server((LOOPBACK, port)):
            pass
    except OSError:
        lock.close()
        return False
    _locks[port] = lock
    return True


def is_listening(port: int) -> bool:
    """Return whether something accepts connections on this port."""
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex((LOOPBACK, port)) == 0
