"""Maps each operation to its answering function, and encodes answers and errors for the JVM."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from iceberg_pyspark.errors import (
    IcebergError,
    NoSuchNamespaceError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from iceberg_pyspark.spark.answers.asking import AskingSessions
from iceberg_pyspark.spark.answers.credentials import renew_credentials
from iceberg_pyspark.spark.answers.scans import (
    scan_aggregate,
    scan_plan,
    scan_runtime_filter,
    scan_statistics,
)
from iceberg_pyspark.spark.answers.sources import source_hidden, source_options, source_table
from iceberg_pyspark.spark.answers.writes import dml_run, source_write, table_truncate, write_run
from iceberg_pyspark.spark.bridge.captured_errors import thrown_in
from iceberg_pyspark.spark.bridge.protocol.catalogs import (
    CatalogOpen,
    CatalogQuestion,
    NamespaceQuestion,
    OpenedCatalog,
    TableQuestion,
)
from iceberg_pyspark.spark.bridge.protocol.messages import Answer, Failure, PartsAnswer, Question
from iceberg_pyspark.spark.bridge.protocol.operations import (
    BridgeOperation,
    Operations,
    answer_text,
    question_in,
)
from iceberg_pyspark.spark.bridge.protocol.procedures import ProcedureCall, ProcedureRows
from iceberg_pyspark.spark.bridge.protocol.sources import ReadStatement, StatementRead
from iceberg_pyspark.spark.bridge.protocol.tables import TableFacts, TableRename, TableSelect
from iceberg_pyspark.spark.bridge.protocol.views import ViewChange
from iceberg_pyspark.spark.error_text import iceberg_error_in
from iceberg_pyspark.spark.sql_catalog.catalog import CatalogCallbacks
from iceberg_pyspark.spark.sql_catalog.statements import statement_read

Q = TypeVar("Q", bound=Question)
C = TypeVar("C", bound=CatalogQuestion)
A = TypeVar("A", bound=Answer)
Handler: TypeAlias = Callable[[AskingSessions, Any], Answer]

_log = logging.getLogger(__name__)


def answer(sessions: AskingSessions, operation: str, argument: Any) -> Any:
    """Answer a question from the JVM: return a text, a list of a text and plans, or a JVM
    exception.

    An error is returned as an answer too, and the bridge raises it. If the JVM itself threw the
    error, the answer is that exception.
    """
    question = None
    try:
        question = question_in(operation, argument)
        reply = HANDLERS[operation](sessions, question)
        text = answer_text(reply)
        with_parts = reply.parts if isinstance(reply, PartsAnswer) else None
        return text if with_parts is None else with_parts(text)
    except BaseException as e:  # noqa: BLE001 - unanswered, the JVM would wait for ever
        exception = thrown_in(e) if _package_error_in(e) is None else None
        return answer_text(_failure(e, question)) if exception is None else exception


def _failure(error: BaseException, question: Question | None) -> Failure:
    name_and_message = _package_error_in(error)
    if name_and_message is None:
        _log.error("a question of Spark could not be answered", exc_info=error)
        return Failure(error="", message=f"{type(error).__name__}: {error}")
    namespace, name = _identifier_in(question, error)
    error_name, message = name_and_message
    return Failure(error=error_name, message=message, namespace=namespace, name=name)


def _package_error_in(error: BaseException) -> tuple[str, str] | None:
    """Return the class name and message of this package's error, also if a Spark job raised it."""
    if isinstance(error, IcebergError):
        return type(error).__name__, str(error)
    return iceberg_error_in(str(error))


def _identifier_in(
    question: Question | None, error: BaseException
) -> tuple[tuple[str, ...], str | None]:
    """Return the namespace and the name of the table or view that an error is about."""
    if isinstance(question, TableRename) and isinstance(
        error, TableAlreadyExistsError | NoSuchNamespaceError
    ):
        return question.to_namespace, question.to_name
    if isinstance(question, TableQuestion):
        return question.namespace, question.name
    if isinstance(question, ViewChange):
        statement = question.statement
        new_name = statement.to if isinstance(error, ViewAlreadyExistsError) else ()
        return question.namespace, new_name[-1] if new_name else statement.name
    return (question.namespace if isinstance(question, NamespaceQuestion) else ()), None


