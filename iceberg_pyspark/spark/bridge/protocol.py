"""What the JVM asks Python: every question, every answer, and one table of both.

A question and its answer travel as JSON. A plan of Spark's, which has none, comes beside its
question as an object of the JVM's, and the parts of a scan go beside their answer. What does not
fit the class of its operation is refused: a field too many or too few, a value of another type.

Java has these names by `IcebergPyQuestions.java` and a class for each answer. They are written from
this file by `make protocol`, and a test compares them with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from iceberg_pyspark.errors import InvalidRequestError


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen dataclass that JSON is decoded into and encoded from."""

    def __repr__(self) -> str:
        """Only the name: options, settings and properties may hold secrets."""
        return f"{type(self).__name__}(...)"


WireValue: TypeAlias = bool | int | str | None
"""A value of a column, in the physical form of `spec/values.py`; decimals are text."""


class Operator(Message, frozen=True, kw_only=True, tag_field="node", tag="operator"):
    """An operator, by our name or that of Spark's class; `other`: one that Java does not know."""

    op: str
    args: tuple[Expression, ...]


class ColumnPath(Message, frozen=True, kw_only=True, tag_field="node", tag="column"):
    """A column, or a field in one, by the names from the top."""

    path: tuple[str, ...]


class LiteralValue(Message, frozen=True, kw_only=True, tag_field="node", tag="literal"):
    """A value as Spark holds it, bytes in hexadecimal, decimals and floats as text."""

    type: str
    value: bool | int | str | None


Expression: TypeAlias = Operator | ColumnPath | LiteralValue
"""A condition or value of Spark's, described; `filters.py` makes predicates of them."""


class Question(Message, frozen=True, kw_only=True):
    """What is asked."""


class PlanQuestion(Question, frozen=True, kw_only=True):
    """A question about a plan of Spark's."""

    plan: Any = None
    """An object of the JVM's, not in the JSON: a `LogicalPlan`, or a `Dataset` of rows to write."""


class Answer(Message, frozen=True, kw_only=True):
    """What is answered."""


class PartsAnswer(Answer, frozen=True, kw_only=True):
    """An answer with plans of Spark's."""

    parts: Sequence[Any] | None = None
    """A list of the JVM's, not in the JSON; None where Spark's own plan is to stay."""


class Failure(Answer, frozen=True, kw_only=True):
    """The answer to any question that fails: Java raises it."""

    error: str
    """The class in `errors.py`; empty for what nobody foresaw."""

    message: str
    namespace: tuple[str, ...] = ()
    """The namespace that the error is about, or that of the table it is about."""

    name: str | None = None


class Done(Answer, frozen=True, kw_only=True):
    """It is done, and there is nothing to say."""


# --- catalogs ------------------------------------------------------------------------------------


class CatalogOpen(Question, frozen=True, kw_only=True):
    """Open a catalog that a session names."""

    session: str
    name: str
    options: Mapping[str, str]


class OpenedCatalog(Answer, frozen=True, kw_only=True):
    """What questions call the catalog."""

    handle: str


class CatalogQuestion(Question, frozen=True, kw_only=True):
    """A question to an open catalog."""

    catalog: str


class NamespaceQuestion(CatalogQuestion, frozen=True, kw_only=True):
    """A question about a namespace."""

    namespace: tuple[str, ...]


class TableQuestion(NamespaceQuestion, frozen=True, kw_only=True):
    """A question about a table."""

    name: str


class NamespacesList(NamespaceQuestion, frozen=True, kw_only=True):
    """The namespaces in a namespace."""


class Namespaces(Answer, frozen=True, kw_only=True):
    """Namespaces, each by its levels."""

    namespaces: tuple[tuple[str, ...], ...]


class NamespaceExists(NamespaceQuestion, frozen=True, kw_only=True):
    """Whether a namespace is there."""


class Existence(Answer, frozen=True, kw_only=True):
    """Whether it is there."""

    exists: bool


class NamespaceLoad(NamespaceQuestion, frozen=True, kw_only=True):
    """The properties of a namespace."""


class NamespaceFacts(Answer, frozen=True, kw_only=True):
    """What a namespace has."""

    properties: Mapping[str, str]


class NamespaceCreate(NamespaceQuestion, frozen=True, kw_only=True):
    """CREATE NAMESPACE."""

    properties: Mapping[str, str]


class NamespaceAlter(NamespaceQuestion, frozen=True, kw_only=True):
    """ALTER NAMESPACE."""

    updates: Mapping[str, str]
    removals: tuple[str, ...]


