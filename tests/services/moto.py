"""moto's server, which has AWS's key management service; installed into a folder of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.services.server import Server, absent, build_lock, running
from tests.support.ports import LOOPBACK, free_port

VERSION = "5.2.5"


@contextlib.contextmanager
def moto_server(folder: Path) -> Iterator[Server]:
    """Yield a running server, whose log is in `folder`."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", LOOPBACK, "-p", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(_packages())}
    with running(
        "moto", command, port=port, log=folder / "moto.log", environment=environment
    ) as server:
        yield server


def _packages() -> Path:
    with build_lock(f"moto-{VERSION}-{sys.implementation.cache_tag}") as folder:
        packages = folder / "packages"
        if not (packages / "moto" / "server.py").exists():
            command = [sys.executable, "-m", "pip", "install", "--quiet"]
            command += ["--target", str(packages), f"moto[kms,server]=={VERSION}"]
            try:
                subprocess.run(command, stdout=sys.stderr, timeout=600, check=True)
            except (OSError, subprocess.SubprocessError) as error:
                absent("moto", f"its packages did not come ({error!r:.300})")
    return packages
