"""Clients of a Spark Connect server: with only the data source, and with Iceberg in the session."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark import load_catalog
from tests.services.s3 import s3_server
from tests.spark.test_scan_reports import options_of, scan_of
from tests.support.encrypted_tables import files_with, key_properties
from tests.support.expiring_keys import REFUSAL
from tests.support.http_server import http_server
from tests.support.reporting_server import ReportingServer, reports
from tests.support.rest_answers import configured
from tests.support.spark_sessions import connect_server, run_python
from tests.support.vending_catalog import LOGIN_TOKEN, TABLE_TOKEN, vending_catalog

pytestmark = pytest.mark.nightly

PORTABLE = """
import json, sys
from pyspark.sql import SparkSession

url, folder, in_a_bucket, reported = *sys.argv[1:3], *map(json.loads, sys.argv[3:])
spark = SparkSession.builder.remote(url).getOrCreate()


def use(table):
    spark.range(5).write.format("iceberg-py").mode("append").save(table)
    frame = spark.read.format("iceberg-py").load(table)
    counts = [frame.filter("id = 3").count(), frame.count()]
    spark.range(8, 9).write.format("iceberg-py").mode("overwrite").save(table)
    now = [row.id for row in spark.read.format("iceberg-py").load(table).collect()]
    return counts, now, frame.count()


def ids(table, **options):
    frame = spark.read.format("iceberg-py").options(**options).load(table)
    return sorted(row.id for row in frame.collect())


results = {"session": type(spark).__module__, "discovered": use(f"{folder}/discovered")}
rows = spark.range(0, 40, 1, 2)
rows.write.format("iceberg-py").options(**in_a_bucket).mode("append").save("db.c")
results["in a bucket"] = ids("db.c", **in_a_bucket, filter="id >= 38")
results["reported"] = ids("db.events", **reported)
from iceberg_pyspark import IcebergDataSource
spark.dataSource.register(IcebergDataSource)
results["registered"] = ids(f"{folder}/discovered")
try:
    ids(f"{folder}/nothing")
except Exception as error:
    results["error"] = str(error)
print(json.dumps(results))
"""

# The package `pyspark-client` has neither py4j nor the modules of classic sessions.
OF_THE_CLIENT_ALONE = """
import os, sys
sys.modules["py4j"] = None
os.environ["SPARK_SKIP_CONNECT_COMPAT_TESTS"] = "1"  # pyspark takes itself for this package
import pyspark
assert not hasattr(pyspark, "SparkContext")
"""

INSTALLED = """
import json, logging, sys
from pyspark.sql import SparkSession
from iceberg_pyspark import install

url, path, lake = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
lines = []
handler = logging.Handler(logging.WARNING)
handler.emit = lambda record: lines.append(record.getMessage())
logging.getLogger("iceberg_pyspark").addHandler(handler)
spark = SparkSession.builder.remote(url).getOrCreate()
session = install(spark)
for key, value in lake.items():
    spark.conf.set(key, value)
ids = lambda frame: sorted(row.id for row in frame.collect())
found = {
    "native": session.is_native,
    "path": ids(session.table(path).to_df()),
    "name": ids(session.table("lake.db.t").to_df()),
    "format": ids(spark.read.format("iceberg-py").load(path).filter("id < 3")),
    "sql": ids(session.sql("SELECT id FROM range(2)")),
    "described": session.describe().splitlines()[-1].partition(":")[0],
    "lines": lines,
}
session.uninstall()
print(json.dumps(found))
"""

RENEWING = """
import json, sys, urllib.request
from pyspark.sql import SparkSession
from iceberg_pyspark import install

url, settings = sys.argv[1], json.loads(sys.argv[2])
spark = SparkSession.builder.remote(url).getOrCreate()
session = install(spark)
spark.conf.set("spark.sql.catalog.lake", "iceberg_pyspark")
for key, value in settings.items():
    spark.conf.set(f"spark.sql.catalog.lake.{key}", value)
options = {"catalog": "lake", **{f"catalog.{key}": value for key, value in settings.items()}}


def begin(phase):
    urllib.request.urlopen(f"{settings['uri']}/phase/{phase}").read()


def ids(frame):
    return sorted(row.id for row in frame.collect())


begin("write")
frame = spark.range(0, 40, 1, 4)
frame.write.format("iceberg-py").options(**options).mode("append").save("db.portable")
begin("read")
read = spark.read.format("iceberg-py").options(**options)
results = [ids(read.load("db.portable"))]
try:
    session.table("lake.db.portable")
except Exception as error:
    results.append(str(error))
begin("refuse")
try:
    results.append(ids(read.load("db.portable")))
except Exception as error:
    results.append(str(error))
print(json.dumps(results))
"""


SEALED = """
import json, sys
from pyspark.sql import SparkSession
from iceberg_pyspark import install

