"""Scans that a REST catalog's server plans: submit, poll, fetch, cancel.

Open API specification of the REST catalog, `planTableScan`, `PlanTableScanRequest`,
`fetchPlanningResult`, `fetchScanTasks` and `cancelPlanning`. `planned_files.py` reads the files of
an answer. A request always specifies the snapshot, so that all reads of a statement see the same
snapshot. A limit is not sent as `min-rows-requested`, because a server may count rows that deletes
or the reader remove.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from iceberg_pyspark.catalogs.catalog import ScanToPlan, TableIdentifier
from iceberg_pyspark.catalogs.rest import endpoints as e
from iceberg_pyspark.catalogs.rest.answers import Answer
from iceberg_pyspark.catalogs.rest.connection import Connection, TableSessions
from iceberg_pyspark.catalogs.rest.planned_files import PlannedFilesReader
from iceberg_pyspark.catalogs.rest.rest_session import LostAnswer
from iceberg_pyspark.catalogs.rest.server_properties import vended_credentials
from iceberg_pyspark.errors import (
    CatalogError,
    CatalogUnavailableError,
    InvalidRequestError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.expressions.json import predicate_to_json
from iceberg_pyspark.expressions.predicates import (
    AlwaysTrue,
    And,
    BoundLiteral,
    BoundSet,
    BoundUnary,
    ExtractedColumn,
    Or,
    Predicate,
)
from iceberg_pyspark.expressions.rewriting import and_, columns_of, or_, push_not
from iceberg_pyspark.planning.scan_plan import PlannedFiles
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.json_fields import JsonObject, short_text
from iceberg_pyspark.spec.metadata_columns import LAST_UPDATED_SEQUENCE_NUMBER, ROW_LINEAGE_VERSION
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_properties import int_property

_UNSENT_TYPES = (types.BinaryType, types.FixedType, types.UUIDType)
"""Types whose JSON values are strings, which a server may compare as text.

UUIDs have two possible orders.
"""


def scan_to_json(scan: ScanToPlan) -> dict[str, Any]:
    """Return the request body for a scan.

    Raise `UnsupportedFeatureError` if the scan needs what the answer cannot contain.
    """
    ids = {f.field_id for f in scan.projection.fields}
    is_asked = LAST_UPDATED_SEQUENCE_NUMBER.field_id in ids
    if is_asked and scan.metadata.format_version >= ROW_LINEAGE_VERSION:
        raise UnsupportedFeatureError(
            f"{LAST_UPDATED_SEQUENCE_NUMBER.name} is not known where a server plans the scan: its "
            "answer has no sequence numbers; leave the column out"
        )
    body: dict[str, Any] = {
        "snapshot-id": scan.snapshot_id,
        "case-sensitive": True,
        "use-snapshot-schema": scan.schema.schema_id != scan.metadata.current_schema.schema_id,
    }
    names = scan.schema.name_by_id
    selected_ids = set(_column_ids(scan.projection)) | columns_of(scan.predicate)
    # without selected columns, send no list: a server may read an empty list as all or no columns
    if any(i in names for i in selected_ids):
        body["select"] = sorted(names[i] for i in selected_ids if i in names)
    request_filter = _sendable_predicate(push_not(scan.predicate))
    if not isinstance(request_filter, AlwaysTrue):
        body["filter"] = predicate_to_json(request_filter)
    if any(i in names for i in scan.metrics):
        body["stats-fields"] = sorted(names[i] for i in scan.metrics if i in names)
    return body


def _column_ids(projection: Schema) -> Iterator[int]:
    """Yield the column ids of a projection: for a struct, only the ids of its selected children."""
    for f in projection.fields:
        children = Schema(fields=f.type.fields) if isinstance(f.type, types.StructType) else None
        yield from [f.field_id] if children is None else _column_ids(children)


def _sendable_predicate(predicate: Predicate) -> Predicate:
    """Weaken a predicate without `Not` to the parts that a server compares as we do."""
    match predicate:
        case And(left, right):
            return and_(_sendable_predicate(left), _sendable_predicate(right))
        case Or(left, right):
            return or_(_sendable_predicate(left), _sendable_predicate(right))
        case BoundUnary(column=column) if not isinstance(column.type, types.PrimitiveType):
            # Java's server cannot bind a test of a struct, list or map
            return AlwaysTrue()
        case BoundUnary(column=ExtractedColumn()):
            return AlwaysTrue()
        case BoundLiteral(literal=literal) if not _is_sent(predicate, literal):
            return AlwaysTrue()
        case BoundSet(literals=literals) if not all(_is_sent(predicate, v) for v in literals):
            return AlwaysTrue()
        case _:
            return predicate


def _is_sent(leaf: BoundLiteral | BoundSet, literal: Any) -> bool:
    if isinstance(literal, float) and not math.isfinite(literal):
        return False
    if isinstance(leaf.column, ExtractedColumn) or isinstance(literal, tuple):
        # no server knows the fields of variants, or boxes
        return False
    return not isinstance(leaf.column.type, _UNSENT_TYPES)


PLANNING_MODE = "scan-planning-mode"
"""A property of the catalog that a table's `config` overrides: `client` or `server`."""

