"""Stores that the JVM knows by another scheme, needs properties for, or does not know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from obstore.store import LocalStore
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark import install
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.storage.objects import object_stores
from tests.support.deleted_rows import delete_keys
from tests.support.file_commits import commit_append
from tests.support.frames import refusal
from tests.support.native_lake import plan_of, sqlite_conf
from tests.support.spark_settings import configured

PREFIX = "spark.sql.catalog.stores"
BUCKETS_OF_THE_JVM = """
import java.io.File;
import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;

/** Buckets are folders, for those who bring the key. */
public class IcebergPyTestBuckets extends RawLocalFileSystem {
  private URI uri;
  public void initialize(URI name, Configuration conf) throws IOException {
    uri = name;
    super.initialize(name, conf);
    if (!"open sesame".equals(conf.get("fs.s3a.secret.key"))) throw new IOException("no key");
  }
  public URI getUri() { return uri == null ? super.getUri() : uri; }
  public File pathToFile(Path path) {
    return new File("FOLDER/" + uri.getHost() + path.toUri().getPath());
  }
  public FileStatus getFileStatus(Path path) throws IOException {
    return new FileStatus(pathToFile(path).length(), false, 1, 1024L, 0L, path);
  }
}
"""


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    folder = tmp_path_factory.mktemp("stores")
    settings = {
        **sqlite_conf("stores", folder),
        f"{PREFIX}.read.allow-outside-locations": "true",
        f"{PREFIX}.s3.access-key-id": "ali",
        f"{PREFIX}.s3.secret-access-key": "open sesame",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    installed = install(spark)
    spark.sql("create namespace stores.db")
    yield installed
    installed.uninstall()
    for key in settings:
        spark.conf.unset(key)


def make_known(spark: SparkSession, name: str, source: str, folder: Path) -> None:
    """Compile a Java class and add it to the driver's class path."""
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.cook(source)
    (folder / f"{name}.class").write_bytes(bytes(compiler.getBytecodes()[name]))
    loader.addURL(jvm.java.io.File(str(folder)).toURI().toURL())


def ids(first: int, end: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, end), pa.int64())})


def sorted_ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.collect())


def test_s3_is_read_as_s3a_with_keys_for_its_own_files_alone(
    session: IcebergSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = session.spark
    name = "IcebergPyTestBuckets"
    make_known(spark, name, BUCKETS_OF_THE_JVM.replace("FOLDER", str(tmp_path)), tmp_path)
    # Python sees the same buckets.
    monkeypatch.setattr(
        object_stores, "_store", lambda _kind, bucket, *_: LocalStore(tmp_path / bucket, mkdir=True)
    )
    spark.conf.set("fs.s3a.impl", name)
    try:
        spark.sql(
            "create table stores.db.bucket (id bigint) "
            "tblproperties ('write.data.path' = 's3://cave/gold')"
        )
        table = session.table("stores.db.bucket")
        table.append(ids(0, 4))
        delete_keys(table, "id", [2])
        files = [f.file_path for f in table.scan().plan_files()]
        assert files[0].startswith("s3://cave/gold/")
        frame = spark.table("stores.db.bucket").select("id", "_file")
        assert "MapInArrow" not in plan_of(frame)
        assert sorted(tuple(row) for row in frame.collect()) == [(i, files[0]) for i in (0, 1, 3)]
        # A direct read of the path, outside the table, needs its own keys.
        with pytest.raises(Exception, match="no key"):
            spark.read.schema("id long").parquet(files[0].replace("s3:", "s3a:")).collect()
        assert spark.conf.get("fs.s3a.secret.key", None) is None
    finally:
        spark.conf.unset("fs.s3a.impl")


@pytest.mark.nightly
def test_s3_is_read_by_the_session_s_own_s3a_where_the_catalog_has_no_keys(
    session: IcebergSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = session.spark
    name = "IcebergPyTestOpenBuckets"
    source = BUCKETS_OF_THE_JVM.replace("IcebergPyTestBuckets", name)
    source = source.replace('"open sesame".equals(', '"of the session".equals(')
    make_known(spark, name, source.replace("FOLDER", str(tmp_path)), tmp_path)
    monkeypatch.setattr(
        object_stores, "_store", lambda _kind, bucket, *_: LocalStore(tmp_path / bucket, mkdir=True)
    )
    settings = {
        "fs.s3a.impl": name,
        "fs.s3a.secret.key": "of the session",
        "spark.sql.catalog.keyless": "iceberg_pyspark",
        "spark.sql.catalog.keyless.type": "sql",
        "spark.sql.catalog.keyless.uri": f"sqlite:///{tmp_path / 'catalog.db'}",
        "spark.sql.catalog.keyless.warehouse": str(tmp_path),
        "spark.sql.catalog.keyless.read.allow-outside-locations": "true",
    }
    with configured(spark, settings):
        spark.sql("create namespace keyless.db")
        spark.sql(
            "create table keyless.db.t (id bigint) "
            "tblproperties ('write.data.path' = 's3://open/gold é')"
        )
        session.table("keyless.db.t").append(ids(0, 4))
        frame = spark.table("keyless.db.t").selectExpr("id", "_file", "input_file_name()")
        assert "IcebergPyParquetScan" in plan_of(frame)
        rows = sorted(tuple(row) for row in frame.collect())
        assert [row[0] for row in rows] == [0, 1, 2, 3]
        [(location, name_in_spark)] = {row[1:] for row in rows}
        assert location.startswith("s3://open/gold é/")
        assert unquote(name_in_spark) == location.replace("s3:", "s3a:")


def test_a_scheme_that_the_jvm_knows_and_no_table_may_name_is_refused(
    session: IcebergSession,
) -> None:
    """Hadoop would open the location and connect to a host that the table chose."""
    session.spark.sql("create table stores.db.har (id bigint)")
    table = session.table("stores.db.har")
    added = DataFile(
        file_path="har://hdfs-127.0.0.1:9/f.har/f.parquet", record_count=1, file_size_in_bytes=9
    )
    commit_append(table.catalog, table.loaded, table.io, [added])
    frame = session.spark.table("stores.db.har")
    assert "IcebergPyParquetScan" not in plan_of(frame)
    error, text = refusal(frame.collect)
    assert error == "StorageError"
    assert "scheme 'har' is not supported" in text