class NamespaceDrop(NamespaceQuestion, frozen=True, kw_only=True):
    """DROP NAMESPACE."""

    cascade: bool


# --- tables --------------------------------------------------------------------------------------


class TablesList(NamespaceQuestion, frozen=True, kw_only=True):
    """The tables in a namespace."""


class TableNames(Answer, frozen=True, kw_only=True):
    """Names in one namespace."""

    names: tuple[str, ...]


class TableExists(TableQuestion, frozen=True, kw_only=True):
    """Whether a table is there."""


class TableInvalidate(TableQuestion, frozen=True, kw_only=True):
    """Forget what is kept of a table."""


class TableLoad(TableQuestion, frozen=True, kw_only=True):
    """A table as it is, or at one version or time."""

    version: str | None = None
    timestamp_us: int | None = None
    wap_branch: str | None = None
    """The branch that the session writes to for an audit."""


class TableBranch(Question, frozen=True, kw_only=True):
    """A table that was loaded, at the branch that an option of a read names."""

    handle: str
    branch: str


class ShownTransform(Message, frozen=True, kw_only=True):
    """A field that a table is partitioned by: a function of a column, as SQL writes it."""

    transform: str
    column: str
    number: int | None = None
    """Of buckets, or the width."""


class TableFacts(Answer, frozen=True, kw_only=True):
    """What Spark is told of a table."""

    handle: str
    """Enough to load the same state of it again."""

    name: str
    id: str | None = None
    version: str | None = None
    schema: str
    metadata_columns: str
    properties: Mapping[str, str]
    partitioning: tuple[ShownTransform, ...]
    size_in_bytes: int
    rows: int = 0
    """How many its files have, 0 where that is not known."""

    has_column_statistics: bool = False
    grouping: tuple[ShownTransform, ...] = ()
    """By what files can be grouped."""

    filtered: tuple[str, ...] = ()
    """The columns that tell files apart."""

    accept_any_schema: bool = False


class ColumnDefault(Message, frozen=True, kw_only=True):
    """The DEFAULT of a column: its text and, where it is a literal, its value."""

    sql: str
    value: Expression | None = None


class TableCreate(TableQuestion, frozen=True, kw_only=True):
    """CREATE TABLE."""

    schema: str
    defaults: tuple[ColumnDefault | None, ...]
    partitioned_by: tuple[str, ...]
    properties: Mapping[str, str]


class TableStage(TableCreate, frozen=True, kw_only=True):
    """CREATE TABLE AS SELECT and REPLACE TABLE: nothing is there until it is committed."""

    mode: Literal["create", "replace", "create or replace"]


class StagedCommit(CatalogQuestion, frozen=True, kw_only=True):
    """Make a staged table."""

    handle: str


class StagedAbort(CatalogQuestion, frozen=True, kw_only=True):
    """Leave nothing of a staged table."""

    handle: str


class SetProperty(Message, frozen=True, kw_only=True, tag_field="op", tag="set_property"):
    """SET TBLPROPERTIES, of one."""

    key: str
    value: str


class RemoveProperty(Message, frozen=True, kw_only=True, tag_field="op", tag="remove_property"):
    """UNSET TBLPROPERTIES, of one."""

    key: str


class AddColumn(Message, frozen=True, kw_only=True, tag_field="op", tag="add_column"):
    """ADD COLUMN."""

    path: tuple[str, ...]
    type: str
    nullable: bool
    comment: str | None
    position: str | None
    """The column that it comes after; empty: it comes first."""

    column_default: ColumnDefault | None


class DeleteColumn(Message, frozen=True, kw_only=True, tag_field="op", tag="delete_column"):
    """DROP COLUMN."""

    path: tuple[str, ...]
    if_exists: bool


class RenameColumn(Message, frozen=True, kw_only=True, tag_field="op", tag="rename_column"):
    """RENAME COLUMN."""

    path: tuple[str, ...]
    name: str


class UpdateType(Message, frozen=True, kw_only=True, tag_field="op", tag="update_type"):
    """ALTER COLUMN ... TYPE."""

    path: tuple[str, ...]
    type: str


class UpdateNullability(
    Message, frozen=True, kw_only=True, tag_field="op", tag="update_nullability"
):
    """ALTER COLUMN ... SET and DROP NOT NULL."""

    path: tuple[str, ...]
    nullable: bool


