"""A test server has a port of its own, and another process on the port is not taken for it."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.services.server import running
from tests.support.ports import LOOPBACK, free_port, is_listening

ASKS = """
from tests.support.ports import free_port
print([free_port() for _ in range(100)])
input()
"""


def test_processes_that_run_at_once_get_different_ports() -> None:
    command = [sys.executable, "-c", ASKS]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    ports: list[int] = []
    for process in processes:
        assert process.stdout is not None
        ports += [int(port) for port in process.stdout.readline().strip("[]\n").split(", ")]
    for process in processes:
        process.communicate("\n")
    assert len(set(ports)) == 400


def test_a_stranger_on_the_port_is_not_the_server(tmp_path: Path) -> None:
    port = free_port()
    with socket.create_server((LOOPBACK, port)):
        assert is_listening(port)
        command = [sys.executable, "-c", "import time; time.sleep(1); print('in use')"]
        log = tmp_path / "log"
        with (
            pytest.raises(pytest.fail.Exception, match=r"ended with 0; its log ends with:\sin use"),
            running("a server", command, port=port, log=log),
        ):
            pass
