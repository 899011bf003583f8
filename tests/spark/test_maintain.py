"""jobs/maintain.py: the procedures of CALL from a shell; its output and its exit codes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark import Table, errors, load_catalog
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.spark.procedures.calls import PROCEDURES
from jobs import maintain as job
from jobs.maintain import NAMES, exit_code, main, parse_arguments, values_of
from tests.support.native_lake import sqlite_conf, sqlite_lake
from tests.support.spark_sessions import SPARK_HOME, spark_environment


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the folder of the catalog `tended`."""
    folder: Path = tmp_path_factory.mktemp("tended")
    with sqlite_lake(spark, folder, "tended"):
        yield folder


def a_table(folder: Path, name: str) -> Table:
    """Create a table with three small data files, each appended in its own snapshot."""
    uri = f"sqlite:///{folder / 'catalog.db'}"
    catalog = load_catalog("tended", type="sql", uri=uri, warehouse=str(folder))
    if not catalog.namespace_exists("db"):
        catalog.create_namespace("db")
    table = catalog.create_table(f"db.{name}", "id BIGINT")
    for number in range(3):
        table.append(pa.table({"id": [number]}))
    return table


def test_files_are_rewritten_after_a_plan(
    spark: SparkSession, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = a_table(folder, "files")
    call = ["rewrite-data-files", "--table", "tended.db.files", "--option", "min-input-files=2"]
    assert main([*call, "--plan"]) == 0
    output = capsys.readouterr().out
    assert re.search(r"^rewritten_data_files_count +3\b", output, re.MULTILINE)
    assert re.search(r"^1 +3 +\d+ +1 +3 too small$", output, re.MULTILINE)
    assert len(table.refresh().snapshots) == 3
    assert main(call) == 0
    assert re.search(r"^added_data_files_count +1\b", capsys.readouterr().out, re.MULTILINE)
    assert len(table.refresh().snapshots) == 4
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2]


def test_snapshots_expire(
    spark: SparkSession, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """tests/spark/test_dry_runs.py has the plans of all procedures."""
    table = a_table(folder, "expired")
    later = ("--older-than", "2099-01-01", "--retain-last", "1")
    assert main(["expire_snapshots", "--table", "tended.db.expired", *later]) == 0
    assert "deleted_manifest_lists_count" in capsys.readouterr().out
    assert len(table.refresh().snapshots) == 1


def test_parameters_are_those_of_call() -> None:
    for name in NAMES:
        given = {**PROCEDURES[name].required, **PROCEDURES[name].optional}
        types = {p: t for p, t in given.items() if p not in ("table", "dry_run")}
        written = {
            "map<string,string>": "a=b=c",
            "boolean": "false",
            "int": "3",
            "bigint": "3",
            "array<bigint>": "3",
            "array<string>": "x",
            "timestamp": "2026-01-31T12:00:00+01:00",
            "string": "x",
        }
        expected = {
            "map<string,string>": {"a": "b=c"},
            "boolean": False,
            "int": 3,
            "bigint": 3,
            "array<bigint>": [3],
            "array<string>": ["x"],
            "timestamp": 1_769_857_200_000,
            "string": "x",
        }
        argv = [name, "--table", "t"]
        for parameter, type_ in types.items():
            flag = "--option" if parameter == "options" else f"--{parameter.replace('_', '-')}"
            argv += [flag, written[type_]]
        values = values_of(PROCEDURES[name], parse_arguments(argv))
        assert values == {"table": "t", **{p: expected[t] for p, t in types.items()}}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--table", "tended.db.none"], "NoSuchTableError"),
        (["--table", "tended.db.refused", "--option", "no=1"], "has no option 'no'"),
        (["--table", "/nowhere/t"], "Error"),
    ],
)
def test_a_request_that_cannot_be_carried_out_is_2(
    spark: SparkSession,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    message: str,
) -> None:
    if "tended.db.refused" in more:
        a_table(folder, "refused")
    assert main(["rewrite_data_files", *more]) == 2
    assert message in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidRequestError("x"), 2),
        (errors.NoSuchTableError("x"), 2),
        (errors.CommitConflictError("x"), 3),
        (errors.ConcurrentChangeError("x"), 3),
        (errors.CommitStateUnknownError("x"), 4),
        (errors.StorageError("x"), 1),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: IcebergError, code: int) -> None:
    assert exit_code(error) == code


def test_bad_arguments_are_2(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (
        ["no_such"],
        ["rewrite_data_files"],
        ["add_files", "--table", "t"],
        ["ancestors_of", "--table", "t", "--plan"],
        ["create_changelog_view", "--table", "t"],
        ["rewrite_data_files", "--table", "t", "--option", "x"],
    ):
        with pytest.raises(SystemExit) as raised:
            main(argv)
        assert raised.value.code == 2
    assert "'x' is not KEY=VALUE" in capsys.readouterr().err


@pytest.mark.nightly
def test_spark_submit_runs_it_with_the_catalog_of_its_configuration(tmp_path: Path) -> None:
    table = a_table(tmp_path, "submitted")
    conf = sqlite_conf("tended", tmp_path)
    settings = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    submit = [str(SPARK_HOME / "bin/spark-submit"), "--master", "local[1]", *settings]
    call = [job.__file__, "rewrite_manifests", "--table", "tended.db.submitted"]
    done = subprocess.run(
        [*submit, *call],
        env=spark_environment(),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^rewritten_manifests_count +3\b", done.stdout, re.MULTILINE), done.stdout
    assert len(table.refresh().snapshots) == 4
