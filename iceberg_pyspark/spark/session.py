"""`install(spark)`: adds Iceberg to a classic Spark session."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.spark.answers.asking import AskingSession, AskingSessions
from iceberg_pyspark.spark.answers.handlers import answer
from iceberg_pyspark.spark.bridge.captured_errors import say_errors_as_before, say_our_errors_first
from iceberg_pyspark.spark.bridge.compiler import BridgeUnavailableError
from iceberg_pyspark.spark.bridge.described_session import describe_session
from iceberg_pyspark.spark.bridge.features import SQL_EXTENSIONS
from iceberg_pyspark.spark.bridge.hidden_secrets import hide_secrets, show_as_before
from iceberg_pyspark.spark.row_level.target import RowLevelSession
from iceberg_pyspark.spark.sessions import Sessions
from iceberg_pyspark.spark.spark_table import SparkTable, catalog_and_levels, spark_table
from iceberg_pyspark.spark.sql_catalog.catalog import CatalogCallbacks
from iceberg_pyspark.spark.sql_catalog.statements import run_statement
from iceberg_pyspark.sql_text.extensions import extension_statement
from iceberg_pyspark.sql_text.names import quoted_name

if TYPE_CHECKING:
    from iceberg_pyspark.spark.bridge.jvm import Bridge

_log = logging.getLogger(__name__)


def install(spark: SparkSession) -> IcebergSession:
    """Make Iceberg tables native to a classic session; installing again returns the same.

    Where the bridge cannot be installed (Spark Connect, a driver without py4j or Janino) one log
    line says so, and the portable data source serves as before.
    """
    try:
        bridge = _open_bridge(spark)
    except BridgeUnavailableError as e:
        _log.warning("no native scans in this session, the portable path serves: %s", e)
        return IcebergSession(spark, None, portable_because=str(e))
    return _sessions.install(bridge)


def _begin(bridge: Bridge, catalogs: CatalogCallbacks) -> IcebergSession:
    """Put everything into a session."""
    # before there are sessions made of it
    hide_secrets(bridge)
    with _first_and_last:
        bridge.install()
        bridge.answer_with(_answer)
        say_our_errors_first()
    return IcebergSession(bridge.spark, bridge, catalogs=catalogs)


def _end(bridge: Bridge) -> None:
    """Take everything out of a session again."""
    with _first_and_last:
        bridge.uninstall()
        if bridge.sessions.ask_no_more():
            say_errors_as_before()
    show_as_before(bridge.spark)


_first_and_last = threading.Lock()
"""The first session that begins and the last that ends change what is of no session."""

_sessions = Sessions(install, _begin, _end)


def _open_bridge(spark: SparkSession) -> Bridge:
    """The door into the session's JVM; raises `BridgeUnavailableError`."""
    try:
        # a client of Spark Connect may have no py4j at all
        from py4j.protocol import Py4JError  # noqa: PLC0415

        from iceberg_pyspark.spark.bridge import jvm  # noqa: PLC0415
    except ImportError as e:
        raise BridgeUnavailableError(str(e)) from e
    try:
        return jvm.Bridge(spark)
    except (AttributeError, OSError, Py4JError) as e:
        # without the frames of the JVM, and on one line
        reason = str(e).partition("\n\tat ")[0].partition("JVM stacktrace")[0]
        raise BridgeUnavailableError(" ".join(reason.split())) from e


class IcebergSession:
    """A session in which Iceberg is installed."""

    def __init__(
        self,
        spark: SparkSession,
        bridge: Bridge | None,
        *,
        catalogs: CatalogCallbacks | None = None,
        portable_because: str = "",
    ) -> None:
        """`catalogs` are those it has opened, `portable_because` says why there is no bridge."""
        self.spark = spark
        self.bridge = bridge
        self._portable_because = portable_because
        self.catalogs = CatalogCallbacks() if catalogs is None else catalogs

    @property
    def is_native(self) -> bool:
        """Whether scans are Spark's own."""
        return self.bridge is not None

    def describe(self) -> str:
        """Release, Java and features of the session: which are native, which portable, and why."""
        return describe_session(self.spark, self.bridge, self._portable_because)

    def table(self, name: str) -> SparkTable:
        """The table of that name, as SQL writes it, or path; raises `NoSuchTableError`."""
        if self.bridge is None:
            return spark_table(self.spark, name, None, None)
        return spark_table(self.spark, name, self._open_catalog, self.row_level())

    def sql(self, text: str) -> DataFrame:
        """`spark.sql(text)`, and Iceberg's statements of ALTER TABLE where Spark knows none."""
        statement = extension_statement(text)
        if statement is None or (self.bridge is not None and self.bridge.has(SQL_EXTENSIONS)):
            return self.spark.sql(text)
        name = quoted_name(statement.table)
        if catalog_and_levels(self.spark, name) is None:
            return self.spark.sql(text)
        run_statement(self.table(name), text, statement.offset)
        return self.spark.createDataFrame([], spark_types.StructType())

    def asking(self) -> AskingSession:
        """What answers to its JVM need of it."""
        assert self.bridge is not None, "Spark asks, and knows catalogs, by the bridge"
        return AskingSession(spark=self.spark, bridge=self.bridge, catalogs=self.catalogs)

    def row_level(self) -> RowLevelSession:
        """The session's objects for row-level operations."""
        return RowLevelSession(spark=self.spark, bridge=self.bridge, states=self.catalogs.states)

    def _open_catalog(self, name: str) -> Catalog:
        return self.asking().open_catalog(name)

    def uninstall(self) -> None:
        """Take everything out of the session again."""
        if self.bridge is None:
            return
        _sessions.uninstall(self.bridge)
        # Spark opens catalogs, and asks for it, under a lock that this takes
        self.bridge.forget_catalogs()


_ASKING = AskingSessions(lambda handle: _sessions.session(handle).asking(), _sessions.catalogs)


def _answer(operation: str, argument: Any) -> Any:
    return answer(_ASKING, operation, argument)
