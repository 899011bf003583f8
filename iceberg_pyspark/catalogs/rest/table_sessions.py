"""The requests of one table, with the token that the server issued for the table.

Open API specification of the REST catalog, `LoadTableResult`: `token` of a table's `config` is for
the requests of this table. Loads by name are requests of the catalog.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.rest.answers import config_of
from iceberg_pyspark.catalogs.rest.authentication_settings import TABLE_TOKENS
from iceberg_pyspark.catalogs.rest.connection import Connection
from iceberg_pyspark.catalogs.rest.rest_session import Session
from iceberg_pyspark.spec.json_fields import JsonObject
from iceberg_pyspark.storage.lru_map import LruMap

_MOST = 1000


def table_tokens(answer: JsonObject) -> dict[str, str]:
    """Return the tokens in an answer that contains a table; they are not storage properties."""
    return {k: v for k, v in config_of(answer, "config").items() if k in TABLE_TOKENS}


class TableSessions:
    """The tables' sessions that differ from the catalog's session; thread-safe."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._sessions: LruMap[TableIdentifier, tuple[Mapping[str, str], Session]] = LruMap(_MOST)

    def of(self, identifier: TableIdentifier) -> Session:
        """Return the session for a table's requests."""
        tokens_and_session = self._sessions.get(identifier)
        return self._connection.session if tokens_and_session is None else tokens_and_session[1]

    def token(self, identifier: TableIdentifier) -> str | None:
        """Return the token that the server sent for the table, or None if there is none."""
        tokens_and_session = self._sessions.get(identifier)
        return None if tokens_and_session is None else tokens_and_session[0].get("token")

    def set_tokens(self, identifier: TableIdentifier, tokens: Mapping[str, str]) -> None:
        """Set the tokens of a loaded table; keep the session if its tokens are the same."""
        with self._lock:
            tokens_and_session = self._sessions.get(identifier)
            if tokens_and_session is not None and tokens_and_session[0] == tokens:
                return
            self._sessions.pop(identifier)
            session = self._connection.table_session(tokens) if tokens else None
            if session is not None and session is not self._connection.session:
                self._sessions.put(identifier, (tokens, session))

    def forget(self, identifier: TableIdentifier) -> None:
        """Drop the table's own session; later requests use the catalog's session."""
        with self._lock:
            self._sessions.pop(identifier)
