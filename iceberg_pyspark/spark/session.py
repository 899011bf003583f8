"""`install(spark)`: Iceberg in a classic Spark session, at the speed of Spark's own reader."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Mapping
from functools import wraps
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.errors import IcebergError, InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.spark.bridge.compiler import BridgeUnavailableError
from iceberg_pyspark.spark.bridge.filters import predicate_of
from iceberg_pyspark.spark.data_source import IcebergDataSource
from iceberg_pyspark.spark.metadata_table_read import metadata_table_frame
from iceberg_pyspark.spark.native_filter import is_exact
from iceberg_pyspark.spark.native_scan import NativeScan, Part
from iceberg_pyspark.spark.read_job import ReadJob
from iceberg_pyspark.spark.row_level.target import RowLevelSession
from iceberg_pyspark.spark.spark_table import SparkTable, spark_table
from iceberg_pyspark.spark.sql_catalog import CatalogAnswers
from iceberg_pyspark.spark.table_states import TableState
from iceberg_pyspark.spark.types import project_like
from iceberg_pyspark.spark.write_command import WriteCommand, WriteKind, run_write
from iceberg_pyspark.spec.metadata_columns import PLAIN_METADATA_COLUMNS
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.table.metadata_tables import metadata_table
from iceberg_pyspark.table.scan import TableScan, partition_of, scan_table
from iceberg_pyspark.table.table_storage import table_io

if TYPE_CHECKING:
    from iceberg_pyspark.spark.bridge.jvm import Bridge

_log = logging.getLogger(__name__)
_sessions: dict[str, IcebergSession] = {}
_uninstalled: set[str] = set()
_EVERY_ROW = AlwaysTrue()


def install(spark: SparkSession) -> IcebergSession:
    """Make Iceberg tables native to a classic session; installing again returns the same.

    Where the bridge cannot be installed (Spark Connect, a driver without py4j or Janino) one log
    line says so, and the portable data source serves as before.
    """
    try:
        bridge = _open_bridge(spark)
    except BridgeUnavailableError as e:
        _log.warning("no native scans in this session, the portable path serves: %s", e)
        return IcebergSession(spark, None)
    session_id = bridge.session_id
    if session_id not in _sessions:
        bridge.answer_with(_answer)
        bridge.add_rule()
        _install_in_new_sessions(spark)
        _sessions[session_id] = IcebergSession(spark, bridge)
    _uninstalled.discard(session_id)
    return _sessions[session_id]


def _install_in_new_sessions(spark: SparkSession) -> None:
    """Have sessions made from this one install too: the JVM tells nobody of a new session."""
    make = spark.newSession

    @wraps(make)
    def new_session() -> SparkSession:
        made = make()
        install(made)
        return made

    vars(spark)["newSession"] = new_session


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

    def __init__(self, spark: SparkSession, bridge: Bridge | None) -> None:
        self.spark = spark
        self.bridge = bridge
        self.catalogs = CatalogAnswers()

    @property
    def is_native(self) -> bool:
        """Whether scans are Spark's own."""
        return self.bridge is not None

    def table(self, name: str) -> SparkTable:
        """The table of that name, as SQL writes it, or path; raises `NoSuchTableError`."""
        if self.bridge is None:
            return spark_table(self.spark, name, None, None)
        session = RowLevelSession(spark=self.spark, bridge=self.bridge, states=self.catalogs.states)
        return spark_table(self.spark, name, self._open_catalog, session)

    def _open_catalog(self, name: str) -> Catalog:
        assert self.bridge is not None, "Spark knows our catalogs by the bridge"
        self.bridge.open_catalog(name)
        return self.catalogs.catalog(f"{self.bridge.session_id}/{name}")

    def uninstall(self) -> None:
        """Take everything out of the session again."""
        if self.bridge is None:
            return
        session_id = self.bridge.session_id
        self.bridge.remove_rule()
        self.bridge.forget_catalogs()
        vars(self.spark).pop("newSession", None)
        _sessions.pop(session_id, None)
        _uninstalled.add(session_id)
        if not _sessions:
            self.bridge.answer_no_more()

    def parts_of(self, scan: TableScan, key: str, row_filter: Predicate = _EVERY_ROW) -> Any:
        """A scan's parts, as the JVM takes them; of the rows that `row_filter` selects."""
        assert self.bridge is not None, "only the bridge asks for parts"
        parts = NativeScan(self.spark, self.bridge, scan, key, row_filter).parts()
        return self.bridge.java_list([self._java_part(p) for p in parts])

    def parts_of_frame(self, frame: DataFrame) -> Any:
        """A DataFrame as the only part, as the JVM takes it."""
        assert self.bridge is not None, "only the bridge asks for parts"
        part = Part(plan=frame._jdf.queryExecution().analyzed())
        return self.bridge.java_list([self._java_part(part)])

    def _java_part(self, part: Part) -> Any:
        assert self.bridge is not None, "only the bridge asks for parts"
        joins = self.bridge.java_list(list(part.anti_joins))
        return self.bridge.java_list([part.plan, part.live, joins])


