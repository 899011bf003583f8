"""The JVM's side of a session: the compiled classes, called through py4j."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary, finalize

import msgspec
import pyarrow as pa
from py4j.java_gateway import JavaObject
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import BinaryType, DataType, StructType, _parse_datatype_json_string

from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spark.bridge.arrow_stream import arrow_stream
from iceberg_pyspark.spark.bridge.callback_port import CallbackPort
from iceberg_pyspark.spark.bridge.calls import (
    ChangedRows,
    ParquetRelation,
    PositionPlaces,
    SelectedColumn,
    Storing,
    VectorPlaces,
    WrittenColumn,
    to_json,
)
from iceberg_pyspark.spark.bridge.compiler import load_lots, new_instance
from iceberg_pyspark.spark.bridge.features import (
    CLOSED_CATALOGS,
    NATIVE_SCAN,
    NEW_SESSIONS,
    SQL_EXTENSIONS,
    Feature,
    missing_features,
)
from iceberg_pyspark.spark.bridge.java_lists import items
from iceberg_pyspark.spark.bridge.jvm_sessions import JvmSessions
from iceberg_pyspark.spark.bridge.lots import (
    DELETION_VECTORS,
    POSITION_DELETES,
    source_of_threads,
    source_on_executors,
)
from iceberg_pyspark.spark.bridge.protocol import (
    Expression,
    StatedChange,
    TableFacts,
    WriteEnvironment,
    text_of,
)
from iceberg_pyspark.spark.bridge.values import Stated, Value

_SETTINGS_OF_READERS = {
    # columns of Parquet files are found by field id, only in the relations that say so
    "spark.sql.parquet.fieldId.read.enabled": "true",
    # columns of ORC files are found by name, and what is damaged is an error
    "orc.force.positional.evolution": "false",
    "orc.skip.corrupt.data": "false",
    # whole row groups are skipped, and no rows in them: Spark's reader would return those empty
    "orc.sarg.to.filter": "false",
    "orc.filter.use.selected": "false",
    "orc.filter.plugin": "false",
}
_LIKE_FILES = pa.RecordBatch.from_pydict({"location": ["file"], "size": [1]})
"""Of types that a table of files has."""

_log = logging.getLogger(__name__)
_missing: WeakKeyDictionary[Any, Mapping[Feature, str]] = WeakKeyDictionary()
"""Of a gateway: which features its release of Spark cannot have, and why."""

_callbacks: WeakKeyDictionary[Any, tuple[CallbackPort, Any]] = WeakKeyDictionary()
"""Of a gateway: the port on which its JVM asks, and the JVM's client of it."""

_of_gateways = threading.Lock()
"""Who finds or makes what there is one of for a gateway: classes, what is missing, the port."""


