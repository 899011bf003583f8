"""The sessions of a JVM, by the handles in its requests."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.bridge.py4j_names import Py4JError


class JvmSessions:
    """A registry of a JVM's sessions that calls the JVM and keeps no session alive."""

    def __init__(self, plans: Any) -> None:
        """`plans` is an `IcebergPyPlans` object of the JVM."""
        self._plans = plans

    @cached_property
    def jvm(self) -> str:
        """The common prefix of the JVM's handles, up to a hyphen."""
        return str(self._plans.jvm())

    def session_of(self, handle: str) -> SparkSession | None:
        """Return the session of a handle if it exists and Iceberg is still installed in it."""
        session, context = self._plans.sessionOf(handle), pyspark.SparkContext._active_spark_context
        return None if session is None or context is None else SparkSession(context, session)

    def abandoned_handles(self) -> list[str] | None:
        """Return the handles that are no longer used, each once, or None if the JVM has ended."""
        try:
            return list(json.loads(self._plans.unusableHandles()))
        except (OSError, Py4JError):
            return None

    def clear_unused_callback(self) -> bool:
        """Clear the JVM's callback if no session has Iceberg; return whether that is so."""
        return bool(self._plans.clearUnusedCallback())
