"""AsyncSSH's SFTP server on loopback; `python -m tests.services.sftp` runs it."""

from __future__ import annotations

import contextlib
import secrets
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.services.server import Server, absent, running
from tests.support.ports import LOOPBACK, free_port

_USER = "iceberg"


@dataclass(frozen=True)
class SftpServer:
    """A running server of one folder, with one user."""

    server: Server
    password: str
    files: Path

    @property
    def properties(self) -> dict[str, str]:
        """The properties with which a table reaches the server."""
        return {
            "fsspec.sftp.username": _USER,
            "fsspec.sftp.password": self.password,
            "fsspec.sftp.look_for_keys": "false",
            "fsspec.sftp.allow_agent": "false",
        }

    def new_folder(self) -> str:
        """Return the location of a folder that no file is in."""
        return f"sftp://{LOOPBACK}:{self.server.port}/lake/{uuid.uuid4()}"


@contextlib.contextmanager
def sftp_server(folder: Path) -> Iterator[SftpServer]:
    """Run a server of a folder that this function creates."""
    try:
        import asyncssh  # noqa: F401, PLC0415
        import paramiko  # noqa: F401, PLC0415
    except ImportError as e:
        absent("SFTP", str(e))
    files, port, password = folder / "files", free_port(), secrets.token_hex(12)
    files.mkdir(parents=True)
    command = [sys.executable, "-m", "tests.services.sftp", str(port), str(files)]
    environment = {"SFTP_PASSWORD": password}
    log = folder / "sftp.log"
    with running("SFTP", command, port=port, log=log, environment=environment) as server:
        yield SftpServer(server, password, files)


async def _serve(port: int, files: str, password: str) -> None:
    import asyncssh  # noqa: PLC0415

    class Users(asyncssh.SSHServer):  # type: ignore[misc, unused-ignore]
        def begin_auth(self, username: str) -> bool:
            return True

        def password_auth_supported(self) -> bool:
            return True

        def validate_password(self, username: str, given: str) -> bool:
            return username == _USER and secrets.compare_digest(given, password)

    server = await asyncssh.listen(
        LOOPBACK,
        port,
        server_factory=Users,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        sftp_factory=lambda channel: asyncssh.SFTPServer(channel, chroot=files.encode()),
    )
    await server.wait_closed()


if __name__ == "__main__":
    import asyncio
    import os

    asyncio.run(_serve(int(sys.argv[1]), sys.argv[2], os.environ["SFTP_PASSWORD"]))