class Bridge:
    """One session's door into the JVM."""

    def __init__(self, spark: SparkSession) -> None:
        """Compile the classes if this JVM does not know them; raises `BridgeUnavailableError`."""
        gateway: Any = spark.sparkContext._gateway
        self._spark = spark
        self._gateway: Any = gateway
        self._server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
        with _of_gateways:
            lots = load_lots(gateway)
            self._loader = lots.loader
            self._plans = self._made("IcebergPyPlans")
            self._sizes = self._made("IcebergPySizes")
            if gateway not in _missing:
                lacking = json.loads(self._plans.lacking(spark._jsparkSession))
                _missing[gateway] = missing_features(lots.failures, lacking)
                for feature in self.missing:
                    _log.warning("%s", self._said_of(feature))
                if self.has(NATIVE_SCAN):
                    self._scans.prepare(arrow_stream(_LIKE_FILES))
        self.sessions = JvmSessions(self._plans)

    def _made(self, name: str) -> Any:
        return new_instance(self._gateway, self._loader, name)

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self._spark

    @property
    def missing(self) -> Mapping[Feature, str]:
        """The features that this release of Spark cannot have, and why."""
        return _missing[self._gateway]

    def has(self, feature: Feature) -> bool:
        """Whether this release of Spark has a feature."""
        return feature not in self.missing

    def check(self, feature: Feature) -> None:
        """Raise `UnsupportedFeatureError` where this release of Spark does not have a feature."""
        if not self.has(feature):
            raise UnsupportedFeatureError(self._said_of(feature))

    def _said_of(self, feature: Feature) -> str:
        why = self.missing[feature]
        return f"{feature.name}: not on Spark {self._spark.version} ({why}); {feature.otherwise}"

    @cached_property
    def _scans(self) -> Any:
        return self._made("IcebergPyParquetScans")

    @cached_property
    def _deletes(self) -> Any:
        return self._made("IcebergPyDeleteConditions")

    @cached_property
    def _rows(self) -> Any:
        return self._made("IcebergPyRowLevel")

    @cached_property
    def _joins(self) -> Any:
        return self._made("IcebergPyJoins")

    @cached_property
    def _selections(self) -> Any:
        return self._made("IcebergPySelections")

    @cached_property
    def _changes(self) -> Any:
        return self._made("IcebergPyChanges")

    @cached_property
    def _parsers(self) -> Any:
        return self._made("IcebergPyParsers")

    @cached_property
    def _layout(self) -> Any:
        return self._made("IcebergPyLayout")

    @cached_property
    def _parquet(self) -> Any:
        return self._made("IcebergPyParquetWrites")

    @property
    def java_version(self) -> str:
        """The version of Java that the session runs on, and whose it is."""
        property_of = self._gateway.jvm.java.lang.System.getProperty
        return f"{property_of('java.version')} ({property_of('java.vendor')})"

    def hide_in_settings(self, patterns: Mapping[str, str]) -> None:
        """Add a pattern to each of these settings, in the session and in new ones made of it."""
        self._made("IcebergPyRedaction").hideInSettings(
            self._spark._jsparkSession, json.dumps(dict(patterns))
        )

    def hide_in_events(self, pattern: str) -> str | None:
        """Have Spark's events and environment page hide what a pattern finds; says what failed."""
        failed = self._made("IcebergPyRedaction").hide(self._spark._jsparkSession, pattern)
        return None if failed is None else str(failed)

    @property
    def session_handle(self) -> str:
        """What the JVM calls the session when it asks; it shows nowhere else."""
        return str(self._plans.sessionHandle(self._spark._jsparkSession))

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
        """Let the session open its catalogs of ours anew when they are next named."""
        if self.has(CLOSED_CATALOGS):
            self._plans.forgetCatalogs(self._spark._jsparkSession)

    def open_catalog(self, name: str) -> None:
        """Have Spark load a catalog, as a query that names it would."""
        self._plans.openCatalog(self._spark._jsparkSession, name)

    def install(self) -> None:
        """Put rule, strategy and parser into the session, and into those that Spark makes of it.

        What the release cannot do is left out; what is there already is not put in again.
        """
        session, parser = self._spark._jsparkSession, None
        self._plans.install(session)
        if self.has(SQL_EXTENSIONS):
            self._parsers.putInFront(session)
            parser = self._parsers.later()
        if self.has(NEW_SESSIONS):
            self._plans.installInNew(session, parser)

    def uninstall(self) -> None:
        """Leave the session with what it had; sessions made of it meanwhile stay as they are."""
        session = self._spark._jsparkSession
        if self.has(NEW_SESSIONS):
            self._plans.uninstallInNew(session)
        if self.has(SQL_EXTENSIONS):
            self._parsers.takeOut(session)
        self._plans.uninstall(session)

    def has_file_system(self, scheme: str) -> bool:
        """Whether the JVM can open locations of that scheme."""
        return bool(self._plans.hasFileSystem(self._spark._jsparkSession, scheme))

    def parquet_relation(self, described: ParquetRelation, files: pa.RecordBatch) -> DataFrame:
        """A DataFrame over chosen files: columns of theirs, and facts about each file.

        It is to build a plan with that the rule of the session takes.
        """
        frame = self._scans.relation(
            self._spark._jsparkSession, _with_settings(described), arrow_stream(files)
        )
        return DataFrame(frame, self._spark)

    def parquet_plan(
        self,
        described: ParquetRelation,
        files: pa.RecordBatch,
        outputs: Sequence[SelectedColumn],
    ) -> Any:
        """The analysed plan of columns made of such a relation's, in one call of the JVM."""
        return self._scans.plan(
            self._spark._jsparkSession,
            _with_settings(described),
            arrow_stream(files),
            to_json(outputs),
        )

    def selected(self, frame: DataFrame, expressions: Sequence[str]) -> DataFrame:
        """`selectExpr` in one call of the JVM."""
        made = self._plans.selectedFrame(frame._jdf, json.dumps(list(expressions)))
        return DataFrame(made, self._spark)

    def binary_rows(self, rows: Sequence[tuple[bytes]], name: str, partitions: int) -> DataFrame:
        """A DataFrame of one binary column, whose rows the JVM unpickles.

        What `createDataFrame` does with an RDD, but for its step in Python workers, which looks at
        each row and takes as long as ours.
        """
        serde = self._gateway.jvm.SerDeUtil
        pickled = self._spark.sparkContext.parallelize(rows, partitions)._jrdd
        made = self._spark._jsparkSession.applySchemaToPythonRDD(
            serde.toJavaArray(serde.pythonToJava(pickled, True)).rdd(),
            StructType().add(name, BinaryType(), nullable=False).json(),
        )
        return DataFrame(made, self._spark)

    def holds_rows(self, frame: DataFrame, most: int) -> bool:
        """Whether a frame's plan has all of its rows in it, and no more than that."""
        plan = frame._jdf.queryExecution().optimizedPlan()
        return bool(plan.nodeName() == "LocalRelation" and plan.data().size() <= most)

    def has_alias(self, frame: DataFrame) -> bool:
        """Whether a frame was given a name."""
        plan = frame._jdf.queryExecution().analyzed()
        return bool(plan.getClass().getSimpleName() == "SubqueryAlias")

    def bytes_of(self, setting: str, default: str) -> int:
        """A setting of the session that Spark takes with a unit."""
        text = str(self._spark.conf.get(setting, default))
        units = self._gateway.jvm.org.apache.spark.network.util.JavaUtils
        return int(units.byteStringAsBytes(text))

    def analysed(self, frame: DataFrame) -> Any:
        """The analysed plan of a frame."""
        return self._plans.analysed(frame._jdf)

    def with_statistics(self, plan: Any, rows: int) -> Any:
        """The plan over shipped tasks with its size said, for Spark to choose joins by."""
        return self._sizes.withStatistics(plan, rows)

    def live_rows(self, plan: Any, packed: bytes, wide: bool) -> Any:
        """The condition on a plan's rows that no bitmap of their file holds them."""
        digest = hashlib.sha256(packed).hexdigest()
        held = self._scans.liveRowsHeld(plan, digest, wide)
        if held is not None:
            return held
        return self._scans.liveRows(self._spark._jsparkSession, plan, digest, packed, wide)

    def unmarked_rows(self, plan: Any, described: VectorPlaces) -> Any:
        """The condition on a plan's rows that no deletion vector of their file has them."""
        return self._undeleted_rows(plan, DELETION_VECTORS, described)

    def unlisted_rows(self, plan: Any, described: PositionPlaces) -> Any:
        """The condition on a plan's rows that no position delete file of their file has them."""
        return self._undeleted_rows(plan, POSITION_DELETES, described)

    def _undeleted_rows(self, plan: Any, lot: str, described: VectorPlaces | PositionPlaces) -> Any:
        text = to_json(described)
        return self._deletes.liveRows(
            self._spark._jsparkSession,
            plan,
            lot,
            hashlib.sha256(text.encode()).hexdigest(),
            text,
            source_on_executors(lot),
            source_of_threads(),
        )

    def both(self, one: Any, other: Any) -> Any:
        """The condition that two conditions hold."""
        return self._deletes.both(one, other)

    def table_frame(self, facts: TableFacts, statement_columns: Any = None) -> DataFrame:
        """The rows of the table that facts name; columns have the ids that a statement knows."""
        frame = self._rows.tableFrame(self._spark._jsparkSession, text_of(facts), statement_columns)
        return DataFrame(frame, self._spark)

    def bind_columns(self, frame: DataFrame, values: Sequence[Value]) -> list[Column]:
        """Values of a frame's rows by ids instead of names: they mean the same after a join."""
        if not values:
            return []
        found = self._changes.resolved(
            self._server, self._spark._jsparkSession, frame._jdf, to_json(values)
        )
        return [Stated(found, i).column() for i in range(len(values))]

    def storable(
        self, frame: DataFrame, rows: DataFrame, source: DataFrame | None, asked: Sequence[Storing]
    ) -> list[tuple[DataType, bool]]:
        """The types of values, and whether Spark would store them where they are to be stored.

        The frame is of the table's `rows` and those of a source.
        """
        if not asked:
            return []
        found = self._changes.storable(
            self._server,
            self._spark._jsparkSession,
            frame._jdf,
            rows._jdf,
            None if source is None else source._jdf,
            to_json(asked),
        )
        return [(_parse_datatype_json_string(has), fits) for has, fits in json.loads(found)]

    def changed(
        self, frame: DataFrame, rows: DataFrame, source: DataFrame | None, described: ChangedRows
    ) -> DataFrame:
        """The changes of a frame's rows, which are of the table's `rows` and those of a source."""
        made = self._changes.changed(
            self._server,
            self._spark._jsparkSession,
            frame._jdf,
            rows._jdf,
            None if source is None else source._jdf,
            to_json(described),
        )
        return DataFrame(made, self._spark)

    def environment(self) -> WriteEnvironment:
        """Where a statement of the session runs."""
        return msgspec.json.decode(self._rows.environment(), type=WriteEnvironment)

    def is_cheap(self, frame: DataFrame, most_bytes: int) -> bool:
        """Whether a frame gives the same rows each time, and Spark takes it for small."""
        return bool(self._joins.fits(frame._jdf, most_bytes))

    def comes_in_groups(self, frame: DataFrame) -> bool:
        """Whether Spark joins a frame by groups of its files, and gets the same rows each time."""
        return bool(self._joins.comesInGroups(frame._jdf))

    def equi_join_keys(
        self, rows: DataFrame, source: DataFrame, condition: Column
    ) -> list[tuple[str, Stated, Stated, DataType]]:
        """The equalities of a condition: a column's name, it, a value of the source, its type."""
        session = self._spark._jsparkSession
        found = self._joins.equiJoinKeys(session, rows._jdf, source._jdf, condition._jc)
        return _equalities(found, json.loads(found.described()))

    def selecting(
        self, rows: DataFrame, condition: Column
    ) -> list[tuple[DataFrame, list[tuple[str, Stated, Stated, DataType]]]]:
        """The subqueries that rows which fulfil a condition are in, and of each what is equal."""
        session = self._spark._jsparkSession
        found = self._selections.sources(session, rows._jdf, condition._jc)
        return [
            (DataFrame(found.source(i), self._spark), _equalities(found, keys))
            for i, keys in enumerate(json.loads(found.described()))
        ]

    def needs_no_rebalance(
        self, source: DataFrame, *, records: int, least_bytes: int, most_bytes: int
    ) -> bool:
        """Whether a join with a table of so many records needs no rebalancing after it.

        So it is where Spark shuffles both sides, and each task gets `least_bytes` to `most_bytes`
        of the source.
        """
        session = self._spark._jsparkSession
        return bool(
            self._joins.needsNoRebalance(session, source._jdf, records, least_bytes, most_bytes)
        )

    def joined(self, rows: DataFrame, source: DataFrame, condition: Column, kind: str) -> DataFrame:
        """A table's rows and a source's that meet, and of `left` and `full` which met none."""
        session = self._spark._jsparkSession
        made = self._joins.joined(session, rows._jdf, source._jdf, condition._jc, kind)
        return DataFrame(made, self._spark)

    def semi_join_on_keys(
        self,
        rows: DataFrame,
        source: DataFrame,
        equal: Sequence[tuple[Value, Value]],
        *,
        outer: bool,
        records: int,
        size_in_bytes: int,
    ) -> DataFrame:
        """The rows with keys of the source, or all where joining these keys first does not pay.

        `equal` are columns and the source's values they equal, `outer` says whether the join to
        come keeps source rows that meet none; `records` and `size_in_bytes` are the table's.
        """
        if not equal:
            return rows
        made = self._joins.semiJoinOnKeys(
            self._server,
            self._spark._jsparkSession,
            rows._jdf,
            source._jdf,
            to_json(equal),
            outer,
            records,
            size_in_bytes,
        )
        return DataFrame(made, self._spark)

    def statement(self, plan: Any) -> tuple[StatedChange, Any]:
        """A DELETE, UPDATE or MERGE of Spark's, and the expressions that it has by number."""
        found = self._rows.statement(plan)
        return msgspec.json.decode(found.described(), type=StatedChange), found

    def source_of(self, statement: Any) -> DataFrame:
        """The rows that a MERGE of Spark's reads."""
        return DataFrame(statement.source(self._spark._jsparkSession), self._spark)

    def reads_iceberg(self, frame: DataFrame) -> bool:
        """Whether a frame reads a table of ours."""
        return bool(self._rows.readsIceberg(frame._jdf.queryExecution().analyzed()))

    def condition_of(self, filtered: DataFrame) -> Expression | None:
        """The condition of a DataFrame that was filtered last, described."""
        text = self._rows.condition(filtered._jdf.queryExecution().analyzed())
        if text is None:
            return None
        found: Expression = msgspec.json.decode(text, type=Expression)
        return found

    def rebalanced(self, frame: DataFrame, by: Sequence[Column], size: int) -> DataFrame:
        """The rows in partitions of about that many bytes: by range if `by` is ordered, by hash."""
        made = self._layout.rebalanced(
            self._server, self._spark._jsparkSession, frame._jdf, to_json(by), size
        )
        return DataFrame(made, self._spark)

    def murmur3(self, column: Column, kind: str) -> Column:
        """Appendix B's hash of a column's values: `long`, `text`, `bytes` or `decimal`."""
        return Column(self._layout.murmur3(column._jc, kind))

    def written_columns(self, frame: DataFrame, columns: Sequence[WrittenColumn]) -> DataFrame:
        """Columns of a frame as Spark's own Parquet writer is to write them."""
        made = self._parquet.columns(frame._jdf, to_json(columns))
        return DataFrame(made, self._spark)

    def write_parquet(
        self,
        frame: DataFrame,
        folder: str,
        *,
        job: str,
        partitioned_by: Sequence[str],
        settings: Mapping[str, str],
        options: Mapping[str, str],
    ) -> None:
        """Have Spark's own writer write the rows below a folder that nobody else writes to.

        `settings` are the session's and `options` Hadoop's and the format's, for this write alone.
        """
        self._parquet.write(
            frame._jdf,
            job,
            folder,
            json.dumps(partitioned_by),
            json.dumps(dict(settings)),
            json.dumps(dict(options)),
        )

    def java_list(self, items: Sequence[Any]) -> Any:
        """A list of the JVM's own, of texts, objects of the JVM's and such lists."""
        return self._plans.list(self._server, to_json(items))


def _with_settings(described: ParquetRelation) -> str:
    options = {**described.options, **_SETTINGS_OF_READERS}
    return to_json(replace(described, options=options))


def _equalities(
    expressions: Any, said: Sequence[Mapping[str, Any]]
) -> list[tuple[str, Stated, Stated, DataType]]:
    return [
        (
            one["name"],
            Stated(expressions, one["column"]),
            Stated(expressions, one["value"]),
            _parse_datatype_json_string(one["type"]),
        )
        for one in said
    ]


def _over_py4j(answer: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    def answered(operation: str, argument: Any) -> Any:
        return answer(operation, argument if isinstance(argument, str) else items(argument))

    return answered
