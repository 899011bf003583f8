"""The messages and exit codes of commands that fail."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException

import iceberg_pyspark as ice
from iceberg_pyspark.command_line.group import ExitCode, exit_code_of, options_first
from iceberg_pyspark.command_line.invocation import Invocation
from iceberg_pyspark.command_line.terminal_session import spark_errors
from iceberg_pyspark.errors import (
    CatalogError,
    CatalogUnavailableError,
    CommitConflictError,
    CommitStateUnknownError,
    ConcurrentChangeError,
    InvalidRequestError,
    NoSuchTableError,
    NotAuthorizedError,
    StorageError,
    TableAlreadyExistsError,
    TableRecreatedError,
    UnsupportedFeatureError,
)
from jobs import ingest, maintain
from tests.support.documentation import DOCS
from tests.unit.command_line.conftest import Run


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (("schema", "db.x"), 3, "table db.x is not in catalog"),
        (("list", "nowhere"), 3, "namespace nowhere is not in catalog"),
        (("create", "table", "db.t", "--schema", "id INT"), 4, "db.t"),
        (("scan", "db.t", "--filter", "id >"), 2, "id >"),
        (("scan", "db.t", "--columns", "nothing"), 2, "nothing"),
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
    assert answer.code == 2
    assert "--warehouse" in answer.errors
    assert not (tmp_path / "iceberg-warehouse").exists()


def test_a_property_without_its_value_is_not_repeated(run: Run) -> None:
    assert "hush-hush" not in run("list", "--property", "hush-hush").errors


CODES: Sequence[tuple[BaseException, ExitCode]] = (
    (StorageError("why"), ExitCode.FAILED),
    (CatalogError("why"), ExitCode.FAILED),
    (OSError("why"), ExitCode.FAILED),
    (RuntimeError("why"), ExitCode.FAILED),
    (InvalidRequestError("why"), ExitCode.WRONG_REQUEST),
    (UnsupportedFeatureError("why"), ExitCode.WRONG_REQUEST),
    (NoSuchTableError("why"), ExitCode.NOT_FOUND),
    (TableRecreatedError("why"), ExitCode.NOT_FOUND),
    (TableAlreadyExistsError("why"), ExitCode.ALREADY_EXISTS),
    (NotAuthorizedError("why"), ExitCode.NOT_AUTHORIZED),
    (CatalogUnavailableError("why"), ExitCode.UNAVAILABLE),
    (CommitConflictError("why"), ExitCode.CONFLICT),
    (ConcurrentChangeError("why"), ExitCode.CONFLICT),
    (CommitStateUnknownError("why"), ExitCode.UNKNOWN),
    (KeyboardInterrupt(), ExitCode.INTERRUPTED),
)


@pytest.mark.parametrize(("error", "code"), CODES, ids=lambda value: type(value).__name__)
def test_the_command_and_the_jobs_end_with_one_code(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: ExitCode,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    text = str(error)
    monkeypatch.setattr(Invocation, "table", fail)
    answer = run("maintain", "rewrite-manifests", "db.t")
    assert answer.code == code
    assert text in answer.errors
    for job, start in ((maintain, "install"), (ingest, "read_input")):
        monkeypatch.setattr(job, "SparkSession", MagicMock())
        monkeypatch.setattr(job, start, fail)
    with pytest.raises(SystemExit) as ended:
        maintain.app(["rewrite-manifests", "lake.db.t"])
    assert ended.value.code == code
    assert text in capsys.readouterr().err
    assert ingest.main(["--from", "csv", "/in", "--to", "db.t"]) == code
    assert text in capsys.readouterr().err


def test_every_code_is_tried() -> None:
    others = {ExitCode.DONE, ExitCode.DAMAGED}
    assert {code for _, code in CODES} == {*ExitCode} - others


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (AnalysisException("no such column"), ExitCode.WRONG_REQUEST),
        (ParseException("no such column"), ExitCode.WRONG_REQUEST),
        (PySparkException("no such column"), ExitCode.FAILED),
        (
            PySparkException("no such column\n(iceberg_pyspark.errors.CommitConflictError)"),
            ExitCode.CONFLICT,
        ),
    ],
)
def test_error_of_spark_has_the_exit_code_of_a_wrong_request(
    capsys: pytest.CaptureFixture[str], error: Exception, code: ExitCode
) -> None:
    def work() -> None:
        with spark_errors():
            raise error

    assert exit_code_of(work) == code
    assert capsys.readouterr().err == "error: no such column\n"


def test_every_code_is_documented() -> None:
    page = (DOCS / "guide" / "command-line.md").read_text("utf-8")
    assert [int(c) for c in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)] == list(ExitCode)


def test_arguments_after_two_dashes_are_kept() -> None:
    options = ({"--uri"}, {"--json"})
    arguments = ["a", "--uri=x", "--", "--json"]
    assert options_first(arguments, *options) == ["--uri=x", "a", "--", "--json"]
    assert options_first(["a", "--uri"], *options) == ["--uri", "a"]
