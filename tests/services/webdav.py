"""WsgiDAV, a WebDAV server on loopback."""

from __future__ import annotations

import contextlib
import json
import secrets
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.services.server import Server, absent, running
from tests.support.ports import LOOPBACK, free_port


@dataclass(frozen=True)
class WebdavServer:
    """A running server of one folder, with one user."""

    server: Server
    password: str
    files: Path

    @property
    def properties(self) -> dict[str, str]:
        """The properties with which a table reaches the server."""
        return {
            "fsspec.webdav.base_url": f"{self.server.endpoint}/dav",
            "fsspec.webdav.auth": json.dumps(["iceberg", self.password]),
        }

    def new_folder(self) -> str:
        """Return the location of a folder that no file is in."""
        return f"webdav://lake/{uuid.uuid4()}"


@contextlib.contextmanager
def webdav_server(folder: Path) -> Iterator[WebdavServer]:
    """Run a server of a folder that this function creates."""
    try:
        import webdav4  # noqa: F401, PLC0415
        import wsgidav  # noqa: F401, PLC0415
    except ImportError as e:
        absent("WebDAV", str(e))
    files, port, password = folder / "files", free_port(), secrets.token_hex(12)
    files.mkdir(parents=True)
    configuration = folder / "wsgidav.json"
    configuration.write_text(
        json.dumps(
            {
                "host": LOOPBACK,
                "port": port,
                "provider_mapping": {"/dav": str(files)},
                "simple_dc": {"user_mapping": {"*": {"iceberg": {"password": password}}}},
                "http_authenticator": {"accept_digest": False},
                "logging": {"enable": False},
            }
        )
    )
    command = [sys.executable, "-m", "wsgidav.server.server_cli"]
    command += ["--config", str(configuration), "-q"]
    with running("WsgiDAV", command, port=port, log=folder / "wsgidav.log") as server:
        yield WebdavServer(server, password, files)
