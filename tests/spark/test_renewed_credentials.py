"""Vended credentials that expire while tasks on executors read and write, of the JVM and of Python.

S3 has keys of a REST catalog, which tasks of the JVM use by S3A; Google and Azure have tokens.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.services.azurite import ACCOUNT, azure_server
from tests.services.gcs import google_server
from tests.services.gcs_connector import connector_jar
from tests.services.hadoop_aws import s3a_jars
from tests.services.hadoop_azure import abfs_jar
from tests.support.expiring_keys import LIFETIME_S, REFUSAL, ExpiringKeys
from tests.support.http_server import Reply, Request, http_server
from tests.support.spark_sessions import SPARK_HOME, run_driver, standalone_cluster
from tests.support.vending_catalog import LOGIN_TOKEN, TABLE_TOKEN, vending_catalog


@dataclass
class VendingStore:
    """A store; `/vend` at `source` returns new properties, `/phase/<name>` begins a phase."""

    warehouse: str
    issue: Callable[[int], tuple[str, dict[str, str]]]
    """Return a credential that is valid until an epoch second, and the properties with it."""

    keys: ExpiringKeys = field(default_factory=ExpiringKeys)
    source: str = ""

    def __call__(self, request: Request) -> Reply:
        if request.path.startswith("/phase/"):
            self.keys.begin(request.path.removeprefix("/phase/"))
            return Reply(200, {})
        if not self.keys.vends:
            return Reply(403, REFUSAL)
        end_s = math.ceil(time.time()) + LIFETIME_S - 1
        credential, properties = self.issue(end_s)
        self.keys.add(credential, end_s)
        return Reply(200, properties)


@contextlib.contextmanager
def google_store(folder: Path) -> Iterator[VendingStore]:
    """Yield a store with tokens, which reports the requests of Google's connector for Hadoop."""
    with google_server(folder) as google:

        def issue(end_s: int) -> tuple[str, dict[str, str]]:
            token = f"ya29.Zq-{uuid.uuid4().hex}"
            return token, {
                "gcs.service.host": google.endpoint,
                "gcs.oauth2.token": token,
                "gcs.oauth2.token-expires-at": f"{end_s}000",
            }

        store = VendingStore(f"gs://{google.new_bucket()}/lake", issue)
        google.front.tokens = store.keys.accepted

        def report(request: Request, is_served: bool) -> bool:
            name = f"{request.path} {request.query} {request.body[:1000]!r}"
            if is_served and ".parquet" in name and "GHFS" in request.headers["user-agent"]:
                kind = "read" if request.query.get("alt") == ["media"] else "write"
                token = request.headers["authorization"].removeprefix("Bearer ")
                store.keys.serve(kind, token)
            return False

        google.front.loses = report
        with http_server(store) as source:
            store.source = source.uri
            yield store


@contextlib.contextmanager
def azure_store(folder: Path) -> Iterator[VendingStore]:
    """Yield a store with SAS tokens, which reports the requests of Hadoop's file system."""
    with azure_server(folder) as azure:
        container = azure.new_container()

        def issue(end_s: int) -> tuple[str, dict[str, str]]:
            authority = azure.endpoint.removeprefix("http://").removesuffix(f"/{ACCOUNT}")
            # The server would refuse requests that are under way; `keys.late` has later ones.
            token = azure.sas_token(container, end_s + 60)
            return parse_qs(token)["sig"][0], {
                "adls.blob-storage-authority": authority,
                "adls.blob-storage-scheme": "http",
                f"adls.sas-token.{ACCOUNT}": token,
                f"adls.sas-token-expires-at-ms.{ACCOUNT}": f"{end_s}000",
            }

        place = f"abfss://{container}@{ACCOUNT}.dfs.core.windows.net/lake"
        store = VendingStore(place, issue)

        def report(request: Request, is_served: bool) -> bool:
            is_jvm = "Azure Blob FS" in request.headers.get("user-agent", "")
            if is_served and is_jvm and ".parquet" in request.path:
                kind = {"GET": "read", "PUT": "write"}.get(request.method, "")
                store.keys.serve(kind, request.query["sig"][0])
            return False

        azure.front.loses = report
        with http_server(store) as source:
            store.source = source.uri
            yield store


