"""The JVM's side of a session: the compiled classes, called through py4j."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, finalize

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StructType

from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.bridge.call_arguments import to_json
from iceberg_pyspark.spark.bridge.features import (
    CLOSED_CATALOGS,
    NATIVE_SCAN,
    NEW_SESSIONS,
    SQL_EXTENSIONS,
    STORES_IN_TASKS,
    Feature,
    JvmFileSystem,
    JvmLocalFiles,
    missing_features,
)
from iceberg_pyspark.spark.bridge.java_classes import JavaClasses, JvmSessions, load_modules
from iceberg_pyspark.spark.bridge.py4j_names import Py4JError
from iceberg_pyspark.spark.bridge.row_level_plans import Joins, RowChangePlans
from iceberg_pyspark.spark.bridge.scan_relations import Scans
from iceberg_pyspark.spark.bridge.spark_writes import Writes
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.sql_text.names import quoted_name

if TYPE_CHECKING:
    from iceberg_pyspark.spark.bridge.callback_port import CallbackPort

_log = get_logger(__name__)

_missing_features: WeakKeyDictionary[Any, Mapping[Feature, str]] = WeakKeyDictionary()
"""The features that the gateway's release of Spark lacks, and why, by gateway."""

_callbacks: WeakKeyDictionary[Any, tuple[CallbackPort, Any]] = WeakKeyDictionary()
"""The port for the JVM's requests, and the JVM's client of the port, by gateway."""

_of_gateways = threading.Lock()
"""A lock for what exists once for each gateway: classes, missing features, the port."""