class UpdateComment(Message, frozen=True, kw_only=True, tag_field="op", tag="update_comment"):
    """ALTER COLUMN ... COMMENT."""

    path: tuple[str, ...]
    comment: str | None


class UpdatePosition(Message, frozen=True, kw_only=True, tag_field="op", tag="update_position"):
    """ALTER COLUMN ... FIRST and AFTER."""

    path: tuple[str, ...]
    position: str


class UpdateDefault(Message, frozen=True, kw_only=True, tag_field="op", tag="update_default"):
    """ALTER COLUMN ... SET and DROP DEFAULT."""

    path: tuple[str, ...]
    column_default: ColumnDefault | None


class OtherChange(Message, frozen=True, kw_only=True, tag_field="op", tag="other"):
    """A change that Java does not know, by Spark's name of it."""

    kind: str


TableChange: TypeAlias = (
    SetProperty
    | RemoveProperty
    | AddColumn
    | DeleteColumn
    | RenameColumn
    | UpdateType
    | UpdateNullability
    | UpdateComment
    | UpdatePosition
    | UpdateDefault
    | OtherChange
)
"""One change of an ALTER TABLE."""


class TableAlter(TableQuestion, frozen=True, kw_only=True):
    """ALTER TABLE: all of the changes or none."""

    changes: tuple[TableChange, ...]


class TableDrop(TableQuestion, frozen=True, kw_only=True):
    """DROP TABLE."""

    purge: bool


class Dropped(Answer, frozen=True, kw_only=True):
    """Whether there was such a table."""

    dropped: bool


class TableRename(TableQuestion, frozen=True, kw_only=True):
    """ALTER TABLE ... RENAME TO."""

    to_namespace: tuple[str, ...]
    to_name: str


# --- scans ---------------------------------------------------------------------------------------


class ScannedTable(Message, frozen=True, kw_only=True):
    """What a session scans: a table of a catalog, or a relation of the format `iceberg-py`."""

    session: str
    handle: str | None
    """That of a catalog's table."""

    source: str | None
    """What `IcebergDataSource` says of itself."""

    locations: Mapping[str, str]
    """What the session says of where tables may read, by the names of its settings."""


class RowCondition(Message, frozen=True, kw_only=True):
    """One of the conditions on the rows of a scan, and the columns that it is on."""

    condition: Expression
    columns: tuple[str, ...]


class ScanQuestion(Message, frozen=True, kw_only=True):
    """What a query wants of a scan."""

    table: ScannedTable
    wanted: str
    """The columns, as a schema of Spark's."""

    conditions: tuple[RowCondition, ...]
    """All of them: the query evaluates those that are not proven."""

    needed: tuple[str, ...] | None
    """The columns that are needed for more than conditions; None: all."""

    limit: int | None
    """Of so many rows any are as good."""

    grouped: bool
    """Whether files of equal partition values are wanted together."""


class ScanPlan(Question, frozen=True, kw_only=True):
    """The plan of a scan."""

    scan: ScanQuestion


class PlannedScan(PartsAnswer, frozen=True, kw_only=True):
    """The parts of a scan, each (plan, condition that keeps live rows, anti-joins)."""

    proven: tuple[int, ...] = ()
    """Which conditions all rows of the parts fulfil."""


class ScanRuntimeFilter(Question, frozen=True, kw_only=True):
    """Which files of a planned scan are left by filters that are known while it runs."""

    scan: ScanQuestion
    filters: tuple[Expression, ...]


class KeptFiles(Answer, frozen=True, kw_only=True):
    """Where the JVM finds the files that are left; None: all are."""

    locations: tuple[str, ...] | None


class AskedAggregate(Message, frozen=True, kw_only=True):
    """`rows` counts rows and has no column, `count` counts values of one."""

    kind: Literal["rows", "count", "min", "max"]
    column: str | None


class ScanAggregate(Question, frozen=True, kw_only=True):
    """Aggregates of a scan's rows, by groups."""

    table: ScannedTable
    columns: str
    """Those that are named, as a schema of Spark's."""

    groups: tuple[str, ...]
    aggregates: tuple[AskedAggregate, ...]
    condition: Expression | None


class KnownAggregates(Answer, frozen=True, kw_only=True):
    """A row for each group, its values and its aggregates; None where data must be read."""

    rows: tuple[tuple[WireValue, ...], ...] | None


class ScanStatistics(Question, frozen=True, kw_only=True):
    """What is known of the columns of a catalog's table, for estimates."""

    table: ScannedTable


