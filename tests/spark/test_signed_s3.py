"""Tables of a REST server that signs S3 requests: access by Python and by Spark's tasks."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import iceberg_pyspark as ice
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.table.table_storage import table_io
from tests.services import rest_fixture
from tests.services.iceberg_aws import s3_file_io_jars
from tests.services.s3 import ACCESS_KEY, REGION, S3Server, s3_server
from tests.support.http_server import Reply, Request, http_server
from tests.support.rest_front import forwarded
from tests.support.signer_double import SignerDouble

CATALOG_TOKEN = "Zq1-of-the-catalog"
TABLE_TOKEN = "Zq2-of-the-table"


@dataclass
class SigningCatalog:
    """The server; `token` is the token that it returns with a table."""

    s3: S3Server
    behind: str
    signer: SignerDouble
    token: str | None = TABLE_TOKEN
    uri: str = ""
    client: httpx.Client = field(default_factory=httpx.Client)

    @property
    def properties(self) -> dict[str, str]:
        """Properties of a catalog that logs in with a token; they contain no key of the store."""
        return {"type": "rest", "uri": self.uri, "token": CATALOG_TOKEN}

    def __call__(self, request: Request) -> Reply:
        if request.path.endswith("/sign"):
            return self.signer(request)

        def let_it_sign(table: dict[str, Any]) -> None:
            table["config"] = {
                "s3.remote-signing-enabled": "true",
                "s3.signer.endpoint": f"{request.path.rstrip('/')}/sign".lstrip("/"),
                "s3.endpoint": self.s3.endpoint,
                "s3.region": REGION,
                **({} if self.token is None else {"token": self.token}),
            }

        names = ("content-type", "x-iceberg-access-delegation", "accept")
        return forwarded(self.client, self.behind, request, names, let_it_sign)


@contextlib.contextmanager
def signing_catalog(s3: S3Server, folder: Path) -> Iterator[SigningCatalog]:
    """Yield a catalog whose tables are in a new bucket."""
    own = {
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "warehouse": f"s3://{s3.new_bucket()}/lake",
        **s3.properties(),
        "client.region": REGION,
    }
    signer = SignerDouble(ACCESS_KEY, s3.secret, {CATALOG_TOKEN, TABLE_TOKEN}, cache="private")
    jars = s3_file_io_jars(rest_fixture.VERSION)
    with rest_fixture.rest_server(folder, own, jars) as server:
        catalog = SigningCatalog(s3, server.endpoint, signer)
        with http_server(catalog) as front:
            catalog.uri = front.uri
            yield catalog


pytestmark = pytest.mark.nightly

PREFIX = "spark.sql.catalog.signed"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SigningCatalog]:
    folder = tmp_path_factory.mktemp("signed")
    with s3_server(folder / "s3") as s3, signing_catalog(s3, folder) as catalog:
        yield catalog


def test_python_creates_appends_reads_and_deletes(server: SigningCatalog) -> None:
    lake = ice.load_catalog("signed", **server.properties)
    lake.create_namespace("py")
    table = lake.create_table("py.events", schema="id BIGINT, v STRING")
    server.signer.signed.clear()
    table.append(pa.table({"id": [1, 3], "v": ["a", "c"]}))
    table.append(pa.table({"id": [4], "v": ["d"]}))
    table.delete("id = 4")
    actual = lake.load_table("py.events").scan().to_arrow()
    assert sorted(actual["id"].to_pylist()) == [1, 3]
    assert {s["asked-by"] for s in server.signer.signed} == {TABLE_TOKEN}
    assert {s["method"] for s in server.signer.signed} >= {"GET", "PUT"}
    loaded = lake.catalog.load_table(TableIdentifier(namespace=("py",), name="events"))
    sent = pickle.dumps(table_io(loaded))
    for secret in (server.s3.secret, CATALOG_TOKEN):
        assert secret.encode() not in sent
        assert secret not in repr(loaded)
    server.token = None
    try:
        alone = ice.load_catalog("alone", **server.properties).load_table("py.events")
        assert alone.scan().to_arrow().num_rows == 2
        again = ice.load_catalog("again", **server.properties).catalog
        io = table_io(again.load_table(TableIdentifier(namespace=("py",), name="events")))
        with pytest.raises(UnsupportedFeatureError, match=r"py\.events.*issued no token"):
            pickle.dumps(io)
    finally:
        server.token = TABLE_TOKEN


def test_tasks_of_spark_read_and_write(
    spark: SparkSession, server: SigningCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    session = spark.newSession()
    session.conf.set(PREFIX, "iceberg_pyspark")
    for name, value in server.properties.items():
        session.conf.set(f"{PREFIX}.{name}", value)
    installed = ice.install(session)
    try:
        session.sql("CREATE NAMESPACE signed.db")
        session.sql("CREATE TABLE signed.db.t (id BIGINT, v STRING)")
        session.sql("INSERT INTO signed.db.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        server.signer.signed.clear()
        session.sql("DELETE FROM signed.db.t WHERE id = 2")
        rows = session.sql("SELECT id FROM signed.db.t ORDER BY id").collect()
        assert [r.id for r in rows] == [1, 3]
    finally:
        installed.uninstall()
    # The portable data source also works if nothing is installed.
    options = {f"catalog.{name}": value for name, value in server.properties.items()}
    options["catalog"] = "signed"
    read = session.read.format("iceberg-py").options(**options).load("db.t")
    assert sorted(r.id for r in read.collect()) == [1, 3]
    rows_to_add = session.createDataFrame([(4, "d")], "id BIGINT, v STRING")
    rows_to_add.write.format("iceberg-py").options(**options).mode("append").save("db.t")
    lake = ice.load_catalog("signed", **server.properties)
    assert sorted(lake.load_table("db.t").scan().to_arrow()["id"].to_pylist()) == [1, 3, 4]
    assert {s["asked-by"] for s in server.signer.signed} == {TABLE_TOKEN}
    messages = [r for r in caplog.messages if "the catalog's server signs the requests" in r]
    assert len(messages) == 1
    for secret in (server.s3.secret, CATALOG_TOKEN, TABLE_TOKEN):
        assert secret not in caplog.text
