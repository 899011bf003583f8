"""What tools ask: our catalog and Java's give the same answer about the same metadata."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.catalog import Catalog

from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle

pytestmark = pytest.mark.nightly

CATALOGS = ("lake", "java_hadoop")
T = "{c}.asked.t"
NAME = re.compile("|".join(CATALOGS))
# Java has the size in memory of the rows, and we have the size of the files
SIZE = re.compile(r"\b\d+ bytes\b")

STATEMENTS = (
    "SHOW TABLES IN {c}.asked",
    "SHOW TABLES IN {c}.asked LIKE 'p*'",
    "SHOW TABLE EXTENDED IN {c}.asked LIKE 't'",
    "SHOW TABLE EXTENDED IN {c}.asked LIKE 't' PARTITION (p = 'a')",
    f"DESCRIBE TABLE {T}",
    f"DESCRIBE TABLE EXTENDED {T}",
    f"DESCRIBE TABLE EXTENDED {T} AS JSON",
    f"DESCRIBE TABLE {T} id",
    f"DESCRIBE TABLE {T} PARTITION (p = 'a')",
    f"DESCRIBE TABLE {T}.snapshots",
    f"SHOW TBLPROPERTIES {T}",
    f"SHOW TBLPROPERTIES {T} ('key')",
    f"SHOW TBLPROPERTIES {T} ('none')",
    f"SHOW TBLPROPERTIES {T}.snapshots",
    "SHOW TBLPROPERTIES {c}.asked.missing",
    f"SHOW CREATE TABLE {T}",
    f"SHOW CREATE TABLE {T} AS SERDE",
    f"SHOW CREATE TABLE {T}.snapshots",
    f"SHOW COLUMNS IN {T}",
    f"SHOW COLUMNS IN {T}.snapshots",
    "SHOW NAMESPACES IN {c} LIKE 'ask*'",
    "SHOW NAMESPACES IN {c}.asked",
    "SHOW NAMESPACES IN {c}.none",
    "SHOW VIEWS IN {c}.asked",
    "DESCRIBE NAMESPACE EXTENDED {c}.asked",
    "DESCRIBE NAMESPACE {c}.none",
    f"SHOW PARTITIONS {T}",
    f"DROP VIEW IF EXISTS {T}",
    "DROP TABLE {c}.asked.missing",
    f"ANALYZE TABLE {T} COMPUTE STATISTICS",
    f"ALTER TABLE {T} ADD CONSTRAINT k CHECK (id > 0)",
    "DESCRIBE FUNCTION {c}.system.bucket",
    f"REFRESH TABLE {T}.snapshots",
)
CALLS: dict[str, Callable[[Catalog, str], Any]] = {
    "listTables": lambda catalog, name: catalog.listTables(f"{name}.asked"),
    "listColumns": lambda catalog, name: catalog.listColumns(f"{name}.asked.t"),
    "listColumns of snapshots": lambda catalog, name: catalog.listColumns(
        f"{name}.asked.t.snapshots"
    ),
    "getTable": lambda catalog, name: catalog.getTable(f"{name}.asked.t"),
    "getDatabase": lambda catalog, name: catalog.getDatabase(f"{name}.asked"),
    "tableExists": lambda catalog, name: [
        catalog.tableExists(f"{name}.{table}") for table in ("asked.t", "asked.t.files", "none.t")
    ],
    "databaseExists": lambda catalog, name: [
        catalog.databaseExists(f"{name}.{namespace}") for namespace in ("asked", "none")
    ],
    "isCached": lambda catalog, name: catalog.isCached(f"{name}.asked.t"),
    "functionExists": lambda catalog, name: catalog.functionExists(f"{name}.system.bucket"),
    "recoverPartitions": lambda catalog, name: catalog.recoverPartitions(f"{name}.asked.t"),
}


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as lake:
        lake.sql("create namespace java_hadoop.asked")
        lake.sql(
            "create table java_hadoop.asked.t (id int not null comment 'c', p string, d date) "
            "using iceberg partitioned by (p, bucket(4, id)) "
            "tblproperties ('key' = 'val', 'comment' = 'about')"
        )
        lake.sql("alter table java_hadoop.asked.t write ordered by id desc")
        lake.sql("alter table java_hadoop.asked.t set identifier fields id")
        lake.sql("insert into java_hadoop.asked.t values (1, 'a', current_date())")
        lake.sql("create table java_hadoop.asked.plain (id int) using iceberg")
        yield lake


def answer(ask: Callable[[], Any]) -> list[str]:
    """Return the rows of an answer as sorted texts, or its error, without the catalogs' names."""
    try:
        asked = ask()
        rows = asked if isinstance(asked, list) else [asked]
    except PySparkException as e:
        rows = [e.getCondition() or type(e).__name__]
    except Py4JJavaError as e:
        rows = [e.java_exception.getClass().getName()]
    return sorted(NAME.sub("CATALOG", SIZE.sub("N bytes", str(row))) for row in rows)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_has_javas_answer(lake: Oracle, statement: str) -> None:
    ours, javas = (
        answer(partial(collected, lake, statement.format(c=catalog))) for catalog in CATALOGS
    )
    assert ours == javas


def collected(lake: Oracle, statement: str) -> list[Any]:
    return lake.sql(statement).collect()


@pytest.mark.parametrize("call", CALLS)
def test_a_call_of_the_catalog_has_javas_answer(lake: Oracle, call: str) -> None:
    ours, javas = (answer(partial(CALLS[call], lake.spark.catalog, name)) for name in CATALOGS)
    assert ours == javas
