"""`install(spark)`: adds Iceberg to a classic Spark session.

Methods import what they call: most sessions run SQL alone, without procedures.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.display import printable
from iceberg_pyspark.errors import NoSuchTableError, UnsupportedFeatureError
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.bridge import jvm
from iceberg_pyspark.spark.bridge.features import SQL_EXTENSIONS, describe_session
from iceberg_pyspark.spark.bridge.hidden_secrets import hide_secrets, show_as_before
from iceberg_pyspark.spark.bridge.java_classes import BridgeUnavailableError
from iceberg_pyspark.spark.bridge.jvm_errors import say_errors_as_before, say_our_errors_first
from iceberg_pyspark.spark.bridge.py4j_names import Py4JError
from iceberg_pyspark.spark.bridge.session_tables import SESSION_CATALOG
from iceberg_pyspark.spark.data_source.worker_python import (
    prepare_worker_python,
    worker_python_problem,
)
from iceberg_pyspark.spark.requests.handlers import handle_request
from iceberg_pyspark.spark.requests.sessions import BridgeSession, BridgeSessions, Sessions
from iceberg_pyspark.spark.row_level.target import RowLevelSession
from iceberg_pyspark.spark.session_catalogs import (
    CATALOG_CLASS,
    catalog_and_identifier,
    catalog_and_levels,
)
from iceberg_pyspark.spark.sql_catalog.alter_table import run_statement
from iceberg_pyspark.spark.sql_catalog.catalog_requests import CatalogCallbacks
from iceberg_pyspark.spec.argument_types import checked_methods, wrong_type
from iceberg_pyspark.sql_text.extensions import extension_statement
from iceberg_pyspark.sql_text.names import is_path, quoted_name
from iceberg_pyspark.table.progress import Progress, no_progress

if TYPE_CHECKING:
    from iceberg_pyspark.spark.procedures.adoption import MigratedTable, SnapshotTable
    from iceberg_pyspark.spark.procedures.procedure_run import ProcedureRun
    from iceberg_pyspark.spark.spark_table import SparkTable

# ruff: noqa: PLC0415 - see above

_log = get_logger(__name__)


def install(spark: SparkSession) -> IcebergSession:
    """Make Iceberg tables native to a classic session; a repeated call returns the same object.

    If the bridge cannot be installed (Spark Connect, a driver without py4j or Janino), one log line
    says why, and the portable data source still works.
    """
    # a session of Spark Connect has another class
    if not hasattr(type(spark), "dataSource"):
        raise wrong_type("install: spark", "a SparkSession", spark)
    try:
        bridge = _open_bridge(spark)
    except BridgeUnavailableError as e:
        _log.warning("no native scans in this session; Python reads and writes: %s", e)
        prepare_worker_python(spark)
        return IcebergSession(spark, None, portable_because=str(e))
    return _sessions.install(bridge)


def _begin(bridge: jvm.Bridge, catalogs: CatalogCallbacks) -> IcebergSession:
    """Install Iceberg in a session."""
    # These come first: the session may begin as soon as Iceberg is installed.
    hide_secrets(bridge)
    with _first_and_last:
        bridge.set_request_handler(_handle)
        bridge.install()
        say_our_errors_first()
    prepare_worker_python(bridge.spark)
    return IcebergSession(bridge.spark, bridge, catalogs=catalogs)


def _end(bridge: jvm.Bridge) -> None:
    """Remove Iceberg from a session."""
    with _first_and_last:
        bridge.uninstall()
        if bridge.sessions.clear_unused_callback():
            say_errors_as_before()
    show_as_before(bridge.spark)


_first_and_last = threading.Lock()
"""Guards state of the whole process, which the first session sets up and the last one restores."""

_sessions = Sessions(install, _begin, _end)


def _open_bridge(spark: SparkSession) -> jvm.Bridge:
    """Return the bridge to the session's JVM; raise `BridgeUnavailableError`."""
    try:
        return jvm.Bridge(spark)
    except (AttributeError, OSError, Py4JError) as e:
        # Without the JVM's stack trace, and on one line.
        reason = str(e).partition("\n\tat ")[0].partition("JVM stacktrace")[0]
        raise BridgeUnavailableError(" ".join(reason.split())) from e


