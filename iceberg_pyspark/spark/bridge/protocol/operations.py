"""The table of the JVM's requests to Python, and their encoding.

A request and its response are sent as JSON. Plans of Spark, which have no JSON form, are passed
beside the request as JVM objects, and the parts of a scan beside the response. A message with
missing or unknown fields, or with a value of another type, is refused. `make generate` writes
the Java counterparts (`IcebergPyRequests.java` and a class for each response) from the modules of
this folder, and a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.bridge.protocol import (
    catalog_messages,
    scan_messages,
    source_messages,
    stream_messages,
    table_messages,
    write_messages,
)
from iceberg_pyspark.spark.bridge.protocol import source_messages as credentials
from iceberg_pyspark.spark.bridge.protocol.messages import (
    Acknowledgement,
    Request,
    RequestWithPlan,
    Response,
    ResponseWithParts,
    text_of,
)

AnyRequest = TypeVar("AnyRequest", bound=Request)
AnyResponse = TypeVar("AnyResponse", bound=Response)


@dataclass(frozen=True, slots=True)
class BridgeOperation(Generic[AnyRequest, AnyResponse]):
    """The name of an operation, with the classes of its request and response."""

    name: str
    request: type[AnyRequest]
    response: type[AnyResponse]


class Operations:
    """All operations."""

    catalog_open = BridgeOperation(
        "catalog.open", catalog_messages.CatalogOpen, catalog_messages.CatalogHandle
    )
    namespaces_list = BridgeOperation(
        "namespaces.list", catalog_messages.NamespacesList, catalog_messages.Namespaces
    )
    namespace_exists = BridgeOperation(
        "namespace.exists", catalog_messages.NamespaceExists, catalog_messages.Existence
    )
    namespace_load = BridgeOperation(
        "namespace.load", catalog_messages.NamespaceLoad, catalog_messages.NamespaceProperties
    )
    namespace_create = BridgeOperation(
        "namespace.create", catalog_messages.NamespaceCreate, Acknowledgement
    )
    namespace_alter = BridgeOperation(
        "namespace.alter", catalog_messages.NamespaceAlter, Acknowledgement
    )
    namespace_drop = BridgeOperation(
        "namespace.drop", catalog_messages.NamespaceDrop, Acknowledgement
    )
    tables_list = BridgeOperation(
        "tables.list", table_messages.TablesList, table_messages.TableNames
    )
    table_exists = BridgeOperation(
        "table.exists", table_messages.TableExists, catalog_messages.Existence
    )
    table_invalidate = BridgeOperation(
        "table.invalidate", table_messages.TableInvalidate, Acknowledgement
    )
    table_load = BridgeOperation(
        "table.load", table_messages.TableLoad, table_messages.TableDefinition
    )
    changelog_load = BridgeOperation(
        "changelog.load", table_messages.ChangelogLoad, table_messages.TableDefinition
    )
    table_select = BridgeOperation(
        "table.select", table_messages.TableSelect, table_messages.TableDefinition
    )
    table_create = BridgeOperation(
        "table.create", table_messages.TableCreate, table_messages.TableDefinition
    )
    table_stage = BridgeOperation(
        "table.stage", table_messages.TableStage, table_messages.TableDefinition
    )
    staged_commit = BridgeOperation("staged.commit", table_messages.StagedCommit, Acknowledgement)
    staged_abort = BridgeOperation("staged.abort", table_messages.StagedAbort, Acknowledgement)
    table_alter = BridgeOperation(
        "table.alter", table_messages.TableAlter, table_messages.TableDefinition
    )
    table_drop = BridgeOperation("table.drop", table_messages.TableDrop, table_messages.DropResult)
    table_rename = BridgeOperation("table.rename", table_messages.TableRename, Acknowledgement)
    view_load = BridgeOperation(
        "view.load", catalog_messages.ViewLoad, catalog_messages.ViewDefinition
    )
    view_describe = BridgeOperation(
        "view.describe", catalog_messages.ViewDescribe, catalog_messages.ViewDescription
    )
    views_list = BridgeOperation(
        "views.list", catalog_messages.ViewsList, catalog_messages.ViewNames
    )
    view_change = BridgeOperation("view.change", catalog_messages.ViewChange, Acknowledgement)
    procedures_list = BridgeOperation(
        "procedures.list", catalog_messages.ProceduresList, catalog_messages.ProcedureNames
    )
    procedure_load = BridgeOperation(
        "procedure.load", catalog_messages.ProcedureLoad, catalog_messages.ProcedureDefinition
    )
    procedure_call = BridgeOperation(
        "procedure.call", catalog_messages.ProcedureCall, catalog_messages.ProcedureRows
    )
    scan_plan = BridgeOperation("scan.plan", scan_messages.ScanParts, scan_messages.PlannedScan)
    scan_runtime_filter = BridgeOperation(
        "scan.runtime_filter", scan_messages.ScanRuntimeFilter, scan_messages.RemainingFiles
    )
    scan_filter_columns = BridgeOperation(
        "scan.filter_columns", scan_messages.ScanFilterColumns, scan_messages.FilterColumns
    )
    scan_aggregate = BridgeOperation(
        "scan.aggregate", scan_messages.ScanAggregate, scan_messages.AggregateRows
    )
    scan_statistics = BridgeOperation(
        "scan.statistics", scan_messages.ScanStatistics, scan_messages.TableStatistics
    )
    stream_open = BridgeOperation(
        "stream.open", stream_messages.StreamOpen, stream_messages.StreamHandle
    )
    stream_begin = BridgeOperation(
        "stream.begin", stream_messages.StreamBegin, stream_messages.StreamPlace
    )
    stream_next = BridgeOperation(
        "stream.next", stream_messages.StreamNext, stream_messages.StreamPlace
    )
    stream_end = BridgeOperation(
        "stream.end", stream_messages.StreamEnd, stream_messages.StreamPlace
    )
    stream_pending = BridgeOperation(
        "stream.pending", stream_messages.StreamPending, stream_messages.StreamBacklog
    )
    stream_close = BridgeOperation("stream.close", stream_messages.StreamClose, Acknowledgement)
    write_run = BridgeOperation("write.run", write_messages.WriteRun, Acknowledgement)
    epoch_write = BridgeOperation(
        "epoch.write", write_messages.EpochWrite, write_messages.EpochRows
    )
    source_write = BridgeOperation("source.write", write_messages.SourceWrite, Acknowledgement)
    dml_run = BridgeOperation("dml.run", write_messages.DmlRun, Acknowledgement)
    table_truncate = BridgeOperation(
        "table.truncate", write_messages.TableTruncate, Acknowledgement
    )
    source_options = BridgeOperation(
        "source.options", source_messages.SourceOptions, source_messages.SessionOptions
    )
    source_table = BridgeOperation(
        "source.table", source_messages.SourceTable, source_messages.ExistingTable
    )
    source_hidden_columns = BridgeOperation(
        "source.hidden_columns", source_messages.SourceHiddenColumns, source_messages.HiddenColumns
    )
    credentials_renew = BridgeOperation(
        "credentials.renew", credentials.CredentialsRenew, credentials.RenewedCredentials
    )
    statement_parse = BridgeOperation(
        "statement.parse", source_messages.StatementParse, source_messages.ParsedStatement
    )


OPERATIONS: Mapping[str, BridgeOperation[Any, Any]] = {
    row.name: row for row in vars(Operations).values() if isinstance(row, BridgeOperation)
}
"""All operations by name."""


def decode_request(operation: str, argument: Any) -> Request:
    """Return the request of the JVM; `argument` is a JSON text, or a list of the text and a plan.

    Raise `InvalidRequestError` for a request that does not fit: the JVM then has classes of
    another version of this package.
    """
    row = OPERATIONS.get(operation)
    if row is None:
        raise _refusal(operation, "there is no such request")
    text, plan = (argument, None) if isinstance(argument, str) else argument
    try:
        request: Request = msgspec.json.decode(text, type=row.request)
    except msgspec.MsgspecError as e:
        raise _refusal(operation, str(e)) from e
    if not isinstance(request, RequestWithPlan):
        if plan is not None:
            raise _refusal(operation, "it comes with a plan")
        return request
    if plan is None or request.plan is not None:
        raise _refusal(operation, "its plan does not come beside it")
    return msgspec.structs.replace(request, plan=plan)


def response_text(response: Response) -> str:
    """Return a response as JSON, without its parts."""
    if isinstance(response, ResponseWithParts):
        response = msgspec.structs.replace(response, parts=None)
    return text_of(response)


def _refusal(operation: str, why: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the JVM sent the operation {operation}, which this iceberg_pyspark does not know "
        f"({why}); the JVM has classes of another version: restart it"
    )
