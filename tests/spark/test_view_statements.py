"""Views that SQL creates, changes, lists and drops."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import SparkSession

from tests.support.native_lake import sqlite_lake
from tests.support.parameters import cases

CATALOG = "spark.sql.catalog.made"
HADOOP = {"": "iceberg_pyspark", ".type": "hadoop"}


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the folder of the catalog `made` with `made.db.t`; `plain` is a hadoop catalog."""
    folder = tmp_path_factory.mktemp("made")
    settings = {f"{CATALOG}.jdbc.schema-version": "V1"}
    settings |= {f"spark.sql.catalog.plain{key}": value for key, value in HADOOP.items()}
    settings["spark.sql.catalog.plain.warehouse"] = str(folder / "plain")
    for key, value in settings.items():
        spark.conf.set(key, value)
    with sqlite_lake(spark, folder, "made"):
        spark.sql("CREATE TABLE made.db.t (id INT NOT NULL, v STRING)")
        spark.sql("INSERT INTO made.db.t VALUES (1, 'a'), (2, 'b')")
        yield folder
    for key in settings:
        spark.conf.unset(key)


def rows(spark: SparkSession, query: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.sql(query).collect())


def listed(spark: SparkSession, statement: str) -> list[tuple[Any, ...]]:
    """Return the rows of SHOW VIEWS without the temporary views of other tests."""
    return [row for row in rows(spark, statement) if not row[2] or row[1] == "fleeting"]


def metadata(folder: Path, name: str) -> dict[str, Any]:
    newest = max((folder / "db" / name / "metadata").glob("*.gz.metadata.json"))
    document: dict[str, Any] = json.loads(gzip.decompress(newest.read_bytes()))
    return document


def test_a_view_is_created_replaced_and_dropped(spark: SparkSession, folder: Path) -> None:
    spark.sql(
        "CREATE VIEW made.db.v (n COMMENT 'one more', `W w`) COMMENT 'mine' "
        "TBLPROPERTIES ('k' = '1') AS SELECT id + 1, upper(v) AS u FROM made.db.t"
    )
    assert rows(spark, "SELECT * FROM made.db.v") == [(2, "A"), (3, "B")]
    assert spark.table("made.db.v").columns == ["n", "W w"]
    first = metadata(folder, "v")
    version = first["versions"][0]
    assert version["representations"][0] == {
        "type": "sql",
        "sql": "SELECT id + 1, upper(v) AS u FROM made.db.t",
        "dialect": "spark",
    }
    assert version["summary"] == {"engine-name": "spark", "engine-version": spark.version}
    assert first["properties"] == {
        "k": "1",
        "comment": "mine",
        "spark.query-column-names": "(id + 1),u",
        "create_engine_version": f"Spark {spark.version}",
        "engine_version": f"Spark {spark.version}",
    }
    fields = first["schemas"][0]["fields"]
    assert [(f["name"], f["required"], f.get("doc")) for f in fields] == [
        ("n", True, "one more"),
        ("W w", False, None),
    ]
    with pytest.raises(AnalysisException, match="VIEW_ALREADY_EXISTS"):
        spark.sql("CREATE VIEW made.db.v AS SELECT 1 AS other")
    spark.sql("CREATE VIEW IF NOT EXISTS made.db.v AS SELECT 1 AS other")
    assert metadata(folder, "v") == first
    spark.sql("create /* again */ or replace view made.db.v as select max(id) as m from made.db.t")
    assert rows(spark, "SELECT m FROM made.db.v") == [(2,)]
    second = metadata(folder, "v")
    assert (second["view-uuid"], second["current-version-id"]) == (first["view-uuid"], 2)
    assert second["properties"]["k"] == "1"
    spark.sql("DROP VIEW made.db.v")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("made.db.v")
    with pytest.raises(AnalysisException, match="VIEW_NOT_FOUND"):
        spark.sql("DROP VIEW made.db.v")
    spark.sql("DROP VIEW IF EXISTS made.db.v")
    spark.sql("CREATE OR REPLACE VIEW made.db.v AS SELECT 3 AS x")
    assert rows(spark, "SELECT * FROM made.db.v") == [(3,)]
    spark.sql("DROP VIEW made.db.v")


