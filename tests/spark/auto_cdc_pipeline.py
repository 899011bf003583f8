"""Runs AUTO CDC flows from a table into others, and prints their rows after each run as JSON.

The Connect server, which runs pipelines, is in the session of this process; their client is
another process. Arguments: a folder and a port.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import iceberg_pyspark as ice

DEFINITIONS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()

@dp.temporary_view
def changed():
    feed = spark.readStream.option("startingVersion", 1).changes("lake.db.events")
    # of one version, an insert comes after the delete of the same row
    number = "_commit_version * 2 + int(_change_type = 'insert')"
    return feed.selectExpr("id", "v", "_change_type AS change", f"{number} AS number")

@dp.temporary_view
def updated():
    feed = spark.readStream.option("startingVersion", 1).option("computeUpdates", True)
    rows = feed.changes("lake.db.events").where("_change_type != 'update_preimage'")
    return rows.selectExpr("id", "v", "_change_type AS change", "_commit_version AS number")

for target, source, type in (("newest", "changed", 1), ("history", "updated", 2)):
    dp.create_streaming_table(target)
    dp.create_auto_cdc_flow(
        target,
        source,
        keys=["id"],
        sequence_by="number",
        apply_as_deletes="change = 'delete'",
        except_column_list=["change", "number"],
        stored_as_scd_type=type,
    )
"""

STATEMENTS = (
    ("INSERT INTO lake.db.events VALUES (1, 'a'), (2, 'b'), (3, 'c')",),
    (
        "UPDATE lake.db.events SET v = 'B' WHERE id = 2",
        "DELETE FROM lake.db.events WHERE id = 3",
        "CALL lake.system.rewrite_data_files('db.events', options => map('rewrite-all', 'true'))",
        "INSERT INTO lake.db.events VALUES (4, 'd')",
    ),
    (
        "MERGE INTO lake.db.events e USING "
        "(SELECT * FROM VALUES (1, 'A'), (3, 'again') AS n(id, v)) n "
        "ON e.id = n.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
    ),
)

QUERIES = {
    "events": "SELECT * FROM lake.db.events ORDER BY id",
    "newest": "SELECT id, v FROM lake.db.newest ORDER BY id",
    "history": "SELECT id, v, __START_AT, __END_AT FROM lake.db.history ORDER BY id, __START_AT",
}


def main() -> None:
    """Run the statements, and the pipeline after each group of them."""
    folder, port = Path(sys.argv[1]), sys.argv[2]
    definitions = folder / "pipeline" / "definitions"
    definitions.mkdir(parents=True)
    (definitions / "flows.py").write_text(DEFINITIONS)
    specification = folder / "pipeline" / "spark-pipeline.yml"
    specification.write_text(
        f"name: flows\ncatalog: lake\ndatabase: db\nstorage: {(folder / 'storage').as_uri()}\n"
        "libraries:\n  - glob:\n      include: definitions/**\n"
    )
    settings: dict[str, bool | float | int | str | None] = {
        "spark.sql.catalog.lake": "iceberg_pyspark",
        "spark.sql.catalog.lake.warehouse": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "1",
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": port,
        "spark.ui.enabled": "false",
    }
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    ice.install(spark)
    spark.sql("CREATE NAMESPACE lake.db")
    spark.sql(
        "CREATE TABLE lake.db.events (id BIGINT, v STRING) "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    runs = []
    for statements in STATEMENTS:
        for statement in statements:
            spark.sql(statement)
        subprocess.run(
            [sys.executable, "-m", "pyspark.pipelines.cli", "run", "--spec", str(specification)],
            env={**os.environ, "SPARK_REMOTE": f"sc://127.0.0.1:{port}"},
            stdout=sys.stderr,
            check=True,
            timeout=600,
        )
        runs.append(
            {name: [list(r) for r in spark.sql(q).collect()] for name, q in QUERIES.items()}
        )
    spark.stop()
    sys.stdout.write(json.dumps(runs) + "\n")


if __name__ == "__main__":
    main()
