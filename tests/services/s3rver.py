"""s3rver, a real S3 server that accepts the conditions of a put and ignores them.

Two writers can both create the same file on it, so no commit may rely on it. Its last release is
older than the conditional put of S3.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.services.npm import npm_program
from tests.services.server import running
from tests.services.upstream import Upstream
from tests.support.http_server import TestServer, http_server
from tests.support.ports import LOOPBACK, free_port

VERSION = "3.7.1"
_KEY = "S3RVER"


@dataclass(frozen=True)
class HeedlessS3:
    """A running server with one bucket, and a front that records the requests."""

    folder: Path
    _front: TestServer
    bucket: str = "heedless"

    def properties(self) -> dict[str, str]:
        """Return the Iceberg properties that connect to this server."""
        return {
            "s3.endpoint": self._front.uri,
            "s3.access-key-id": _KEY,
            "s3.secret-access-key": _KEY,
            "s3.region": "us-east-1",
            "s3.path-style-access": "true",
        }

    def probes(self) -> list[str]:
        """Return the names of the puts that tested whether the server honours the condition."""
        return [path for path in self._front.paths("PUT") if "-create-probe-" in path]

    def names(self) -> list[str]:
        """Return the names of all objects."""
        root = self.folder / self.bucket
        objects = root.rglob("*._S3rver_object")
        return sorted(str(o.relative_to(root)).removesuffix("._S3rver_object") for o in objects)


def program() -> Path:
    """Return the server's program, installed from npm if necessary."""
    return npm_program("s3rver", "s3rver", VERSION, "s3rver")


@contextlib.contextmanager
def heedless_s3(folder: Path) -> Iterator[HeedlessS3]:
    """Yield a server that keeps its objects in `folder`."""
    port, objects = free_port(), folder / "objects"
    command = [
        *(str(program()), "--address", LOOPBACK, "--port", str(port)),
        *("--directory", str(objects), "--configure-bucket", HeedlessS3.bucket, "--silent"),
    ]
    with (
        running("s3rver", command, port=port, log=folder / "s3rver.log"),
        http_server(Upstream(port).ask) as front,
    ):
        yield HeedlessS3(objects, front)
