"""The format `iceberg-py`, and Iceberg's statements that Spark's parser does not support."""

from __future__ import annotations

from collections.abc import Mapping

from iceberg_pyspark.spark.bridge.protocol.messages import Answer, Message, Question


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


class ExistingTable(Answer, frozen=True, kw_only=True):
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
    """The name of the property that the clause is rewritten to."""

    clause: str = ""
    problem: SyntaxProblem | None = None
