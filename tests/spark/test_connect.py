"""Clients of a Spark Connect server: with only the data source, and with Iceberg in the session."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import load_catalog
from tests.services.s3 import s3_server
from tests.spark.test_scan_reports import options_of, scan_of
from tests.support.http_server import http_server
from tests.support.reporting_server import Reported, reports
from tests.support.rest_answers import configured
from tests.support.spark_sessions import connect_server, run_python

pytestmark = pytest.mark.release("the protocol of clients and servers")

PORTABLE = """
import json, sys
from pyspark.sql import SparkSession

url, folder = sys.argv[1:]
spark = SparkSession.builder.remote(url).getOrCreate()


def use(table):
    spark.range(5).write.format("iceberg-py").mode("append").save(table)
    frame = spark.read.format("iceberg-py").load(table)
    counts = [frame.filter("id = 3").count(), frame.count()]
    spark.range(8, 9).write.format("iceberg-py").mode("overwrite").save(table)
    now = [row.id for row in spark.read.format("iceberg-py").load(table).collect()]
    return counts, now, frame.count()


found = {"session": type(spark).__module__, "discovered": use(f"{folder}/discovered")}
from iceberg_pyspark import IcebergDataSource
spark.dataSource.register(IcebergDataSource)
frame = spark.read.format("iceberg-py").load(f"{folder}/discovered")
found["registered"] = [row.id for row in frame.collect()]
try:
    spark.read.format("iceberg-py").load(f"{folder}/nothing").collect()
except Exception as error:
    found["error"] = str(error)
print(json.dumps(found))
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
    "lines": lines,
}
session.uninstall()
print(json.dumps(found))
"""

WITH_OPTIONS = """
import json, sys
from pyspark.sql import SparkSession

url, in_a_bucket, reported = sys.argv[1], *map(json.loads, sys.argv[2:])
spark = SparkSession.builder.remote(url).getOrCreate()


def ids(table, options):
    frame = spark.read.format("iceberg-py").options(**options).load(table)
    return sorted(row.id for row in frame.collect())


rows = spark.range(0, 40, 1, 4)
rows.write.format("iceberg-py").options(**in_a_bucket).mode("append").save("db.c")
print(json.dumps([ids("db.c", {**in_a_bucket, "filter": "id >= 38"}), ids("db.events", reported)]))
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


@pytest.mark.once("4.1 has a client and a server in the test of the portable path")
@pytest.mark.cluster
def test_a_connect_client_reads_and_writes(server: str, tmp_path: Path) -> None:
    script = tmp_path / "client.py"
    script.write_text(PORTABLE, encoding="utf-8")
    printed = run_python(script, server, str(tmp_path))
    actual = json.loads(printed.splitlines()[-1])
    assert f"folder {tmp_path}/nothing holds no Iceberg table" in actual.pop("error")
    # The filtered count and the full count, the rows after an overwrite, and the frame loaded
    # before it.
    assert actual == {
        "session": "pyspark.sql.connect.session",
        "discovered": [[1, 5], [8], 5],
        "registered": [8],
    }


@pytest.mark.cluster
def test_connect_has_the_portable_path_and_one_line_says_so(server: str, tmp_path: Path) -> None:
    lake = lake_settings(tmp_path)
    catalog = load_catalog("lake", **lake)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id BIGINT")
    table.append(pa.table({"id": pa.array(range(5), pa.int64())}))
    script = tmp_path / "client.py"
    script.write_text(INSTALLED, encoding="utf-8")
    prefix = "spark.sql.catalog.lake"
    settings = json.dumps(
        {prefix: "iceberg_pyspark", **{f"{prefix}.{k}": v for k, v in lake.items()}}
    )
    printed = run_python(script, server, table.location, settings)
    actual = json.loads(printed.splitlines()[-1])
    (line,) = actual.pop("lines")
    assert line.startswith("no native scans in this session, the portable path serves: ")
    assert "\n" not in line
    assert actual == {
        "native": False,
        "path": [0, 1, 2, 3, 4],
        "name": [0, 1, 2, 3, 4],
        "format": [0, 1, 2],
    }


@pytest.mark.once("the options are those of the tests before, for other stores and catalogs")
@pytest.mark.cluster
def test_a_client_gives_keys_of_a_store_and_a_catalog_that_collects_reports(
    server: str, tmp_path: Path
) -> None:
    pytest.importorskip("obstore")
    source, script = Reported(tmp_path / "reported"), tmp_path / "client.py"
    script.write_text(WITH_OPTIONS, encoding="utf-8")
    with s3_server(tmp_path / "s3") as s3, http_server(configured(source)) as rest:
        warehouse = f"s3://{s3.new_bucket()}/{uuid.uuid4()}"
        own = {**lake_settings(tmp_path), "warehouse": warehouse}
        options = {"catalog": "lake", **{f"catalog.{k}": v for k, v in own.items()}}
        in_a_bucket = json.dumps({**options, **s3.properties()})
        reported = json.dumps(options_of(rest, filter="id = 1"))
        printed = run_python(script, server, in_a_bucket, reported)
        assert json.loads(printed.splitlines()[-1]) == [[38, 39], [1]]
        table = load_catalog("lake", **own, **s3.properties()).load_table("db.c")
        assert table.scan().count() == 40
        (report,) = reports(rest, 1)
    snapshot_id = source.loaded.metadata.current_snapshot_id
    assert scan_of(report) == ("scan-report", "lake.db.events", snapshot_id, 1, 1)
