"""`iceberg-py sql` runs in the Spark session of these tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from iceberg_pyspark import install
from iceberg_pyspark.command_line.application import app

Sql = Callable[..., Result]


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> Iterator[Sql]:
    settings = dict(spark.conf.getAll)
    catalog = f"commands-{tmp_path.name}"

    def run(*arguments: str, typed: str | None = None) -> Result:
        options = ("--catalog", catalog, "--property", f"warehouse={tmp_path}/w", "sql")
        return CliRunner().invoke(app, [*options, *arguments], input=typed)

    yield run
    spark.catalog.setCurrentCatalog("spark_catalog")
    install(spark).uninstall()
    for key in dict(spark.conf.getAll).keys() - settings.keys():
        spark.conf.unset(key)


def test_statements_run_in_the_catalog_and_errors_are_lines(sql: Sql, tmp_path: Path) -> None:
    file = tmp_path / "statements.sql"
    file.write_text("CREATE NAMESPACE db; CREATE TABLE db.t (id INT, v STRING);")
    assert sql("--file", str(file)).exit_code == 0
    done = sql("INSERT INTO db.t VALUES (1, 'a;b'), (2, NULL);\nSELECT * FROM db.t ORDER BY id")
    assert done.stdout.splitlines() == ["id  v", " 1  a;b", " 2  null"]
    done = sql("--json", typed="SELECT count(*) AS n FROM db.t; SHOW TABLES IN db")
    first, second = map(json.loads, done.stdout.splitlines())
    assert first == [{"n": 2}]
    assert second[0]["tableName"] == "t"
    assert len(sql("SELECT * FROM db.t", "--limit", "1").stdout.splitlines()) == 2
    refused = sql("SELECT * FROM db.nothing; SELECT 1")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: [TABLE_OR_VIEW_NOT_FOUND]")
    assert refused.stderr.count("\n") == 1
    ours = sql("SELECT * FROM db.t VERSION AS OF 1")
    assert (ours.exit_code, ours.stderr.count("\n")) == (1, 1)
    assert ours.stderr.startswith("error: ")
