"""`install(spark)`: Iceberg in a classic Spark session, at the speed of Spark's own reader."""

from __future__ import annotations

import json
import logging
import threading
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.catalogs.identifiers import quoted
from iceberg_pyspark.errors import (
    IcebergError,
    LocationRefusedError,
    TableAlreadyExistsError,
)
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.spark.bridge.captured_errors import (
    say_errors_as_before,
    say_our_errors_first,
    thrown_in,
)
from iceberg_pyspark.spark.bridge.compiler import BridgeUnavailableError
from iceberg_pyspark.spark.bridge.features import SQL_EXTENSIONS
from iceberg_pyspark.spark.bridge.filters import comparable_predicate_of, predicate_of
from iceberg_pyspark.spark.commit_write import commit_write
from iceberg_pyspark.spark.data_source import IcebergDataSource
from iceberg_pyspark.spark.described_session import describe_session
from iceberg_pyspark.spark.error_text import iceberg_error_in
from iceberg_pyspark.spark.hidden_columns import hidden_columns, project_with_hidden
from iceberg_pyspark.spark.hidden_secrets import hide_secrets, show_as_before
from iceberg_pyspark.spark.location_options import as_session_reads, session_settings
from iceberg_pyspark.spark.metadata_table_read import metadata_table_frame
from iceberg_pyspark.spark.native_aggregates import aggregate_lines
from iceberg_pyspark.spark.native_filter import is_exact
from iceberg_pyspark.spark.native_scan import NativeScan, Part, Question, RowCondition
from iceberg_pyspark.spark.native_storage import NativeStorage
from iceberg_pyspark.spark.pickled_source import state_in
from iceberg_pyspark.spark.prepare_write import prepare_write
from iceberg_pyspark.spark.read_job import ReadJob, open_read_job
from iceberg_pyspark.spark.row_level.run import Request, run
from iceberg_pyspark.spark.row_level.statement import read_statement
from iceberg_pyspark.spark.row_level.target import RowLevelSession, branch_to_change
from iceberg_pyspark.spark.runtime_filters import kept_locations
from iceberg_pyspark.spark.sessions import Sessions
from iceberg_pyspark.spark.shown_statistics import shown_column_statistics
from iceberg_pyspark.spark.source_names import options_in_session, table_there
from iceberg_pyspark.spark.spark_table import SparkTable, catalog_and_levels, spark_table
from iceberg_pyspark.spark.sql_catalog import CatalogAnswers
from iceberg_pyspark.spark.sql_statements import extension_in, run_statement
from iceberg_pyspark.spark.staged_tables import write_staged
from iceberg_pyspark.spark.table_states import TableState
from iceberg_pyspark.spark.types import to_spark_schema
from iceberg_pyspark.spark.write_command import (
    Surroundings,
    WriteCommand,
    run_truncate,
    run_write,
    write_laid_out,
)
from iceberg_pyspark.spark.write_layout import write_layout
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.table.metadata_tables import metadata_table
from iceberg_pyspark.table.scan import TableScan, scan_table
from iceberg_pyspark.table.sql_extensions import extension_statement
from iceberg_pyspark.table.table_storage import table_io

if TYPE_CHECKING:
    from iceberg_pyspark.spark.bridge.jvm import Bridge

T = TypeVar("T")

_log = logging.getLogger(__name__)
_EVERY_ROW = AlwaysTrue()
_ALL = Question()


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