def _catalog_open(sessions: AskingSessions, q: CatalogOpen) -> OpenedCatalog:
    return sessions.opened_by(q.session).open(q)


def _table_select(sessions: AskingSessions, q: TableSelect) -> TableFacts:
    return sessions.of_table(q.handle).table_select(q)


def _procedure_call(sessions: AskingSessions, q: ProcedureCall) -> ProcedureRows:
    session = sessions.of_handle(q.session)
    return sessions.of_catalog(q.catalog).procedure_call(
        session.spark, session.bridge, q, session.open_catalog
    )


def _statement_read(_sessions: AskingSessions, q: StatementRead) -> ReadStatement:
    return statement_read(q)


def _of_catalogs(method: Callable[[CatalogCallbacks, C], A]) -> Callable[[AskingSessions, C], A]:
    def of_catalog(sessions: AskingSessions, q: C) -> A:
        return method(sessions.of_catalog(q.catalog), q)

    return of_catalog


def _row(
    operation: BridgeOperation[Q, A], handler: Callable[[AskingSessions, Q], A]
) -> tuple[str, Handler]:
    return operation.name, handler


HANDLERS: Mapping[str, Handler] = dict(
    (
        _row(Operations.catalog_open, _catalog_open),
        _row(Operations.namespaces_list, _of_catalogs(CatalogCallbacks.namespaces_list)),
        _row(Operations.namespace_exists, _of_catalogs(CatalogCallbacks.namespace_exists)),
        _row(Operations.namespace_load, _of_catalogs(CatalogCallbacks.namespace_load)),
        _row(Operations.namespace_create, _of_catalogs(CatalogCallbacks.namespace_create)),
        _row(Operations.namespace_alter, _of_catalogs(CatalogCallbacks.namespace_alter)),
        _row(Operations.namespace_drop, _of_catalogs(CatalogCallbacks.namespace_drop)),
        _row(Operations.tables_list, _of_catalogs(CatalogCallbacks.tables_list)),
        _row(Operations.table_exists, _of_catalogs(CatalogCallbacks.table_exists)),
        _row(Operations.table_invalidate, _of_catalogs(CatalogCallbacks.table_invalidate)),
        _row(Operations.table_load, _of_catalogs(CatalogCallbacks.table_load)),
        _row(Operations.view_load, _of_catalogs(CatalogCallbacks.view_load)),
        _row(Operations.view_describe, _of_catalogs(CatalogCallbacks.view_describe)),
        _row(Operations.views_list, _of_catalogs(CatalogCallbacks.views_list)),
        _row(Operations.view_change, _of_catalogs(CatalogCallbacks.view_change)),
        _row(Operations.procedures_list, _of_catalogs(CatalogCallbacks.procedures_list)),
        _row(Operations.procedure_load, _of_catalogs(CatalogCallbacks.procedure_load)),
        _row(Operations.procedure_call, _procedure_call),
        _row(Operations.table_select, _table_select),
        _row(Operations.table_create, _of_catalogs(CatalogCallbacks.table_create)),
        _row(Operations.table_stage, _of_catalogs(CatalogCallbacks.table_stage)),
        _row(Operations.staged_commit, _of_catalogs(CatalogCallbacks.staged_commit)),
        _row(Operations.staged_abort, _of_catalogs(CatalogCallbacks.staged_abort)),
        _row(Operations.table_alter, _of_catalogs(CatalogCallbacks.table_alter)),
        _row(Operations.table_drop, _of_catalogs(CatalogCallbacks.table_drop)),
        _row(Operations.table_rename, _of_catalogs(CatalogCallbacks.table_rename)),
        _row(Operations.scan_plan, scan_plan),
        _row(Operations.scan_runtime_filter, scan_runtime_filter),
        _row(Operations.scan_aggregate, scan_aggregate),
        _row(Operations.scan_statistics, scan_statistics),
        _row(Operations.write_run, write_run),
        _row(Operations.source_write, source_write),
        _row(Operations.dml_run, dml_run),
        _row(Operations.table_truncate, table_truncate),
        _row(Operations.source_options, source_options),
        _row(Operations.source_table, source_table),
        _row(Operations.source_hidden, source_hidden),
        _row(Operations.credentials_renew, renew_credentials),
        _row(Operations.statement_read, _statement_read),
    )
)
"""The function that answers each operation, by the operation's name."""
