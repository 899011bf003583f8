"""The JVM's side of a session: the compiled classes, called through py4j."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary, finalize

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StructType

from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spark.bridge.callback_port import CallbackPort
from iceberg_pyspark.spark.bridge.calls import to_json
from iceberg_pyspark.spark.bridge.compiler import load_lots
from iceberg_pyspark.spark.bridge.features import (
    CLOSED_CATALOGS,
    NATIVE_SCAN,
    NEW_SESSIONS,
    SQL_EXTENSIONS,
    Feature,
    missing_features,
)
from iceberg_pyspark.spark.bridge.java_classes import JavaClasses
from iceberg_pyspark.spark.bridge.joins import Joins
from iceberg_pyspark.spark.bridge.jvm_sessions import JvmSessions
from iceberg_pyspark.spark.bridge.row_changes import RowChangePlans
from iceberg_pyspark.spark.bridge.scans import Scans
from iceberg_pyspark.spark.bridge.writes import Writes

_log = logging.getLogger(__name__)
_missing_features: WeakKeyDictionary[Any, Mapping[Feature, str]] = WeakKeyDictionary()
"""Of a gateway: which features its release of Spark cannot have, and why."""

_callbacks: WeakKeyDictionary[Any, tuple[CallbackPort, Any]] = WeakKeyDictionary()
"""Of a gateway: the port on which its JVM asks, and the JVM's client of it."""

_of_gateways = threading.Lock()
"""Guards what exists once for each gateway: classes, missing features, the port."""