def _begin(bridge: Bridge, catalogs: CatalogAnswers) -> IcebergSession:
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
        catalogs: CatalogAnswers | None = None,
        portable_because: str = "",
    ) -> None:
        """`catalogs` are those it has opened, `portable_because` says why there is no bridge."""
        self.spark = spark
        self.bridge = bridge
        self._portable_because = portable_because
        self.catalogs = CatalogAnswers() if catalogs is None else catalogs

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
        name = quoted(statement.table)
        if catalog_and_levels(self.spark, name) is None:
            return self.spark.sql(text)
        run_statement(self.table(name), text, statement.offset)
        return self.spark.createDataFrame([], spark_types.StructType())

    def row_level(self) -> RowLevelSession:
        """What operations on rows need of it."""
        return RowLevelSession(spark=self.spark, bridge=self.bridge, states=self.catalogs.states)

    def _open_catalog(self, name: str) -> Catalog:
        assert self.bridge is not None, "Spark knows our catalogs by the bridge"
        self.bridge.open_catalog(name)
        return self.catalogs.catalog(f"{self.bridge.session_handle}/{name}")

    def uninstall(self) -> None:
        """Take everything out of the session again."""
        if self.bridge is None:
            return
        _sessions.uninstall(self.bridge)
        # Spark opens catalogs, and asks for it, under a lock that this takes
        self.bridge.forget_catalogs()

    def parts_of(
        self,
        scan: TableScan,
        key: str,
        storage: Mapping[str, str],
        row_filter: Predicate = _EVERY_ROW,
        question: Question = _ALL,
    ) -> Any:
        """Parts of a scan, of rows that `row_filter` selects, and which conditions are proven."""
        assert self.bridge is not None, "only the bridge asks for parts"
        native = NativeScan(self.spark, self.bridge, scan, key, row_filter, storage, question)
        return self._java_parts(native.parts(), sorted(native.proven))

    def kept_of(self, scan: TableScan, storage: Mapping[str, str]) -> str:
        """Where the JVM finds the data files of a pruned scan."""
        assert self.bridge is not None, "only the bridge asks for files"
        return kept_locations(scan, NativeStorage(self.bridge.has_file_system, storage).location)

    def parts_of_frame(self, frame: DataFrame) -> Any:
        """A DataFrame as the only part, as the JVM takes it."""
        assert self.bridge is not None, "only the bridge asks for parts"
        return self._java_parts([Part(plan=self.bridge.analysed(frame))], [])

    def _java_parts(self, parts: Sequence[Part], proven: Sequence[int]) -> Any:
        assert self.bridge is not None, "only the bridge asks for parts"
        # each call of the JVM costs a millisecond
        return self.bridge.java_list([json.dumps(proven), *(self._java_part(p) for p in parts)])

    def _java_part(self, part: Part) -> Any:
        assert self.bridge is not None, "only the bridge asks for parts"
        return self.bridge.part(part.plan, part.live, part.anti_joins)


def _answer(operation: str, argument: Any) -> Any:
    """Every question of the JVM; errors go back as text that the bridge raises."""
    try:
        if operation in _OF_VALUES:
            return _OF_VALUES[operation](**json.loads(argument))
        if operation in _OF_PLANS:
            return _OF_PLANS[operation](*argument)
        question = json.loads(argument)
        handle = question.get("session") or question["catalog"].partition("/")[0]
        return _sessions.catalogs(handle).answer(operation, question)
    except BaseException as e:  # noqa: BLE001 - unanswered, the JVM would wait for ever
        return _as_answer(e)


def _as_answer(error: BaseException) -> Any:
    """What the bridge raises: the JVM's own throwable, or a text with class and message."""
    if isinstance(error, IcebergError):
        return f"error\n{type(error).__name__}\n{error}"
    # a job that the answer took may have failed, by an error of ours in a task
    found = iceberg_error_in(str(error))
    if found is not None:
        return "error\n{}\n{}".format(*found)
    thrown = thrown_in(error)
    if thrown is not None:
        return thrown
    _log.error("a question of Spark's could not be answered", exc_info=error)
    return f"error\n\n{type(error).__name__}: {error}"


def _session(handle: str) -> IcebergSession:
    return _sessions.session(handle)


def _plan(
    session: str,
    wanted: str,
    conditions: list[Any],
    needed: list[str] | None,
    limit: int | None,
    grouped: bool,
    handle: str | None = None,
    source: str | None = None,
) -> Any:
    """The parts of a scan of a catalog's table or of `spark.read.format("iceberg-py")`.

    `conditions` are all the query's on its rows, each with the columns of `wanted` that it is on;
    `needed` are those that the query needs besides, and of so many rows as `limit` says any will
    do; with `grouped` files of equal partition values are wanted together. The answer says which
    conditions no row of the parts can fail, too.
    """
    struct = spark_types.StructType.fromJson(json.loads(wanted))
    read = handle or sha256(str(source).encode()).hexdigest()
    key = f"{read}{wanted}{json.dumps([conditions, needed, limit, grouped])}"

    def question(scan: TableScan) -> Question:
        schema = scan.context.schemas[0]
        return Question(
            conditions=[
                RowCondition(
                    predicate=comparable_predicate_of(c["condition"], schema),
                    columns=frozenset(c["columns"]),
                )
                for c in conditions
            ],
            needed=None if needed is None else frozenset(needed),
            limit=limit,
            grouped=grouped,
        )

    found, condition = _session(session), _all_of(conditions)
    if handle is None:
        return _left_to_portable(
            lambda: _plan_source(found, struct, condition, question, source or "", key)
        )
    return _plan_table(found, struct, condition, question, handle, key)


def _all_of(conditions: Sequence[Any]) -> Any:
    """The described conditions as one, None without any."""
    described = [c["condition"] for c in conditions]
    return {"op": "and", "args": described} if described else None


