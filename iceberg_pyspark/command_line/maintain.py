"""Makes a command of each procedure, for `iceberg-py maintain` and `jobs/maintain.py`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from iceberg_pyspark.command_line.invocation import invocation_of, parse_property
from iceberg_pyspark.command_line.output import COLUMNS, Output, group_rows
from iceberg_pyspark.table.maintenance.procedure_parts import (
    DRY_RUN,
    Interface,
    Parameter,
    Procedure,
)
from iceberg_pyspark.table.maintenance.procedures import ADD_FILES, MAINTENANCE, REMOVE_ORPHAN_FILES

if TYPE_CHECKING:
    from iceberg_pyspark.table.progress import Progress

Run: TypeAlias = "Callable[[typer.Context, Procedure, dict[str, Any], Progress], Any]"
"""Runs a procedure with arguments by name; returns a dataclass, or a tuple of rows."""

_TYPES: Mapping[str, Any] = {
    "array<bigint>": list[int],
    "array<string>": list[str],
    "bigint": int,
    "boolean": bool,
    "int": int,
    "map<string,string>": list[str],
    "string": str,
    "timestamp": str,
}
_BY_NAME = inspect.Parameter.KEYWORD_ONLY
_METAVARS = {"map<string,string>": "KEY=VALUE", "timestamp": "TIME"}


def add_procedures(
    app: typer.Typer, procedures: Iterable[Procedure], interfaces: Iterable[Interface], run: Run
) -> None:
    """Add a command for each procedure, with the parameters that these interfaces have."""
    offered = {*interfaces}
    for procedure in procedures:
        parameters = [p for p in procedure.parameters if p.interface in offered]
        app.command(procedure.name.replace("_", "-"))(_command(procedure, parameters, run))


def _command(
    procedure: Procedure, parameters: Iterable[Parameter], run: Run
) -> Callable[..., None]:
    """Return a function whose signature typer reads."""

    def command(context: typer.Context, **words: Any) -> None:
        from rich.console import Console  # noqa: PLC0415 - slow

        from iceberg_pyspark.command_line.progress_display import shown_progress  # noqa: PLC0415 - the same

        arguments = {
            p.name: _value(p, words[p.name])
            for p in parameters
            if words[p.name] is not None and words[p.name] != []
        }
        with shown_progress(Console(stderr=True)) as progress:
            result = run(context, procedure, arguments, progress)
        _show(
            invocation_of(context).output, procedure, result, is_plan=arguments.get(DRY_RUN, False)
        )

    first = inspect.Parameter("context", _BY_NAME, annotation=typer.Context)
    signature = inspect.Signature([first, *map(_word, parameters)])
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__doc__ = procedure.help
    return command


def _word(p: Parameter) -> inspect.Parameter:
    """Return a parameter of a command: an argument if it is required, else an option."""
    kind: Any = Enum(p.name, {c: c for c in p.choices}) if p.choices else _TYPES[p.type]
    default: Any = kind(p.default) if p.choices else p.default
    declared: Any
    if p.is_required:
        declared, default = (
            typer.Argument(metavar=p.name.upper(), help=p.help),
            inspect.Parameter.empty,
        )
    else:
        flag = f"{p.flag}/--no-{p.flag[2:]}" if p.default is True else p.flag
        declared = typer.Option(
            flag,
            metavar=p.metavar or _METAVARS.get(p.type),
            help=f"{p.help} Can be repeated." if p.is_repeated else p.help,
        )
        if default is None:
            kind = kind | None
    return inspect.Parameter(
        p.name, _BY_NAME, default=default, annotation=Annotated[kind, declared]
    )


def _value(p: Parameter, word: Any) -> Any:
    """Return the value of an argument as the methods of Python take it."""
    if isinstance(word, Enum):
        return word.value
    if p.type.startswith("map"):
        return dict(map(parse_property, word))
    if p.type == "timestamp":
        from iceberg_pyspark.table.reading.snapshot_selection import (  # noqa: PLC0415 - needs pyarrow
            timestamp_ms_of,
        )

        return timestamp_ms_of(word)
    if p.name == "inventory":
        from iceberg_pyspark.command_line.inventory_files import (  # noqa: PLC0415 - needs pyarrow
            inventory_of,
        )

        return inventory_of(word)
    return word


def _show(output: Output, procedure: Procedure, result: Any, *, is_plan: bool) -> None:
    """Print the rows of a result, or its fields by name; groups of files are a table of a plan."""
    if isinstance(result, tuple):
        output.rows([*procedure.columns], result)
        return
    if procedure is REMOVE_ORPHAN_FILES:
        output.rows([*procedure.columns], ([location] for location in result.orphan_file_locations))
        return
    facts = {f.name: getattr(result, f.name) for f in fields(result)}
    groups = facts.pop("groups", None)
    if groups is not None and output.as_json and is_plan:
        facts["groups"] = [asdict(group) for group in groups]
    output.facts(facts)
    if groups and not output.as_json:
        output.heading("groups of files")
        output.rows(COLUMNS, group_rows(groups), right=(2, 3, 4))


def _run(
    context: typer.Context, procedure: Procedure, arguments: dict[str, Any], progress: Progress
) -> Any:
    table = invocation_of(context).table(arguments.pop("table"))
    if procedure is ADD_FILES:
        return table.add_files(**arguments, progress=progress)
    return getattr(table.maintenance(progress=progress), procedure.name)(**arguments)


maintain_app = typer.Typer(
    help="Expire snapshots, remove orphan files, rewrite files, compute statistics.",
    no_args_is_help=True,
)
add_procedures(maintain_app, MAINTENANCE, (Interface.ALL, Interface.NO_CALL), _run)