@pytest.mark.nightly
def test_names_of_a_query_are_those_of_the_session_that_created_it(
    spark: SparkSession, folder: Path
) -> None:
    spark.sql("USE made.db")
    spark.sql("CREATE VIEW short AS WITH a AS (SELECT * FROM t) SELECT id FROM a")
    spark.sql("CREATE VIEW above AS SELECT id * 2 AS twice FROM short")
    spark.sql("USE spark_catalog.default")
    spark.sql("CREATE VIEW made.db.elsewhere AS SELECT count(*) AS n FROM made.db.above")
    assert rows(spark, "SELECT * FROM made.db.above") == [(2,), (4,)]
    assert rows(spark, "SELECT * FROM made.db.elsewhere") == [(2,)]
    versions = [metadata(folder, name)["versions"][0] for name in ("short", "elsewhere")]
    assert [v.get("default-catalog") for v in versions] == [None, "spark_catalog"]
    assert [v["default-namespace"] for v in versions] == [["db"], ["default"]]
    for name in ("elsewhere", "above", "short"):
        spark.sql(f"DROP VIEW made.db.{name}")


def test_show_table_extended_lists_views_as_spark_lists_its_own(
    spark: SparkSession, folder: Path
) -> None:
    spark.sql("CREATE TABLE made.db.s_table AS SELECT 1 AS id")
    for namespace in ("made.db", "spark_catalog.default"):
        spark.sql(
            f"CREATE VIEW {namespace}.s_view (id COMMENT 'number', `a b`) COMMENT 'about' "
            "AS SELECT 1 AS id, array(struct('a' AS v)) AS s"
        )
    shown = "SHOW TABLE EXTENDED IN {} LIKE 's_v*'"
    [(namespace, *ours)] = rows(spark, shown.format("made.db"))
    [(_, *sparks)] = rows(spark, shown.format("spark_catalog.default"))
    assert (namespace, ours[:2]) == ("db", sparks[:2])
    for line in ("Table", "Type", "Comment", "View Text", "Schema"):
        [of_ours, of_sparks] = [
            re.findall(rf"^{line}: [^:]*(?=\n|$)(?:\n [^\n]*)*", information, re.MULTILINE)
            for information in (ours[-1], sparks[-1])
        ]
        assert of_ours == of_sparks != []
    assert "Provider" not in ours[-1]
    spark.sql("USE made.db")
    assert [row[1] for row in rows(spark, "SHOW TABLE EXTENDED LIKE 's_*'")] == [
        "s_table",
        "s_view",
    ]
    spark.sql("USE spark_catalog.default")
    for namespace in ("made.db", "spark_catalog.default"):
        spark.sql(f"DROP VIEW {namespace}.s_view")
    spark.sql("DROP TABLE made.db.s_table")


@pytest.mark.nightly
def test_columns_are_those_that_the_query_had_at_first(spark: SparkSession, folder: Path) -> None:
    spark.sql("CREATE TABLE made.db.grows AS SELECT 1 AS id, 'a' AS s")
    spark.sql("CREATE VIEW made.db.every AS SELECT * FROM made.db.grows")
    spark.sql("CREATE VIEW made.db.swapped (s, id) AS SELECT * FROM made.db.grows")
    spark.sql("ALTER TABLE made.db.grows ADD COLUMN n INT FIRST")
    for name in ("every", "swapped"):
        assert rows(spark, f"SELECT * FROM made.db.{name}") == [(1, "a")]
    spark.sql("ALTER TABLE made.db.grows DROP COLUMN s")
    for name in ("every", "swapped"):
        with pytest.raises(AnalysisException, match=rf"UNRESOLVED_COLUMN.*`{name}`.`s`"):
            spark.sql(f"SELECT * FROM made.db.{name}")
        spark.sql(f"DROP VIEW made.db.{name}")
    spark.sql("DROP TABLE made.db.grows")


