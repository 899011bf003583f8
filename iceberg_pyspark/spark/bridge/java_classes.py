"""The compiled classes of a session, and the calls of their methods.

The sessions of a JVM, by the handles in its requests.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.spark.bridge.compiler import new_instance
from iceberg_pyspark.spark.bridge.py4j_names import JavaObject, Py4JError


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


class JavaClasses:
    """A set of a session's Java classes, with one object of each class, made on first use."""

    def __init__(self, spark: SparkSession, loader: Any) -> None:
        """`loader` is the class loader that has the classes."""
        self.spark = spark
        gateway: Any = spark.sparkContext._gateway
        self._gateway = gateway
        self._loader = loader
        self._instances: dict[str, Any] = {}
        self.server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)

    @property
    def jvm(self) -> Any:
        """The JVM, as py4j's view."""
        return self._gateway.jvm

    @property
    def session(self) -> Any:
        """The JVM's `SparkSession`."""
        return self.spark._jsparkSession

    def instance(self, name: str) -> Any:
        """Return the object of a class."""
        if name not in self._instances:
            self._instances[name] = new_instance(self._gateway, self._loader, name)
        return self._instances[name]

    def frame(self, dataset: Any) -> DataFrame:
        """Return a `Dataset` of the JVM as a DataFrame."""
        return DataFrame(dataset, self.spark)
