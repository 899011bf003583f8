"""The one table of what the JVM asks Python, and how questions and answers travel.

A question and its answer travel as JSON. A plan of Spark's, which has none, comes beside its
question as an object of the JVM's, and the parts of a scan go beside their answer. What does not
fit the class of its operation is refused: a field too many or too few, a value of another type.

Java has these names by `IcebergPyQuestions.java` and a class for each answer. They are written from
the modules beside this one by `make protocol`, and a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.bridge.protocol.catalogs import (
    CatalogOpen,
    Existence,
    NamespaceAlter,
    NamespaceCreate,
    NamespaceDrop,
    NamespaceExists,
    NamespaceLoad,
    NamespaceProperties,
    Namespaces,
    NamespacesList,
    OpenedCatalog,
)
from iceberg_pyspark.spark.bridge.protocol.messages import (
    Acknowledgement,
    Answer,
    PartsAnswer,
    PlanQuestion,
    Question,
    text_of,
)
from iceberg_pyspark.spark.bridge.protocol.scans import (
    KeptFiles,
    KnownAggregates,
    KnownStatistics,
    PlannedScan,
    ScanAggregate,
    ScanPlan,
    ScanRuntimeFilter,
    ScanStatistics,
)
from iceberg_pyspark.spark.bridge.protocol.sources import (
    ExistingTable,
    HiddenColumns,
    ReadStatement,
    SessionOptions,
    SourceHidden,
    SourceOptions,
    SourceTable,
    StatementRead,
)
from iceberg_pyspark.spark.bridge.protocol.tables import (
    DropResult,
    StagedAbort,
    StagedCommit,
    TableAlter,
    TableBranch,
    TableCreate,
    TableDrop,
    TableExists,
    TableFacts,
    TableInvalidate,
    TableLoad,
    TableNames,
    TableRename,
    TablesList,
    TableStage,
)
from iceberg_pyspark.spark.bridge.protocol.writes import (
    DmlRun,
    SourceWrite,
    TableTruncate,
    WriteRun,
)

Q = TypeVar("Q", bound=Question)
A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, slots=True)
class Operation(Generic[Q, A]):
    """A name with its classes of question and answer."""

    name: str
    question: type[Q]
    answer: type[A]


class Operations:
    """Every operation."""

    catalog_open = Operation("catalog.open", CatalogOpen, OpenedCatalog)
    namespaces_list = Operation("namespaces.list", NamespacesList, Namespaces)
    namespace_exists = Operation("namespace.exists", NamespaceExists, Existence)
    namespace_load = Operation("namespace.load", NamespaceLoad, NamespaceProperties)
    namespace_create = Operation("namespace.create", NamespaceCreate, Acknowledgement)
    namespace_alter = Operation("namespace.alter", NamespaceAlter, Acknowledgement)
    namespace_drop = Operation("namespace.drop", NamespaceDrop, Acknowledgement)
    tables_list = Operation("tables.list", TablesList, TableNames)
    table_exists = Operation("table.exists", TableExists, Existence)
    table_invalidate = Operation("table.invalidate", TableInvalidate, Acknowledgement)
    table_load = Operation("table.load", TableLoad, TableFacts)
    table_branch = Operation("table.branch", TableBranch, TableFacts)
    table_create = Operation("table.create", TableCreate, TableFacts)
    table_stage = Operation("table.stage", TableStage, TableFacts)
    staged_commit = Operation("staged.commit", StagedCommit, Acknowledgement)
    staged_abort = Operation("staged.abort", StagedAbort, Acknowledgement)
    table_alter = Operation("table.alter", TableAlter, TableFacts)
    table_drop = Operation("table.drop", TableDrop, DropResult)
    table_rename = Operation("table.rename", TableRename, Acknowledgement)
    scan_plan = Operation("scan.plan", ScanPlan, PlannedScan)
    scan_runtime_filter = Operation("scan.runtime_filter", ScanRuntimeFilter, KeptFiles)
    scan_aggregate = Operation("scan.aggregate", ScanAggregate, KnownAggregates)
    scan_statistics = Operation("scan.statistics", ScanStatistics, KnownStatistics)
    write_run = Operation("write.run", WriteRun, Acknowledgement)
    source_write = Operation("source.write", SourceWrite, Acknowledgement)
    dml_run = Operation("dml.run", DmlRun, Acknowledgement)
    table_truncate = Operation("table.truncate", TableTruncate, Acknowledgement)
    source_options = Operation("source.options", SourceOptions, SessionOptions)
    source_table = Operation("source.table", SourceTable, ExistingTable)
    source_hidden = Operation("source.hidden", SourceHidden, HiddenColumns)
    statement_read = Operation("statement.read", StatementRead, ReadStatement)


OPERATIONS: Mapping[str, Operation[Any, Any]] = {
    row.name: row for row in vars(Operations).values() if isinstance(row, Operation)
}
"""The same by name."""


def question_in(operation: str, argument: Any) -> Question:
    """The question that came from the JVM: a JSON text, or a list of it and of a plan.

    Raises `InvalidRequestError`: a question that does not fit is one of other classes than ours.
    """
    row = OPERATIONS.get(operation)
    if row is None:
        raise _refused(operation, "there is no such question")
    text, plan = (argument, None) if isinstance(argument, str) else argument
    try:
        question: Question = msgspec.json.decode(text, type=row.question)
    except msgspec.MsgspecError as e:
        raise _refused(operation, str(e)) from e
    if not isinstance(question, PlanQuestion):
        if plan is not None:
            raise _refused(operation, "it comes with a plan")
        return question
    if plan is None or question.plan is not None:
        raise _refused(operation, "its plan does not come beside it")
    return msgspec.structs.replace(question, plan=plan)


def answer_text(answer: Answer) -> str:
    """An answer as JSON, without its parts."""
    if isinstance(answer, PartsAnswer):
        answer = msgspec.structs.replace(answer, parts=None)
    return text_of(answer)


def _refused(operation: str, why: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"a question of the JVM's, {operation}, is none that this iceberg_pyspark knows: {why}; "
        "the JVM has classes of another version: restart it"
    )
