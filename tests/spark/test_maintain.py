"""jobs/maintain.py: the procedures of CALL from a shell; its output and its exit codes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer
from pyspark.sql import SparkSession

from iceberg_pyspark import Table, load_catalog
from iceberg_pyspark.command_line.maintain import add_procedures
from iceberg_pyspark.table.maintenance.procedure_parts import Interface
from iceberg_pyspark.table.maintenance.procedures import PROCEDURES
from jobs import maintain as job
from tests.support.native_lake import sqlite_conf, sqlite_lake
from tests.support.spark_sessions import SPARK_HOME, spark_environment


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the folder of the catalog `tended`."""
    folder: Path = tmp_path_factory.mktemp("tended")
    with sqlite_lake(spark, folder, "tended"):
        yield folder


def main(words: list[str]) -> int:
    """Run the job in this process, so that it uses the Spark session of the tests."""
    with pytest.raises(SystemExit) as ended:
        job.app(words)
    return int(ended.value.code or 0)


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
    call = ["rewrite-data-files", "tended.db.files", "--option", "min-input-files=2"]
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
    assert main(["expire-snapshots", "tended.db.expired", *later]) == 0
    assert "deleted_manifest_lists_count" in capsys.readouterr().out
    assert len(table.refresh().snapshots) == 1


WRITTEN = {
    "map<string,string>": ("a=b=c", {"a": "b=c"}),
    "boolean": (None, True),
    "int": ("3", 3),
    "bigint": ("3", 3),
    "array<bigint>": ("3", [3]),
    "array<string>": ("x", ["x"]),
    "timestamp": ("2026-01-31T12:00:00+01:00", 1_769_857_200_000),
    "string": ("x", "x"),
}
"""A word of each type, and its value."""


@pytest.mark.parametrize("name", sorted({*PROCEDURES} - {"create_changelog_view"}))
def test_words_become_arguments(name: str) -> None:
    given: list[dict[str, Any]] = []
    app = typer.Typer()
    app.callback()(lambda: None)
    interfaces = (Interface.ALL, Interface.SPARK)

    def run(context: typer.Context, procedure: object, arguments: Any, progress: object) -> None:
        given.append(arguments)
        raise typer.Exit

    add_procedures(app, [PROCEDURES[name]], interfaces, run)
    words = [name.replace("_", "-")]
    expected = {}
    for p in PROCEDURES[name].parameters:
        if p.interface not in interfaces:
            continue
        word, expected[p.name] = WRITTEN[p.type]
        if p.choices:
            word = expected[p.name] = p.choices[-1]
        words += [w for w in (None if p.is_required else p.flag, word) if w is not None]
    app(words, standalone_mode=False)
    assert given == [expected]


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (["tended.db.none"], 3, "table db.none is not in catalog"),
        (["tended.db.refused", "--option", "no=1"], 2, "has no option 'no'"),
        (["/nowhere/t"], 2, "/nowhere/t"),
    ],
)
def test_a_request_that_cannot_be_carried_out_has_its_exit_code(
    spark: SparkSession,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    code: int,
    message: str,
) -> None:
    if "tended.db.refused" in more:
        a_table(folder, "refused")
    assert main(["rewrite-data-files", *more]) == code
    assert message in capsys.readouterr().err


def test_bad_arguments_are_2(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (
        ["no-such"],
        ["rewrite-data-files"],
        ["add-files", "t"],
        ["ancestors-of", "t", "--plan"],
        ["create-changelog-view", "t"],
        ["rewrite-data-files", "t", "--option", "x"],
    ):
        assert main(argv) == 2
    assert "expected key=value" in capsys.readouterr().err


@pytest.mark.nightly
def test_spark_submit_runs_it_with_the_catalog_of_its_configuration(tmp_path: Path) -> None:
    table = a_table(tmp_path, "submitted")
    conf = sqlite_conf("tended", tmp_path)
    settings = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    submit = [str(SPARK_HOME / "bin/spark-submit"), "--master", "local[1]", *settings]
    call = [job.__file__, "rewrite-manifests", "tended.db.submitted"]
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
