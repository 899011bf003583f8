"""Tables in Google Cloud Storage through Spark: by Python, and by Google's connector for Hadoop."""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark import install, load_catalog
from iceberg_pyspark.spark.storage import jvm_access
from tests.services.gcs import GoogleServer, google_server
from tests.services.gcs_connector import connector_jar
from tests.support.spark_sessions import run_driver
from tests.support.spark_settings import configured

pytestmark = pytest.mark.nightly

pytest.importorskip("obstore")


@pytest.fixture
def google(tmp_path: Path) -> Iterator[GoogleServer]:
    with google_server(tmp_path) as server:
        yield server


def test_without_the_connector_python_reads_and_writes_a_bucket(
    spark: SparkSession,
    google: GoogleServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jvm_access, "_warnings", set())
    warehouse = f"gs://{google.new_bucket()}/{uuid.uuid4()}"
    properties = {"type": "hadoop", "warehouse": warehouse, **google.properties()}
    prefix = "spark.sql.catalog.bucket"
    settings = {prefix: "iceberg_pyspark", **{f"{prefix}.{k}": v for k, v in properties.items()}}
    with configured(spark, settings), caplog.at_level(logging.WARNING):
        session = install(spark)
        try:
            spark.sql("CREATE NAMESPACE bucket.db")
            spark.sql("CREATE TABLE bucket.db.t (id BIGINT, v STRING) PARTITIONED BY (v)")
            spark.sql("INSERT INTO bucket.db.t SELECT id, concat('é /=', id % 2) FROM range(6)")
            rows = spark.sql("SELECT id FROM bucket.db.t WHERE v = 'é /=1'").collect()
            assert sorted(row.id for row in rows) == [1, 3, 5]
        finally:
            session.uninstall()
    options = {"native": "false", **google.properties()}
    by_path = spark.read.format("iceberg-py").options(**options)
    assert by_path.load(f"{warehouse}/db/t").count() == 6
    (line,) = [r.getMessage() for r in caplog.records if "file system" in r.getMessage()]
    assert "--packages com.google.cloud.bigdataoss:gcs-connector" in line


ON_A_CLUSTER = """
import contextlib, io, json, sys
from pyspark import TaskContext
from pyspark.sql import SparkSession
from iceberg_pyspark import install

spark = SparkSession.builder.getOrCreate()
assert install(spark).is_native


def fail_once(batches):
    yield from batches
    task = TaskContext.get()
    if task.partitionId() == 1 and task.attemptNumber() == 0:
        raise ValueError("the first attempt fails")


def read(name):
    frame = spark.table(f"{name}.db.t").selectExpr("id", "_file", "input_file_name()")
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        frame.explain(mode="extended")
    return [shown.getvalue(), [list(row) for row in frame.collect()]]


for name, properties in json.loads(sys.argv[1]).items():
    spark.conf.set(f"spark.sql.catalog.{name}", "iceberg_pyspark")
    for key, value in properties.items():
        spark.conf.set(f"spark.sql.catalog.{name}.{key}", value)
    spark.sql(f"CREATE NAMESPACE {name}.db")
spark.sql("CREATE TABLE one.db.t (id BIGINT, v STRING) PARTITIONED BY (v) TBLPROPERTIES "
          "('write.distribution-mode' = 'none', 'format-version' = '3', "
          "'write.delete.mode' = 'merge-on-read')")
rows = spark.range(0, 40, 1, 2).mapInArrow(fail_once, "id long")
rows.selectExpr("id", "concat('é /=', id % 2) v").writeTo("one.db.t").append()
spark.sql("DELETE FROM one.db.t WHERE id % 10 = 3")
spark.sql("CREATE TABLE other.db.t AS SELECT * FROM one.db.t")
found = {name: read(name) for name in ("one", "other")}
print(json.dumps(found))
"""


def test_tasks_of_the_jvm_use_the_token_of_the_catalog_and_no_other(
    google: GoogleServer, tmp_path: Path
) -> None:
    """Two catalogs have different tokens for one bucket; a failed task leaves no file."""
    bucket = google.new_bucket()
    tokens = {"one": "ya29.Zq1-one", "other": "ya29.Zq1-other"}
    catalogs = {
        name: {
            "type": "sql",
            "uri": f"sqlite:///{tmp_path}/{name}.db",
            "warehouse": f"gs://{bucket}/wh-{name}",
            "gcs.service.host": google.endpoint,
            "gcs.oauth2.token": token,
        }
        for name, token in tokens.items()
    }
    google.front.tokens = set(tokens.values())
    script = tmp_path / "driver.py"
    script.write_text(ON_A_CLUSTER, encoding="utf-8")
    printed = run_driver(
        tmp_path,
        script,
        json.dumps(catalogs),
        master="local-cluster[1,2,768]",
        conf={"spark.jars": str(connector_jar()), "spark.task.maxFailures": "4"},
    )
    assert "Zq1" not in printed
    found = json.loads(printed.splitlines()[-1])
    senders = defaultdict(set)
    for request in google.requests:
        if "GHFS" in request.headers.get("user-agent", ""):
            names = f"{request.path} {request.body[:1000]!r}"
            for folder in re.findall("wh-[a-z]+", names):
                senders[folder].add(request.headers.get("authorization"))
    for name, properties in catalogs.items():
        explained, rows = found[name]
        assert "IcebergPyParquetScan" in explained
        assert "MapInArrow" not in explained
        assert sorted(row[0] for row in rows) == [i for i in range(40) if i % 10 != 3]
        table = load_catalog(name, **properties).load_table("db.t")
        paths = {task.file_path for task in table.scan().plan_files()}
        assert {row[1] for row in rows} == {unquote(row[2]) for row in rows} == paths
        for path in paths:
            with table.io.open_input(path) as file:
                assert pq.read_metadata(file).created_by.startswith("parquet-mr")
        deletes = {d.file_path for t in table.scan().plan_files() for d in t.deletes}
        objects = {f.location for f in table.io.list_files(f"{table.location}/data")}
        assert objects == paths | deletes
        assert senders[f"wh-{name}"] == {f"Bearer {tokens[name]}"}