url, options = sys.argv[1], json.loads(sys.argv[2])
spark = SparkSession.builder.remote(url).getOrCreate()
table = install(spark).table("db.sealed", catalog="lake", **options)
options["catalog"] = "lake"
rows = spark.range(2000).selectExpr("id", "concat('secret', id) v")
rows.write.format("iceberg-py").options(**options).mode("append").save("db.sealed")
table.delete("id in (5, 6)")
source = spark.sql("select 7L id, 'secret seven' v union all select 5000L, 'secret new'")
merge = table.merge_into(source, "t.id = s.id")
merge.whenMatched().updateAll().whenNotMatched().insertAll().merge()
read = spark.read.format("iceberg-py").options(**options)
found = read.load("db.sealed").where("id < 9 or id > 1998").collect()
changed = read.load("db.sealed.snapshots").count()
print(json.dumps([sorted([row.id, row.v] for row in found), changed]))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of one server for all tests; each client has its own session."""
    with connect_server(tmp_path_factory.mktemp("server")) as url:
        yield url


def lake_settings(folder: Path) -> dict[str, str]:
    return {
        "type": "sql",
        "uri": f"sqlite:///{folder / 'catalog.db'}",
        "warehouse": str(folder / "warehouse"),
    }


def test_a_connect_client_reads_and_writes(server: str, tmp_path: Path) -> None:
    """Tables of a folder, of a catalog in a bucket by keys, and of one that collects reports."""
    pytest.importorskip("obstore")
    source, script = ReportingServer(tmp_path / "reported"), tmp_path / "client.py"
    script.write_text(PORTABLE, encoding="utf-8")
    with s3_server(tmp_path / "s3") as s3, http_server(configured(source)) as rest:
        warehouse = f"s3://{s3.new_bucket()}/{uuid.uuid4()}"
        own = {**lake_settings(tmp_path), "warehouse": warehouse}
        options = {"catalog": "lake", **{f"catalog.{k}": v for k, v in own.items()}}
        in_a_bucket = json.dumps({**options, **s3.properties()})
        reported = json.dumps(options_of(rest, filter="id = 1"))
        printed = run_python(script, server, str(tmp_path), in_a_bucket, reported)
        table = load_catalog("lake", **own, **s3.properties()).load_table("db.c")
        assert table.scan().count() == 40
        (report,) = reports(rest, 1)
    actual = json.loads(printed.splitlines()[-1])
    assert f"folder {tmp_path}/nothing holds no Iceberg table" in actual.pop("error")
    # The filtered count and the full count, the rows after an overwrite, and the frame loaded
    # before it.
    assert actual == {
        "session": "pyspark.sql.connect.session",
        "discovered": [[1, 5], [8], 5],
        "in a bucket": [38, 39],
        "reported": [1],
        "registered": [8],
    }
    snapshot_id = source.loaded.metadata.current_snapshot_id
    assert scan_of(report) == ("scan-report", "lake.db.events", snapshot_id, 1, 1)


@pytest.mark.parametrize("package", ["pyspark", "pyspark-client"])
def test_connect_uses_the_portable_path_and_logs_it(
    server: str, tmp_path: Path, package: str
) -> None:
    lake = lake_settings(tmp_path)
    catalog = load_catalog("lake", **lake)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id BIGINT")
    table.append(pa.table({"id": pa.array(range(5), pa.int64())}))
    script = tmp_path / "client.py"
    prelude = OF_THE_CLIENT_ALONE if package == "pyspark-client" else ""
    script.write_text(prelude + INSTALLED, encoding="utf-8")
    prefix = "spark.sql.catalog.lake"
    settings = json.dumps(
        {prefix: "iceberg_pyspark", **{f"{prefix}.{k}": v for k, v in lake.items()}}
    )
    printed = run_python(script, server, table.location, settings)
    actual = json.loads(printed.splitlines()[-1])
    (line,) = actual.pop("lines")
    assert line.startswith("no native scans in this session; Python reads and writes: ")
    assert "\n" not in line
    assert actual == {
        "native": False,
        "path": [0, 1, 2, 3, 4],
        "name": [0, 1, 2, 3, 4],
        "format": [0, 1, 2],
        "sql": [0, 1],
        "described": 'portable, by format("iceberg-py") alone',
    }


def test_tasks_of_a_server_renew_credentials_with_the_tables_token(
    server: str, tmp_path: Path
) -> None:
    """Keys expire while tasks write and read; where no others come, the error has the reason."""
    pytest.importorskip("obstore")
    script = tmp_path / "client.py"
    script.write_text(RENEWING, encoding="utf-8")
    with vending_catalog(tmp_path) as catalog:
        lake = load_catalog("lake", **catalog.properties)
        lake.create_namespace("db")
        lake.create_table("db.portable", "id BIGINT")
        printed = run_python(script, server, json.dumps(catalog.properties))
    rows, by_name, error = json.loads(printed.splitlines()[-1])
    assert rows == list(range(40))
    for phase in ("write", "read"):
        # The first key, which lives until all expire, and another one later.
        assert len(set(catalog.keys.used[phase])) > 1, phase
    assert catalog.asked_by == {f"Bearer {LOGIN_TOKEN}", f"Bearer {TABLE_TOKEN}"}
    assert "the credentials for s3://bucket/lake have expired and could not be renewed: " in error
    assert f"credentials answered with 403: {REFUSAL}" in error
    assert "401" in by_name
    assert "a Spark Connect server sends clients no secrets of the session's" in by_name
    assert "Zq" not in printed


def test_a_client_changes_an_encrypted_table(server: str, tmp_path: Path) -> None:
    own = {**lake_settings(tmp_path), **key_properties(tmp_path)}
    catalog = load_catalog("lake", **own)
    catalog.create_namespace("db")
    encrypted = {"format-version": "3", "encryption.key-id": "keyA"}
    catalog.create_table("db.sealed", "id BIGINT, v STRING", properties=encrypted)
    script = tmp_path / "client.py"
    script.write_text(SEALED, encoding="utf-8")
    options = json.dumps({f"catalog.{k}": v for k, v in own.items()})
    rows, snapshots = json.loads(run_python(script, server, options).splitlines()[-1])
    kept: list[list[Any]] = [[i, f"secret{i}"] for i in (0, 1, 2, 3, 4, 8, 1999)]
    assert rows == sorted([*kept, [7, "secret seven"], [5000, "secret new"]])
    assert snapshots == 3
    texts = ["secret", "PAR1", "PFA1", "Obj\x01", "iceberg.schema"]
    assert files_with(tmp_path / "warehouse", texts) == []
