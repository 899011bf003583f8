"""The locations that a table may read on both paths: its own store, unless an option allows others.

Without this limit, whoever can write a table's metadata could make a reader open any file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark import Table
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.spec.manifests import DataFile
from tests.support.file_commits import commit_append
from tests.support.frames import create_path_table, load, refusal
from tests.support.native_lake import sqlite_lake
from tests.support.parameters import cases
from tests.support.read_paths import Read, ReadPath
from tests.support.spark_settings import configured

ALLOW, RESTRICT = "read.allow-outside-locations", "read.restrict-locations"
SESSION = "spark.sql.iceberg."


def borrow(table: Table, other: Table, spelled: str = "{folder}/data/{name}") -> None:
    """Append another table's only data file to a table, as `add_files` does."""
    (task,) = other.scan().plan_files()
    name = Path(task.file_path).name
    folder = other.location.removeprefix("file:")
    added = DataFile(
        file_path=spelled.format(folder=folder, table=table.location, name=name),
        record_count=1,
        file_size_in_bytes=task.file_size_in_bytes,
    )
    commit_append(table.catalog, table.loaded, table.io, [added])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return create_path_table(tmp_path / "t", "id BIGINT", [{"id": 0}])


@pytest.fixture
def other(tmp_path: Path) -> Table:
    return create_path_table(tmp_path / "other", "id BIGINT", [{"id": 7}])


@cases(
    "spelled",
    fast=["{table}/../other/data/{name}"],
    nightly=["{folder}/data/{name}", "file://{folder}/data/{name}"],
)
def test_a_file_beside_the_table_is_read_unless_restricted(
    spark: SparkSession, read_path: ReadPath, read: Read, table: Table, other: Table, spelled: str
) -> None:
    borrow(table, other, spelled)
    assert read(table.location).rows == [(0,), (7,)]
    restricted = load(spark, table.location, {RESTRICT: "true"})
    error, text = refusal(restricted.collect)
    assert error == "LocationRefusedError"
    for words in ("may only read files under", table.location, ALLOW, RESTRICT):
        assert words in text
    if read_path == "native":
        with configured(spark, {SESSION + RESTRICT: "true"}):
            assert "may only read" in refusal(load(spark, table.location).collect)[1]
            again = load(spark, table.location, {RESTRICT: "false"})
            assert sorted(again.collect()) == [(0,), (7,)]


@pytest.mark.nightly
def test_a_session_restricts_also_what_the_portable_path_reads(
    spark: SparkSession, read_path: ReadPath, tmp_path: Path
) -> None:
    """A condition on a struct field makes Python workers read the table."""
    if read_path == "portable":
        return
    rows = [{"id": 0, "s": {"x": 1}}]
    table = create_path_table(tmp_path / "t", "id BIGINT, s STRUCT<x: INT>", rows)
    borrow(table, create_path_table(tmp_path / "other", "id BIGINT, s STRUCT<x: INT>", rows))
    filtered = {"filter": "s.x = 1"}
    assert load(spark, table.location, filtered).count() == 2
    with configured(spark, {SESSION + RESTRICT: "true"}):
        assert "may only read" in refusal(load(spark, table.location, filtered).collect)[1]
        again = load(spark, table.location, {**filtered, RESTRICT: "false"})
        assert len(again.collect()) == 2


def test_a_file_in_another_store_is_refused_unless_allowed(
    spark: SparkSession, read_path: ReadPath, table: Table, other: Table
) -> None:
    borrow(table, other, "hdfs://127.0.0.1:1/{name}")
    error, text = refusal(load(spark, table.location).collect)
    assert error == "LocationRefusedError"
    for words in ("may only read files of its own store, file://", "hdfs://127.0.0.1:1/", ALLOW):
        assert words in text
    allowed = load(spark, table.location, {ALLOW: "true"})
    assert "may only read" not in failure(allowed)
    if read_path == "native":
        with configured(spark, {SESSION + ALLOW: "true"}):
            assert "may only read" not in failure(load(spark, table.location))
            again = load(spark, table.location, {ALLOW: "false"})
            assert "may only read" in refusal(again.collect)[1]


def failure(frame: DataFrame) -> str:
    """Return the message of the error that the read raises."""
    with pytest.raises((PySparkException, Py4JJavaError)) as caught:
        frame.collect()
    return str(caught.value)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("lake"), "lake") as session:
        yield session


@pytest.mark.nightly
def test_a_catalogs_tables_are_read_as_session_and_catalog_say(
    spark: SparkSession, lake: IcebergSession, other: Table
) -> None:
    spark.sql("create table lake.db.t as select 0L id")
    borrow(lake.table("lake.db.t"), other)
    query = "select * from lake.db.t"
    assert sorted(spark.sql(query).collect()) == [(0,), (7,)]
    with configured(spark, {SESSION + RESTRICT: "true"}):
        for statement in (
            query,
            "delete from lake.db.t where id = 7",
            "select * from lake.db.t.files",
        ):
            if statement.endswith("files"):
                assert spark.sql(statement).count() == 2
            else:
                with pytest.raises(PySparkException, match="may only read files under"):
                    spark.sql(statement).collect()
    assert sorted(spark.sql(query).collect()) == [(0,), (7,)]
    spark.sql("delete from lake.db.t where id = 7")
    assert sorted(spark.sql(query).collect()) == [(0,)]
    assert Path(other.location.removeprefix("file:"), "data").is_dir()


def test_data_goes_to_the_tables_own_store_only(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    set_path = "alter table lake.db.moved set tblproperties ('write.data.path'='{}')"
    spark.sql("create table lake.db.moved (id bigint)")
    spark.sql(set_path.format(tmp_path / "d"))
    spark.sql("insert into lake.db.moved values (1)")
    assert list((tmp_path / "d").glob("*.parquet"))
    assert spark.table("lake.db.moved").count() == 1


@cases(
    "statement",
    fast=["create table lake.db.new"],
    nightly=["replace table lake.db.old", "insert into lake.db.old"],
)
def test_a_query_writes_to_another_store_only_where_the_session_allows_it(
    spark: SparkSession, lake: IcebergSession, statement: str
) -> None:
    """No server answers at the location, so an allowed write fails later with another error."""
    properties = "tblproperties ('write.data.path'='hdfs://127.0.0.1:1/d')"
    spark.sql(f"create or replace table lake.db.old (id bigint) {properties}")
    if statement.startswith("insert"):
        properties = ""
    query = f"{statement} {properties} {'' if not properties else 'as'} select 1L id"
    before = lake.table("lake.db.old").metadata
    with pytest.raises(PySparkException, match="may only write files under"):
        spark.sql(query)
    with (
        configured(spark, {SESSION + ALLOW: "true", SESSION + RESTRICT: "true"}),
        pytest.raises(PySparkException, match="are both true"),
    ):
        spark.sql(query)
    with configured(spark, {SESSION + ALLOW: "true"}):
        with pytest.raises((PySparkException, Py4JJavaError)) as caught:
            spark.sql(query)
        assert "may only write" not in str(caught.value)
    assert lake.table("lake.db.old").metadata == before
    assert not spark.catalog.tableExists("lake.db.new")
