"""Implements `sql`: statements in a Spark session with the configured catalogs.

Only this command needs pyspark and Java. Catalog properties are set after Spark has started, not on
the command line of its JVM, which other users of the machine can see.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iceberg_pyspark.catalogs.catalog_properties import configured_names, default_name
from iceberg_pyspark.command_line.invocation import Invocation, invocation_of, parse_property
from iceberg_pyspark.command_line.output import Limit, Output
from iceberg_pyspark.errors import IcebergError, InvalidRequestError

if TYPE_CHECKING:
    from iceberg_pyspark.spark.session import IcebergSession


def run_sql(
    context: typer.Context,
    statement: Annotated[
        str | None, typer.Argument(help="Statements in Spark SQL, separated by semicolons.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="Run the statements of this file, separated by semicolons.")
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="Set a configuration property of Spark; can be repeated."
        ),
    ] = None,
    limit: Limit = 20,
) -> None:
    """Run Spark SQL with the configured catalogs; by default, read it from standard input."""
    invocation = invocation_of(context)
    if statement is not None and file is not None:
        raise InvalidRequestError("both a statement and --file are given; keep one")
    settings = dict(map(parse_property, conf or []))
    name = _checked_catalog(invocation)
    if statement is None and file is None and sys.stdin.isatty():
        session = _session(invocation, name, settings)
        for text in _statements_of_input():
            _run_and_go_on(session, text, limit, invocation.output)
        return
    text = statement or (sys.stdin.read() if file is None else file.read_text("utf-8"))
    statements = split_statements(text)
    if not statements:
        raise InvalidRequestError("there is no statement to run")
    session = _session(invocation, name, settings)
    for one in statements:
        _run(session, one, limit, invocation.output)


def split_statements(text: str) -> list[str]:
    """Split the text at semicolons, except semicolons in strings and comments.

    >>> split_statements("SELECT ';' ; SHOW TABLES;")
    ["SELECT ';'", 'SHOW TABLES']
    """
    from iceberg_pyspark.sql_text.parser import SqlTextError, semicolons  # noqa: PLC0415 - sqlglot

    try:
        bounds = [-1, *semicolons(text), len(text)]
    except SqlTextError as e:
        raise InvalidRequestError(f"the statements: {e}") from e
    parts = (text[a + 1 : b].strip() for a, b in pairwise(bounds))
    return [part for part in parts if part]


def _checked_catalog(invocation: Invocation) -> str | None:
    """Return the current catalog's name, if any; configuration errors show before Spark starts."""
    if invocation.is_default and configured_names(os.environ):
        default = default_name(os.environ)
        return default if default in configured_names(os.environ) else None
    return invocation.open(invocation.catalog).name


def _session(
    invocation: Invocation, name: str | None, settings: Mapping[str, str]
) -> IcebergSession:
    """Return a new session with the configured catalogs; `name` is the current catalog."""
    from iceberg_pyspark.command_line.terminal_session import start_spark  # noqa: PLC0415 - pyspark

    session = start_spark(settings)
    conf = session.spark.conf
    for catalog in {*configured_names(os.environ), *([] if name is None else [name])}:
        conf.set(f"spark.sql.catalog.{catalog}", "iceberg_pyspark")
    if name is not None:
        for key, value in invocation.properties.items():
            conf.set(f"spark.sql.catalog.{name}.{key}", value)
        session.spark.catalog.setCurrentCatalog(name)
    return session


def _run(session: IcebergSession, statement: str, limit: int, output: Output) -> None:
    from iceberg_pyspark.command_line.arrow_rows import rows_of  # noqa: PLC0415 - needs pyarrow
    from iceberg_pyspark.command_line.terminal_session import spark_errors  # noqa: PLC0415 - pyspark

    with spark_errors():
        answer = session.sql(statement)
        names = answer.columns
        if not names:
            return
        batches = answer.limit(limit).toArrow().to_batches()
    output.rows(names, (list(row.values()) for batch in batches for row in rows_of(batch)))


def _run_and_go_on(session: IcebergSession, text: str, limit: int, output: Output) -> None:
    """Run typed statements; print an error and return to the prompt."""
    try:
        for one in split_statements(text):
            _run(session, one, limit, output)
    except IcebergError as e:
        output.error(str(e))


def _statements_of_input() -> Iterator[str]:
    """Yield the typed text up to each line that ends with a semicolon."""
    with suppress(ImportError):
        import readline  # noqa: F401, PLC0415 - input() then edits lines and remembers them
    lines: list[str] = []
    while True:
        try:
            lines.append(input("     ...> " if lines else "iceberg-py> "))
        except EOFError:
            return
        if lines[0].strip().lower() in ("exit", "quit", "exit;", "quit;"):
            return
        if lines[-1].rstrip().endswith(";"):
            yield "\n".join(lines)
            lines = []
