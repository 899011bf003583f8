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
    catalogs,
    procedures,
    scans,
    sources,
    tables,
    views,
    writes,
)
from iceberg_pyspark.spark.bridge.protocol import sources as credentials
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

    catalog_open = BridgeOperation("catalog.open", catalogs.CatalogOpen, catalogs.CatalogHandle)
    namespaces_list = BridgeOperation(
        "namespaces.list", catalogs.NamespacesList, catalogs.Namespaces
    )
    namespace_exists = BridgeOperation(
        "namespace.exists", catalogs.NamespaceExists, catalogs.Existence
    )
    namespace_load = BridgeOperation(
        "namespace.load", catalogs.NamespaceLoad, catalogs.NamespaceProperties
    )
    namespace_create = BridgeOperation(
        "namespace.create", catalogs.NamespaceCreate, Acknowledgement
    )
    namespace_alter = BridgeOperation("namespace.alter", catalogs.NamespaceAlter, Acknowledgement)
    namespace_drop = BridgeOperation("namespace.drop", catalogs.NamespaceDrop, Acknowledgement)
    tables_list = BridgeOperation("tables.list", tables.TablesList, tables.TableNames)
    table_exists = BridgeOperation("table.exists", tables.TableExists, catalogs.Existence)
    table_invalidate = BridgeOperation("table.invalidate", tables.TableInvalidate, Acknowledgement)
    table_load = BridgeOperation("table.load", tables.TableLoad, tables.TableDefinition)
    table_select = BridgeOperation("table.select", tables.TableSelect, tables.TableDefinition)
    table_create = BridgeOperation("table.create", tables.TableCreate, tables.TableDefinition)
    table_stage = BridgeOperation("table.stage", tables.TableStage, tables.TableDefinition)
    staged_commit = BridgeOperation("staged.commit", tables.StagedCommit, Acknowledgement)
    staged_abort = BridgeOperation("staged.abort", tables.StagedAbort, Acknowledgement)
    table_alter = BridgeOperation("table.alter", tables.TableAlter, tables.TableDefinition)
    table_drop = BridgeOperation("table.drop", tables.TableDrop, tables.DropResult)
    table_rename = BridgeOperation("table.rename", tables.TableRename, Acknowledgement)
    view_load = BridgeOperation("view.load", views.ViewLoad, views.ViewDefinition)
    view_describe = BridgeOperation("view.describe", views.ViewDescribe, views.ViewDescription)
    views_list = BridgeOperation("views.list", views.ViewsList, views.ViewNames)
    view_change = BridgeOperation("view.change", views.ViewChange, Acknowledgement)
    procedures_list = BridgeOperation(
        "procedures.list", procedures.ProceduresList, procedures.ProcedureNames
    )
    procedure_load = BridgeOperation(
        "procedure.load", procedures.ProcedureLoad, procedures.ProcedureDefinition
    )
    procedure_call = BridgeOperation(
        "procedure.call", procedures.ProcedureCall, procedures.ProcedureRows
    )
    scan_plan = BridgeOperation("scan.plan", scans.ScanParts, scans.PlannedScan)
    scan_runtime_filter = BridgeOperation(
        "scan.runtime_filter", scans.ScanRuntimeFilter, scans.RemainingFiles
    )
    scan_aggregate = BridgeOperation("scan.aggregate", scans.ScanAggregate, scans.AggregateRows)
    scan_statistics = BridgeOperation(
        "scan.statistics", scans.ScanStatistics, scans.TableStatistics
    )
    write_run = BridgeOperation("write.run", writes.WriteRun, Acknowledgement)
    source_write = BridgeOperation("source.write", writes.SourceWrite, Acknowledgement)
    dml_run = BridgeOperation("dml.run", writes.DmlRun, Acknowledgement)
    table_truncate = BridgeOperation("table.truncate", writes.TableTruncate, Acknowledgement)
    source_options = BridgeOperation(
        "source.options", sources.SourceOptions, sources.SessionOptions
    )
    source_table = BridgeOperation("source.table", sources.SourceTable, sources.ExistingTable)
    source_hidden_columns = BridgeOperation(
        "source.hidden_columns", sources.SourceHiddenColumns, sources.HiddenColumns
    )
    credentials_renew = BridgeOperation(
        "credentials.renew", credentials.CredentialsRenew, credentials.RenewedCredentials
    )
    statement_parse = BridgeOperation(
        "statement.parse", sources.StatementParse, sources.ParsedStatement
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
