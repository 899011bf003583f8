"""Maintain an Iceberg table: run one procedure of `CALL` from the shell or a scheduler.

    spark-submit --conf spark.sql.catalog.lake=iceberg_pyspark \\
        --conf spark.sql.catalog.lake.warehouse=/data/warehouse \\
        jobs/maintain.py rewrite_data_files --table lake.db.events --option min-input-files=10

The catalogs come from Spark's configuration. `--plan` prints what would be done, and changes
nothing. Exit codes: 0 success, also if there was nothing to do; 2 the request cannot be carried
out, and the table is unchanged; 3 another commit was faster: run again; 4 the commit may have
succeeded: run again to do the rest; 1 any other error.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from iceberg_pyspark import errors, install
from iceberg_pyspark.command_line.output import COLUMNS, group_rows
from iceberg_pyspark.command_line.progress import shown_progress
from iceberg_pyspark.errors import IcebergError, NoSuchTableError
from iceberg_pyspark.spark.error_text import iceberg_error_in
from iceberg_pyspark.spark.procedures.calls import PROCEDURES
from iceberg_pyspark.spark.procedures.definition import (
    DRY_RUN,
    NoTableToCallError,
    Procedure,
    Row,
)
from iceberg_pyspark.spec.display import escape_text
from iceberg_pyspark.table.maintenance.rewrites.rewrite_options import PlannedGroup
from iceberg_pyspark.table.reading.snapshot_selection import timestamp_ms_of

EXCEPTIONS = {"create_changelog_view": "its view ends with the session of the job"}
"""The procedures that the job does not have, with the reasons."""

NAMES = tuple(name for name in PROCEDURES if name not in EXCEPTIONS)
SWITCH = ("true", "false")
TABLE = "table"


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="maintain.py", description="Maintain an Iceberg table.")
    commands = parser.add_subparsers(dest="procedure", required=True, metavar="PROCEDURE")
    for name in NAMES:
        procedure = PROCEDURES[name]
        command = commands.add_parser(
            name, aliases=[name.replace("_", "-")], help=procedure.description, allow_abbrev=False
        )
        command.set_defaults(procedure=name)
        command.add_argument("--table", required=True, help="lake.db.events")
        if DRY_RUN in procedure.optional:
            command.add_argument(
                "--plan", action="store_true", help="print what would be done, and do nothing"
            )
        for parameter, type_ in (*procedure.required.items(), *procedure.optional.items()):
            if parameter not in (TABLE, DRY_RUN):
                is_required = parameter in procedure.required
                add_parameter(command, parameter, type_, is_required=is_required)
    return parser.parse_args(argv)


def flag_of(parameter: str) -> str:
    """Return the command line option of a procedure's parameter."""
    return "--option" if parameter == "options" else f"--{parameter.replace('_', '-')}"


def key_and_value(text: str) -> tuple[str, str]:
    """Split `KEY=VALUE`; raise `argparse.ArgumentTypeError`."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is not KEY=VALUE")
    return key, value


def add_parameter(
    command: argparse.ArgumentParser, name: str, type_: str, *, is_required: bool
) -> None:
    """Add a procedure's parameter as a command line option; `type_` is Spark's name of the type."""
    settings: dict[str, Any] = {}
    match type_:
        case "map<string,string>":
            settings = {"action": "append", "type": key_and_value, "metavar": "KEY=VALUE"}
        case "array<bigint>":
            settings = {"action": "append", "type": int}
        case "array<string>":
            settings = {"action": "append"}
        case "boolean":
            settings = {"choices": SWITCH}
        case "int" | "bigint":
            settings = {"type": int}
        case "timestamp":
            settings = {"metavar": "TIME", "help": "2026-01-31T12:00:00+01:00"}
    if "action" in settings:
        settings["help"] = "repeatable"
    command.add_argument(flag_of(name), dest=name, required=is_required, **settings)


def values_of(procedure: Procedure, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the values of the command line options, converted to the procedure's types."""
    values: dict[str, Any] = {}
    for name, type_ in (*procedure.required.items(), *procedure.optional.items()):
        value = getattr(arguments, name, None)
        if value is None:
            continue
        match type_:
            case "map<string,string>":
                value = dict(value)
            case "boolean":
                value = value == "true"
            case "timestamp":
                value = timestamp_ms_of(value)
        values[name] = value
    if getattr(arguments, "plan", False):
        values[DRY_RUN] = True
    return values


def maintain(spark: SparkSession, console: Console, arguments: argparse.Namespace) -> None:
    procedure = PROCEDURES[arguments.procedure]
    run = install(spark).procedure_run(procedure.name, values_of(procedure, arguments))
    chosen_groups: list[PlannedGroup] = []
    with shown_progress(console) as progress:
        try:
            rows = procedure.run(replace(run, progress=progress, show_groups=chosen_groups.extend))
        except NoTableToCallError as e:
            raise NoSuchTableError(str(e)) from e
    show(console, procedure, rows)
    show_groups(console, chosen_groups)


def show(console: Console, procedure: Procedure, rows: tuple[Row, ...]) -> None:
    """Print the result: orphan files as a list, other results as names and values."""
    grid = RichTable.grid(padding=(0, 2))
    if procedure.name == "remove_orphan_files":
        grid.add_row("orphan files", str(len(rows)))
        for row in rows:
            grid.add_row("", escape(escape_text(str(row[0]))))
    else:
        for row in rows:
            for name, value in zip(procedure.columns, row, strict=True):
                grid.add_row(name, escape(escape_text(str(value))))
    console.print(grid, highlight=False, soft_wrap=True)


def show_groups(console: Console, groups: Sequence[PlannedGroup]) -> None:
    """Print the groups of files that a plan has chosen, if there are any."""
    if not groups:
        return
    grid = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in COLUMNS:
        grid.add_column(name, no_wrap=True)
    for row in group_rows(groups):
        grid.add_row(*(escape(escape_text(text)) for text in row))
    console.print("\ngroups of files", highlight=False)
    console.print(grid, highlight=False, soft_wrap=True)


def main(argv: list[str]) -> int:
    arguments = parse_arguments(argv)
    console = Console()
    spark = SparkSession.builder.appName(f"{arguments.procedure} {arguments.table}").getOrCreate()
    try:
        maintain(spark, console, arguments)
    except IcebergError as e:
        return report_failure(console, e, str(e))
    except PySparkException as e:
        name_and_message = iceberg_error_in(str(e))
        if name_and_message is not None:
            name, message = name_and_message
            return report_failure(console, getattr(errors, name)(message), message)
        console.print(f"[red]error[/red] {escape(str(e).splitlines()[0])}", highlight=False)
        return 2 if type(e).__name__ in ("AnalysisException", "ParseException") else 1
    return 0


def report_failure(console: Console, error: IcebergError, message: str) -> int:
    text = f"[red]{type(error).__name__}[/red] {escape(message)}"
    console.print(text, highlight=False, soft_wrap=True)
    return exit_code(error)


def exit_code(error: IcebergError) -> int:
    match error:
        case errors.CommitStateUnknownError():
            return 4
        case errors.CommitError():
            return 3
        case (
            errors.InvalidRequestError()
            | errors.UnsupportedFeatureError()
            | errors.NotFoundError()
            | errors.AlreadyExistsError()
        ):
            return 2
        case _:
            return 1


if __name__ == "__main__":
    # without a terminal, the log shows the progress of a procedure
    logging.basicConfig(level="WARNING", format="%(message)s")
    logging.getLogger("iceberg_pyspark").setLevel("INFO")
    sys.exit(main(sys.argv[1:]))
