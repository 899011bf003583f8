"""Python, the job and `iceberg-py` have the procedures of CALL, as they are declared.

What an interface leaves out is listed here, with the reason.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import typer

from iceberg_pyspark import IcebergSession, SparkTable, Table, TableCatalog
from iceberg_pyspark.command_line.application import app
from iceberg_pyspark.spark.procedures.call_statement import RUNS, procedure_definition
from iceberg_pyspark.table.commits.pending_changes import ManageSnapshots
from iceberg_pyspark.table.maintenance.procedure_parts import Interface, Parameter, Procedure
from iceberg_pyspark.table.maintenance.procedures import MAINTENANCE, PROCEDURES
from iceberg_pyspark.table.maintenance.table_maintenance import TableMaintenance
from jobs import maintain as job

OF_REFS: Mapping[str, str] = {
    "cherrypick_snapshot": "cherry_pick",
    "fast_forward": "fast_forward",
    "publish_changes": "publish_changes",
    "rollback_to_snapshot": "rollback_to",
    "rollback_to_timestamp": "rollback_to_timestamp",
    "set_current_snapshot": "set_current_snapshot",
}
"""Procedures that move a branch, with their methods of `table.manage_snapshots()`."""
PYTHON: Mapping[str, Callable[..., Any]] = {
    **{p.name: getattr(TableMaintenance, p.name) for p in MAINTENANCE if p.name != "add_files"},
    "add_files": Table.add_files,
    "create_changelog_view": SparkTable.create_changelog_view,
    "migrate": IcebergSession.migrate,
    "register_table": TableCatalog.register_table,
    "snapshot": IcebergSession.snapshot,
}
NO_PYTHON = {"ancestors_of": "the rows are table.metadata.snapshots, by their parent ids"}
NO_COMMAND = {
    **dict.fromkeys(OF_REFS, "they move branches and are no maintenance; the job has them"),
    "ancestors_of": "`iceberg-py snapshots` and `history` list snapshots",
    "create_changelog_view": "a view is one of a Spark session; `scan db.t.changes` has the rows",
    "migrate": "it reads and changes Spark's own catalog; the job has it",
    "register_table": "it is `iceberg-py register`; the job has it",
    "snapshot": "it reads Spark's own catalog; the job has it",
}
NO_JOB = {"create_changelog_view": "the view would end with the session of the job"}
OTHER_NAMES: Mapping[str, str] = {"metadata_file": "metadata_location"}
"""Names in Python that differ from those of CALL, as in PyIceberg."""
OF_CALL = (Interface.ALL, Interface.CALL, Interface.CALL_WITHOUT_EFFECT, Interface.SPARK)
OF_COMMANDS = (Interface.ALL, Interface.NO_CALL)
OF_JOB = (*OF_COMMANDS, Interface.SPARK)


def commands(group: typer.Typer, *names: str) -> dict[str, Any]:
    """Return the commands of a group by procedure."""
    command: Any = typer.main.get_command(group)
    for name in names:
        command = command.commands[name]
    return {name.replace("-", "_"): c for name, c in command.commands.items()}


def offered(procedure: Procedure, interfaces: tuple[Interface, ...]) -> list[Parameter]:
    return [p for p in procedure.parameters if p.interface in interfaces]


@pytest.mark.parametrize("name", sorted(PYTHON))
def test_python_has_the_parameters_with_their_defaults_and_the_text(name: str) -> None:
    procedure, method = PROCEDURES[name], PYTHON[name]
    assert (inspect.getdoc(method) or "").splitlines()[0] == procedure.help
    actual = inspect.signature(method).parameters
    for p in offered(procedure, OF_COMMANDS):
        if p.name == "table" and name != "snapshot":
            continue
        python_default = actual[OTHER_NAMES.get(p.name, p.name)].default
        if p.is_required:
            assert python_default is inspect.Parameter.empty, p.name
        else:
            assert python_default == p.default or (p.default is None and python_default == ()), p
    without = {p.name for p in procedure.parameters} - {p.name for p in offered(procedure, OF_JOB)}
    assert {*actual} & without == set()


def test_python_has_every_procedure() -> None:
    assert {*PYTHON, *OF_REFS, *NO_PYTHON} == {*PROCEDURES}
    assert all(callable(getattr(ManageSnapshots, method)) for method in OF_REFS.values())


def test_call_has_every_procedure() -> None:
    assert {*RUNS} == {*PROCEDURES}
    for name, procedure in PROCEDURES.items():
        actual = procedure_definition(("system",), name)
        assert actual.description == procedure.help
        assert [(p.name, p.type, p.is_required) for p in actual.parameters] == [
            (p.name, p.type, p.is_required) for p in offered(procedure, OF_CALL)
        ]


@pytest.mark.parametrize(
    ("actual", "without", "interfaces"),
    [
        (commands(app, "maintain"), NO_COMMAND, OF_COMMANDS),
        (commands(job.app), NO_JOB, OF_JOB),
    ],
    ids=["iceberg-py", "job"],
)
def test_the_shell_has_the_procedures(
    actual: dict[str, Any],
    without: Mapping[str, str],
    interfaces: tuple[Interface, ...],
) -> None:
    assert {*actual} == {*PROCEDURES} - {*without}
    for name, command in actual.items():
        procedure = PROCEDURES[name]
        assert command.help == procedure.help
        words = {p.name: p for p in command.params if p.name != "help"}
        parameters = offered(procedure, interfaces)
        assert list(words) == [p.name for p in parameters]
        for p in parameters:
            word = words[p.name]
            assert word.required == p.is_required
            assert word.help == p.help + (" Can be repeated." if p.is_repeated else "")
            if not p.is_required:
                assert word.opts == [p.flag]
                assert word.multiple == p.is_repeated
                assert getattr(word.default, "value", word.default) == p.default


def test_texts_have_one_mood() -> None:
    """Help says what to do: "Remove ...", not "Removes ..."; a noun begins with an article."""
    for procedure in PROCEDURES.values():
        for text in (procedure.help, *(p.help for p in procedure.parameters)):
            assert text.endswith("."), text
            assert not text.split()[0].endswith("s"), text
