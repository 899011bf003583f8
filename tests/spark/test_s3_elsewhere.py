"""Tables in S3 on executors in other processes, with the catalog's keys."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from iceberg_pyspark import SnapshotSelector, load_catalog
from tests.services.hadoop_aws import s3a_jars
from tests.services.s3 import S3Server, s3_server
from tests.support.spark_sessions import run_driver, standalone_cluster

pytestmark = pytest.mark.nightly

pytest.importorskip("obstore")

ON_A_CLUSTER = """
import json, sys
from pyspark import TaskContext
from pyspark.sql import SparkSession
from iceberg_pyspark import install

spark = SparkSession.builder.getOrCreate()
assert install(spark).is_native
spark.conf.set("spark.sql.catalog.lake", "iceberg_pyspark")
for key, value in json.loads(sys.argv[1]).items():
    spark.conf.set(f"spark.sql.catalog.lake.{key}", value)


def fail_once(batches):
    yield from batches
    task = TaskContext.get()
    if task.partitionId() == 1 and task.attemptNumber() == 0:
        raise ValueError("the first attempt fails")


def ids(query):
    frame = spark.sql(query)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return ["IcebergPyParquetScan" in plan, sorted(row.id for row in frame.collect())]


spark.sql("CREATE NAMESPACE lake.db")
spark.sql("CREATE TABLE lake.db.t (id BIGINT, part BIGINT) USING iceberg PARTITIONED BY (part) "
          "TBLPROPERTIES ('write.distribution-mode' = 'none')")
rows = spark.range(0, 40, 1, 4).mapInArrow(fail_once, "id long").selectExpr("id", "id % 2 part")
rows.writeTo("lake.db.t").append()
found = {"native": ids("SELECT id FROM lake.db.t WHERE id >= 20")}
spark.sql("DELETE FROM lake.db.t WHERE id % 10 = 3")
spark.sql("CREATE TABLE lake.db.lists (id BIGINT, l ARRAY<INT>) USING iceberg")
spark.sql("INSERT INTO lake.db.lists SELECT id, array(1) FROM range(4)")
found["lists"] = ids("SELECT id FROM lake.db.lists")
found["after"] = ids("SELECT id FROM lake.db.t WHERE id >= 30")
print(json.dumps([spark.sparkContext.master, found]))
"""


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


def catalog_properties(folder: Path, s3: S3Server) -> dict[str, str]:
    warehouse = f"s3://{s3.new_bucket()}/{uuid.uuid4()}"
    uri = f"sqlite:///{folder / 'catalog.db'}"
    return {"type": "sql", "uri": uri, "warehouse": warehouse, **s3.properties()}


@pytest.mark.parametrize("kind", ["local-cluster[1,2,768]", "standalone"])
def test_executors_read_and_write_natively_and_by_python(
    s3: S3Server, tmp_path: Path, kind: str
) -> None:
    """With either writer, a task that fails once duplicates no row and leaves no file."""
    properties = catalog_properties(tmp_path, s3)
    script = tmp_path / "driver.py"
    script.write_text(ON_A_CLUSTER, encoding="utf-8")
    jars = ",".join(str(jar) for jar in s3a_jars())
    conf = {"spark.jars": jars, "spark.task.maxFailures": "4"}
    cluster = (
        standalone_cluster(tmp_path / "cluster", workers=2, cores=1)
        if kind == "standalone"
        else nullcontext(kind)
    )
    with cluster as master:
        printed = run_driver(tmp_path, script, json.dumps(properties), master=master, conf=conf)
    where, actual = json.loads(printed.splitlines()[-1])
    assert where == master
    assert actual == {
        "native": [True, list(range(20, 40))],
        "lists": [True, [0, 1, 2, 3]],
        "after": [True, [i for i in range(30, 40) if i != 33]],
    }
    table = load_catalog("lake", **properties).load_table("db.t")
    first = next(iter(table.snapshots)).snapshot_id
    appended = table.scan(selector=SnapshotSelector(snapshot_id=first))
    paths = {t.file_path for t in appended.plan_files()}
    objects = {f.location for f in table.io.list_files(f"{table.location}/data")}
    # After S3A removes the last file of a folder, it leaves an object for the folder.
    written = objects - {path.rsplit("/", 1)[0] for path in objects}
    assert len(paths) == 8
    for path in paths:
        with table.io.open_input(path) as file:
            assert pq.read_metadata(file).created_by.startswith("parquet-mr")
    current_paths = {t.file_path for t in table.scan().plan_files()}
    deletes = {d.file_path for t in table.scan().plan_files() for d in t.deletes}
    # The failed attempt left no file.
    assert written == paths | current_paths | deletes
