"""Vended credentials of Google and Azure that expire while tasks of the JVM read and write."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.services.azurite import ACCOUNT, azure_server
from tests.services.gcs import google_server
from tests.services.gcs_connector import connector_jar
from tests.services.hadoop_azure import abfs_jar
from tests.support.http_server import Request, http_server
from tests.support.spark_sessions import run_driver
from tests.support.vending_source import REFUSAL, VendingSource

pytest.importorskip("obstore")

DRIVER = """
import json, sys, urllib.error, urllib.request
from pyspark.sql import SparkSession
from iceberg_pyspark import install
from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.credential_renewal import (
    RENEWAL, Renewal, register_source, with_credentials_of
)


class Source:
    def __init__(self, uri):
        self.uri = uri
        register_source(uri, self)

    def vended(self, path="/vend"):
        try:
            with urllib.request.urlopen(self.uri + path) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            raise StorageError(json.load(error)) from None

    def renew(self, properties):
        return with_credentials_of(properties, self.vended())


def read(table):
    frame = spark.table(table)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return ["IcebergPyParquetScan" in plan, sorted(row.id for row in frame.collect())]


def job(name, uri, warehouse):
    source = Source(uri)
    prefix = f"spark.sql.catalog.{name}"
    settings = {"type": "sql", "uri": f"sqlite:///{sys.argv[2]}/{name}.db", "warehouse": warehouse,
                RENEWAL: Renewal(source=uri).to_text(), **source.vended()}
    spark.conf.set(prefix, "iceberg_pyspark")
    for key, value in settings.items():
        spark.conf.set(f"{prefix}.{key}", value)
    spark.sql(f"CREATE NAMESPACE {name}.db")
    for table in ("t", "other"):
        spark.sql(f"CREATE TABLE {name}.db.{table} (id BIGINT, v STRING) USING iceberg "
                  "PARTITIONED BY (v) TBLPROPERTIES ('write.distribution-mode' = 'none')")
    odd = "concat('é /=', id % 2) v"
    spark.range(0, 4, 1, 4).selectExpr("id", odd).writeTo(f"{name}.db.other").append()
    source.vended("/phase/write")
    spark.range(0, 40, 1, 4).selectExpr("id", odd).writeTo(f"{name}.db.t").append()
    source.vended("/phase/read")
    rows = read(f"{name}.db.t")
    source.vended("/phase/refuse")
    try:
        return {"rows": rows, "refused": read(f"{name}.db.other")}
    except Exception as error:
        return {"rows": rows, "refused": str(error)}


spark = SparkSession.builder.getOrCreate()
assert install(spark).is_native
print(json.dumps({name: job(name, *where) for name, where in json.loads(sys.argv[1]).items()}))
"""


@dataclass(frozen=True)
class Vended:
    """A store whose credentials expire."""

    warehouse: str
    source: VendingSource
    secrets: list[str] = field(default_factory=list)


@contextlib.contextmanager
def google_store(folder: Path) -> Iterator[Vended]:
    with google_server(folder) as google:
        tokens: set[str] = set()
        google.front.tokens = tokens

        def issue(end_s: int) -> dict[str, str]:
            token = f"ya29.Zq-{uuid.uuid4().hex}"
            tokens.add(token)
            return {
                "gcs.service.host": google.endpoint,
                "gcs.oauth2.token": token,
                "gcs.oauth2.token-expires-at": f"{end_s}000",
            }

        source = VendingSource(issue, tokens.clear)

        def hold(request: Request, is_served: bool) -> bool:
            name = f"{request.path} {request.query} {request.body[:1000]!r}"
            if is_served and ".parquet" in name and "GHFS" in request.headers["user-agent"]:
                kind = "read" if request.query.get("alt") == ["media"] else "write"
                source.served(kind, request.headers["authorization"])
            return False

        google.front.loses = hold
        yield Vended(f"gs://{google.new_bucket()}/lake", source)


@contextlib.contextmanager
def azure_store(folder: Path) -> Iterator[Vended]:
    with azure_server(folder) as azure:
        container = azure.new_container()

        def issue(end_s: int) -> dict[str, str]:
            authority = azure.endpoint.removeprefix("http://").removesuffix(f"/{ACCOUNT}")
            return {
                "adls.blob-storage-authority": authority,
                "adls.blob-storage-scheme": "http",
                f"adls.sas-token.{ACCOUNT}": azure.sas_token(container, end_s),
                f"adls.sas-token-expires-at-ms.{ACCOUNT}": f"{end_s}000",
            }

        source = VendingSource(issue)

        def hold(request: Request, is_served: bool) -> bool:
            is_jvm = "Azure Blob FS" in request.headers.get("user-agent", "")
            if is_served and is_jvm and ".parquet" in request.path:
                kind = {"GET": "read", "PUT": "write"}.get(request.method, "")
                source.served(kind, request.query["sig"][0])
            return False

        azure.front.loses = hold
        yield Vended(f"abfss://{container}@{ACCOUNT}.dfs.core.windows.net/lake", source)


@pytest.mark.cluster
def test_tasks_renew_the_tokens_of_google_and_azure_by_the_driver(tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(DRIVER, encoding="utf-8")
    conf = {
        "spark.jars": f"{connector_jar()},{abfs_jar()}",
        "spark.task.maxFailures": "1",
        "spark.hadoop.fs.azure.io.retry.max.retries": "1",
    }
    with contextlib.ExitStack() as stack:
        stores = {
            "google": stack.enter_context(google_store(tmp_path)),
            "azure": stack.enter_context(azure_store(tmp_path)),
        }
        places = {
            name: [stack.enter_context(http_server(store.source)).uri, store.warehouse]
            for name, store in stores.items()
        }
        printed = run_driver(
            tmp_path,
            script,
            json.dumps(places),
            str(tmp_path),
            master="local-cluster[1,1,768]",
            conf=conf,
        )
    actual: dict[str, Any] = json.loads(printed.splitlines()[-1])
    for name, store in stores.items():
        assert actual[name]["rows"] == [True, list(range(40))], name
        for phase in ("write", "read"):
            # One token for the first file, which lives until all expire, and another one later.
            assert len(set(store.source.used[phase])) > 1, (name, phase)
        error = actual[name]["refused"]
        place = store.warehouse.removesuffix("/lake")
        assert f"the credentials that the catalog vended for {place} expired at" in error
        assert REFUSAL in error
        assert "remove the cause, and run the statement again" in error
        assert "Zq" not in printed
        assert "sig=" not in printed
