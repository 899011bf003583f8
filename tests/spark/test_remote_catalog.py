"""A REST catalog as Spark's own: the tables that statements load, and the command line's view."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from iceberg_pyspark import install
from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.command_line.application import app
from tests.support.http_server import Reply, http_server
from tests.support.rest_answers import configured

PREFIX = "spark.sql.catalog.spark_catalog"


@pytest.fixture
def session(spark: SparkSession, rest_uri: str) -> Iterator[SparkSession]:
    new_session = spark.newSession()
    new_session.conf.set(PREFIX, "iceberg_pyspark")
    new_session.conf.set(f"{PREFIX}.type", "rest")
    new_session.conf.set(f"{PREFIX}.uri", rest_uri)
    installed = install(new_session)
    new_session.sql("CREATE NAMESPACE remote")
    yield new_session
    new_session.sql("DROP NAMESPACE remote CASCADE")
    installed.uninstall()


@pytest.mark.nightly
def test_statement_loads_a_table_once_and_others_see_its_change(
    session: SparkSession, rest_uri: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loads: list[str] = []
    load = RestCatalog.load_table

    def counted(self: RestCatalog, identifier: TableIdentifier) -> LoadedTable:
        loads.append(str(identifier))
        return load(self, identifier)

    monkeypatch.setattr(RestCatalog, "load_table", counted)
    session.sql("CREATE TABLE remote.ice (id INT, v STRING) USING iceberg")
    session.sql("CREATE TABLE remote.plain (id INT) USING parquet")
    session.sql("INSERT INTO remote.ice VALUES (1, 'a'), (2, 'b')")
    session.sql("INSERT INTO remote.plain VALUES (2)")
    session.sql("REFRESH TABLE remote.ice")
    loads.clear()
    joined = (
        "SELECT a.v FROM remote.ice a JOIN remote.ice b USING (id) JOIN remote.plain USING (id)"
    )
    assert [row.v for row in session.sql(joined).collect()] == ["b"]
    assert loads.count("remote.ice") == 1
    session.sql("DELETE FROM remote.ice WHERE id = 1")
    assert session.table("remote.ice").count() == 1
    assert {row.tableName for row in session.sql("SHOW TABLES IN remote").collect()} == {
        "ice", "plain"
    }  # fmt: skip

    def command(*arguments: str) -> object:
        done = CliRunner().invoke(app, ["--uri", rest_uri, "--json", *arguments])
        assert done.exit_code == 0, done.stderr
        return json.loads(done.stdout)

    monkeypatch.chdir(tmp_path)
    assert command("list", "remote") == [{"name": "remote.ice", "kind": "table"}]
    assert command("scan", "remote.ice") == [{"id": 2, "v": "b"}]
    assert command("properties", "set", "table", "remote.ice", "team", "blue")
    session.sql("REFRESH TABLE remote.ice")
    properties = {r.key: r.value for r in session.sql("SHOW TBLPROPERTIES remote.ice").collect()}
    assert properties["team"] == "blue"


class Login:
    """A class of the user's own that authenticates requests."""

    def __init__(self, team: str) -> None:
        self.team = team

    def headers(self, method: str, url: str, body: bytes) -> Mapping[str, str]:
        return {"X-Team": self.team}

    def renew(self) -> bool:
        return False


def test_the_configuration_of_a_session_names_a_class_that_authenticates(
    spark: SparkSession,
) -> None:
    session, prefix = spark.newSession(), "spark.sql.catalog.own_login"
    with http_server(configured(lambda _: Reply(200, {"namespaces": [["db"]]}))) as server:
        session.conf.set(prefix, "iceberg_pyspark")
        session.conf.set(f"{prefix}.uri", server.uri)
        session.conf.set(f"{prefix}.auth.type", "custom")
        session.conf.set(f"{prefix}.auth.impl", f"{__name__}.Login")
        session.conf.set(f"{prefix}.auth.custom.team", "data")
        installed = install(session)
        names = [row[0] for row in session.sql("SHOW NAMESPACES IN own_login").collect()]
        installed.uninstall()
        assert names == ["db"]
        assert {r.headers.get("x-team") for r in server.requests} == {"data"}