pytestmark = pytest.mark.nightly

pytest.importorskip("obstore")

DRIVER = """
import json, os, sys, urllib.error, urllib.request
from concurrent.futures import ThreadPoolExecutor
from pyspark.sql import SparkSession
from iceberg_pyspark import install
from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.spark.bridge import jvm
from iceberg_pyspark.storage.credentials.credential_renewal import (
    RENEWAL, SOURCES, Renewal, with_credentials_of
)


class Source:
    def __init__(self, uri):
        self.uri = uri
        SOURCES.register(uri, self)

    def vended(self, path="/vend"):
        try:
            with urllib.request.urlopen(self.uri + path) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            raise StorageError(error.read().decode()) from None

    def renew(self, properties):
        return with_credentials_of(properties, self.vended())


def configure(name, settings):
    spark.conf.set(f"spark.sql.catalog.{name}", "iceberg_pyspark")
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{name}.{key}", value)
    spark.sql(f"CREATE NAMESPACE {name}.db")


def create(table, columns="id BIGINT", partitioned=""):
    spark.sql(f"CREATE TABLE {table} ({columns}) USING iceberg {partitioned} "
              "TBLPROPERTIES ('write.distribution-mode' = 'none')")


def read(table):
    frame = spark.table(table)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return ["IcebergPyParquetScan" in plan, sorted(row.id for row in frame.collect())]


def refusal_of(table):
    try:
        return read(table)
    except Exception as error:
        return str(error)


def tokens(name, uri, warehouse):
    source = Source(uri)
    database = f"sqlite:///{sys.argv[2]}/{name}.db"
    renewal = Renewal(source=uri).to_text()
    settings = {"type": "sql", "uri": database, "warehouse": warehouse, RENEWAL: renewal}
    configure(name, {**settings, **source.vended()})
    for table in ("t", "other"):
        create(f"{name}.db.{table}", "id BIGINT, v STRING", "PARTITIONED BY (v)")
    odd = "concat('é /=', id % 2) v"
    spark.range(0, 4, 1, 4).selectExpr("id", odd).writeTo(f"{name}.db.other").append()
    source.vended("/phase/write")
    spark.range(0, 40, 1, 4).selectExpr("id", odd).writeTo(f"{name}.db.t").append()
    source.vended("/phase/read")
    rows = read(f"{name}.db.t")
    source.vended("/phase/refuse")
    return {"rows": rows, "refused": refusal_of(f"{name}.db.other")}


def keys():
    settings = json.loads(os.environ["VENDING_CATALOG"])
    configure("lake", settings)

    def phase(name):
        urllib.request.urlopen(f"{settings['uri']}/phase/{name}").read()

    for table in ("t", "other", "portable"):
        create(f"lake.db.{table}")
    # S3A may cache the content of files that it has read once.
    spark.range(0, 4, 1, 4).writeTo("lake.db.other").append()
    phase("write")
    spark.range(0, 40, 1, 4).writeTo("lake.db.t").append()
    phase("read")
    rows = read("lake.db.t")
    portable = {f"catalog.{key}": value for key, value in settings.items()}
    portable |= {"native": "false", "catalog": "python"}
    phase("write%20portable")
    frame = spark.range(0, 40, 1, 4)
    frame.write.format("iceberg-py").options(**portable).mode("append").save("db.portable")
    phase("read%20portable")
    again = spark.read.format("iceberg-py").options(**portable).load("db.portable")
    in_python = sorted(row.id for row in again.collect())
    phase("refuse")
    return {"rows": rows, "portable": in_python, "refused": refusal_of("lake.db.other")}


spark = SparkSession.builder.getOrCreate()
assert install(spark).is_native
gateway = spark.sparkContext._gateway
assert vars(gateway).get("_callback_server") is None, "installing opens no port to everybody"
port, _client = jvm._callbacks[gateway]
with ThreadPoolExecutor() as pool:  # while one store waits, the others have the processor
    jobs = {"s3": pool.submit(keys)}
    for name, place in json.loads(sys.argv[1]).items():
        jobs[name] = pool.submit(tokens, name, *place)
results = {name: job.result() for name, job in jobs.items()}
results["port"] = [port._token, port._target]
print(json.dumps({"application": spark.sparkContext.applicationId, **results}))
"""


