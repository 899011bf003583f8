"""Vended credentials that expire while tasks read and write: of the JVM by S3A, and of Python."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.services.hadoop_aws import s3a_jars
from tests.support.spark_sessions import SPARK_HOME, run_driver
from tests.support.vending_catalog import LOGIN_TOKEN, TABLE_TOKEN, vending_catalog

DRIVER = """
import json, os, urllib.request
from pyspark.sql import SparkSession
from iceberg_pyspark import install

settings = json.loads(os.environ["VENDING_CATALOG"])
spark = SparkSession.builder.getOrCreate()
assert install(spark).is_native
spark.conf.set("spark.sql.catalog.lake", "iceberg_pyspark")
for key, value in settings.items():
    spark.conf.set(f"spark.sql.catalog.lake.{key}", value)


def phase(name):
    urllib.request.urlopen(f"{settings['uri']}/phase/{name}").read()


def read(table):
    frame = spark.table(f"lake.db.{table}")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return ["IcebergPyParquetScan" in plan, sorted(row.id for row in frame.collect())]


found = {"application": spark.sparkContext.applicationId}
spark.sql("CREATE NAMESPACE lake.db")
for table in ("t", "other", "portable"):
    spark.sql(f"CREATE TABLE lake.db.{table} (id BIGINT) USING iceberg "
              "TBLPROPERTIES ('write.distribution-mode' = 'none')")
# S3A may cache the content of files that it has read once.
spark.range(0, 4, 1, 4).writeTo("lake.db.other").append()
phase("PUT")
spark.range(0, 40, 1, 4).writeTo("lake.db.t").append()
phase("GET")
found["rows"] = read("t")
portable = {f"catalog.{key}": value for key, value in settings.items()}
portable |= {"native": "false", "catalog": "python"}
phase("PUT%20portable")
frame = spark.range(0, 40, 1, 4)
frame.write.format("iceberg-py").options(**portable).mode("append").save("db.portable")
phase("GET%20portable")
again = spark.read.format("iceberg-py").options(**portable).load("db.portable")
found["portable"] = sorted(row.id for row in again.collect())
phase("refuse")
try:
    found["refused"] = read("other")
except Exception as error:
    found["refused"] = str(error)
print(json.dumps(found))
"""


@pytest.mark.cluster
@pytest.mark.parametrize(
    "place",
    [
        "spark.jars",
        pytest.param("class path", marks=pytest.mark.more("S3A in another class loader")),
    ],
)
def test_tasks_renew_credentials_by_the_driver(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Executors have S3A from the session, or on their class path as installations have it."""
    script = tmp_path / "driver.py"
    script.write_text(DRIVER, encoding="utf-8")
    (tmp_path / "log").mkdir()
    # Spark has a Netty, which must not be another one.
    jars = [str(jar) for jar in s3a_jars() if not jar.name.startswith("netty-")]
    on_class_path = dict.fromkeys(
        ("spark.driver.extraClassPath", "spark.executor.extraClassPath"), ":".join(jars)
    )
    conf = {
        **({"spark.jars": ",".join(jars)} if place == "spark.jars" else on_class_path),
        "spark.task.maxFailures": "1",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (tmp_path / "log").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.hadoop.fs.s3a.attempts.maximum": "2",
    }
    with vending_catalog(tmp_path) as catalog:
        # Arguments would be in the event log, which is searched for secrets.
        monkeypatch.setenv("VENDING_CATALOG", json.dumps(catalog.properties))
        printed = run_driver(
            tmp_path,
            script,
            master="local-cluster[1,1,768]",
            conf=conf,
        )
    actual: dict[str, Any] = json.loads(printed.splitlines()[-1])
    assert actual["rows"] == [True, list(range(40))]
    assert actual["portable"] == list(range(40))
    for phase in ("PUT", "GET", "PUT portable", "GET portable"):
        keys = catalog.keys_by_phase[phase]
        # One key for the first file, which lives until all keys expire, and another key later.
        assert len(set(keys)) > 1, phase
    # Executors have no token of the catalog: tasks of the JVM ask the driver, and tasks of Python
    # have the table's own token.
    assert catalog.asked_by == {f"Bearer {LOGIN_TOKEN}", f"Bearer {TABLE_TOKEN}"}
    error = actual["refused"]
    assert "the credentials that the catalog vended for s3://bucket expired at" in error
    assert "no more keys for you" in error
    assert "remove the cause, and run the statement again" in error
    assert "Zq" not in error
    work = SPARK_HOME / "work" / actual["application"]
    everything = [f for folder in (tmp_path, work) for f in folder.rglob("*")]
    recorded = [f for f in everything if f.is_file() and f.suffix != ".jar"]
    names = {file.name.partition("-")[0].partition("_")[0] for file in recorded}
    assert {"stderr", "events"} <= names
    secrets = re.compile(rb"Zq[0-9]-(of|secret|session)")
    assert secrets.search(LOGIN_TOKEN.encode())
    assert [str(file) for file in recorded if secrets.search(file.read_bytes())] == []
