"""PostgreSQL: the server installed on the system, or else one from a Maven artifact.

PostgreSQL refuses to run as root, so another user runs it then. Its databases require a password,
so that tests can check that the password never shows.
"""

from __future__ import annotations

import contextlib
import platform
import shutil
import signal
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.services.databases import (
    PASSWORD,
    USER,
    DatabaseServer,
    server_folder,
    unprivileged_user,
)
from tests.services.maven import bring
from tests.services.server import absent, build_lock, running
from tests.support.ports import LOOPBACK, free_port

if TYPE_CHECKING:
    import psycopg

_VERSION = "17.5.0"
_SETTINGS = {
    "listen_addresses": LOOPBACK,
    "max_connections": "200",
    # No test needs its data to survive a crash of the machine.
    "fsync": "off",
    "full_page_writes": "off",
}


@contextlib.contextmanager
def postgres() -> Iterator[DatabaseServer]:
    """Yield a new server, which is stopped and deleted at the end."""
    binaries = program().parent
    try:
        user = unprivileged_user("postgres", "nobody")
    except LookupError as e:
        absent("PostgreSQL", str(e))
    with server_folder(user) as folder:
        secret = folder / "password"
        secret.write_text(PASSWORD)
        if user is not None:
            shutil.chown(secret, user)
        data = folder / "data"
        command = [str(binaries / "initdb"), "-D", str(data), "-U", USER, "--encoding=UTF8"]
        command += ["--locale=C", "--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync"]
        outcome = subprocess.run(command, capture_output=True, text=True, user=user, cwd=folder)
        if outcome.returncode:
            absent("PostgreSQL", f"initdb failed: {outcome.stderr[-500:]}")
        port = free_port()
        command = [str(binaries / "postgres"), "-D", str(data), "-p", str(port), "-k", str(folder)]
        for name, value in _SETTINGS.items():
            command += ["-c", f"{name}={value}"]
        log = folder / "postgres.log"
        ready = partial(_takes_connections, port)
        with running(
            "postgres",
            command,
            port=port,
            log=log,
            user=user,
            ready=ready,
            # SIGTERM would wait for the clients to leave.
            stop_signal=signal.SIGINT,
        ) as server:
            yield DatabaseServer(server, "postgresql", lambda name: _create(port, name))


def _takes_connections(port: int) -> bool:
    """Return whether the server, which listens before it is ready, lets clients in."""
    import psycopg  # noqa: PLC0415 - the driver is an extra of its own

    try:
        with _connect(port):
            return True
    except psycopg.OperationalError:
        return False


def _connect(port: int) -> psycopg.Connection:
    import psycopg  # noqa: PLC0415 - the driver is an extra of its own

    return psycopg.connect(
        host=LOOPBACK, port=port, user=USER, password=PASSWORD, dbname="postgres", autocommit=True
    )


def _create(port: int, name: str) -> None:
    with _connect(port) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())


def program() -> Path:
    """Return the server's program; `initdb` is beside it."""
    return _binaries() / "postgres"


def _binaries() -> Path:
    # Debian has a folder per version.
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    return _brought_binaries()


def _brought_binaries() -> Path:
    machine = {"x86_64": "amd64", "aarch64": "arm64v8"}.get(platform.machine())
    if platform.system() != "Linux" or machine is None:
        absent("PostgreSQL", f"no binaries are known for {platform.platform()}")
    artifact = f"io.zonky.test.postgres:embedded-postgres-binaries-linux-{machine}:{_VERSION}"
    with build_lock(f"postgres-{_VERSION}") as folder:
        binaries = folder / "server" / "bin"
        if not binaries.exists():
            try:
                jar = bring(artifact, folder)
            except (OSError, subprocess.SubprocessError) as e:
                absent("PostgreSQL", f"{artifact} did not come ({type(e).__name__})")
            unpacked = folder / "unpacked"
            shutil.rmtree(unpacked, ignore_errors=True)
            with zipfile.ZipFile(jar) as files:
                name = next(n for n in files.namelist() if n.endswith(".txz"))
                with files.open(name) as packed, tarfile.open(fileobj=packed, mode="r:xz") as tar:
                    tar.extractall(unpacked, filter="data")
            unpacked.rename(binaries.parent)
            jar.unlink()
    return binaries
