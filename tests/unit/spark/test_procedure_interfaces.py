"""Python, the job and `iceberg-py` have the procedures of CALL, with their parameters.

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
from iceberg_pyspark.spark.procedures.calls import PROCEDURES
from iceberg_pyspark.spark.procedures.definition import DRY_RUN, Procedure
from iceberg_pyspark.table.commits.pending_changes import ManageSnapshots
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
    "add_files": Table.add_files,
    "create_changelog_view": SparkTable.create_changelog_view,
    "migrate": IcebergSession.migrate,
    "register_table": TableCatalog.register_table,
    "snapshot": IcebergSession.snapshot,
}
"""The methods that are not methods of `table.maintenance()`."""
NO_PYTHON = {"ancestors_of": "the rows are table.metadata.snapshots, by their parent ids"}
NO_COMMAND = {
    **dict.fromkeys(OF_REFS, "they move branches and are no maintenance; the job has them"),
    "ancestors_of": "`iceberg-py snapshots` and `history` list snapshots",
    "create_changelog_view": "a view is one of a Spark session; `scan db.t.changes` has the rows",
    "migrate": "it reads and changes Spark's own catalog; the job has it",
    "snapshot": "it reads Spark's own catalog; the job has it",
}
COMMANDS = {"register_table": "register"}
"""The commands outside of `iceberg-py maintain`."""

WITHOUT_EFFECT = {
    "check_duplicate_files": "files that the table has already are always refused",
    "parallelism": "the number of threads is chosen",
    "prefix_listing": "there is one way to list files",
    "stream_results": "files are never collected in memory",
    "use_caching": "entries are kept on disk",
}
"""Parameters of Java without effect, which only CALL and the job need to take."""
OTHER_NAMES: Mapping[str, str] = {
    "file_list_view": "inventory",
    "metadata_file": "metadata_location",
    "source_table": "source",
}
"""Names in Python and in the shell, where the value is no name in Spark."""
OF_ONE = {"columns": "column", "options": "option", "snapshot_ids": "snapshot_id"} | {
    "equal_authorities": "equal_authority",
    "equal_schemes": "equal_scheme",
}
"""Options that are repeated have a name in the singular."""


def parameters_of(procedure: Procedure) -> set[str]:
    return {*procedure.required, *procedure.optional} - {"table"}


def commands() -> dict[str, typer.core.TyperCommand]:
    group: Any = typer.main.get_command(app)
    return {**group.commands["maintain"].commands, "register": group.commands["register"]}


@pytest.mark.parametrize("name", sorted({*PROCEDURES} - {*NO_PYTHON}))
def test_python_has_the_procedure(name: str) -> None:
    if name in OF_REFS:
        assert callable(getattr(ManageSnapshots, OF_REFS[name]))
        return
    method = PYTHON.get(name) or getattr(TableMaintenance, name)
    actual = {*inspect.signature(method).parameters}
    expected = parameters_of(PROCEDURES[name]) - {*WITHOUT_EFFECT}
    if name != "snapshot":
        expected = {OTHER_NAMES.get(p, p) for p in expected}
    assert expected - actual == set()


@pytest.mark.parametrize("name", sorted({*PROCEDURES} - {*job.EXCEPTIONS}))
def test_the_job_has_the_procedure(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        job.parse_arguments([name, "--help"])
    words = capsys.readouterr().out.replace("[", " ").replace("]", " ").split()
    actual = {word for word in words if word.startswith("--")} - {"--help"}
    expected = {
        "--plan" if p == DRY_RUN else job.flag_of(p) for p in parameters_of(PROCEDURES[name])
    }
    assert actual == {*expected, "--table"}


@pytest.mark.parametrize("name", sorted({*PROCEDURES} - {*NO_COMMAND}))
def test_the_command_line_has_the_procedure(name: str) -> None:
    command = commands()[COMMANDS.get(name, name.replace("_", "-"))]
    actual = {parameter.name for parameter in command.params}
    names = {DRY_RUN: "plan", **OTHER_NAMES, **OF_ONE}
    expected = {names.get(p, p) for p in parameters_of(PROCEDURES[name]) - {*WITHOUT_EFFECT}}
    assert expected - actual == set()


def test_no_exception_is_out_of_date() -> None:
    maintain = {n.replace("-", "_") for n in commands()} - {"register"}
    assert maintain == {*PROCEDURES} - {*NO_COMMAND} - {*COMMANDS}
    assert {*job.NAMES} == {*PROCEDURES} - {*job.EXCEPTIONS}
    every = set().union(*map(parameters_of, PROCEDURES.values()))
    assert {*WITHOUT_EFFECT, *OTHER_NAMES, *OF_ONE} <= every