_CLIENT, _SERVER = "client", "server"
_POLL_TIMEOUT_MS = "rest-scan-planning.poll-timeout-ms"
_DEFAULT_POLL_TIMEOUT_MS = 300_000
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 10.0
_UNKNOWN_PLAN_TYPES = ("NoSuchPlanIdException", "NoSuchPlanTaskException")

_log = get_logger(__name__)
_sleep = time.sleep
_now = time.monotonic


def is_planned_here(mode: str | None) -> bool:
    """Return whether the client plans the scans in this mode."""
    return mode is None or mode.lower() == _CLIENT


@dataclass(frozen=True, slots=True)
class _Result:
    """The state of a plan in an answer."""

    answer: Answer
    status: str
    plan_id: str | None


class ScanPlanning:
    """A planner of one table's scans that asks the server; thread-safe."""

    def __init__(
        self,
        catalog: str,
        connection: Connection,
        sessions: TableSessions,
        identifier: TableIdentifier,
        mode: str,
    ) -> None:
        self._mode = mode
        self._catalog = catalog
        self._connection = connection
        self._sessions = sessions
        self._identifier = identifier

    def __reduce__(self) -> tuple[Any, ...]:
        # a connection cannot be pickled, and a process without one must not plan from manifests
        # instead
        return _PlannedElsewhere, (self._catalog, str(self._identifier))

    def check(self) -> None:
        """Raise `UnsupportedFeatureError` for an unknown mode, or if the server cannot plan scans.

        The client must not plan instead, because the server may leave out rows that the client
        returns.
        """
        where = f"catalog '{self._catalog}': {PLANNING_MODE} = {self._mode} for table "
        where += str(self._identifier)
        remedy = f"have the server, or the catalog's own property, say {PLANNING_MODE} = {_CLIENT}"
        if self._mode.lower() != _SERVER:
            raise UnsupportedFeatureError(
                f"{where} is not known, so its rows cannot be read as the server wants it; {remedy}"
            )
        if e.PLAN_SCAN not in self._connection.endpoints:
            raise UnsupportedFeatureError(
                f"{where}, and its server does not offer to plan scans ({e.PLAN_SCAN}); {remedy}"
            )

    def __call__(self, scan: ScanToPlan) -> Generator[PlannedFiles, None, None]:
        """Plan a scan and yield its files as they arrive; the first iteration sends the request.

        Raise `CatalogError`, `InvalidMetadataError` or `UnsupportedFeatureError`.
        """
        self.check()
        paths, reader = self._connection.paths, PlannedFilesReader(scan)
        plan_answer = self._ask("POST", paths.plan(self._identifier), scan_to_json(scan))
        result = _result_of(plan_answer)
        plan_id, is_fetched = result.plan_id, False
        try:
            result = self._wait_for_result(result)
            credentials = result.answer.read(self._credentials)
            if credentials is not None:
                scan.take_credentials(credentials)
            waiting = deque(result.answer.read(_plan_tasks))
            known_tasks = set(waiting)
            yield from result.answer.read(reader.read)
            while waiting:
                answer = self._fetch_tasks(waiting.popleft())
                following = answer.read(_plan_tasks)
                if len(set(following)) < len(following) or not known_tasks.isdisjoint(following):
                    raise self._error(answer, "it names a plan task twice, and would never end")
                known_tasks.update(following)
                waiting.extend(following)
                is_fetched = not waiting
                yield from answer.read(reader.read)
            is_fetched = True
        finally:
            if plan_id is not None and not is_fetched:
                self._cancel(plan_id)

    def _wait_for_result(self, result: _Result) -> _Result:
        """Poll until the plan is complete and return it.

        Raise a `CatalogError` if the plan fails, is cancelled or takes too long, or
        `UnsupportedFeatureError` for an unknown status.
        """
        properties = self._connection.properties
        timeout_ms = int_property(properties, _POLL_TIMEOUT_MS, _DEFAULT_POLL_TIMEOUT_MS)
        if timeout_ms <= 0:
            raise InvalidRequestError(
                f"catalog '{self._catalog}': {_POLL_TIMEOUT_MS} = {timeout_ms}: must be above 0"
            )
        end, wait_s, plan_id = _now() + timeout_ms / 1000, _FIRST_WAIT_S, result.plan_id
        while result.status == "submitted":
            if plan_id is None:
                raise self._error(result.answer, "it is 'submitted' without a plan-id")
            feature = "the results of plans that take longer"
            self._connection.endpoints.require(e.FETCH_PLAN, self._catalog, feature)
            if _now() >= end:
                raise CatalogUnavailableError(
                    f"catalog '{self._catalog}': the server did not plan a scan of table "
                    f"{self._identifier} within {timeout_ms} ms; try again with a filter or a "
                    f"larger {_POLL_TIMEOUT_MS}"
                )
            _sleep(min(wait_s, max(end - _now(), 0)))
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)
            path = self._connection.paths.plan_of(self._identifier, plan_id)
            result = _result_of(self._ask("GET", path))
        match result.status:
            case "completed":
                return result
            case "failed":
                raise self._error(result.answer, f"the server failed: {result.answer.message()}")
            case "cancelled":
                raise self._error(result.answer, "it was cancelled at the server; try again")
            case status:
                raise UnsupportedFeatureError(
                    f"catalog '{self._catalog}': answer to {result.answer.request}: status: "
                    f"{short_text(status)} is not known; have the server, or the catalog's own "
                    f"property, say {PLANNING_MODE} = client"
                )

    def _error(self, answer: Answer, problem: str) -> CatalogError:
        return CatalogError(
            f"catalog '{self._catalog}': {answer.request}: a scan of table {self._identifier} is "
            f"not planned: {problem}"
        )

    def _fetch_tasks(self, plan_task: str) -> Answer:
        c = self._connection
        c.endpoints.require(e.FETCH_SCAN_TASKS, self._catalog, "the tasks of plans in parts")
        return self._ask("POST", c.paths.scan_tasks(self._identifier), {"plan-task": plan_task})

    def _credentials(self, content: JsonObject) -> str | None:
        c = self._connection
        return vended_credentials(
            content, catalog=self._catalog, uri=c.session.uri, properties=c.properties
        )

    def _cancel(self, plan_id: str) -> None:
        """Tell the server that the plan is no longer needed."""
        c = self._connection
        try:
            if e.CANCEL_PLAN in c.endpoints:
                path = c.paths.plan_of(self._identifier, plan_id)
                self._sessions.of(self._identifier).try_to_ask("DELETE", path, is_repeatable=False)
        except Exception as error:  # noqa: BLE001 - it must not hide why the plan is not wanted
            _log.debug("a plan of %s is not cancelled: %s", self._identifier, type(error).__name__)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        session = self._sessions.of(self._identifier)
        # planning a scan twice does no harm
        answer = session.try_to_ask(method, path, body=body, is_repeatable=True)
        if isinstance(answer, LostAnswer):
            raise answer.error
        if answer.status == 404 and answer.error_type in _UNKNOWN_PLAN_TYPES:
            raise self._error(answer, f"{answer.message()}; the server forgot it, try again")
        return self._connection.require_success(answer, NoSuchTableError)


def _result_of(answer: Answer) -> _Result:
    def parse(content: JsonObject) -> _Result:
        return _Result(answer, content.string("status"), content.optional_string("plan-id"))

    return answer.read(parse)


def _plan_tasks(content: JsonObject) -> tuple[str, ...]:
    return content.strings("plan-tasks") if content.has("plan-tasks") else ()


class _PlannedElsewhere:
    """A placeholder for `ScanPlanning` in a process without a connection to the server."""

    def __init__(self, catalog: str, table: str) -> None:
        self._catalog = catalog
        self._table = table

    def __call__(self, scan: ScanToPlan) -> Generator[PlannedFiles, None, None]:
        """Raise a `CatalogError`."""
        raise CatalogError(
            f"catalog '{self._catalog}': scans of table {self._table} are planned by its server, "
            "and this process has no connection to the server; load the table in this process"
        )
