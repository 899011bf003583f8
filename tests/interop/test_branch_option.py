"""Reads with the option `branch` through our catalog and through Java's catalog are equal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.readings import INTERPRETED_QUERY, java_rows
from tests.support.rows import spark_rows
from tests.support.spark_settings import configured

pytestmark = pytest.mark.nightly

PLAIN, PARTITIONED = "optional.plain", "optional.partitioned"
EACH = pytest.mark.parametrize("table", [PARTITIONED, PLAIN])


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as lake:
        lake.sql("create namespace java_hadoop.optional")
        make(lake, PARTITIONED)
        yield lake


def make(lake: Oracle, table: str) -> None:
    """Create a table, unless another test has created it, whose branches have different rows."""
    name = f"java_hadoop.{table}"
    if lake.spark.catalog.tableExists(name):
        return
    clauses = "partitioned by (bucket(4, id))" if table == PARTITIONED else ""
    lake.sql(f"create table {name} (id bigint, g int) using iceberg {clauses}")
    lake.sql(f"insert into {name} select id, id % 3 from range(20)")
    for ref in ("branch b", "branch c", "tag g"):
        lake.sql(f"alter table {name} create {ref}")
    lake.sql(f"insert into {name}.branch_b select id, id % 3 from range(100, 120)")
    lake.sql(f"delete from {name}.branch_b where id in (3, 101)")
    lake.sql(f"alter table {name} rename column g to h")
    lake.sql(f"insert into {name} values (1000, 1)")


def read(lake: Oracle, catalog: str, name: str, options: dict[str, Any]) -> DataFrame:
    return lake.spark.read.options(**options).table(f"{catalog}.{name}")


@EACH
@pytest.mark.parametrize(
    ("place", "options"),
    [
        ("", {"branch": "b"}),
        ("", {"BRANCH": "c"}),
        ("", {"branch": "main"}),
        (".branch_b", {"branch": "b"}),
        ("", {"branch": "b", "versionAsOf": "b"}),
        ("", {"versionAsOf": "g"}),
        (".files", {"branch": "b"}),
        (".entries", {"branch": "b"}),
    ],
)
def test_the_same_rows_and_columns(
    lake: Oracle, table: str, place: str, options: dict[str, Any]
) -> None:
    make(lake, table)
    ours, javas = (read(lake, c, table + place, options) for c in ("lake", "java_hadoop"))
    if place in (".files", ".entries"):
        ours, javas = (f.select("readable_metrics.id") for f in (ours, javas))
    assert ours.columns == javas.columns
    assert spark_rows(ours.collect()) == java_rows(lake, javas)


@EACH
def test_the_same_queries(lake: Oracle, table: str) -> None:
    make(lake, table)
    queries = (
        "select count(*), min(id), max(id) from v_b",
        "select h, count(*) from v_b where id > 50 group by h",
        "select b.id, c.h from v_b b join v_c c on b.id = c.id",
        "select id from v_b except select id from v_main",
        "select h, count(*) from v_b group by h union all select h, count(*) from v_c group by h",
    )
    actual = []
    for catalog in ("lake", "java_hadoop"):
        for name in ("b", "c", "main"):
            read(lake, catalog, table, {"branch": name}).createOrReplaceTempView(f"v_{name}")
        with configured(lake.spark, INTERPRETED_QUERY if catalog == "java_hadoop" else {}):
            actual.append([spark_rows(lake.sql(query).collect()) for query in queries])
    for query, ours, javas in zip(queries, *actual, strict=True):
        assert ours == javas, query
        assert ours, query


@pytest.mark.parametrize(
    ("place", "options"),
    [
        ("", {"branch": "nope"}),
        ("", {"branch": ""}),
        (".branch_c", {"branch": "b"}),
        (".branch_c", {"branch": "main"}),
        (".tag_g", {"branch": "b"}),
        ("", {"branch": "b", "versionAsOf": "c"}),
        ("", {"branch": "b", "snapshot-id": "1"}),
        ("", {"tag": "g"}),
        ("", {"snapshot-id": "1"}),
        ("", {"as-of-timestamp": "1"}),
        (".snapshots", {"branch": "b"}),
    ],
)
def test_branch_option_that_java_refuses_is_refused(
    lake: Oracle, place: str, options: dict[str, Any]
) -> None:
    for catalog in ("lake", "java_hadoop"):
        with pytest.raises((PySparkException, Py4JJavaError)):
            read(lake, catalog, PARTITIONED + place, options).collect()


def test_an_audited_branch_gives_way_to_the_option(lake: Oracle) -> None:
    name = f"java_hadoop.{PARTITIONED}"
    lake.sql(f"alter table {name} set tblproperties ('write.wap.enabled'='true')")
    lake.spark.conf.set("spark.wap.branch", "c")
    try:
        for options in ({}, {"branch": "b"}, {"branch": "main"}):
            ours, javas = (read(lake, c, PARTITIONED, options) for c in ("lake", "java_hadoop"))
            assert spark_rows(ours.collect()) == java_rows(lake, javas)
    finally:
        lake.spark.conf.unset("spark.wap.branch")
