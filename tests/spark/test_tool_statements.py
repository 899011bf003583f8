"""Statements that dbt, SQLMesh and their kind send: each has an answer or a named refusal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import install
from iceberg_pyspark.expressions.predicates import LiteralPredicate
from iceberg_pyspark.sql_text.filters import parse_filter
from tests.support.spark_settings import configured

PREFIX = "spark.sql.catalog.tools"
NOT_FOR_V2 = "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"
NO_PARTITIONS = "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED"


@pytest.fixture(scope="module")
def tools(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder: Path = tmp_path_factory.mktemp("tools")
    settings = {
        PREFIX: "iceberg_pyspark",
        f"{PREFIX}.type": "sql",
        f"{PREFIX}.uri": f"sqlite:///{folder}/catalog.db",
        f"{PREFIX}.warehouse": str(folder),
    }
    with configured(spark, settings):
        session = install(spark)
        spark.sql("CREATE NAMESPACE tools.db COMMENT 'about' WITH DBPROPERTIES ('k' = 'v')")
        spark.sql(
            "CREATE TABLE tools.db.t (id INT, p STRING) USING iceberg PARTITIONED BY (p) "
            "TBLPROPERTIES ('key' = 'val')"
        )
        yield spark
        session.uninstall()


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("ANALYZE TABLE tools.db.t COMPUTE STATISTICS", NOT_FOR_V2),
        ("ANALYZE TABLE tools.db.t COMPUTE STATISTICS FOR ALL COLUMNS", NOT_FOR_V2),
        ("ANALYZE TABLES IN tools.db COMPUTE STATISTICS", NOT_FOR_V2),
        ("MSCK REPAIR TABLE tools.db.t", NOT_FOR_V2),
        ("LOAD DATA INPATH '/nothing' INTO TABLE tools.db.t", NOT_FOR_V2),
        ("SHOW PARTITIONS tools.db.t", NO_PARTITIONS),
        ("TRUNCATE TABLE tools.db.t PARTITION (p = 'x')", NO_PARTITIONS),
        ("SHOW TABLE EXTENDED IN tools.none LIKE '*'", "SCHEMA_NOT_FOUND"),
    ],
)
def test_a_refused_statement_has_a_condition(
    tools: SparkSession, statement: str, condition: str
) -> None:
    with pytest.raises(PySparkException) as refused:
        tools.sql(statement).collect()
    assert refused.value.getCondition() == condition


@pytest.mark.parametrize("constraint", ["CHECK (id > 0)", "PRIMARY KEY (id)"])
def test_constraints_are_refused_before_they_are_added(
    tools: SparkSession, constraint: str
) -> None:
    with pytest.raises(PySparkException) as refused:
        tools.sql(f"ALTER TABLE tools.db.t ADD CONSTRAINT c {constraint}").collect()
    assert refused.value.getCondition() in (
        "UNSUPPORTED_FEATURE.TABLE_OPERATION",
        "PARSE_SYNTAX_ERROR",  # Spark 4.0
    )


def test_listings_name_tables_and_properties(tools: SparkSession) -> None:
    [shown] = tools.sql("SHOW TABLE EXTENDED IN tools.db LIKE 't'").collect()
    assert shown[:3] == ("db", "t", False)
    assert "Provider: iceberg" in shown[3]
    assert tools.sql("SHOW TBLPROPERTIES tools.db.t ('key')").collect() == [("key", "val")]
    described = {r[0]: r[1] for r in tools.sql("DESCRIBE NAMESPACE EXTENDED tools.db").collect()}
    assert (described["Comment"], described["Properties"]) == ("about", "((k,v))")
    tools.sql("COMMENT ON TABLE tools.db.t IS 'new'")
    catalog = tools.catalog
    assert [(t.name, t.description) for t in catalog.listTables("tools.db")] == [("t", "new")]
    columns = catalog.listColumns("tools.db.t")
    assert [(c.name, c.isPartition) for c in columns] == [("id", False), ("p", True)]
    assert catalog.tableExists("tools.db.t")
    assert not catalog.tableExists("tools.none.t")
    assert catalog.databaseExists("tools.db")


def test_dbt_overwrites_the_partitions_of_a_batch(tools: SparkSession) -> None:
    tools.sql(
        "CREATE TABLE tools.db.batches USING iceberg PARTITIONED BY (p) AS SELECT 1 id, 'a' p"
    )
    tools.sql("INSERT INTO tools.db.batches VALUES (2, 'b')")
    tools.sql("CREATE OR REPLACE TEMPORARY VIEW batch AS SELECT 3 AS id, 'b' AS p")
    with configured(tools, {"spark.sql.sources.partitionOverwriteMode": "DYNAMIC"}):
        tools.sql(
            """/* {"app": "dbt"} */ insert overwrite table tools.db.batches
            partition (p) select `id`, `p` from batch"""
        )
    assert sorted(tools.table("tools.db.batches").collect()) == [(1, "a"), (3, "b")]
    tools.sql("alter table tools.db.batches change column id comment 'it\\'s a number'")
    [column, _] = tools.catalog.listColumns("tools.db.batches")
    assert column.description == "it's a number"
    tools.sql("DROP TABLE tools.db.batches")
    tools.sql("DROP VIEW batch")


@pytest.mark.parametrize(
    "literal",
    [
        r"'\d\%\_\a\f\é\x41\''",
        r"'\0\b\n\r\t\Z'",
        r"'\u0041\U0001F600\ud83d\ude00\101\201\u41\18'",
        "'a\\\nb'",
        r"r'\d'",
        ".0005BD",
        "1.5e3BD",
        "1 -- a\\\n + 1\n",
        "1 -- a\r\n",
    ],
)
def test_a_filter_reads_a_literal_as_spark_does(tools: SparkSession, literal: str) -> None:
    predicate = parse_filter(f"c = {literal}")
    assert isinstance(predicate, LiteralPredicate)
    assert predicate.literal == tools.sql(f"SELECT {literal}").collect()[0][0]
