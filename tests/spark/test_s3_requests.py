"""The requests of Spark's own readers for data files in S3, counted in the server's log."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.services.hadoop_aws import s3a_jars
from tests.services.s3 import s3_server
from tests.support.spark_sessions import run_driver

pytestmark = pytest.mark.nightly

pytest.importorskip("obstore")

PROGRAM = """
import json, re, sys
from collections import Counter
from pathlib import Path
from pyspark.sql import SparkSession
from iceberg_pyspark import install

properties, access_log = json.loads(sys.argv[1]), Path(sys.argv[2])
spark = SparkSession.builder.getOrCreate()
assert install(spark).is_native
spark.conf.set("spark.sql.catalog.lake", "iceberg_pyspark")
for key, value in properties.items():
    spark.conf.set(f"spark.sql.catalog.lake.{key}", value)


def requests(kind):
    lines = [line for line in access_log.read_text().splitlines() if f".{kind} " in line]
    return Counter(re.findall(r" s3_(\\w+) ", "\\n".join(lines)))


def counted(frame, kind="parquet"):
    plan = frame._jdf.queryExecution().executedPlan().toString()
    before = requests(kind)
    rows = sorted([*row] for row in frame.collect())
    scan = "IcebergPyParquetScan" if kind == "parquet" else "IcebergPyOrcScan"
    return {"native": scan in plan, "rows": rows, "requests": requests(kind) - before}


columns = "(id BIGINT, a STRING, b DOUBLE, part STRING)"
rows = "SELECT id, repeat(uuid(), 20) a, rand() b, if(id % 2 = 0, 'é /=+#?%20', 'x') part "
spark.sql("CREATE NAMESPACE lake.db")
results = {}
for kind in ("parquet", "orc"):
    spark.sql(f"CREATE TABLE lake.db.{kind} {columns} USING iceberg PARTITIONED BY (part) "
              f"TBLPROPERTIES ('write.format.default' = '{kind}')")
    spark.sql(f"INSERT INTO lake.db.{kind} {rows} FROM range(0, 4000, 1, 1)")
    table = spark.table(f"lake.db.{kind}")
    # the metadata know the counts of columns, and not those of their values' texts
    count = [f"count(concat({c}, 'x'))" for c in ("id", "a", "b", "part")]
    results[kind] = counted(table.selectExpr(*count), kind)
    results[f"{kind} column"] = counted(table.where("b >= 0").selectExpr(count[2]), kind)
names = spark.sql("SELECT DISTINCT _file, input_file_name() FROM lake.db.parquet").collect()
results["names"] = [[*row] for row in names]


def error(query):
    try:
        spark.sql(query).collect()
    except Exception as e:
        return str(e)


def on_disk(name):
    file = spark.sql(f"SELECT DISTINCT _file FROM lake.db.{name}").first()[0]
    return Path(sys.argv[3], file.removeprefix("s3://"))


for name, rows in {"small": 100, "large": 5000}.items():
    spark.sql(f"CREATE TABLE lake.db.{name} (id BIGINT) USING iceberg")
    spark.sql(f"INSERT INTO lake.db.{name} SELECT id FROM range(0, {rows}, 1, 1)")
small, large = on_disk("small"), on_disk("large")
contents = small.read_bytes(), large.read_bytes()
large.write_bytes(contents[0])
small.write_bytes(contents[1])
for name in ("small", "large"):
    results[f"error {name}"] = error(f"SELECT sum(id) FROM lake.db.{name}")
small.unlink()
results["error missing"] = error("SELECT sum(id) FROM lake.db.small")
print(json.dumps(results))
"""

FILES = 2
STREAM = "spark.hadoop.fs.s3a.input.stream.type"


def test_a_data_file_is_opened_without_a_look(tmp_path: Path) -> None:
    """A file takes three requests: the end of its footer, the footer, and the rows."""
    script = tmp_path / "driver.py"
    script.write_text(PROGRAM, encoding="utf-8")
    conf = {
        "spark.jars": ",".join(str(jar) for jar in s3a_jars()),
        # Hadoop 3.5 has another stream by default, which reads ahead.
        STREAM: "classic",
    }
    with s3_server(tmp_path / "s3") as s3:
        warehouse = f"s3://{s3.new_bucket()}/{uuid.uuid4()}"
        properties = {"type": "hadoop", "warehouse": warehouse, **s3.properties()}
        arguments = (json.dumps(properties), str(s3.access_log), str(s3.buckets))
        printed = run_driver(tmp_path, script, *arguments, master="local[1]", conf=conf)
    results = json.loads(printed.splitlines()[-1])
    parquet = {"native": True, "requests": {"GetObject": 3 * FILES}}
    assert results["parquet"] == {"rows": [[4000] * 4], **parquet}
    assert results["parquet column"] == {"rows": [[4000]], **parquet}
    # The driver looks at the length of an ORC file, and no task does.
    orc = {"native": True, "requests": {"HeadObject": FILES, "GetObject": 4 * FILES}}
    assert results["orc"] == {"rows": [[4000] * 4], **orc}
    assert results["orc column"] == {"rows": [[4000]], **orc}

    # A file of another size than the manifest says is an error, and so is a missing file.
    assert "FAILED_READ_FILE.NO_HINT" in results["error small"]
    assert "FAILED_READ_FILE.NO_HINT" in results["error large"]
    assert "FAILED_READ_FILE.FILE_NOT_EXIST" in results["error missing"]
    for location, name in results["names"]:
        assert unquote(name) == location.replace("s3://", "s3a://")
    assert f"{warehouse.replace('s3:', 's3a:')}/db/small/data/" in results["error missing"]
