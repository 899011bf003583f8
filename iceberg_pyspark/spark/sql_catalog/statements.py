"""Passes Iceberg's ALTER TABLE statements through Spark.

A parser in front of Spark's parser (`bridge/java/extensions/`) sends each statement to Python. An
Iceberg statement becomes a change of a table property, so Spark resolves the table as in every
ALTER TABLE, and passes the change to the catalog's `table.alter`.
"""

from __future__ import annotations

from collections.abc import Sequence

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.bridge.protocol.source_messages import (
    ParsedStatement,
    StatementParse,
    SyntaxProblem,
)
from iceberg_pyspark.spark.bridge.protocol.table_change_messages import SetProperty, TableChange
from iceberg_pyspark.sql_text.extensions import (
    ExtensionSyntaxError,
    extension_statement,
    parse_clause,
)
from iceberg_pyspark.sql_text.names import quoted_name
from iceberg_pyspark.table.run_sql_extensions import run_clause
from iceberg_pyspark.table.table import Table

STATEMENT_PROPERTY = "iceberg_pyspark.statement"
"""The property that carries a statement; no table has such a property."""


def statement_parse(request: StatementParse) -> ParsedStatement:
    """Return the parsed statement for the parser in front of Spark's parser."""
    statement = extension_statement(request.text)
    if statement is None:
        return ParsedStatement()
    table = tuple(statement.table)
    try:
        parse_clause(request.text, statement.offset)
    except ExtensionSyntaxError as e:
        problem = SyntaxProblem(
            near=e.near, expectation=e.expectation, line=e.line, position=e.position
        )
        return ParsedStatement(table=table, problem=problem)
    return ParsedStatement(
        table=table,
        quoted_table=quoted_name(statement.table),
        property=STATEMENT_PROPERTY,
        clause=request.text[statement.offset :],
    )


def statement_in(changes: Sequence[TableChange]) -> str | None:
    """Return the Iceberg statement that is carried by a change of an ALTER TABLE, or None."""
    for c in changes:
        if isinstance(c, SetProperty) and c.key == STATEMENT_PROPERTY:
            return c.value
    return None


def run_statement(table: Table, text: str, offset: int = 0) -> None:
    """Carry out the clause that begins at an offset of a text."""
    try:
        clause = parse_clause(text, offset)
    except ExtensionSyntaxError as e:
        raise InvalidRequestError(f"table {table.identifier}: {e}: {text}") from e
    run_clause(table, clause)
