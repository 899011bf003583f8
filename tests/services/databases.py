"""What the test servers of SQL databases share: a user, folders, URLs."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.services.server import Server
from tests.support.ports import LOOPBACK

USER = "ice"
PASSWORD = "s3cr@t/Of:Tests"
"""A password with characters that a URL must escape."""
PASSWORD_IN_URL = "s3cr%40t%2FOf%3ATests"


@dataclass(frozen=True)
class DatabaseServer:
    """A running database server; `create` creates a database on it."""

    server: Server
    dialect: str
    create: Callable[[str], None]

    def url(self, database: str, port: int | None = None) -> str:
        """Return the catalog URI of a database; give `port` to connect through a proxy."""
        at = f"{LOOPBACK}:{port or self.server.port}"
        return f"{self.dialect}://{USER}:{PASSWORD_IN_URL}@{at}/{database}"

    def jdbc_url(self, database: str) -> str:
        """Return the JDBC URL, without user and password, which Java gets as properties."""
        return f"jdbc:{self.dialect}://{LOOPBACK}:{self.server.port}/{database}"


def new_database(server: DatabaseServer) -> str:
    """Create an empty database and return its catalog URI."""
    name = f"lake_{uuid.uuid4().hex[:12]}"
    server.create(name)
    return server.url(name)


def unprivileged_user(*names: str) -> str | None:
    """Return a user for a server that refuses root, or None if the tests do not run as root."""
    if os.geteuid() != 0:
        return None
    for name in names:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise LookupError(f"none of the users {', '.join(names)} is there to run it as")


@contextlib.contextmanager
def server_folder(user: str | None) -> Iterator[Path]:
    """Yield a new folder that the server's user owns and can reach."""
    # pytest's folders are closed to other users, and a socket needs a short path.
    folder = Path(tempfile.mkdtemp(prefix="ice-db-"))
    try:
        if user is not None:
            shutil.chown(folder, user, pwd.getpwnam(user).pw_gid)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