class Bridge:
    """One session's door into the JVM."""

    def __init__(self, spark: SparkSession) -> None:
        """Compile the classes if this JVM does not know them; raises `BridgeUnavailableError`."""
        gateway: Any = spark.sparkContext._gateway
        self._spark = spark
        self._gateway: Any = gateway
        with _of_gateways:
            lots = load_lots(gateway)
            self._java = JavaClasses(spark, lots.loader)
            self._plans = self._java.instance("IcebergPyPlans")
            if gateway not in _missing_features:
                lacking = json.loads(self._plans.missingInternals(spark._jsparkSession))
                _missing_features[gateway] = missing_features(lots.failures, lacking)
                for feature in self.missing_features:
                    _log.warning("%s", self._why_missing(feature))
                if self.has(NATIVE_SCAN):
                    self.scans.prepare()
        self.sessions = JvmSessions(self._plans)

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self._spark

    @property
    def missing_features(self) -> Mapping[Feature, str]:
        """The features that this release of Spark cannot have, and why."""
        return _missing_features[self._gateway]

    def has(self, feature: Feature) -> bool:
        """Whether this release of Spark has a feature."""
        return feature not in self.missing_features

    def check(self, feature: Feature) -> None:
        """Raise `UnsupportedFeatureError` where this release of Spark does not have a feature."""
        if not self.has(feature):
            raise UnsupportedFeatureError(self._why_missing(feature))

    def _why_missing(self, feature: Feature) -> str:
        why = self.missing_features[feature]
        return f"{feature.name}: not on Spark {self._spark.version} ({why}); {feature.otherwise}"

    @cached_property
    def scans(self) -> Scans:
        """Scans by Spark's own readers."""
        return Scans(self._java)

    @cached_property
    def joins(self) -> Joins:
        """Joins of a table's rows with those of a statement's source."""
        return Joins(self._java)

    @cached_property
    def row_changes(self) -> RowChangePlans:
        """DELETE, UPDATE and MERGE."""
        return RowChangePlans(self._java)

    @cached_property
    def writes(self) -> Writes:
        """Writes of rows."""
        return Writes(self._java)

    @property
    def java_version(self) -> str:
        """The version of Java that the session runs on, and whose it is."""
        property_of = self._java.jvm.java.lang.System.getProperty
        return f"{property_of('java.version')} ({property_of('java.vendor')})"

    def hide_in_settings(self, patterns: Mapping[str, str]) -> None:
        """Add a pattern to each of these settings, in the session and in new ones made of it."""
        self._java.instance("IcebergPyRedaction").hideInSettings(
            self._java.session, json.dumps(dict(patterns))
        )

    def hide_in_events(self, pattern: str) -> str | None:
        """Have Spark's events and environment page hide what a pattern finds; says what failed."""
        failure = self._java.instance("IcebergPyRedaction").hide(self._java.session, pattern)
        return None if failure is None else str(failure)

    @property
    def session_handle(self) -> str:
        """The session's handle in questions of the JVM; it shows nowhere else."""
        return str(self._plans.sessionHandle(self._java.session))

    def answer_with(self, answer: Callable[[str, Any], Any]) -> None:
        """Have questions from the JVM answered by a function of operation and argument.

        The argument is a text, or a list of a text and a plan of the JVM's; the answer is a text or
        an object of the JVM's.
        """
        with _of_gateways:
            if self._gateway not in _callbacks:
                port = CallbackPort(self._gateway, _over_py4j(answer))
                _callbacks[self._gateway] = (port, port.client(self._plans.callback))
                finalize(self._gateway, port.close).atexit = False
            self._plans.askBy(_callbacks[self._gateway][1])

    def forget_catalogs(self) -> None:
        """Have the session open our catalogs again when a query next names them."""
        if self.has(CLOSED_CATALOGS):
            self._plans.forgetCatalogs(self._java.session)

    def open_catalog(self, name: str) -> None:
        """Have Spark load a catalog, as a query that names it would."""
        self._plans.openCatalog(self._java.session, name)

    def install(self) -> None:
        """Put rule, strategy and parser into the session, and into those that Spark makes of it.

        What the release cannot do is left out; what already exists is not put in again.
        """
        session, parser = self._java.session, None
        self._plans.install(session)
        if self.has(SQL_EXTENSIONS):
            self._java.instance("IcebergPyParsers").putInFront(session)
            parser = self._java.instance("IcebergPyParsers").later()
        if self.has(NEW_SESSIONS):
            self._plans.installInNew(session, parser)

    def uninstall(self) -> None:
        """Leave the session with what it had; sessions made of it meanwhile stay as they are."""
        session = self._java.session
        if self.has(NEW_SESSIONS):
            self._plans.uninstallInNew(session)
        if self.has(SQL_EXTENSIONS):
            self._java.instance("IcebergPyParsers").takeOut(session)
        self._plans.uninstall(session)

    def has_file_system(self, scheme: str) -> bool:
        """Whether the JVM can open locations of that scheme."""
        return bool(self._plans.hasFileSystem(self._java.session, scheme))

    def select(self, frame: DataFrame, expressions: Sequence[str]) -> DataFrame:
        """`selectExpr` in one call of the JVM."""
        dataset = self._plans.select(frame._jdf, json.dumps(list(expressions)))
        return self._java.frame(dataset)

    def binary_rows(self, rows: Sequence[tuple[bytes]], name: str, partitions: int) -> DataFrame:
        """A DataFrame of one binary column, whose rows the JVM unpickles.

        What `createDataFrame` does with an RDD, but for its step in Python workers, which looks at
        each row and takes as long as ours.
        """
        serde = self._java.jvm.SerDeUtil
        pickled_rows = self._spark.sparkContext.parallelize(rows, partitions)._jrdd
        dataset = self._java.session.applySchemaToPythonRDD(
            serde.toJavaArray(serde.pythonToJava(pickled_rows, True)).rdd(),
            StructType().add(name, BinaryType(), nullable=False).json(),
        )
        return self._java.frame(dataset)

    def holds_rows(self, frame: DataFrame, most: int) -> bool:
        """Whether a frame's plan holds all of its rows, and at most `most` of them."""
        plan = frame._jdf.queryExecution().optimizedPlan()
        return bool(plan.nodeName() == "LocalRelation" and plan.data().size() <= most)

    def has_alias(self, frame: DataFrame) -> bool:
        """Whether a frame has an alias."""
        plan = frame._jdf.queryExecution().analyzed()
        return bool(plan.getClass().getSimpleName() == "SubqueryAlias")

    def bytes_of(self, setting: str, default: str) -> int:
        """A setting of the session that Spark takes with a unit."""
        text = str(self._spark.conf.get(setting, default))
        units = self._java.jvm.org.apache.spark.network.util.JavaUtils
        return int(units.byteStringAsBytes(text))

    def analyse(self, frame: DataFrame) -> Any:
        """The analysed plan of a frame."""
        return self._plans.analyse(frame._jdf)

    def java_list(self, items: Sequence[Any]) -> Any:
        """A list of the JVM's own, of texts, objects of the JVM's and such lists."""
        return self._plans.list(self._java.server, to_json(items))


def _over_py4j(answer: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    def answer_java(operation: str, argument: Any) -> Any:
        return answer(operation, argument if isinstance(argument, str) else _items(argument))

    return answer_java


def _items(java_list: Any) -> list[Any]:
    # one by one: iterating ends with an exception of the JVM's, which pyspark looks into for 20 ms
    return [java_list.get(i) for i in range(java_list.size())]
