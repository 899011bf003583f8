"""Tables in S3 through Spark: by the catalog of an installed session and by the portable path."""

from __future__ import annotations

import json
import logging
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import install, load_catalog
from iceberg_pyspark.formats.locations import location_provider
from iceberg_pyspark.spark.storage import jvm_access
from iceberg_pyspark.storage.objects import object_store_io
from iceberg_pyspark.storage.objects.object_store_io import ALLOW_UNSAFE_COMMITS
from tests.services.hadoop_aws import s3a_jars
from tests.services.s3 import ACCESS_KEY, S3Server, s3_server
from tests.services.s3rver import heedless_s3
from tests.spark.s3_application import LAYOUTS
from tests.spark.test_secrets import ROOT, setting_of_documentation
from tests.support.secret_forms import found_in
from tests.support.spark_sessions import run_process
from tests.support.streams import stream_and_check

pytestmark = pytest.mark.nightly

pytest.importorskip("obstore")

PREFIX = "spark.sql.catalog.bucket"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="module")
def bucket(s3: S3Server) -> str:
    return s3.new_bucket()


def catalogs(folder: Path, s3: S3Server, bucket: str) -> Iterator[dict[str, str]]:
    warehouse = f"s3://{bucket}/{uuid.uuid4()}"
    yield {"type": "hadoop", "warehouse": warehouse, **s3.properties()}
    uri = f"sqlite:///{folder}/catalog.db"
    yield {"type": "sql", "uri": uri, "warehouse": warehouse, **s3.properties()}


def rows_of(spark: SparkSession, query: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in spark.sql(query).collect())


@pytest.mark.parametrize("number", [0, 1], ids=["hadoop", "sql"])
def test_sql_on_a_catalog_whose_warehouse_is_a_bucket(
    spark: SparkSession,
    s3: S3Server,
    bucket: str,
    tmp_path: Path,
    number: int,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jvm_access, "_warnings", set())
    properties = list(catalogs(tmp_path, s3, bucket))[number]
    settings = {PREFIX: "iceberg_pyspark", **{f"{PREFIX}.{k}": v for k, v in properties.items()}}
    for key, value in settings.items():
        spark.conf.set(key, value)
    session = install(spark)
    try:
        with caplog.at_level(logging.WARNING):
            spark.sql("CREATE NAMESPACE bucket.db")
            spark.sql(
                "CREATE TABLE bucket.db.t (id BIGINT, day DATE, v STRING) "
                "PARTITIONED BY (months(day)) TBLPROPERTIES ('format-version' = '3')"
            )
            spark.sql(
                "INSERT INTO bucket.db.t SELECT id, date_add(DATE'2026-01-01', int(id * 10)), "
                "concat('v', id) FROM range(10)"
            )
            spark.range(8, 12).createOrReplaceTempView("changes")
            spark.sql(
                "MERGE INTO bucket.db.t t USING changes s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET v = 'changed' "
                "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'new')"
            )
            spark.sql("DELETE FROM bucket.db.t WHERE id = 3")
        expected = [(i, f"v{i}") for i in range(8) if i != 3]
        expected += [(8, "changed"), (9, "changed"), (10, "new"), (11, "new")]
        assert rows_of(spark, "SELECT id, v FROM bucket.db.t") == expected
        assert rows_of(spark, "SELECT count(*) FROM bucket.db.t WHERE day >= '2026-02-01'") == [
            (6,)
        ]
        files = rows_of(spark, "SELECT DISTINCT _file FROM bucket.db.t")
        assert all(
            str(file).startswith(f"{properties['warehouse']}/db/t/data/") for (file,) in files
        )
        lines = [r.getMessage() for r in caplog.records if "file system" in r.getMessage()]
        assert len(lines) == 1
        assert "--packages org.apache.hadoop:hadoop-aws" in lines[0]
    finally:
        session.uninstall()
        for key in settings:
            spark.conf.unset(key)


def test_streams_of_tables_in_a_bucket(
    spark: SparkSession, s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    properties = list(catalogs(tmp_path, s3, bucket))[1]
    settings = {PREFIX: "iceberg_pyspark", **{f"{PREFIX}.{k}": v for k, v in properties.items()}}
    for key, value in settings.items():
        spark.conf.set(key, value)
    session = install(spark)
    try:
        spark.sql("CREATE NAMESPACE bucket.streams")
        stream_and_check(spark, "bucket.streams", tmp_path)
        stream_and_check(spark, "bucket.streams", tmp_path, first=4)
    finally:
        session.uninstall()
        for key in settings:
            spark.conf.unset(key)


def test_sql_on_a_store_that_ignores_conditions_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store_io, "_honours_conditions", {})
    with heedless_s3(tmp_path) as server:
        properties = {"type": "hadoop", "warehouse": f"s3://{server.bucket}/wh"}
        properties |= server.properties()
        unsafe = load_catalog("lake", **properties, **{ALLOW_UNSAFE_COMMITS: "true"})
        unsafe.create_namespace("db")
        unsafe.create_table("db.t", "id BIGINT")
        before = server.names()
        for key, value in properties.items():
            spark.conf.set(f"spark.sql.catalog.heedless.{key}", value)
        spark.conf.set("spark.sql.catalog.heedless", "iceberg_pyspark")
        session = install(spark)
        try:
            for statement in (
                "CREATE TABLE heedless.db.other (id BIGINT)",
                "INSERT INTO heedless.db.t VALUES (1)",
            ):
                with pytest.raises(PySparkException, match="ignores the condition"):
                    spark.sql(statement)
        finally:
            session.uninstall()
            for key in ("", *(f".{key}" for key in properties)):
                spark.conf.unset(f"spark.sql.catalog.heedless{key}")
        assert server.names() == before
        assert len(server.probes()) == 2


