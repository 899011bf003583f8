"""What the servers of SQL databases for tests have in common: a user, folders, URLs."""

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
"""With characters that a URL must escape."""
PASSWORD_IN_URL = "s3cr%40t%2FOf%3ATests"


@dataclass(frozen=True)
class DatabaseServer:
    """A server of databases, and how to have a new one."""

    server: Server
    dialect: str
    create: Callable[[str], None]

    def url(self, database: str, port: int | None = None) -> str:
        """The catalog URI of a database; another port: that of a proxy."""
        at = f"{LOOPBACK}:{port or self.server.port}"
        return f"{self.dialect}://{USER}:{PASSWORD_IN_URL}@{at}/{database}"

    def jdbc_url(self, database: str) -> str:
        """The same for Java, which is given user and password as properties."""
        return f"jdbc:{self.dialect}://{LOOPBACK}:{self.server.port}/{database}"


def new_database(server: DatabaseServer) -> str:
    """The URL of an empty database."""
    name = f"lake_{uuid.uuid4().hex[:12]}"
    server.create(name)
    return server.url(name)


def unprivileged_user(*names: str) -> str | None:
    """The user to run a server as that refuses root; None: the one who runs the tests."""
    if os.geteuid() != 0:
        return None
    for name in names:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise LookupError(f"none of the users {', '.join(names)} is there to run it as")


@contextlib.contextmanager
def server_folder(user: str | None) -> Iterator[Path]:
    """A new folder that the server's user owns, in a place that the user can reach."""
    # folders of pytest are closed to other users; the path is short enough for a socket
    folder = Path(tempfile.mkdtemp(prefix="ice-db-"))
    try:
        if user is not None:
            shutil.chown(folder, user, pwd.getpwnam(user).pw_gid)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
