"""Every command and option of PyIceberg's command exists here, with the same kind of value."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest
import typer
from pyiceberg.cli.console import run as pyiceberg_command

import iceberg_pyspark as ice
from iceberg_pyspark.command_line.application import app
from tests.unit.command_line.conftest import Run


def commands_of(group: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands_of(command, *path, name)


def options_of(command: Any) -> dict[str, Any]:
    return {name: p for p in command.params for name in p.opts if name.startswith("--")}


def argument_counts_of(command: Any) -> tuple[int, int]:
    """Return how many arguments a command needs, and how many it accepts."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    return sum(p.required for p in arguments), len(arguments)


OURS = dict(commands_of(typer.main.get_command(app)))
THEIRS = dict(commands_of(pyiceberg_command))


def test_both_commands_are_walked() -> None:
    assert ("properties", "remove", "namespace") in OURS.keys() & THEIRS.keys()
    assert "--warehouse" in options_of(OURS[()]).keys() & options_of(THEIRS[()]).keys()


@pytest.mark.parametrize("path", THEIRS, ids=lambda path: " ".join(path) or "pyiceberg")
def test_commands_of_pyiceberg_are_accepted(path: tuple[str, ...]) -> None:
    assert path in OURS
    assert argument_counts_of(OURS[path]) == argument_counts_of(THEIRS[path])
    # options of the command itself may follow any command
    ours = {**options_of(OURS[()]), **options_of(OURS[path])}
    for name, option in options_of(THEIRS[path]).items():
        assert name in ours, name
        assert ours[name].is_flag == option.is_flag, name
        assert ours[name].required == option.required, name


def test_the_version_alone(run: Run) -> None:
    assert run("version", warehouse=None).lines == [version("iceberg-pyspark")]
    as_json = run("version", "--output", "json", warehouse=None).json
    assert as_json == {"version": version("iceberg-pyspark")}


def test_a_verbose_error_has_its_traceback(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    assert run("--verbose", "true", "schema", "db.x").code == 3
    assert "NoSuchTableError" in caplog.text
    caplog.clear()
    assert run("schema", "db.x", "--verbose", "no").code == 3
    assert caplog.text == ""
    answer = run("schema", "db.x", "--verbose", "perhaps")
    assert answer.code == 2
    assert "'perhaps' is neither true nor false" in answer.errors


def test_words_in_any_case(run: Run, table: ice.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    refs = run("list-refs", "db.t", "--type", "BRANCH", "--verbose", "true", "--json")
    assert [r["name"] for r in refs.json] == ["main"]
    assert run("list", "--log-level", "DEBUG").code == 0
    monkeypatch.setenv("PYICEBERG_LOG_LEVEL", "loud")
    answer = run("list")
    assert answer.code == 2
    assert "loud" in answer.errors


def test_the_user_of_a_metastore(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: dict[str, str] = {}

    def load_catalog(name: str | None, **properties: str) -> None:
        opened.update(properties)
        raise ice.errors.CatalogUnavailableError("not here")

    monkeypatch.setattr("iceberg_pyspark.table.table_catalog.load_catalog", load_catalog)
    assert run("list", "--ugi", "me:staff").code == 6
    assert opened["ugi"] == "me:staff"
