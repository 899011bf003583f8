"""`import iceberg_pyspark.auto` installs Iceberg in the sessions whose configuration asks for it.

This is for programs whose sessions are made by a tool. It does not import pyspark, and it leaves
alone the sessions of Spark Connect, and all sessions without a `spark.sql.catalog.<name>` that is
`iceberg_pyspark`.
"""

from __future__ import annotations

import gc
import re
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from iceberg_pyspark.import_hooks import when_imported

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VARIABLE = "ICEBERG_PYSPARK_AUTO"
"""The environment variable; a Python process that starts with `1` imports this module."""

_CATALOG = re.compile(r"spark\.sql\.catalog\.[^.]+")
_OURS = "iceberg_pyspark"

_sessions: WeakSet[SparkSession] = WeakSet()
"""The classic sessions of this process."""

_installed: WeakSet[SparkSession] = WeakSet()
"""Those in which Iceberg was installed here."""


def _follow_sessions(module: ModuleType) -> None:
    """Install Iceberg where sessions ask for it: those that exist, and those made from now on."""
    session_class: Any = module.SparkSession
    builder_class = session_class.Builder
    begin, get_or_create = session_class.__init__, builder_class.getOrCreate

    @wraps(begin)
    def begin_with_iceberg(self: SparkSession, *arguments: Any, **named: Any) -> None:
        begin(self, *arguments, **named)
        _follow(self)

    @wraps(get_or_create)
    def get_with_iceberg(self: Any) -> SparkSession:
        session: SparkSession = get_or_create(self)
        # The builder also changes the configuration of a session that exists. Tools call it for
        # each statement, and `install` takes some milliseconds.
        if (
            isinstance(session, session_class)
            and session not in _installed
            and any(_asks(key, value) for key, value in self._options.items())
        ):
            _install(session)
        return session

    session_class.__init__ = begin_with_iceberg
    builder_class.getOrCreate = get_with_iceberg
    for value in gc.get_objects():
        # `isinstance` would wake proxies
        if issubclass(type(value), session_class):
            _follow(value)


def _follow_settings(module: ModuleType) -> None:
    """Install Iceberg in a session when its configuration is changed and then asks for it."""
    settings_class: Any = module.RuntimeConfig
    put = settings_class.set

    @wraps(put)
    def put_with_iceberg(self: Any, key: str, value: Any) -> None:
        put(self, key, value)
        if _asks(key, value):
            for session in list(_sessions):
                if vars(session).get("conf") is self:
                    _install(session)

    settings_class.set = put_with_iceberg


def _follow(session: SparkSession) -> None:
    _sessions.add(session)
    # imported here because this module does not import pyspark
    from iceberg_pyspark.spark.bridge.plain_sessions import session_settings  # noqa: PLC0415

    if any(_asks(key, value) for key, value in session_settings(session)):
        _install(session)


def _asks(key: str, value: Any) -> bool:
    return value == _OURS and _CATALOG.fullmatch(key) is not None


def _install(session: SparkSession) -> None:
    # not before a session asks for it: this imports pyspark, and most of the package
    from iceberg_pyspark.spark.installation import install  # noqa: PLC0415

    install(session)
    _installed.add(session)


when_imported("pyspark.sql.session", _follow_sessions)
when_imported("pyspark.sql.conf", _follow_settings)