class ColumnFacts(Message, frozen=True, kw_only=True):
    """What is known of the values of a column."""

    column: str
    type: str
    distinct_count: int
    null_count: int
    least: WireValue
    greatest: WireValue


class KnownStatistics(Answer, frozen=True, kw_only=True):
    """The columns of which something is known."""

    columns: tuple[ColumnFacts, ...]


# --- writes --------------------------------------------------------------------------------------


class WriteEnvironment(Message, frozen=True, kw_only=True):
    """Where a statement runs: the session's settings for writes, and what a summary says of it."""

    session: Mapping[str, str]
    application: Mapping[str, str]


WriteKind: TypeAlias = Literal["append", "overwrite", "overwrite_partitions"]


class WriteRun(PlanQuestion, frozen=True, kw_only=True):
    """Write the rows of `plan` to a table of a catalog."""

    session: str
    handle: str
    kind: WriteKind
    options: Mapping[str, str]
    condition: Expression | None
    """Which rows an overwrite replaces."""

    environment: WriteEnvironment


class SourceWrite(PlanQuestion, frozen=True, kw_only=True):
    """Write the rows of `plan` to the table that options of the format name."""

    session: str
    options: Mapping[str, str]
    overwrite: bool
    creates: bool
    """Whether the table must not be there yet."""


class DmlRun(PlanQuestion, frozen=True, kw_only=True):
    """Carry out the DELETE, UPDATE or MERGE that `plan` is."""

    session: str


class TableTruncate(Question, frozen=True, kw_only=True):
    """TRUNCATE TABLE."""

    handle: str
    environment: WriteEnvironment


# --- the format and statements -------------------------------------------------------------------


class SourceOptions(Question, frozen=True, kw_only=True):
    """Options of the format, as a session understands them."""

    session: str
    options: Mapping[str, str]


class SessionOptions(Answer, frozen=True, kw_only=True):
    """The options, and where they name a table of a catalog of the session, how to open it."""

    options: Mapping[str, str]


class SourceTable(Question, frozen=True, kw_only=True):
    """Whether the table that options name is there."""

    options: Mapping[str, str]


class TableThere(Answer, frozen=True, kw_only=True):
    """The table that is there; no name where there is none."""

    namespace: tuple[str, ...] = ()
    name: str | None = None


class SourceHidden(Question, frozen=True, kw_only=True):
    """The hidden columns of the table that options name."""

    session: str
    options: Mapping[str, str]


class HiddenColumns(Answer, frozen=True, kw_only=True):
    """Hidden columns, as a schema of Spark's."""

    columns: str


class StatementRead(Question, frozen=True, kw_only=True):
    """Whether a text is a statement of Iceberg's that Spark's parser does not know."""

    text: str


class SyntaxProblem(Message, frozen=True, kw_only=True):
    """Where a statement is wrong."""

    near: str
    expected: str
    line: int
    position: int


class ReadStatement(Answer, frozen=True, kw_only=True):
    """Iceberg's statement in a text; without a table it is Spark's to parse."""

    table: tuple[str, ...] | None = None
    quoted: str = ""
    """The table as SQL names it."""

    property: str = ""
    """What the clause goes on as: a property to set."""

    clause: str = ""
    problem: SyntaxProblem | None = None


# --- statements that Spark has analysed ----------------------------------------------------------
# Not an answer to a question: Python asks for them while it carries one out (`jvm.py`).


class StatedAssignment(Message, frozen=True, kw_only=True):
    """What is assigned to a column, or to a field inside it; values are expressions' numbers."""

    path: tuple[str, ...]
    value: int


class StatedClause(Message, frozen=True, kw_only=True):
    """WHEN ... THEN of a MERGE."""

    op: Literal["update", "delete", "insert"]
    condition: int | None
    assignments: tuple[StatedAssignment, ...]


class StatedChange(Message, frozen=True, kw_only=True):
    """A DELETE, UPDATE or MERGE that Spark has analysed (`IcebergPyStatement`)."""

    kind: Literal["delete", "update", "merge"]
    handle: str
    """That of the table."""

    reads_iceberg: bool
    """Whether it reads tables of ours besides."""

    condition: int | None
    assignments: tuple[StatedAssignment, ...] = ()
    adds_columns: bool = False
    matched: tuple[StatedClause, ...] = ()
    not_matched: tuple[StatedClause, ...] = ()
    not_matched_by_source: tuple[StatedClause, ...] = ()