@pytest.mark.parametrize("kind", ["local-cluster[1,3,768]", "standalone"])
def test_tasks_renew_credentials_by_the_driver(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Executors have S3A from the session, or on their class path as installations have it."""
    script = tmp_path / "driver.py"
    script.write_text(DRIVER, encoding="utf-8")
    (tmp_path / "log").mkdir()
    # Spark has a Netty, which must not be another one.
    s3a = [str(jar) for jar in s3a_jars() if not jar.name.startswith("netty-")]
    conf = {
        "spark.task.maxFailures": "1",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (tmp_path / "log").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.hadoop.fs.s3a.attempts.maximum": "2",
        "spark.hadoop.fs.azure.io.retry.max.retries": "1",
    }
    stores: dict[str, VendingStore] = {}
    with contextlib.ExitStack() as stack:
        if kind == "standalone":
            cluster = standalone_cluster(tmp_path / "cluster", workers=2, cores=1)
            master = stack.enter_context(cluster)
            for process in ("driver", "executor"):
                conf[f"spark.{process}.extraClassPath"] = ":".join(s3a)
        else:
            master = kind
            conf["spark.jars"] = ",".join([*s3a, str(connector_jar()), str(abfs_jar())])
            stores["google"] = stack.enter_context(google_store(tmp_path))
            stores["azure"] = stack.enter_context(azure_store(tmp_path))
        catalog = stack.enter_context(vending_catalog(tmp_path))
        # Arguments would be in the event log, which is searched for secrets.
        monkeypatch.setenv("VENDING_CATALOG", json.dumps(catalog.properties))
        places = {name: [store.source, store.warehouse] for name, store in stores.items()}
        printed = run_driver(
            tmp_path, script, json.dumps(places), str(tmp_path), master=master, conf=conf
        )
    actual: dict[str, Any] = json.loads(printed.splitlines()[-1])
    assert actual["s3"]["portable"] == list(range(40))
    keys_of = {name: (store.warehouse, store.keys) for name, store in stores.items()}
    keys_of["s3"] = ("s3://bucket/lake", catalog.keys)
    for name, (warehouse, keys) in keys_of.items():
        assert actual[name]["rows"] == [True, list(range(40))], name
        phases = {"write", "read"} | ({"write portable", "read portable"} & keys.used.keys())
        for phase in phases:
            # The first credential, which lives until all expire, and another one later.
            assert len(set(keys.used[phase])) > 1, (name, phase)
        assert keys.late == [], name
        error = actual[name]["refused"]
        place = warehouse.removesuffix("/lake")
        assert f"the credentials that the catalog vended for {place} expired at" in error
        assert REFUSAL in error
        assert "remove the cause, and run the statement again" in error
    assert {"write portable", "read portable"} < catalog.keys.used.keys()
    # Executors have no token of the catalog: tasks of the JVM ask the driver, and tasks of Python
    # have the table's own token.
    assert catalog.asked_by == {f"Bearer {LOGIN_TOKEN}", f"Bearer {TABLE_TOKEN}"}
    work = tmp_path / "cluster" / "work" if kind == "standalone" else SPARK_HOME / "work"
    everything = [
        f for folder in (tmp_path, work / actual["application"]) for f in folder.rglob("*")
    ]
    # Azurite logs the requests that it gets.
    own = [f for f in everything if f.suffix != ".jar" and f.name != "azurite.log"]
    recorded = [f for f in own if f.is_file()]
    names = {file.name.partition("-")[0].partition("_")[0] for file in recorded}
    assert {"stderr", "events"} <= names
    secrets = re.compile(rb"Zq[0-9]-(of|secret|session)|Zq-[0-9a-f]|sig=[^*]")
    assert secrets.search(LOGIN_TOKEN.encode())
    of_files = {str(f): f.read_bytes() for f in recorded}
    texts = {"printed": printed.encode(), **of_files}
    assert [name for name, text in texts.items() if secrets.search(text)] == []
    # The secrets of the port on which the JVM calls Python.
    of_port = re.compile("|".join(map(re.escape, actual["port"])).encode())
    assert [name for name, text in of_files.items() if of_port.search(text)] == []