def _answer(operation: str, argument: Any) -> Any:
    """Every question of the JVM; errors of ours go back as text that the bridge raises."""
    try:
        if operation == "scan.plan":
            return _plan_table(*argument)
        if operation == "source.plan":
            return _plan_source(*argument)
        if operation == "write.run":
            return _run_write(*argument)
        if operation == "dml.run":
            return _change_rows(*argument)
        question = json.loads(argument)
        session_id = question.get("session") or question["catalog"].partition("/")[0]
        return _session(session_id).catalogs.answer(operation, question)
    except IcebergError as e:
        return f"error\n{type(e).__name__}\n{e}"


def _session(session_id: str) -> IcebergSession:
    """The session of that name; one made from a session with Iceberg gets it when it asks."""
    found = _sessions.get(session_id)
    if found is not None:
        return found
    other = next(reversed(_sessions.values()), None)
    spark = None
    if other is not None and other.bridge is not None and session_id not in _uninstalled:
        spark = other.bridge.session_named(session_id)
    if spark is None:
        raise InvalidRequestError(
            "iceberg_pyspark is not installed in this session: call iceberg_pyspark.install(spark)"
        )
    return install(spark)


def _plan_table(session_id: str, wanted: str, condition: str | None, handle: str) -> Any:
    session = _session(session_id)
    state = _state_of(handle)
    struct = spark_types.StructType.fromJson(json.loads(wanted))
    io = state.io or table_io(state.loaded, _catalog_of(state).properties)
    if state.metadata_table is not None:
        opened = metadata_table(
            state.loaded,
            io,
            state.metadata_table,
            selector=state.selector,
        )
        return session.parts_of_frame(metadata_table_frame(session.spark, opened, struct))
    scan = scan_table(
        str(state.loaded.identifier),
        state.loaded.metadata,
        io,
        selector=state.selector,
        projection=lambda schema: _projected(schema, struct, partition_of(state.loaded.metadata)),
    )
    pruned = _pruned(scan, condition)
    if state.reads is not None:
        pruned = state.reads.noted(pruned)
    return session.parts_of(pruned, f"{handle}{wanted}{condition}")


def _run_write(
    session_id: str,
    kind: WriteKind,
    handle: str,
    options: Mapping[str, str],
    frame: Any,
    condition: str | None,
) -> None:
    session = _session(session_id)
    state = _state_of(handle)
    command = WriteCommand(
        kind=kind,
        frame=DataFrame(frame, session.spark),
        options=dict(options),
        condition=None if condition is None else json.loads(condition),
    )
    run_write(_catalog_of(state), state, command)


def _change_rows(session_id: str, plan: Any) -> None:
    """DELETE, UPDATE and MERGE: the statement as Spark's optimized plan."""
    del session_id
    raise UnsupportedFeatureError(
        f"{plan.nodeName()} is not supported yet; rewrite the rows with "
        "df.write.format('iceberg-py').mode('overwrite')"
    )


def _state_of(handle: str) -> TableState:
    """The table of a handle; a session that this one was cloned from may have loaded it."""
    owner = str(json.loads(handle)[0]).partition("/")[0]
    return _session(owner).catalogs.state(handle)


def _catalog_of(state: TableState) -> Catalog:
    return _session(state.catalog.partition("/")[0]).catalogs.catalog(state.catalog)


def _plan_source(session_id: str, wanted: str, condition: str | None, pickled: bytes) -> Any:
    """The parts of a `spark.read.format("iceberg-py")`, or None where it stays as it is."""
    struct = spark_types.StructType.fromJson(json.loads(wanted))
    try:
        source = pickle.loads(pickled)
        if not isinstance(source, IcebergDataSource):
            return None
        job = source.read_job()
        if not isinstance(job, ReadJob):
            return None
        scan = job.scan_of(struct)
        if not is_exact(scan.context.predicate):
            return None
        key = f"{sha256(pickled).hexdigest()}{wanted}{condition}"
        selected = scan.context.predicate
        return _session(session_id).parts_of(_pruned(scan, condition), key, selected)
    except IcebergError as e:
        # the portable source will meet the same, and say it in its own words
        _log.info("a scan of iceberg-py is left to the portable path: %s", e)
        return None


def _pruned(scan: TableScan, condition: str | None) -> TableScan:
    """The scan with files pruned by what Spark filters on; the rows Spark filters itself."""
    predicate = predicate_of(
        None if condition is None else json.loads(condition), scan.context.schemas[0]
    )
    return scan.pruned_by(predicate)


def _projected(
    schema: Schema, wanted: spark_types.StructType, partition: NestedField | None
) -> Schema:
    fields: list[NestedField] = []
    for f in wanted.fields:
        known = schema
        if schema.as_struct.field_named(f.name) is None:
            reserved = PLAIN_METADATA_COLUMNS.get(f.name)
            if partition is not None and f.name == partition.name:
                reserved = partition
            known = schema if reserved is None else Schema(fields=(reserved,))
        fields.extend(project_like(known, spark_types.StructType([f])).fields)
    return Schema(fields=tuple(fields), schema_id=schema.schema_id)
