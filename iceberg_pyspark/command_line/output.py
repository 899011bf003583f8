"""Prints results: tables for people, one JSON document for programs.

On a terminal long values are wrapped; elsewhere each row is one line of any length. Names and
values come from metadata of possibly untrusted writers: control characters are printed as escapes.

Defines the arguments that several commands share.

The groups of a plan of a rewrite of data files, as the rows of a short table.

Methods that print tables import rich: `--help` and JSON need none.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from io import StringIO
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iceberg_pyspark.display import escape_text, printable

if TYPE_CHECKING:
    from rich.table import Table

    from iceberg_pyspark.table.maintenance.rewrites.rewrite_options import PlannedGroup


# ruff: noqa: PLC0415 - see above

COLUMNS = ("group", "partition", "files", "bytes", "new files", "reasons")
MAX_ROWS = 20
"""The most groups that are printed; JSON has all."""


def group_rows(groups: Sequence[PlannedGroup]) -> list[tuple[str, ...]]:
    """Return the rows of the table: one per group, and one for the groups that are left out."""
    rows: list[tuple[str, ...]] = [
        (
            str(number),
            "(other specs)" if group.partition is None else group.partition,
            str(group.data_files_count),
            str(group.bytes_count),
            str(group.new_files_count),
            ", ".join(f"{count} {reason}" for reason, count in group.reasons.items()),
        )
        for number, group in enumerate(groups[:MAX_ROWS], start=1)
    ]
    if rest := groups[MAX_ROWS:]:
        files = sum(group.data_files_count for group in rest)
        size = sum(group.bytes_count for group in rest)
        rows.append(("...", f"({len(rest)} more groups)", str(files), str(size), "", ""))
    return rows


TableName = Annotated[
    str, typer.Argument(metavar="TABLE", help="The table's name, such as db.table, or its path.")
]
NamespaceName = Annotated[str, typer.Argument(metavar="NAMESPACE", help="The namespace's name.")]
SnapshotId = Annotated[
    int | None,
    typer.Option("--snapshot-id", help="Read this snapshot. Default: the current snapshot."),
]
Limit = Annotated[int, typer.Option(min=0, help="Print at most this number of rows.")]


_UNLIMITED_WIDTH = 1_000_000


class Output:
    """The output of a command, as text or as JSON."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def rows(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        *,
        right: Collection[int] = (),
    ) -> None:
        """Print a table, or in JSON a list of objects; number columns and `right` align right."""
        if self.as_json:
            self.document([dict(zip(columns, row, strict=True)) for row in rows])
            return
        from rich.text import Text

        values = [list(row) for row in rows]
        table = _grid(header=True)
        for position, column in enumerate(columns):
            numbers = all(_is_number(row[position]) for row in values)
            table.add_column(
                Text(escape_text(column)),
                justify="right" if position in right or (numbers and values) else "left",
                overflow="fold",
            )
        for row in values:
            table.add_row(*(Text(text_of(value)) for value in row))
        _print(table)

    def facts(self, facts: Mapping[str, Any]) -> None:
        """Print names and values; in JSON one object."""
        if self.as_json:
            self.document(dict(facts))
            return
        from rich.text import Text

        table = _grid(header=False)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in facts.items():
            table.add_row(Text(escape_text(name)), Text(text_of(value)))
        _print(table)

    def value(self, name: str, value: Any) -> None:
        """Print one value alone, so that a script can use it; in JSON an object with one name."""
        if self.as_json:
            self.document({name: value})
        else:
            _line(text_of(value))

    def heading(self, text: str) -> None:
        """Print a heading above the next table."""
        _line(f"\n{text}")

    def text(self, text: str) -> None:
        """Print a line for copying: the line is never folded."""
        _line(escape_text(text))

    def effect(self, text: str) -> None:
        """Print the effect of a change; in JSON an object with the name `done`."""
        self.value("done", text)

    def error(self, text: str) -> None:
        """Print an error as one line on standard error."""
        sys.stderr.write(f"error: {printable(text)}\n")

    def document(self, value: Any) -> None:
        """Print a JSON document of any shape."""
        _line(json.dumps(_json_value(value), ensure_ascii=False, allow_nan=False))


def text_of(value: Any) -> str:
    """Return a value as text for a table cell.

    >>> text_of(None), text_of(True), text_of({"a": [1.5]}), text_of("two\\nlines")
    ('null', 'true', '{"a": [1.5]}', 'two\\\\nlines')
    """
    match _json_value(value):
        case str() as text:
            return escape_text(text)
        case (dict() | list() | bool() | None) as other:
            return escape_text(json.dumps(other, ensure_ascii=False))
        case other:
            return str(other)


def _json_value(value: Any) -> Any:
    """Convert a Python value to JSON types; a value without a JSON type becomes text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if value - value == 0 else str(value)
        case Mapping():
            return {str(k): _json_value(v) for k, v in value.items()}
        case bytes():
            return value.hex()
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case Iterable():
            return [_json_value(v) for v in value]
        case _:
            return str(value)


def _is_number(value: Any) -> bool:
    return value is None or (
        isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    )


def _grid(*, header: bool) -> Table:
    from rich.table import Table

    return Table(box=None, show_header=header, pad_edge=False, padding=(0, 2, 0, 0))


def _print(table: Table) -> None:
    """Print a table in the width of the terminal; without a terminal, each row is one line."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _UNLIMITED_WIDTH
    from rich.console import Console

    # rich would end the process if the pipe is closed early, so this function writes the text
    console = Console(file=StringIO(), width=width, highlight=False)
    with console.capture() as text:
        console.print(table)
    sys.stdout.write("\n".join(line.rstrip() for line in text.get().split("\n")))


def _line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