def portable(properties: Mapping[str, str]) -> dict[str, str]:
    own = ("type", "uri", "warehouse")
    return {
        "catalog": "elsewhere",
        "native": "false",
        **{f"catalog.{k}" if k in own else k: v for k, v in properties.items()},
    }


@pytest.mark.parametrize("number", [0, 1], ids=["hadoop", "sql"])
def test_the_portable_path_reads_and_writes_a_bucket(
    spark: SparkSession, s3: S3Server, bucket: str, tmp_path: Path, number: int
) -> None:
    options = portable(list(catalogs(tmp_path, s3, bucket))[number])
    rows = spark.range(0, 100, numPartitions=3)
    for _ in range(2):
        rows.write.format("iceberg-py").options(**options).mode("append").save("db.t")
    read = spark.read.format("iceberg-py").options(**options, filter="id >= 95").load("db.t")
    assert sorted(row.id for row in read.collect()) == sorted([95, 96, 97, 98, 99] * 2)


def test_a_table_in_a_bucket_by_its_path(spark: SparkSession, s3: S3Server, bucket: str) -> None:
    location = f"s3://{bucket}/{uuid.uuid4()}/t"
    options = {"native": "false", **s3.properties()}
    rows = spark.range(5)
    rows.write.format("iceberg-py").options(**options).mode("append").save(location)
    read = spark.read.format("iceberg-py").options(**options).load(location)
    assert read.count() == 5


PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.spark.s3_application import main
main(Path(sys.argv[2]))
"""


def test_the_jvm_reads_and_writes_by_s3a_and_no_credential_is_shown(
    s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    """Hadoop's file system gets the catalog's keys per scan or write; no output shows the keys."""
    arguments = {
        "properties": s3.properties(),
        "warehouse": f"s3://{bucket}/{uuid.uuid4()}",
        "jars": [str(jar) for jar in s3a_jars()],
        "hiding": setting_of_documentation(),
    }
    (tmp_path / "given.json").write_text(json.dumps(arguments), encoding="utf-8")
    script = tmp_path / "application.py"
    script.write_text(PROGRAM, encoding="utf-8")
    printed = run_process([sys.executable, str(script), str(ROOT), str(tmp_path)], 400, errors=True)
    messages = json.loads((tmp_path / "shown.json").read_text("utf-8"))
    actual = messages["found"]

    rows = [i for i in range(500, 1000) if i % 10 != 3]
    assert actual["catalog ids"] == actual["portable ids"] == rows
    assert "IcebergPyParquetScan" in actual["catalog plan"]
    assert "MapInArrow" not in actual["catalog plan"]
    assert "NoAwsCredentialsException" in messages["shown"]["error no keys"]

    for layout in LAYOUTS:
        native, python = (actual[f"{layout} {writer}"] for writer in ("native", "python"))
        assert native["writers"] == ["parquet-mr"]
        assert python["writers"] == ["parquet-cpp-arrow"]
        assert native["rows"] == python["rows"]
        assert native["known"] == python["known"]
        folders, hidden = (
            {p.rpartition("/")[0].partition("/data/")[2] for p in of["paths"]}
            for of in (native, python)
        )
        assert len(native["paths"]) == len(python["paths"])
        if layout == "folders":
            assert folders == hidden
            assert {f.partition("/")[0] for f in folders} >= {"v=null", "v=%C3%A9+%2F%3D%2B1"}
        else:
            provider = location_provider("s3://b/t", {"write.object-storage.enabled": "true"})
            provider = replace(provider, partitioned_paths=layout == "hashed")
            for path in native["paths"]:
                below = path.partition("/data/")[2]
                # The name begins with hash digits in groups of 4, 4, 4 and 8; folders may follow.
                rest = below[len("0000/0000/0000/00000000") + 1 :]
                folder, _, name = rest.rpartition("/")
                assert provider.new_data_location(name, folder) == f"s3://b/t/data/{below}"
    assert actual["left by a failed job"] == []
    assert "bad row" in messages["shown"]["error bad row"]

    shown = {**messages["shown"], "printed": printed}
    secrets = {"key": ACCESS_KEY, "secret": s3.secret}
    assert {name: names for name, text in shown.items() if (names := found_in(text, secrets))} == {}
    # The searched logs do contain the settings of the secrets.
    assert "spark.sql.catalog.bucket.s3.secret-access-key" in shown["event log"]
    assert "S3AFileSystem" in printed or "s3a" in printed