@checked_methods
class IcebergSession:
    """A session in which Iceberg is installed."""

    def __init__(
        self,
        spark: SparkSession,
        bridge: jvm.Bridge | None,
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

    def __repr__(self) -> str:
        tables = "native" if self.is_native else f"portable: {self._portable_because}"
        return printable(f"IcebergSession on Spark {self.spark.version}, {tables}")

    @property
    def is_native(self) -> bool:
        """Whether Spark's own readers scan the tables."""
        return self.bridge is not None

    def describe(self) -> str:
        """Return the versions and features of the session: which are native, which portable, and
        why.
        """
        text = describe_session(self.spark, self.bridge, self._portable_because)
        problem = worker_python_problem(self.spark)
        return text if problem is None else f"{text}\n{problem}"

    def table(self, name: str, *, catalog: str | None = None, **options: str) -> SparkTable:
        """Return the table of a name as SQL writes it, or of a path; raise `NoSuchTableError`.

        With a `catalog` or `options`, and in a session without a bridge (Spark Connect), the format
        `iceberg-py` reads and changes the table. They are the format's: the catalog's name,
        `catalog.<key>` and settings of the store, as in `**{"catalog.uri": ...}`.
        """
        from iceberg_pyspark.spark.spark_table import portable_table, spark_table

        try:
            if catalog is not None or options or self.bridge is None:
                return portable_table(self.spark, name, catalog=catalog, **options)
            return spark_table(self.spark, name, self._open_catalog, self.row_level())
        except NoSuchTableError as e:
            if is_path(name):
                raise
            raise type(e)(
                f"{e}; check the name {name}, whose catalog is the first part if the session has "
                f"set spark.sql.catalog.<first part> = {CATALOG_CLASS}; SHOW TABLES IN a namespace "
                "has its tables"
            ) from None

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

    def snapshot(
        self,
        source_table: str,
        table: str,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        ignore_missing_files: bool = False,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> SnapshotTable:
        """Create a table with the files of one of Spark's own tables, which does not change.

        The arguments are those of the procedure of this name. `location` is outside of the source's
        folder; partitions without a folder are refused unless `ignore_missing_files`. `dry_run`
        examines and counts the files, and creates nothing. Raises `TableAlreadyExistsError`,
        `InvalidRequestError` and `UnsupportedFeatureError` for a source that cannot be used.
        """
        from iceberg_pyspark.spark.procedures.adoption import snapshot
        from iceberg_pyspark.table.maintenance.procedure_parts import DRY_RUN
        from iceberg_pyspark.table.maintenance.procedures import SNAPSHOT

        arguments = {
            "source_table": source_table,
            "table": table,
            "location": location,
            "properties": properties,
            "ignore_missing_files": ignore_missing_files,
            DRY_RUN: dry_run,
        }
        return snapshot(self.procedure_run(SNAPSHOT.name, arguments, progress=progress))

    def migrate(
        self,
        table: str,
        *,
        properties: Mapping[str, str] | None = None,
        drop_backup: bool = False,
        backup_table_name: str | None = None,
        ignore_missing_files: bool = False,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> MigratedTable:
        """Replace one of Spark's own tables by an Iceberg table with the same files.

        The arguments are those of the procedure of this name. The source keeps its files under the
        name `backup_table_name` (`<name>_BACKUP_`), unless `drop_backup`. `dry_run` examines and
        counts the files, and changes nothing. Raises `InvalidRequestError` if `spark_catalog` is no
        catalog of this package, and the errors of `snapshot`.
        """
        from iceberg_pyspark.spark.procedures.migrate import migrate
        from iceberg_pyspark.table.maintenance.procedure_parts import DRY_RUN
        from iceberg_pyspark.table.maintenance.procedures import MIGRATE

        arguments = {
            "table": table,
            "properties": properties,
            "drop_backup": drop_backup,
            "backup_table_name": backup_table_name,
            "ignore_missing_files": ignore_missing_files,
            DRY_RUN: dry_run,
        }
        return migrate(self.procedure_run(MIGRATE.name, arguments, progress=progress))

    def procedure_run(
        self, name: str, arguments: Mapping[str, Any], *, progress: Progress = no_progress
    ) -> ProcedureRun:
        """Return a run of a procedure; its argument `table` is named as in SQL.

        Raises `InvalidRequestError` for a path, and `UnsupportedFeatureError` for a procedure that
        reads Spark's own catalog if the session has no bridge.
        """
        from iceberg_pyspark.spark.procedures.migrate import check_session_catalog
        from iceberg_pyspark.spark.procedures.procedure_run import ProcedureRun, no_other_catalog
        from iceberg_pyspark.table.maintenance.procedures import MIGRATE, SNAPSHOT

        table = arguments["table"]
        if name in (MIGRATE.name, SNAPSHOT.name) and self.bridge is None:
            raise UnsupportedFeatureError(
                f"{name} reads Spark's own catalog, and this session has no access to it "
                f"({self._portable_because}); use a classic session"
            )
        if name == MIGRATE.name and catalog_and_levels(self.spark, table) is None:
            check_session_catalog(self.spark)
        open_catalog = None if self.bridge is None else self._open_catalog
        catalog, identifier = catalog_and_identifier(self.spark, table, open_catalog)
        levels = identifier.levels
        if name == MIGRATE.name and catalog.name == SESSION_CATALOG:
            levels = (SESSION_CATALOG, *levels)
        return ProcedureRun(
            procedure=name,
            spark=self.spark,
            catalog=catalog,
            arguments={**arguments, "table": quoted_name(levels)},
            current_namespace=identifier.namespace,
            open_catalog=open_catalog or no_other_catalog,
            progress=progress,
        )

    def bridge_session(self) -> BridgeSession:
        """Return the objects that handle requests of the session's JVM."""
        assert self.bridge is not None, "Spark sends requests, and has catalogs, by the bridge"
        return BridgeSession(spark=self.spark, bridge=self.bridge, catalogs=self.catalogs)

    def row_level(self) -> RowLevelSession:
        """Return the session's objects for row-level operations."""
        states = self.catalogs.states
        return RowLevelSession(
            spark=self.spark, bridge=self.bridge, states=states, state_of=_BRIDGE_SESSIONS.state
        )

    def _open_catalog(self, name: str) -> Catalog:
        return self.bridge_session().open_catalog(name)

    def uninstall(self) -> None:
        """Remove Iceberg from the session."""
        if self.bridge is None:
            return
        _sessions.uninstall(self.bridge)
        # Outside of the package's locks: this takes the lock under which Spark opens catalogs and
        # sends requests.
        self.bridge.remove_catalogs()


_BRIDGE_SESSIONS = BridgeSessions(
    lambda handle: _sessions.session(handle).bridge_session(), _sessions.catalogs
)


def _handle(operation: str, argument: Any) -> Any:
    return handle_request(_BRIDGE_SESSIONS, operation, argument)
