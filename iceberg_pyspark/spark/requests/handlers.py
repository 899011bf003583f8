"""Maps each operation to its handler, and encodes responses and errors for the JVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from iceberg_pyspark.errors import (
    IcebergError,
    NoSuchNamespaceError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.bridge.jvm_errors import thrown_in
from iceberg_pyspark.spark.bridge.protocol.catalog_messages import (
    CatalogHandle,
    CatalogOpen,
    CatalogRequest,
    NamespaceRequest,
    ProcedureCall,
    ProcedureRows,
    TableRequest,
    ViewChange,
)
from iceberg_pyspark.spark.bridge.protocol.messages import (
    Failure,
    Request,
    Response,
    ResponseWithParts,
)
from iceberg_pyspark.spark.bridge.protocol.operations import (
    BridgeOperation,
    Operations,
    decode_request,
    response_text,
)
from iceberg_pyspark.spark.bridge.protocol.source_messages import ParsedStatement, StatementParse
from iceberg_pyspark.spark.bridge.protocol.table_messages import (
    TableDefinition,
    TableRename,
    TableSelect,
)
from iceberg_pyspark.spark.error_text import iceberg_error_in
from iceberg_pyspark.spark.requests.scan_requests import (
    scan_aggregate,
    scan_filter_columns,
    scan_plan,
    scan_runtime_filter,
    scan_statistics,
)
from iceberg_pyspark.spark.requests.sessions import BridgeSessions
from iceberg_pyspark.spark.requests.source_requests import (
    renew_credentials,
    source_hidden_columns,
    source_options,
    source_table,
)
from iceberg_pyspark.spark.requests.stream_requests import (
    stream_begin,
    stream_close,
    stream_end,
    stream_next,
    stream_open,
    stream_pending,
)
from iceberg_pyspark.spark.requests.write_requests import (
    dml_run,
    epoch_write,
    source_write,
    table_truncate,
    write_run,
)
from iceberg_pyspark.spark.sql_catalog.alter_table import statement_parse
from iceberg_pyspark.spark.sql_catalog.catalog_requests import CatalogCallbacks

AnyRequest = TypeVar("AnyRequest", bound=Request)
AnyCatalogRequest = TypeVar("AnyCatalogRequest", bound=CatalogRequest)
AnyResponse = TypeVar("AnyResponse", bound=Response)
Handler: TypeAlias = Callable[[BridgeSessions, Any], Response]

_log = get_logger(__name__)


def handle_request(sessions: BridgeSessions, operation: str, argument: Any) -> Any:
    """Handle a request from the JVM: return a text, a list of a text and plans, or a JVM
    exception.

    An error is returned as a response too, and the bridge raises it. If the JVM itself threw the
    error, the response is that exception.
    """
    request = None
    try:
        request = decode_request(operation, argument)
        response = HANDLERS[operation](sessions, request)
        text = response_text(response)
        with_parts = response.parts if isinstance(response, ResponseWithParts) else None
        return text if with_parts is None else with_parts(text)
    except BaseException as e:  # noqa: BLE001 - unanswered, the JVM would wait for ever
        exception = thrown_in(e) if _package_error_in(e) is None else None
        return response_text(_failure(e, request)) if exception is None else exception


def _failure(error: BaseException, request: Request | None) -> Failure:
    name_and_message = _package_error_in(error)
    if name_and_message is None:
        _log.error("a request of Spark could not be handled", exc_info=error)
        return Failure(error="", message=f"{type(error).__name__}: {error}")
    namespace, name = _identifier_in(request, error)
    error_name, message = name_and_message
    return Failure(error=error_name, message=message, namespace=namespace, name=name)


def _package_error_in(error: BaseException) -> tuple[str, str] | None:
    """Return the class name and message of this package's error, also if a Spark job raised it."""
    if isinstance(error, IcebergError):
        return type(error).__name__, str(error)
    return iceberg_error_in(str(error))


def _identifier_in(
    request: Request | None, error: BaseException
) -> tuple[tuple[str, ...], str | None]:
    """Return the namespace and the name of the table or view that an error is about."""
    if isinstance(request, TableRename) and isinstance(
        error, TableAlreadyExistsError | NoSuchNamespaceError
    ):
        return request.to_namespace, request.to_name
    if isinstance(request, TableRequest):
        return request.namespace, request.name
    if isinstance(request, ViewChange):
        statement = request.statement
        new_name = statement.new_name if isinstance(error, ViewAlreadyExistsError) else ()
        return request.namespace, new_name[-1] if new_name else statement.name
    return (request.namespace if isinstance(request, NamespaceRequest) else ()), None


def _catalog_open(sessions: BridgeSessions, request: CatalogOpen) -> CatalogHandle:
    return sessions.opened_by(request.session).open(request)


def _table_select(sessions: BridgeSessions, request: TableSelect) -> TableDefinition:
    return sessions.of_table(request.handle).table_select(request)


def _procedure_call(sessions: BridgeSessions, request: ProcedureCall) -> ProcedureRows:
    session = sessions.of_handle(request.session)
    return sessions.of_catalog(request.catalog).procedure_call(
        session.spark, session.bridge, request, session.open_catalog
    )


def _statement_parse(_sessions: BridgeSessions, request: StatementParse) -> ParsedStatement:
    return statement_parse(request)


def _of_catalogs(
    method: Callable[[CatalogCallbacks, AnyCatalogRequest], AnyResponse],
) -> Callable[[BridgeSessions, AnyCatalogRequest], AnyResponse]:
    def of_catalog(sessions: BridgeSessions, request: AnyCatalogRequest) -> AnyResponse:
        return method(sessions.of_catalog(request.catalog), request)

    return of_catalog


def _row(
    operation: BridgeOperation[AnyRequest, AnyResponse],
    handler: Callable[[BridgeSessions, AnyRequest], AnyResponse],
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
        _row(Operations.changelog_load, _of_catalogs(CatalogCallbacks.changelog_load)),
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
        _row(Operations.scan_filter_columns, scan_filter_columns),
        _row(Operations.scan_aggregate, scan_aggregate),
        _row(Operations.scan_statistics, scan_statistics),
        _row(Operations.stream_open, stream_open),
        _row(Operations.stream_begin, stream_begin),
        _row(Operations.stream_next, stream_next),
        _row(Operations.stream_end, stream_end),
        _row(Operations.stream_pending, stream_pending),
        _row(Operations.stream_close, stream_close),
        _row(Operations.write_run, write_run),
        _row(Operations.epoch_write, epoch_write),
        _row(Operations.source_write, source_write),
        _row(Operations.dml_run, dml_run),
        _row(Operations.table_truncate, table_truncate),
        _row(Operations.source_options, source_options),
        _row(Operations.source_table, source_table),
        _row(Operations.source_hidden_columns, source_hidden_columns),
        _row(Operations.credentials_renew, renew_credentials),
        _row(Operations.statement_parse, _statement_parse),
    )
)
"""The handler of each operation, by the operation's name."""
