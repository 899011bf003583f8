"""Implements `health`: the state of a table, and the gain of maintenance.

Implements `verify`: checks a table against the specification.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iceberg_pyspark.command_line.group import ExitCode
from iceberg_pyspark.command_line.invocation import invocation_of
from iceberg_pyspark.command_line.output import Output, TableName
from iceberg_pyspark.errors import InvalidRequestError

if TYPE_CHECKING:
    from iceberg_pyspark.table.health.health_report import TableHealth


def health(
    context: typer.Context,
    table: TableName,
    top: Annotated[int, typer.Option(min=1, help="Show at most this number of partitions.")] = 20,
    list_storage: Annotated[
        bool,
        typer.Option(
            "--list-storage", help="Count orphan files; this lists all files in the table's folder."
        ),
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(help="Write the report with plots to this HTML file."),
    ] = None,
) -> None:
    """Show the state of a table, the gain of maintenance, and the commands to run."""
    invocation = invocation_of(context)
    report = invocation.table(table).health(top=top, list_storage=list_storage)
    if html is not None:
        _write_page(html, report)
    if invocation.output.as_json:
        invocation.output.document(report.to_dict())
    elif html is not None:
        invocation.output.effect(f"wrote {html}")
    else:
        _print(invocation.output, report)


def _write_page(path: Path, report: TableHealth) -> None:
    from iceberg_pyspark.command_line.health_page import health_page  # noqa: PLC0415 - needs pyarrow

    page = health_page(report)
    try:
        path.write_text(page, encoding="utf-8", errors="backslashreplace")
    except OSError as e:
        raise InvalidRequestError(
            f"the page cannot be written to {path} ({e.strerror}); give a file in an existing "
            "folder that can be written"
        ) from e


def _print(output: Output, report: TableHealth) -> None:
    from iceberg_pyspark.table.health.report_text import sections  # noqa: PLC0415 - needs pyarrow

    for section in sections(report):
        if not section.rows:
            continue
        output.heading(section.title)
        if section.header:
            output.rows(section.header, section.rows, right=section.numbers)
        else:
            output.facts({row[0]: row[1] for row in section.rows})
    commands = [gain for gain in report.procedures if gain.is_worthwhile]
    if commands:
        output.heading("Commands to run")
    for gain in commands:
        output.text(gain.command)
        if gain.call is not None:
            output.text(gain.call)


def verify(
    context: typer.Context,
    table: TableName,
    check_files: Annotated[
        bool,
        typer.Option(
            "--check-files",
            help="Also check that live files exist, and their lengths; also read deletion vectors.",
        ),
    ] = False,
) -> None:
    """Check a table for damage: print one line for each broken rule of the specification."""
    invocation = invocation_of(context)
    report = invocation.table(table).verify(check_files=check_files)
    if invocation.output.as_json:
        invocation.output.document(report.to_dict())
    else:
        for finding in report.findings:
            invocation.output.text(str(finding))
        invocation.output.text(report.summary)
    if not report.ok:
        raise typer.Exit(ExitCode.DAMAGED)