def test_views_are_listed(spark: SparkSession, folder: Path) -> None:
    for name in ("one", "two"):
        spark.sql(f"CREATE VIEW made.db.{name} AS SELECT 1 AS x")
    spark.range(1).createOrReplaceTempView("fleeting")
    every = [("", "fleeting", True), ("db", "one", False), ("db", "two", False)]
    assert listed(spark, "SHOW VIEWS IN made.db") == every
    assert spark.sql("SHOW VIEWS IN made.db").columns == ["namespace", "viewName", "isTemporary"]
    assert listed(spark, "SHOW VIEWS FROM made.db LIKE 'o*|none'") == [("db", "one", False)]
    spark.sql("USE made.db")
    assert listed(spark, "show views") == every
    spark.sql("USE spark_catalog.default")
    assert listed(spark, "SHOW VIEWS") == [("", "fleeting", True)]
    assert listed(spark, "SHOW VIEWS IN plain.db") == [("", "fleeting", True)]
    assert rows(spark, "SHOW TABLES IN made.db LIKE 'one'") == []
    # A temporary view hides a catalog view of the same name.
    spark.sql("USE made.db")
    spark.sql("CREATE VIEW made.db.fleeting AS SELECT 2 AS x")
    spark.sql("DROP VIEW fleeting")
    assert rows(spark, "SELECT * FROM fleeting") == [(2,)]
    spark.sql("DROP VIEW fleeting")
    spark.sql("USE spark_catalog.default")
    assert listed(spark, "SHOW VIEWS IN made.db") == every[1:]
    for name in ("one", "two"):
        spark.sql(f"DROP VIEW made.db.{name}")


def test_views_are_altered(spark: SparkSession, folder: Path) -> None:
    spark.sql("CREATE VIEW made.db.before TBLPROPERTIES ('a' = '1', 'b' = '2') AS SELECT 1 AS x")
    spark.sql("ALTER VIEW made.db.before SET TBLPROPERTIES ('c' = '3', 'a' = '4')")
    spark.sql("ALTER VIEW made.db.before UNSET TBLPROPERTIES ('b')")
    with pytest.raises(PySparkException, match="has no property b; write UNSET TBLPROPERTIES IF"):
        spark.sql("ALTER VIEW made.db.before UNSET TBLPROPERTIES ('b')")
    spark.sql("ALTER VIEW made.db.before UNSET TBLPROPERTIES IF EXISTS ('b')")
    spark.sql("ALTER VIEW made.db.before AS SELECT 2 AS y")
    properties = metadata(folder, "before")["properties"]
    assert {k: v for k, v in properties.items() if len(k) == 1} == {"a": "4", "c": "3"}
    spark.sql("ALTER VIEW made.db.before RENAME TO made.db.after")
    assert rows(spark, "SELECT y FROM made.db.after") == [(2,)]
    spark.sql("ALTER VIEW made.db.after RENAME TO again")
    assert rows(spark, "SELECT y FROM made.db.again") == [(2,)]
    with pytest.raises(AnalysisException, match=r"VIEW_ALREADY_EXISTS.*db\.t"):
        spark.sql("ALTER VIEW made.db.again RENAME TO db.t")
    with pytest.raises(AnalysisException, match="VIEW_NOT_FOUND"):
        spark.sql("ALTER VIEW made.db.none AS SELECT 1 AS x")
    spark.sql("DROP VIEW made.db.again")


