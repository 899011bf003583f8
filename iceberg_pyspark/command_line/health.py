"""What state a table is in, and what maintenance would gain: `health`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from iceberg_pyspark.command_line.arguments import TableName
from iceberg_pyspark.command_line.invocation import invocation_of
from iceberg_pyspark.command_line.output import Output

if TYPE_CHECKING:
    from iceberg_pyspark.table.health.report import TableHealth


def health(
    context: typer.Context,
    table: TableName,
    top: Annotated[int, typer.Option(min=1, help="How many partitions are shown.")] = 20,
    list_storage: Annotated[
        bool, typer.Option("--list-storage", help="Look for orphan files, which takes a listing.")
    ] = False,
) -> None:
    """Tell what state a table is in, what maintenance would gain, and what to type for it."""
    invocation = invocation_of(context)
    report = invocation.table(table).health(top=top, lists_storage=list_storage)
    if invocation.output.as_json:
        invocation.output.document(report.to_dict())
    else:
        _print(invocation.output, report)


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
        output.heading("To type")
    for gain in commands:
        output.text(gain.command)
        if gain.call is not None:
            output.text(gain.call)
