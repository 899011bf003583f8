"""Requests about the format `iceberg-py`, and Iceberg statements unknown to Spark's parser.

Requests about credentials that expire while tasks of the JVM use them.
"""

from __future__ import annotations

from collections.abc import Mapping

from iceberg_pyspark.spark.bridge.protocol.messages import Message, Request, Response


class CredentialsRenew(Request, frozen=True, kw_only=True):
    """The request for new credentials of a store; `renewal` is the store's handle."""

    renewal: str


class RenewedCredentials(Response, frozen=True, kw_only=True):
    """The current credentials of a store, by the names of Hadoop's options for them."""

    options: Mapping[str, str]
    expires_at_ms: int | None
    """The time of expiry in milliseconds since the epoch, or None if unknown."""


class SourceOptions(Request, frozen=True, kw_only=True):
    """The request to complete the format's options with the session's settings."""

    session: str
    options: Mapping[str, str]


class SessionOptions(Response, frozen=True, kw_only=True):
    """The options, completed with the catalog settings of a table of the session."""

    options: Mapping[str, str]


class SourceTable(Request, frozen=True, kw_only=True):
    """The request to check whether the table that the options name exists."""

    options: Mapping[str, str]


class ExistingTable(Response, frozen=True, kw_only=True):
    """The existing table; without a name, no such table exists."""

    namespace: tuple[str, ...] = ()
    name: str | None = None


class SourceHiddenColumns(Request, frozen=True, kw_only=True):
    """The request for the hidden columns of the table that the options name."""

    session: str
    options: Mapping[str, str]


class HiddenColumns(Response, frozen=True, kw_only=True):
    """The hidden columns, as a Spark schema in JSON."""

    columns: str


class StatementParse(Request, frozen=True, kw_only=True):
    """The request to parse a text as an Iceberg statement, which Spark's parser does not know."""

    text: str


class SyntaxProblem(Message, frozen=True, kw_only=True):
    """The place of a syntax error in a statement."""

    near: str
    expectation: str
    line: int
    position: int


class ParsedStatement(Response, frozen=True, kw_only=True):
    """A parsed Iceberg statement; without a table, Spark parses the text."""

    table: tuple[str, ...] | None = None
    quoted_table: str = ""
    """The table name, as written in SQL."""

    property: str = ""
    """The name of the property that the clause is rewritten to."""

    clause: str = ""
    problem: SyntaxProblem | None = None