def test_location_of_a_view_is_not_a_property(spark: SparkSession, folder: Path) -> None:
    for name in ("first", "second"):
        spark.sql(
            f"CREATE OR REPLACE VIEW made.db.placed TBLPROPERTIES ('location' = '{folder}/{name}', "
            "'provider' = 'iceberg', 'k' = '1') AS SELECT 1 AS x"
        )
    first = [*(folder / "first" / "metadata").glob("*.gz.metadata.json")]
    [second] = (folder / "second" / "metadata").glob("*.gz.metadata.json")
    document = json.loads(gzip.decompress(second.read_bytes()))
    assert len(first) == 1
    assert document["location"] == f"{folder}/second"
    assert document["properties"].keys() & {"k", "location", "provider"} == {"k"}
    for key in ("location", "provider", "format-version", "spark.query-column-names"):
        for change in (f"SET TBLPROPERTIES ('{key}' = '1')", f"UNSET TBLPROPERTIES ('{key}')"):
            # Spark's parser refuses the first two itself in some of these statements.
            refusal = f"{key} is (not a property to change|a reserved table property)"
            with pytest.raises(PySparkException, match=refusal):
                spark.sql(f"ALTER VIEW made.db.placed {change}")
    spark.sql("DROP VIEW made.db.placed")


@cases(
    ("statement", "why"),
    fast=[
        ("CREATE VIEW made.db.w AS SELECT * FROM gone_soon", "the temporary view gone_soon"),
        ("CREATE VIEW made.db.w AS SELECT id, v AS ID FROM made.db.t", "two columns of one name"),
        ("CREATE VIEW made.db.w (a) AS SELECT id, v FROM made.db.t", "names 1 columns"),
        ("CREATE VIEW made.db.t AS SELECT 1 AS x", "VIEW_ALREADY_EXISTS"),
    ],
    nightly=[
        (
            "CREATE VIEW made.db.w AS SELECT 1 AS x WHERE EXISTS (SELECT * FROM gone_soon)",
            "the temporary view gone_soon",
        ),
        ("CREATE VIEW made.db.w AS SELECT shout(v) AS s FROM made.db.t", "function shout"),
        ("CREATE VIEW made.db.w AS SELECT id + loud AS s FROM made.db.t", "variable .*loud"),
        ("CREATE OR REPLACE VIEW made.db.own AS SELECT * FROM made.db.own", "RECURSIVE_VIEW"),
        ("CREATE VIEW made.db.w AS SELECT nothing FROM made.db.t", "UNRESOLVED_COLUMN"),
        ("CREATE VIEW made.db.w AS SELECT * FROM made.db.none", "TABLE_OR_VIEW_NOT_FOUND"),
        ("CREATE OR REPLACE VIEW made.db.t AS SELECT 1 AS x", "VIEW_ALREADY_EXISTS"),
        ("CREATE VIEW plain.db.w AS SELECT 1 AS x", "catalog 'plain' has no views"),
        ("DROP VIEW made.db.t", "VIEW_NOT_FOUND"),
    ],
)
def test_view_of_temporary_objects_is_refused(
    spark: SparkSession, folder: Path, statement: str, why: str
) -> None:
    spark.range(1).createOrReplaceTempView("gone_soon")
    spark.sql("CREATE VIEW IF NOT EXISTS made.db.own AS SELECT 1 AS x")
    spark.udf.register("shout", lambda text: text)
    spark.sql("DECLARE OR REPLACE VARIABLE loud INT DEFAULT 1")
    with pytest.raises(PySparkException, match=why):
        spark.sql(statement)
    assert listed(spark, "SHOW VIEWS IN made.db LIKE 'w'") == []
    assert rows(spark, "SELECT count(*) FROM made.db.t") == [(2,)]
    assert rows(spark, "SELECT * FROM made.db.own") == [(1,)]
    spark.sql("DROP VIEW made.db.own")
    spark.sql("DROP VIEW gone_soon")


