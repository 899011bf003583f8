"""JVMs as clusters and containers have them: another default file system, and no locale."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.spark_sessions import run_process

pytestmark = pytest.mark.nightly

PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
import iceberg_pyspark as ice

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.hadoop.fs.defaultFS", "hdfs://nowhere.invalid:8020")
    .getOrCreate()
)
ice.install(spark)
spark.conf.set("spark.sql.catalog.lake", "iceberg_pyspark")
spark.conf.set("spark.sql.catalog.lake.warehouse", sys.argv[1])
spark.sql("CREATE NAMESPACE lake.db")
found = {"encoding": spark._jvm.System.getProperty("sun.jnu.encoding")}
for name in ("plain", "n\\u00e4me"):
    table = f"lake.db.`{name}`"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, v STRING) PARTITIONED BY (v) "
              "TBLPROPERTIES ('format-version'='3', 'write.delete.mode'='merge-on-read')")
    rows = spark.range(2000).selectExpr("id", "if(id % 2 = 0, '\\u00e9', 'b') v")
    rows.writeTo(table).append()
    spark.sql(f"DELETE FROM {table} WHERE id IN (3, 4)")
    read = spark.sql(f"SELECT count(*), sum(id), count(DISTINCT _file) FROM {table}")
    plan = read._jdf.queryExecution().executedPlan().toString()
    found[name] = ["MapInArrow" in plan, *read.first()]
print(json.dumps(found))
"""


def test_local_tables_where_files_are_elsewhere_by_default_and_names_are_ascii(
    tmp_path: Path,
) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, str(script), str(tmp_path / "warehouse")]
    environment = {"LC_ALL": "C", "LANG": "C"}
    printed = run_process(command, 240, errors=True, environment=environment)
    found = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))
    has_no_name = "UTF" not in found.pop("encoding").upper()  # on macOS, it always has names
    counts = [1998, sum(range(2000)) - 7, 2]
    # Python reads where the JVM has no name for a folder.
    assert found == {"plain": [False, *counts], "näme": [has_no_name, *counts]}
    assert printed.count("default file system hdfs://nowhere.invalid:8020") == 1
    assert printed.count("start Spark with LC_ALL") == has_no_name
