"""The compiled classes of a session, and the calls of their methods."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.spark.bridge.compiler import new_instance
from iceberg_pyspark.spark.bridge.py4j_names import JavaObject


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
