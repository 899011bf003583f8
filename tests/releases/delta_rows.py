"""Prints what Delta's tables and ours do in one session, as JSON; run with an order and a folder.

`alone` is a session with Delta only: what the others do with Delta's table must be the same.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

CATALOG: dict[str, Any] = {
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"
}
CHANGES = (
    "UPDATE {} SET v = 'A' WHERE id = 1",
    "DELETE FROM {} WHERE id = 2",
    "MERGE INTO {} t USING (VALUES (3, 'C'), (4, 'd') AS s(id, v)) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
)
MERGE = (
    "MERGE INTO {} t USING {} s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


def main() -> None:
    """Make a table of each kind in the order, change both, and merge each into the other."""
    order, folder = sys.argv[1:]
    lake: dict[str, Any] = {
        "spark.sql.catalog.lake": "iceberg_pyspark",
        "spark.sql.catalog.lake.warehouse": f"{folder}/lake",
    }
    settings: dict[str, Any] = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.warehouse.dir": f"{folder}/spark",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.master("local[2]").config(map=settings)
    builder = builder.config(map=lake if order == "ours first" else CATALOG)
    spark = configure_spark_with_delta_pip(builder).getOrCreate()
    found: dict[str, Any] = {}

    def rows(table: str) -> list[list[Any]]:
        return [list(row) for row in spark.table(table).sort("id").collect()]

    def delta() -> None:
        spark.sql("CREATE TABLE d (id INT, v STRING) USING delta")
        spark.sql("INSERT INTO d VALUES (1, 'a'), (2, 'b'), (3, 'c')")

    def ours() -> None:
        spark.sql("CREATE NAMESPACE lake.db")
        spark.sql("CREATE TABLE lake.db.t AS VALUES (1, 'a'), (2, 'b'), (3, 'c') AS t(id, v)")

    def change(table: str) -> None:
        for statement in CHANGES:
            spark.sql(statement.format(table))

    def more(settings: dict[str, Any]) -> None:
        for key, value in settings.items():
            spark.conf.set(key, value)

    if order == "ours first":
        ours()
        change("lake.db.t")
        more(CATALOG)
        delta()
    else:
        delta()
        if order == "delta first":
            more(lake)
            ours()
            change("lake.db.t")
    found["plans"] = [plan(spark, statement.format("d"), folder) for statement in CHANGES]
    change("d")
    found["delta"] = rows("d")
    history = spark.sql("DESCRIBE HISTORY d").collect()
    found["history"] = [[version.operation, counts(version)] for version in history]
    if order != "alone":
        found["ours"] = rows("lake.db.t")
        spark.sql("INSERT INTO lake.db.t VALUES (5, 'ours')")
        spark.sql("INSERT INTO d VALUES (6, 'delta')")
        spark.sql(MERGE.format("lake.db.t", "d"))
        found["merged into ours"] = rows("lake.db.t")
        spark.sql(MERGE.format("d", "lake.db.t"))
        found["merged into delta"] = rows("d")
    sys.stdout.write(json.dumps(found) + "\n")


def plan(spark: SparkSession, statement: str, folder: str) -> str:
    """Return the plan of a statement, without what is different in each run."""
    [[text]] = spark.sql(f"EXPLAIN EXTENDED {statement}").collect()
    return re.sub(r"#\d+L?|@[0-9a-f]+|[0-9a-f-]{36}", "", str(text).replace(folder, ""))


def counts(version: Any) -> dict[str, str]:
    """Return the numbers of rows that a version of a Delta table states."""
    return {k: v for k, v in sorted(version.operationMetrics.items()) if k.endswith("Rows")}


if __name__ == "__main__":
    main()
