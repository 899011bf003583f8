"""The sessions of a JVM, by the handles in their questions."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession


class JvmSessions:
    """Asks a JVM of its sessions, and holds none of them."""

    def __init__(self, plans: Any) -> None:
        """`plans` is an `IcebergPyPlans` of the JVM."""
        self._plans = plans

    @cached_property
    def jvm(self) -> str:
        """The common prefix of all its handles, up to a hyphen."""
        return str(self._plans.jvm())

    def session_of(self, handle: str) -> SparkSession | None:
        """The session of a handle, if it is there and Iceberg was not taken out of it."""
        session, context = self._plans.sessionOf(handle), SparkContext._active_spark_context
        return None if session is None or context is None else SparkSession(context, session)

    def abandoned_handles(self) -> list[str] | None:
        """Handles that nothing asks with any more, each reported once; None: the JVM has ended."""
        try:
            return list(json.loads(self._plans.unusableHandles()))
        except (OSError, Py4JError):
            return None

    def ask_no_more(self) -> bool:
        """Whether the JVM asks no more: it has no session with Iceberg."""
        return bool(self._plans.askNoMore())
