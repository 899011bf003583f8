"""The messages and exit codes of commands that fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.command_line.exit_codes import ExitCode, code_of
from iceberg_pyspark.command_line.group import options_first
from iceberg_pyspark.errors import (
    CatalogUnavailableError,
    CommitConflictError,
    CommitStateUnknownError,
    ConcurrentChangeError,
    NotAuthorizedError,
    StorageError,
    TableRecreatedError,
)
from tests.support.documentation import DOCS
from tests.unit.command_line.conftest import Run


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (("schema", "db.x"), 3, "table db.x is not in catalog"),
        (("list", "nowhere"), 3, "namespace nowhere is not in catalog"),
        (("create", "table", "db.t", "--schema", "id INT"), 4, "db.t"),
        (("scan", "db.t", "--filter", "id >"), 1, "id >"),
        (("scan", "db.t", "--columns", "nothing"), 1, "nothing"),
        (("scan", "db.t", "--limit", "-1"), 2, "iceberg-py scan --help"),
        (("schema",), 2, "iceberg-py schema --help"),
        (("sing",), 2, "iceberg-py --help"),
        (("list", "--property", "secret"), 2, "expected key=value"),
        (("sql", "--file", "nowhere.sql"), 1, "nowhere.sql"),
        (("drop", "namespace", "db"), 4, "db"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_an_error_is_one_line_and_a_code(
    run: Run, table: ice.Table, command: tuple[str, ...], code: int, message: str
) -> None:
    answer = run(*command)
    assert answer.code == code
    assert answer.text == ""
    assert re.fullmatch(r"error: [^\n]+\n", answer.errors)
    assert message in answer.errors


def test_an_unconfigured_default_makes_no_folder(run: Run, tmp_path: Path) -> None:
    answer = run("list", warehouse=None)
    assert answer.code == 1
    assert "--warehouse" in answer.errors
    assert not (tmp_path / "iceberg-warehouse").exists()


def test_a_property_without_its_value_is_not_repeated(run: Run) -> None:
    assert "hush-hush" not in run("list", "--property", "hush-hush").errors


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TableRecreatedError(""), ExitCode.NOT_FOUND),
        (NotAuthorizedError(""), ExitCode.NOT_AUTHORIZED),
        (CatalogUnavailableError(""), ExitCode.UNAVAILABLE),
        (CommitConflictError(""), ExitCode.CONFLICT),
        (ConcurrentChangeError(""), ExitCode.CONFLICT),
        (CommitStateUnknownError(""), ExitCode.UNKNOWN),
        (StorageError(""), ExitCode.FAILED),
    ],
)
def test_codes_of_errors(error: Exception, code: ExitCode) -> None:
    assert code_of(error) is code


def test_every_code_is_documented() -> None:
    page = (DOCS / "guide" / "command-line.md").read_text("utf-8")
    assert [int(c) for c in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)] == list(ExitCode)


def test_what_stands_behind_two_dashes_stays() -> None:
    options = ({"--uri"}, {"--json"})
    arguments = ["a", "--uri=x", "--", "--json"]
    assert options_first(arguments, *options) == ["--uri=x", "a", "--", "--json"]
    assert options_first(["a", "--uri"], *options) == ["--uri", "a"]