def _aggregate(
    session: str,
    columns: str,
    groups: list[str],
    aggregates: list[list[str | None]],
    condition: Any,
    handle: str | None = None,
    source: str | None = None,
) -> str | None:
    """Aggregates of a scan, where metadata tell: how many rows, and each on a line; else None."""
    found = _session(session)
    struct = spark_types.StructType.fromJson(json.loads(columns))
    if handle is not None:
        state = _state_of(handle)
        if state.metadata_table is not None or state.reads is not None:
            return None
        scan = _whole_scan(state, found.spark, struct)
        return aggregate_lines(scan, struct, groups, aggregates, condition)

    def of_source() -> str | None:
        job = _read_job(found.spark, source or "")
        if job is None:
            return None
        return aggregate_lines(job.scan_of(struct), struct, groups, aggregates, condition)

    return _left_to_portable(of_source)


def _runtime_filter(
    session: str,
    wanted: str,
    conditions: list[Any],
    needed: list[str] | None,
    limit: int | None,
    grouped: bool,
    filters: list[Any],
    handle: str | None = None,
    source: str | None = None,
) -> str | None:
    """Which files of a planned scan are left by filters known while it runs; None for all."""
    del wanted, needed, limit, grouped  # which files may have such values does not depend on them
    asked = {"op": "and", "args": [*(c["condition"] for c in conditions), *filters]}
    found = _session(session)
    nothing = spark_types.StructType()
    try:
        if handle is None:
            job = _read_job(found.spark, source or "")
            if job is None:
                return None
            scan, loaded = job.scan_of(nothing), job.loaded
        else:
            state = _state_of(handle)
            scan, loaded = _whole_scan(state, found.spark, nothing), state.loaded
        return found.kept_of(_pruned(scan, asked), loaded.config)
    except IcebergError as e:
        _log.info("no file is skipped by a filter of the running query: %s", e)
        return None


def _column_statistics(session: str, handle: str) -> str:
    """What is known of the columns of a catalog's table, for estimates."""
    state = _state_of(handle)
    try:
        scan = _whole_scan(state, _session(session).spark, spark_types.StructType())
        return shown_column_statistics(scan)
    except IcebergError as e:
        _log.info("table %s is planned without statistics: %s", state.loaded.identifier, e)
        return "{}"


def _plan_table(
    session: IcebergSession,
    struct: spark_types.StructType,
    condition: Any,
    question: Callable[[TableScan], Question],
    handle: str,
    key: str,
) -> Any:
    state = _state_of(handle)
    if state.metadata_table is not None:
        assert session.bridge is not None, "only the bridge asks for plans"
        opened = metadata_table(
            state.loaded,
            _io_of(state, session.spark),
            state.metadata_table,
            selector=state.selector,
        )
        return session.parts_of_frame(metadata_table_frame(session.bridge, opened, struct))
    scan = _scan_of(state, session.spark, struct, condition)
    return session.parts_of(scan, key, state.loaded.config, question=question(scan))


def _io_of(state: TableState, spark: SparkSession) -> FileIO:
    return state.io or table_io(as_session_reads(state.loaded, session_settings(spark)))


def _scan_of(
    state: TableState, spark: SparkSession, struct: spark_types.StructType, condition: Any
) -> TableScan:
    pruned = _pruned(_whole_scan(state, spark, struct), condition)
    return pruned if state.reads is None else state.reads.noted(pruned)


def _whole_scan(
    state: TableState, spark: SparkSession, struct: spark_types.StructType
) -> TableScan:
    return scan_table(
        str(state.loaded.identifier),
        state.loaded.metadata,
        _io_of(state, spark),
        selector=state.selector,
        projection=lambda schema: project_with_hidden(schema, struct, state.loaded.metadata),
    )


def _run_write(session_handle: str, described: str, frame: Any) -> None:
    session = _session(session_handle)
    assert session.bridge is not None, "only the bridge asks for writes"
    said = json.loads(described)
    command = WriteCommand(
        kind=said["kind"],
        frame=DataFrame(frame, session.spark),
        options=said["options"],
        condition=said["condition"],
        surroundings=Surroundings(session=said["session"], application=said["application"]),
    )
    staged = _owner(said["handle"]).staged.get(said["handle"])
    if staged is not None:
        write_staged(session.bridge, staged, command)
        return
    state = _state_of(said["handle"])
    run_write(session.bridge, _catalog_of(state), state, command)