class Bridge:
    """The access of one session to the JVM."""

    def __init__(self, spark: SparkSession) -> None:
        """Compile the classes unless this JVM has them; raise `BridgeUnavailableError`."""
        gateway: Any = spark.sparkContext._gateway
        self._spark = spark
        self._gateway: Any = gateway
        with _of_gateways:
            modules = load_modules(gateway)
            self._java = JavaClasses(spark, modules.loader)
            self._plans = self._java.instance("IcebergPyPlans")
            if gateway not in _missing_features:
                internals = json.loads(self._plans.missingInternals(spark._jsparkSession))
                _missing_features[gateway] = missing_features(modules.failures, internals)
                for feature in self.missing_features:
                    _log.log(feature.log_level, "%s", self._why_missing(feature))
                if self.has(NATIVE_SCAN):
                    self.scans.prepare()
        self.sessions = JvmSessions(self._plans)

    @property
    def spark(self) -> SparkSession:
        """The Spark session."""
        return self._spark

    @property
    def missing_features(self) -> Mapping[Feature, str]:
        """The features that this release of Spark lacks, and why."""
        return _missing_features[self._gateway]

    def has(self, feature: Feature) -> bool:
        """Return whether this release of Spark has a feature."""
        return feature not in self.missing_features

    def check(self, feature: Feature) -> None:
        """Raise `UnsupportedFeatureError` if this release of Spark lacks a feature."""
        if not self.has(feature):
            raise UnsupportedFeatureError(self._why_missing(feature))

    def _why_missing(self, feature: Feature) -> str:
        why = self.missing_features[feature]
        return f"{feature.name}: not on Spark {self._spark.version} ({why}); {feature.otherwise}"

    @cached_property
    def scans(self) -> Scans:
        """The operations on scans by Spark's own readers."""
        return Scans(self._java)

    @cached_property
    def joins(self) -> Joins:
        """The operations on joins of a table's rows with the source of a statement."""
        return Joins(self._java)

    @cached_property
    def row_changes(self) -> RowChangePlans:
        """The operations for DELETE, UPDATE and MERGE."""
        return RowChangePlans(self._java)

    @cached_property
    def writes(self) -> Writes:
        """The operations for writing rows."""
        return Writes(self._java)

    @property
    def java_version(self) -> str:
        """The version and vendor of Java that the session runs on."""
        property_of = self._java.jvm.java.lang.System.getProperty
        return f"{property_of('java.version')} ({property_of('java.vendor')})"

    def hide_in_settings(self, patterns: Mapping[str, str]) -> None:
        """Let sessions with Iceberg begin with a pattern added to each of these settings."""
        self._java.instance("IcebergPyRedaction").hideInSettings(json.dumps(dict(patterns)))

    def hide_in_events(self, pattern: str) -> str | None:
        """Hide matches of a pattern in Spark's events and environment page; return why it failed,
        or None.
        """
        failure = self._java.instance("IcebergPyRedaction").hide(self._java.session, pattern)
        return None if failure is None else str(failure)

    @property
    def session_handle(self) -> str:
        """The session's handle in requests of the JVM; the handle is used nowhere else."""
        return str(self._plans.sessionHandle(self._java.session))

    def set_request_handler(self, handler: Callable[[str, Any], Any]) -> None:
        """Set the function of operation and argument that handles the requests of the JVM.

        The argument is a text, or a list of a text and a JVM plan. The response is a text or a
        JVM object.
        """
        with _of_gateways:
            if self._gateway not in _callbacks:
                # a client of Spark Connect may lack py4j
                from iceberg_pyspark.spark.bridge.callback_port import (  # noqa: PLC0415
                    CallbackPort,
                )

                port = CallbackPort(self._gateway, _over_py4j(handler))
                _callbacks[self._gateway] = (port, port.client(self._plans.callback))
                finalize(self._gateway, port.close).atexit = False
            self._plans.setCallback(_callbacks[self._gateway][1])

    def remove_catalogs(self) -> None:
        """Make the session open this package's catalogs again when a later query names them."""
        if self.has(CLOSED_CATALOGS):
            self._plans.removeCatalogs(self._java.session)

    def open_catalog(self, name: str) -> None:
        """Make Spark load a catalog, as a query that names the catalog would."""
        self._plans.openCatalog(self._java.session, name)

    def install(self) -> None:
        """Add the rule, strategy and parser to the session, and to the sessions that Spark makes
        from it.

        Features that the release lacks are left out; parts that are already installed are not added
        twice. A session that Spark has only begun to build gets the parts when it builds them.
        """
        session, parser = self._java.session, None
        if self.has(SQL_EXTENSIONS):
            parser = self._java.instance("IcebergPyParsers").builder()
        if self.has(NEW_SESSIONS) and self._plans.installLater(session, parser):
            return
        self._plans.install(session)
        if self.has(SQL_EXTENSIONS):
            self._java.instance("IcebergPyParsers").inject(session)
        if self.has(NEW_SESSIONS):
            self._plans.installExtensions(session, parser)

    def uninstall(self) -> None:
        """Restore what the session had before; sessions made from it in the meantime stay
        unchanged.
        """
        session = self._java.session
        if self.has(NEW_SESSIONS):
            self._plans.uninstallExtensions(session)
        if self.has(SQL_EXTENSIONS):
            self._java.instance("IcebergPyParsers").remove(session)
        self._plans.uninstall(session)

    def file_system(self, scheme: str) -> JvmFileSystem | None:
        """Return the session's file system for a URI scheme, or None if it has none."""
        description = self._java.instance("IcebergPyFileSystems").find(self._java.session, scheme)
        return None if description is None else JvmFileSystem(**json.loads(description))

    @cached_property
    def local_files(self) -> JvmLocalFiles:
        """How the JVM names local files."""
        description = self._java.instance("IcebergPyFileSystems").local(self._java.session)
        return JvmLocalFiles(**json.loads(description))

    def open_in_tasks(self, file_system: str, renews: bool) -> str | None:
        """Let tasks open stores by one of `STORES_IN_TASKS`; return None, or why they cannot.

        If it `renews`, tasks can also request new credentials from the driver.
        """
        feature = STORES_IN_TASKS[file_system]
        if not self.has(feature):
            return self.missing_features[feature]
        stores = self._java.instance("IcebergPyTaskStores")
        stores.open(self._java.session, file_system)
        if renews:
            stores.renew(self._java.session)
        return None

    def recache_table(self, name: Sequence[str]) -> None:
        """Let Spark read the rows again that it has cached of a changed table, or of its branch.

        `name` is the full name, which begins with the catalog. Releases that cannot read rows again
        drop them from the cache.
        """
        self._plans.recacheTable(self._java.session, json.dumps(list(name)))

    def select(self, frame: DataFrame, expressions: Sequence[str]) -> DataFrame:
        """Run `selectExpr` in one call of the JVM."""
        dataset = self._plans.select(frame._jdf, json.dumps(list(expressions)))
        return self._java.frame(dataset)

    def binary_rows(self, rows: Sequence[tuple[bytes]], name: str, partitions: int) -> DataFrame:
        """Return a DataFrame of one binary column, whose rows the JVM unpickles.

        This is `createDataFrame` of an RDD without its step in Python workers, which checks each
        row and takes as long as the step that reads the rows.
        """
        serde = self._java.jvm.SerDeUtil
        pickled_rows = self._spark.sparkContext.parallelize(rows, partitions)._jrdd
        dataset = self._java.session.applySchemaToPythonRDD(
            serde.toJavaArray(serde.pythonToJava(pickled_rows, True)).rdd(),
            StructType().add(name, BinaryType(), nullable=False).json(),
        )
        return self._java.frame(dataset)

    def holds_rows(self, frame: DataFrame, most: int) -> bool:
        """Return whether a frame's plan contains all of its rows, and at most `most` of them."""
        plan = frame._jdf.queryExecution().optimizedPlan()
        return bool(plan.nodeName() == "LocalRelation" and plan.data().size() <= most)

    def has_alias(self, frame: DataFrame) -> bool:
        """Return whether a frame has an alias."""
        plan = frame._jdf.queryExecution().analyzed()
        return bool(plan.getClass().getSimpleName() == "SubqueryAlias")

    def bytes_of(self, setting: str, default: str) -> int:
        """Return a session setting in bytes; Spark accepts the setting with a unit."""
        text = str(self._spark.conf.get(setting, default))
        units = self._java.jvm.org.apache.spark.network.util.JavaUtils
        return int(units.byteStringAsBytes(text))

    def analyse(self, frame: DataFrame) -> Any:
        """Return the analysed plan of a frame."""
        return self._plans.analyse(frame._jdf)

    def java_list(self, items: Sequence[Any]) -> Any:
        """Return a JVM list of texts, JVM objects and such lists."""
        return self._plans.list(self._java.server, to_json(items))


def _over_py4j(handler: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    def handle(operation: str, argument: Any) -> Any:
        return handler(operation, argument if isinstance(argument, str) else _items(argument))

    return handle


def _items(java_list: Any) -> list[Any]:
    # By index: iteration ends with a JVM exception, which pyspark inspects for 20 ms.
    return [java_list.get(i) for i in range(java_list.size())]


def recache_table(bridge: Bridge, table: Sequence[str], branch: str | None = None) -> None:
    """Let Spark read the cached rows of a changed table again when they are needed next.

    `table` is the full name, which begins with the catalog. The commit is done, so a failure is
    only logged.
    """
    name = tuple(table) if branch in (None, MAIN) else (*table, f"branch_{branch}")
    try:
        bridge.recache_table(name)
    except (PySparkException, Py4JError):
        text = quoted_name(name)
        _log.warning(
            "%s was changed, but Spark could not read its cached rows again: run REFRESH TABLE %s",
            text,
            text,
            exc_info=True,
        )
