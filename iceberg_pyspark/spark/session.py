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
    """Make Iceberg tables native to a classic session; a repeated call returns the same object.

    If the bridge cannot be installed (Spark Connect, a driver without py4j or Janino), one log line
    says why, and the portable data source still works.
    """
    try:
        bridge = _open_bridge(spark)
    except BridgeUnavailableError as e:
        _log.warning("no native scans in this session, the portable path serves: %s", e)
        return IcebergSession(spark, None, portable_because=str(e))
    return _sessions.install(bridge)


def _begin(bridge: Bridge, catalogs: CatalogCallbacks) -> IcebergSession:
    """Install Iceberg in a session."""
    # This comes first, because sessions that Spark makes from this one copy its settings.
    hide_secrets(bridge)
    with _first_and_last:
        bridge.install()
        bridge.answer_with(_answer)
        say_our_errors_first()
    return IcebergSession(bridge.spark, bridge, catalogs=catalogs)


def _end(bridge: Bridge) -> None:
    """Remove Iceberg from a session."""
    with _first_and_last:
        bridge.uninstall()
        if bridge.sessions.ask_no_more():
            say_errors_as_before()
    show_as_before(bridge.spark)


_first_and_last = threading.Lock()
"""Guards state of the whole process, which the first session sets up and the last one restores."""

_sessions = Sessions(install, _begin, _end)


def _open_bridge(spark: SparkSession) -> Bridge:
    """Return the bridge to the session's JVM; raise `BridgeUnavailableError`."""
    try:
        # A client of Spark Connect may lack py4j.
        from py4j.protocol import Py4JError  # noqa: PLC0415

        from iceberg_pyspark.spark.bridge import jvm  # noqa: PLC0415
    except ImportError as e:
        raise BridgeUnavailableError(str(e)) from e
    try:
        return jvm.Bridge(spark)
    except (AttributeError, OSError, Py4JError) as e:
        # Without the JVM's stack trace, and on one line.
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
        """`catalogs` are the catalogs it has opened; `portable_because` says why there is no
        bridge.
        """
        self.spark = spark
        self.bridge = bridge
        self._portable_because = portable_because
        self.catalogs = CatalogCallbacks() if catalogs is None else catalogs

    @property
    def is_native(self) -> bool:
        """Whether Spark's own readers scan the tables."""
        return self.bridge is not None

    def describe(self) -> str:
        """Return the versions and features of the session: which are native, which portable, and
        why.
        """
        return describe_session(self.spark, self.bridge, self._portable_because)

    def table(self, name: str) -> SparkTable:
        """Return the table of a name as SQL writes it, or of a path; raise `NoSuchTableError`."""
        if self.bridge is None:
            return spark_table(self.spark, name, None, None)
        return spark_table(self.spark, name, self._open_catalog, self.row_level())

    def sql(self, text: str) -> DataFrame:
        """Run `spark.sql(text)`, and also Iceberg's ALTER TABLE statements that Spark does not
        know.
        """
        statement = extension_statement(text)
        if statement is None or (self.bridge is not None and self.bridge.has(SQL_EXTENSIONS)):
            return self.spark.sql(text)
        name = quoted_name(statement.table)
        if catalog_and_levels(self.spark, name) is None:
            return self.spark.sql(text)
        run_statement(self.table(name), text, statement.offset)
        return self.spark.createDataFrame([], spark_types.StructType())

    def asking(self) -> AskingSession:
        """Return the objects that answer questions of the session's JVM."""
        assert self.bridge is not None, "Spark asks, and knows catalogs, by the bridge"
        return AskingSession(spark=self.spark, bridge=self.bridge, catalogs=self.catalogs)

    def row_level(self) -> RowLevelSession:
        """Return the session's objects for row-level operations."""
        return RowLevelSession(spark=self.spark, bridge=self.bridge, states=self.catalogs.states)

    def _open_catalog(self, name: str) -> Catalog:
        return self.asking().open_catalog(name)

    def uninstall(self) -> None:
        """Remove Iceberg from the session."""
        if self.bridge is None:
            return
        _sessions.uninstall(self.bridge)
        # Outside of the package's locks: this takes the lock under which Spark opens catalogs and
        # asks.
        self.bridge.forget_catalogs()


_ASKING = AskingSessions(lambda handle: _sessions.session(handle).asking(), _sessions.catalogs)


def _answer(operation: str, argument: Any) -> Any:
    return answer(_ASKING, operation, argument)