def _write_source(session_handle: str, described: str, rows: Any) -> None:
    """A `df.write.format("iceberg-py")`, laid out as the table asks."""
    session = _session(session_handle)
    assert session.bridge is not None, "only the bridge asks for writes"
    said = json.loads(described)
    frame = DataFrame(rows, session.spark)
    options = options_in_session(session.spark, said["options"])
    prepared = prepare_write(options, frame.schema, overwrite=said["overwrite"])
    if said.get("creates") and prepared.new_table is None:
        raise TableAlreadyExistsError(
            f"table {prepared.table.table} was created by somebody else meanwhile: nothing was "
            "written; choose another mode or name"
        )
    context = prepared.context
    layout = write_layout(context.schema, context.spec, prepared.sort_order, context.properties)
    context = replace(context, sort_order_id=layout.sort_order.order_id)
    commit_write(prepared, write_laid_out(session.bridge, frame, context, layout, prepared.io))


def _source_options(session: str, options: Mapping[str, str]) -> dict[str, Any]:
    return {"options": options_in_session(_session(session).spark, options)}


def _source_hidden(session: str, options: Mapping[str, str]) -> dict[str, Any]:
    job = open_read_job(options_in_session(_session(session).spark, options))
    hidden = Schema(fields=())
    if isinstance(job, ReadJob):
        hidden = hidden_columns(job.loaded.metadata)
    return {"columns": to_spark_schema(hidden).json()}


def _truncate(handle: str, session: Mapping[str, str], application: Mapping[str, str]) -> None:
    state = _state_of(handle)
    run_truncate(_catalog_of(state), state, Surroundings(session=session, application=application))


def _change_rows(session_handle: str, plan: Any) -> None:
    """DELETE, UPDATE and MERGE: the statement as Spark's optimized plan."""
    session = _session(session_handle)
    row_level = session.row_level()
    row_level.check()
    statement = read_statement(session.bridge, plan)
    state = _state_of(statement.handle)
    request = Request(
        session=row_level,
        catalog=_catalog_of(state),
        table=state.loaded,
        branch=branch_to_change(state),
        like=statement.columns,
        schema_id=state.loaded.metadata.current_schema_id,
    )
    run(request, statement.operation)


def _state_of(handle: str) -> TableState:
    return _owner(handle).state(handle)


def _owner(handle: str) -> CatalogAnswers:
    """Those of the session that loaded a table: this one, or one that it was cloned from."""
    return _sessions.catalogs(str(json.loads(handle)[0]).partition("/")[0])


def _catalog_of(state: TableState) -> Catalog:
    return _sessions.catalogs(state.catalog.partition("/")[0]).catalog(state.catalog)


def _plan_source(
    session: IcebergSession,
    struct: spark_types.StructType,
    condition: Any,
    question: Callable[[TableScan], Question],
    source: str,
    key: str,
) -> Any:
    """None where it stays as it is."""
    job = _read_job(session.spark, source)
    if job is None:
        return None
    scan = job.scan_of(struct)
    # the portable source knows nothing of the session
    if not is_exact(scan.context.predicate) and not session_settings(session.spark):
        return None
    selected = scan.context.predicate
    return session.parts_of(
        _pruned(scan, condition), key, job.loaded.config, selected, question(scan)
    )


def _left_to_portable(answer: Callable[[], T]) -> T | None:
    """None for an error: the portable source will meet the same, and say it in its own words.

    But what the session forbids: the portable source knows no session.
    """
    try:
        return answer()
    except LocationRefusedError:
        raise
    except IcebergError as e:
        _log.info("a scan of iceberg-py is left to the portable path: %s", e)
        return None


def _read_job(spark: SparkSession, source: str) -> ReadJob | None:
    """What a relation of Spark's own Python data source reads, None for a metadata table."""
    state = state_in(b64decode(source))
    if state is None:
        return None
    job = IcebergDataSource.of_state(state).read_job()
    if not isinstance(job, ReadJob):
        return None
    options = job.table.storage_properties
    return replace(job, loaded=as_session_reads(job.loaded, session_settings(spark), options))


def _pruned(scan: TableScan, condition: Any) -> TableScan:
    """The scan with files pruned by what Spark filters on; the rows Spark filters itself."""
    return scan.pruned_by(predicate_of(condition, scan.context.schemas[0]))


_OF_VALUES: Mapping[str, Callable[..., Any]] = {
    "scan.plan": _plan,
    "scan.aggregate": _aggregate,
    "scan.runtime_filter": _runtime_filter,
    "scan.statistics": _column_statistics,
    "table.truncate": _truncate,
    "statement.read": extension_in,
    "source.options": _source_options,
    "source.table": table_there,
    "source.hidden": _source_hidden,
}
"""Questions whose arguments are JSON; those to catalogs: `CatalogAnswers`."""

_OF_PLANS: Mapping[str, Callable[..., Any]] = {
    "write.run": _run_write,
    "source.write": _write_source,
    "dml.run": _change_rows,
}
"""Questions whose arguments are a list, with a plan of Spark's in it."""
