"""TCP ports of loopback for servers of tests, each given to one process at a time.

A port that the system hands out may be handed out again before a server that takes seconds to
start binds it: to any outgoing connection, or to the next who asks. The ports here are below those
that the system hands out, and each is locked for as long as the process that asked for it runs.
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
# below the ports for outgoing connections: 32768 and above by default, 16000 in some sandboxes
_PORTS = range(10_000, 16_000)
_locks: dict[int, IO[bytes]] = {}


def free_port() -> int:
    """A port that nothing listens on, which no other process that asks here gets meanwhile."""
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
    """Tell whether something accepts connections on this port."""
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex((LOOPBACK, port)) == 0
