"""Implements `verify`: checks a table against the specification."""

from __future__ import annotations

from typing import Annotated

import typer

from iceberg_pyspark.command_line.arguments import TableName
from iceberg_pyspark.command_line.exit_codes import ExitCode
from iceberg_pyspark.command_line.invocation import invocation_of


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
    report = invocation.table(table).verify(checks_files=check_files)
    if invocation.output.as_json:
        invocation.output.document(report.to_dict())
    else:
        for finding in report.findings:
            invocation.output.text(str(finding))
        invocation.output.text(report.summary)
    if not report.ok:
        raise typer.Exit(ExitCode.DAMAGED)