def test_other_views_are_sparks(spark: SparkSession, folder: Path) -> None:
    spark.sql("CREATE TEMPORARY VIEW mine AS SELECT * FROM made.db.t")
    assert rows(spark, "SELECT id FROM mine") == [(1,), (2,)]
    spark.sql("ALTER VIEW mine AS SELECT 5 AS id")
    assert rows(spark, "SELECT id FROM mine") == [(5,)]
    spark.sql("DROP VIEW mine")
    spark.sql("CREATE VIEW kept_by_spark AS SELECT 1 AS x")
    spark.sql("ALTER VIEW kept_by_spark SET TBLPROPERTIES ('a' = 'b')")
    assert rows(spark, "SHOW VIEWS LIKE 'kept*'") == [("default", "kept_by_spark", False)]
    spark.sql("DROP VIEW kept_by_spark")
    with pytest.raises(ParseException):
        spark.sql("CREATE VIEW made.db.w")


def test_the_statement_that_is_shown_creates_the_view_again(
    spark: SparkSession, folder: Path
) -> None:
    spark.sql(
        "CREATE VIEW made.db.`a.b` (n COMMENT \"Ada's\", `W w`) COMMENT 'it''s \\\\' "
        "TBLPROPERTIES ('k' = \"v'\", 'a' = 'b') AS SELECT id + 1, upper(v) AS u FROM made.db.t"
    )
    before = metadata(folder, "a.b")
    ((statement,),) = rows(spark, "SHOW CREATE TABLE made.db.`a.b`")
    assert statement.startswith("CREATE VIEW made.db.`a.b` (\n  n COMMENT ")
    spark.sql("DROP VIEW made.db.`a.b`")
    spark.sql(statement)
    after = metadata(folder, "a.b")
    for key in ("schemas", "properties"):
        assert after[key] == before[key]
    assert after["versions"][0]["representations"] == before["versions"][0]["representations"]
    spark.sql("DROP VIEW made.db.`a.b`")


def test_views_are_described_and_tables_stay_sparks(spark: SparkSession, folder: Path) -> None:
    spark.sql(
        "CREATE VIEW made.db.shown (n COMMENT 'one', w) COMMENT 'mine' TBLPROPERTIES ('k' = '1') "
        "AS SELECT id + 1, v FROM made.db.t"
    )
    own = {"format-version": "1", "k": "1", "location": f"{folder}/db/shown", "provider": "iceberg"}
    assert dict(rows(spark, "SHOW TBLPROPERTIES made.db.shown")) == own
    assert rows(spark, "show tblproperties made.db.shown ('k')") == [("k", "1")]
    ((key, missing),) = rows(spark, "SHOW TBLPROPERTIES made.db.shown ('none')")
    assert (key, missing) == ("none", "View made.db.shown does not have property: none")
    pairs = ", ".join(f"'{key}' = '{value}'" for key, value in own.items())
    described = [tuple(row) for row in spark.sql("DESC TABLE EXTENDED made.db.shown").collect()]
    assert described == [
        ("n", "int", "one"),
        ("w", "string", ""),
        ("", "", ""),
        ("# Detailed View Information", "", ""),
        ("Comment", "mine", ""),
        ("View Catalog and Namespace", "made.db", ""),
        ("View Query Output Columns", "[(id + 1), v]", ""),
        ("View Properties", f"[{pairs}]", ""),
        ("Created By", f"Spark {spark.version}", ""),
    ]
    assert [row[0] for row in spark.sql("DESCRIBE made.db.shown").collect()] == ["n", "w"]
    spark.sql("DROP VIEW made.db.shown")
    ((statement,),) = rows(spark, "SHOW CREATE TABLE made.db.t")
    assert statement.startswith("CREATE TABLE made.db.t (")
    assert ("format-version", "2") in rows(spark, "SHOW TBLPROPERTIES made.db.t")
    assert ("Provider", "iceberg", "") in rows(spark, "DESCRIBE EXTENDED made.db.t")
    for statement in ("SHOW CREATE TABLE", "SHOW TBLPROPERTIES", "DESCRIBE FORMATTED"):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark.sql(f"{statement} made.db.none")
