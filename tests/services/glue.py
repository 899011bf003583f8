"""A double of AWS Glue's Data Catalog in a thread: databases, tables, table versions.

Glue cannot be installed, and moto's UpdateTable ignores VersionId (version 5.2.5), so moto cannot
test commits. This double refuses an outdated version as Glue documents:
ConcurrentModificationException. Requests use AWS's JSON protocol; botocore sends them and has
validated their shape.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.ports import LOOPBACK

SECRET = "wJalrXUtnFEMI/K7MDENG"
_PAGE = 3
"""Items per page: few, so that every list has several pages."""


class GlueError(Exception):
    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


def glue_properties(endpoint: str, folder: str) -> dict[str, str]:
    return {
        "warehouse": folder,
        "glue.endpoint": endpoint,
        "glue.region": "eu-west-1",
        "glue.access-key-id": "AKIDEXAMPLE",
        "glue.secret-access-key": SECRET,
    }


def _missing(subject: str) -> GlueError:
    return GlueError("EntityNotFoundException", f"{subject} not found")


class Glue:
    """The state, and one method per operation; `before` and `after` are hooks for tests.

    `before(operation)` may raise a `GlueError`; `after(operation)` may raise one once the operation
    is done.
    """

    def __init__(self) -> None:
        self.databases: dict[str, dict[str, Any]] = {}
        self.tables: dict[tuple[str, str], dict[str, Any]] = {}
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.before: Callable[[str], None] = lambda operation: None
        self.after: Callable[[str], None] = lambda operation: None
        self.access_keys: set[str] = set()
        self.endpoint = ""
        self._lock = threading.RLock()

    def properties(self, folder: Path) -> dict[str, str]:
        """Return the properties of a catalog whose tables are in a folder."""
        return glue_properties(self.endpoint, str(folder))

    def fail(self, moment: str, operation: str, error: GlueError, times: int) -> None:
        """Make the next requests of an operation fail, `before` or `after` they take effect."""
        left = times

        def hook(name: str) -> None:
            nonlocal left
            if name == operation and left:
                left -= 1
                raise error

        setattr(self, moment, hook)

    def answer(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        self.before(operation)
        with self._lock:
            self.requests.append((operation, request))
            answer: dict[str, Any] = getattr(self, f"do_{operation}")(request)
        self.after(operation)
        return answer

    def do_CreateDatabase(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        database = request["DatabaseInput"]
        name = database["Name"].lower()
        if name in self.databases:
            raise GlueError("AlreadyExistsException", "Database already exists.")
        self.databases[name] = {**database, "Name": name}
        return {}

    def do_GetDatabase(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"Database": self._database(request["Name"])}

    def do_GetDatabases(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return _page("DatabaseList", [self.databases[n] for n in sorted(self.databases)], request)

    def do_UpdateDatabase(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self._database(request["Name"])
        self.databases[request["Name"].lower()] = request["DatabaseInput"]
        return {}

    def do_DeleteDatabase(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self._database(request["Name"])
        name = request["Name"].lower()
        del self.databases[name]
        for key in [key for key in self.tables if key[0] == name]:
            del self.tables[key]
        return {}

    def do_CreateTable(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self._database(request["DatabaseName"])
        key = (request["DatabaseName"].lower(), request["TableInput"]["Name"].lower())
        if key in self.tables:
            raise GlueError("AlreadyExistsException", "Table already exists.")
        self.tables[key] = self._stored_table(key, request["TableInput"], 0)
        return {}

    def do_GetTable(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"Table": self._table(request)}

    def do_GetTables(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self._database(request["DatabaseName"])
        names = sorted(k for k in self.tables if k[0] == request["DatabaseName"].lower())
        return _page("TableList", [self.tables[k] for k in names], request)

    def do_UpdateTable(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        name = request["TableInput"]["Name"]
        table = self._table({**request, "Name": name})
        if "VersionId" in request and request["VersionId"] != table["VersionId"]:
            raise GlueError(
                "ConcurrentModificationException",
                "Update table failed due to concurrent modifications.",
            )
        key = (request["DatabaseName"].lower(), name.lower())
        self.tables[key] = self._stored_table(
            key, request["TableInput"], int(table["VersionId"]) + 1
        )
        return {}

    def do_DeleteTable(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self._table(request)
        del self.tables[request["DatabaseName"].lower(), request["Name"].lower()]
        return {}

    def _database(self, name: str) -> dict[str, Any]:
        if name.lower() not in self.databases:
            raise _missing(f"Database {name}")
        return self.databases[name.lower()]

    def _table(self, request: dict[str, Any]) -> dict[str, Any]:
        self._database(request["DatabaseName"])
        key = (request["DatabaseName"].lower(), request["Name"].lower())
        if key not in self.tables:
            raise _missing(f"Table {key[1]}")
        return self.tables[key]

    def _stored_table(
        self, key: tuple[str, str], table_input: dict[str, Any], version: int
    ) -> dict[str, Any]:
        return {
            **table_input,
            "Name": key[1],
            "DatabaseName": key[0],
            "VersionId": str(version),
            "CatalogId": "000000000000",
        }


def _page(key: str, items: list[Any], request: dict[str, Any]) -> dict[str, Any]:
    start = int(request.get("NextToken") or 0)
    end = start + min(_PAGE, request.get("MaxResults") or _PAGE)
    more = {"NextToken": str(end)} if end < len(items) else {}
    return {key: items[start:end], **more}


@contextlib.contextmanager
def glue_server() -> Iterator[Glue]:
    """Serve an empty catalog on loopback."""
    glue = Glue()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body are two packets, and the second would wait for the client's receipt.
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            operation = self.headers["X-Amz-Target"].partition(".")[2]
            credential = self.headers["Authorization"].partition("Credential=")[2]
            glue.access_keys.add(credential.partition("/")[0])
            try:
                status, answer = 200, glue.answer(operation, body)
            except GlueError as e:
                status, answer = e.status, {"__type": e.code, "Message": str(e)}
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer((LOOPBACK, 0), Handler) as server:
        server.daemon_threads = True
        glue.endpoint = f"http://{LOOPBACK}:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield glue
        server.shutdown()
