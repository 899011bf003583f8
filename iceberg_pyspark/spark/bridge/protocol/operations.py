"""The table of the JVM's questions to Python, and their encoding.

A question and its answer are sent as JSON. Plans of Spark, which have no JSON form, are passed
beside the question as JVM objects, and the parts of a scan beside the answer. A message with
missing or unknown fields, or with a value of another type, is refused. `make protocol` generates
the Java counterparts (`IcebergPyQuestions.java` and a class for each answer) from the modules of
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
    credentials,
    procedures,
    scans,
    sources,
    tables,
    views,
    writes,
)
from iceberg_pyspark.spark.bridge.protocol.messages import (
    Acknowledgement,
    Answer,
    PartsAnswer,
    PlanQuestion,
    Question,
    text_of,
)

Q = TypeVar("Q", bound=Question)
A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, slots=True)
class BridgeOperation(Generic[Q, A]):
    """The name of an operation, with the classes of its question and answer."""

    name: str
    question: type[Q]
    answer: type[A]


class Operations:
    """All operations."""

    catalog_open = BridgeOperation("catalog.open", catalogs.CatalogOpen, catalogs.OpenedCatalog)
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
    table_load = BridgeOperation("table.load", tables.TableLoad, tables.TableFacts)
    table_select = BridgeOperation("table.select", tables.TableSelect, tables.TableFacts)
    table_create = BridgeOperation("table.create", tables.TableCreate, tables.TableFacts)
    table_stage = BridgeOperation("table.stage", tables.TableStage, tables.TableFacts)
    staged_commit = BridgeOperation("staged.commit", tables.StagedCommit, Acknowledgement)
    staged_abort = BridgeOperation("staged.abort", tables.StagedAbort, Acknowledgement)
    table_alter = BridgeOperation("table.alter", tables.TableAlter, tables.TableFacts)
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
    scan_aggregate = BridgeOperation("scan.aggregate", scans.ScanAggregate, scans.KnownAggregates)
    scan_statistics = BridgeOperation(
        "scan.statistics", scans.ScanStatistics, scans.KnownStatistics
    )
    write_run = BridgeOperation("write.run", writes.WriteRun, Acknowledgement)
    source_write = BridgeOperation("source.write", writes.SourceWrite, Acknowledgement)
    dml_run = BridgeOperation("dml.run", writes.DmlRun, Acknowledgement)
    table_truncate = BridgeOperation("table.truncate", writes.TableTruncate, Acknowledgement)
    source_options = BridgeOperation(
        "source.options", sources.SourceOptions, sources.SessionOptions
    )
    source_table = BridgeOperation("source.table", sources.SourceTable, sources.ExistingTable)
    source_hidden = BridgeOperation("source.hidden", sources.SourceHidden, sources.HiddenColumns)
    credentials_renew = BridgeOperation(
        "credentials.renew", credentials.CredentialsRenew, credentials.RenewedCredentials
    )
    statement_read = BridgeOperation("statement.read", sources.StatementRead, sources.ReadStatement)


OPERATIONS: Mapping[str, BridgeOperation[Any, Any]] = {
    row.name: row for row in vars(Operations).values() if isinstance(row, BridgeOperation)
}
"""All operations by name."""


def question_in(operation: str, argument: Any) -> Question:
    """Return the question of the JVM; `argument` is a JSON text, or a list of the text and a plan.

    Raise `InvalidRequestError` for a question that does not fit: the JVM then has classes of
    another version of this package.
    """
    row = OPERATIONS.get(operation)
    if row is None:
        raise _refusal(operation, "there is no such question")
    text, plan = (argument, None) if isinstance(argument, str) else argument
    try:
        question: Question = msgspec.json.decode(text, type=row.question)
    except msgspec.MsgspecError as e:
        raise _refusal(operation, str(e)) from e
    if not isinstance(question, PlanQuestion):
        if plan is not None:
            raise _refusal(operation, "it comes with a plan")
        return question
    if plan is None or question.plan is not None:
        raise _refusal(operation, "its plan does not come beside it")
    return msgspec.structs.replace(question, plan=plan)


def answer_text(answer: Answer) -> str:
    """Return an answer as JSON, without its parts."""
    if isinstance(answer, PartsAnswer):
        answer = msgspec.structs.replace(answer, parts=None)
    return text_of(answer)


def _refusal(operation: str, why: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the JVM sent the operation {operation}, which this iceberg_pyspark does not know "
        f"({why}); the JVM has classes of another version: restart it"
    )
