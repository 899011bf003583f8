"""`install(spark)`: Iceberg in a classic Spark session, at the speed of Spark's own reader."""

from __future__ import annotations

import json
import logging
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.spark.bridge.compiler import BridgeUnavailableError
from iceberg_pyspark.spark.bridge.filters import predicate_of
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.native_scan import NativeScan, Part
from iceberg_pyspark.spark.sql_catalog import CatalogAnswers
from iceberg_pyspark.spark.types import project_like
from iceberg_pyspark.spec.metadata_columns import PLAIN_METADATA_COLUMNS
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.table.scan import TableScan, scan_table
from iceberg_pyspark.table.table_storage import table_io

_log = logging.getLogger(__name__)
_sessions: dict[str, IcebergSession] = {}


def install(spark: SparkSession) -> IcebergSession:
    """Make Iceberg tables native to a classic session; installing again returns the same.

    Where the bridge cannot be installed (Spark Connect, a driver without py4j or Janino) one log
    line says so, and the portable data source serves as before.
    """
    try:
        bridge = Bridge(spark)
    except (AttributeError, BridgeUnavailableError, ImportError) as e:
        _log.warning("no native scans in this session, the portable path serves: %s", e)
        return IcebergSession(spark, None)
    session_id = bridge.session_id
    if session_id not in _sessions:
        _sessions[session_id] = IcebergSession(spark, bridge)
        bridge.answer_with(_answer)
        bridge.add_rule()
    return _sessions[session_id]


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

    def uninstall(self) -> None:
        """Take everything out of the session again."""
        if self.bridge is not None:
            self.bridge.remove_rule()
            _sessions.pop(self.bridge.session_id, None)

    def parts_of(self, scan: TableScan, key: str) -> Any:
        """A scan's parts, as the JVM takes them."""
        assert self.bridge is not None, "only the bridge asks for parts"
        parts = NativeScan(self.spark, self.bridge, scan, key).parts()
        return self.bridge.java_list([self._java_part(p) for p in parts])

    def _java_part(self, part: Part) -> Any:
        assert self.bridge is not None, "only the bridge asks for parts"
        return self.bridge.java_list([part.plan, part.live, part.joined])


def _answer(operation: str, argument: Any) -> Any:
    """Every question of the JVM; errors of ours go back as text that the bridge raises."""
    try:
        if operation == "scan.plan":
            return _plan_table(*argument)
        if operation == "source.plan":
            return _plan_source(*argument)
        question = json.loads(argument)
        session_id = question.get("session") or question["catalog"].partition("/")[0]
        return _sessions[session_id].catalogs.answer(operation, question)
    except IcebergError as e:
        return f"error\n{type(e).__name__}\n{e}"


def _plan_table(session_id: str, wanted: str, condition: str | None, handle: str) -> Any:
    session = _sessions[session_id]
    state = session.catalogs.state(handle)
    struct = spark_types.StructType.fromJson(json.loads(wanted))
    scan = scan_table(
        str(state.loaded.identifier),
        state.loaded.metadata,
        table_io(state.loaded),
        selector=state.selector,
        projection=lambda schema: _projected(schema, struct),
    )
    return session.parts_of(_pruned(scan, condition), f"{handle}{wanted}{condition}")


def _plan_source(session_id: str, wanted: str, condition: str | None, pickled: bytes) -> Any:
    del session_id, wanted, condition, pickled
    return None


def _pruned(scan: TableScan, condition: str | None) -> TableScan:
    """The scan with files pruned by what Spark filters on; the rows Spark filters itself."""
    predicate = predicate_of(
        None if condition is None else json.loads(condition), scan.context.schemas[0]
    )
    return scan.pruned_by(predicate)


def _projected(schema: Schema, wanted: spark_types.StructType) -> Schema:
    fields = []
    for f in wanted.fields:
        reserved = PLAIN_METADATA_COLUMNS.get(f.name)
        if reserved is not None and schema.as_struct.field_named(f.name) is None:
            fields.append(reserved)
        else:
            fields.extend(project_like(schema, spark_types.StructType([f])).fields)
    return Schema(fields=tuple(fields), schema_id=schema.schema_id)
