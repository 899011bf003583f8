"""Questions about the format `iceberg-py`, and Iceberg statements unknown to Spark's parser."""

from __future__ import annotations

from collections.abc import Mapping

from iceberg_pyspark.spark.bridge.protocol.messages import Answer, Message, Question


class SourceOptions(Question, frozen=True, kw_only=True):
    """The request to complete the format's options with the session's settings."""

    session: str
    options: Mapping[str, str]


class SessionOptions(Answer, frozen=True, kw_only=True):
    """The options, completed with the catalog settings of a table of the session."""

    options: Mapping[str, str]


class SourceTable(Question, frozen=True, kw_only=True):
    """The question whether the table that the options name exists."""

    options: Mapping[str, str]


class ExistingTable(Answer, frozen=True, kw_only=True):
    """The existing table; without a name, no such table exists."""

    namespace: tuple[str, ...] = ()
    name: str | None = None


class SourceHidden(Question, frozen=True, kw_only=True):
    """The request for the hidden columns of the table that the options name."""

    session: str
    options: Mapping[str, str]


class HiddenColumns(Answer, frozen=True, kw_only=True):
    """The hidden columns, as a Spark schema in JSON."""

    columns: str


class StatementRead(Question, frozen=True, kw_only=True):
    """The question whether a text is an Iceberg statement that Spark's parser does not know."""

    text: str


class SyntaxProblem(Message, frozen=True, kw_only=True):
    """The place of a syntax error in a statement."""

    near: str
    expected: str
    line: int
    position: int


class ReadStatement(Answer, frozen=True, kw_only=True):
    """An Iceberg statement that was read; without a table, Spark parses the text."""

    table: tuple[str, ...] | None = None
    quoted: str = ""
    """The table name, as written in SQL."""

    property: str = ""
    """The name of the property that the clause is rewritten to."""

    clause: str = ""
    problem: SyntaxProblem | None = None