# --- the table -----------------------------------------------------------------------------------

Q = TypeVar("Q", bound=Question)
A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, slots=True)
class Operation(Generic[Q, A]):
    """What is asked by a name, and what is answered."""

    name: str
    question: type[Q]
    answer: type[A]


class Operations:
    """Every operation."""

    catalog_open = Operation("catalog.open", CatalogOpen, OpenedCatalog)
    namespaces_list = Operation("namespaces.list", NamespacesList, Namespaces)
    namespace_exists = Operation("namespace.exists", NamespaceExists, Existence)
    namespace_load = Operation("namespace.load", NamespaceLoad, NamespaceFacts)
    namespace_create = Operation("namespace.create", NamespaceCreate, Done)
    namespace_alter = Operation("namespace.alter", NamespaceAlter, Done)
    namespace_drop = Operation("namespace.drop", NamespaceDrop, Done)
    tables_list = Operation("tables.list", TablesList, TableNames)
    table_exists = Operation("table.exists", TableExists, Existence)
    table_invalidate = Operation("table.invalidate", TableInvalidate, Done)
    table_load = Operation("table.load", TableLoad, TableFacts)
    table_branch = Operation("table.branch", TableBranch, TableFacts)
    table_create = Operation("table.create", TableCreate, TableFacts)
    table_stage = Operation("table.stage", TableStage, TableFacts)
    staged_commit = Operation("staged.commit", StagedCommit, Done)
    staged_abort = Operation("staged.abort", StagedAbort, Done)
    table_alter = Operation("table.alter", TableAlter, TableFacts)
    table_drop = Operation("table.drop", TableDrop, Dropped)
    table_rename = Operation("table.rename", TableRename, Done)
    scan_plan = Operation("scan.plan", ScanPlan, PlannedScan)
    scan_runtime_filter = Operation("scan.runtime_filter", ScanRuntimeFilter, KeptFiles)
    scan_aggregate = Operation("scan.aggregate", ScanAggregate, KnownAggregates)
    scan_statistics = Operation("scan.statistics", ScanStatistics, KnownStatistics)
    write_run = Operation("write.run", WriteRun, Done)
    source_write = Operation("source.write", SourceWrite, Done)
    dml_run = Operation("dml.run", DmlRun, Done)
    table_truncate = Operation("table.truncate", TableTruncate, Done)
    source_options = Operation("source.options", SourceOptions, SessionOptions)
    source_table = Operation("source.table", SourceTable, TableThere)
    source_hidden = Operation("source.hidden", SourceHidden, HiddenColumns)
    statement_read = Operation("statement.read", StatementRead, ReadStatement)


OPERATIONS: Mapping[str, Operation[Any, Any]] = {
    row.name: row for row in vars(Operations).values() if isinstance(row, Operation)
}
"""The same by name."""


# --- the wire ------------------------------------------------------------------------------------


def question_in(operation: str, argument: Any) -> Question:
    """The question that came from the JVM: a JSON text, or a list of it and of a plan.

    Raises `InvalidRequestError`: a question that does not fit is one of other classes than ours.
    """
    row = OPERATIONS.get(operation)
    if row is None:
        raise _refused(operation, "there is no such question")
    text, plan = (argument, None) if isinstance(argument, str) else argument
    try:
        found: Question = msgspec.json.decode(text, type=row.question)
    except msgspec.MsgspecError as e:
        raise _refused(operation, str(e)) from e
    if not isinstance(found, PlanQuestion):
        if plan is not None:
            raise _refused(operation, "it comes with a plan")
        return found
    if plan is None or found.plan is not None:
        raise _refused(operation, "its plan does not come beside it")
    return msgspec.structs.replace(found, plan=plan)


def wire_value(value: Any) -> WireValue:
    """A value in the physical form of `spec/values.py` as it goes in an answer."""
    found: WireValue = str(value) if isinstance(value, Decimal) else value
    return found


def answer_text(answer: Answer) -> str:
    """An answer as JSON, without its parts."""
    if isinstance(answer, PartsAnswer):
        answer = msgspec.structs.replace(answer, parts=None)
    return text_of(answer)


def text_of(message: Message) -> str:
    """A message as JSON, equal for equal ones."""
    return msgspec.json.encode(message).decode()


def _refused(operation: str, why: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"a question of the JVM's, {operation}, is none that this iceberg_pyspark knows: {why}; "
        "the JVM has classes of another version: restart it"
    )
