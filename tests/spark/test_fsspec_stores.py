"""Stores that only fsspec reaches: Python reads and writes there."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark import install
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.spark.storage import jvm_access
from tests.services.sftp import SftpServer, sftp_server
from tests.services.webdav import WebdavServer, webdav_server
from tests.support.deleted_rows import delete_keys
from tests.support.native_lake import plan_of, sqlite_conf
from tests.support.table_integrity import table_problems


@pytest.fixture(scope="module", params=["webdav", "sftp"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebdavServer | SftpServer]:
    folder = tmp_path_factory.mktemp(request.param)
    with webdav_server(folder) if request.param == "webdav" else sftp_server(folder) as server:
        yield server


@pytest.fixture(scope="module")
def session(
    spark: SparkSession,
    server: WebdavServer | SftpServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[IcebergSession]:
    prefix = "spark.sql.catalog.remote"
    settings = {
        **sqlite_conf("remote", tmp_path_factory.mktemp("catalog")),
        f"{prefix}.warehouse": server.new_folder(),
        f"{prefix}.py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
        f"{prefix}.read.allow-outside-locations": "true",
        **{f"{prefix}.{name}": value for name, value in server.properties.items()},
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    installed = install(spark)
    spark.sql("create namespace remote.db")
    yield installed
    installed.uninstall()
    for key in settings:
        spark.conf.unset(key)


def ids(first: int, end: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, end), pa.int64())})


def sorted_ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.collect())


def test_statements_read_and_write_by_python(
    session: IcebergSession,
    server: WebdavServer | SftpServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jvm_access, "_warnings", set())
    spark = session.spark
    spark.sql("create table remote.db.t (id bigint, day date) partitioned by (day)")
    with caplog.at_level(logging.WARNING):
        spark.sql("insert into remote.db.t select id, date'2026-01-01' from range(10)")
        spark.range(10, 20).selectExpr("id", "date'2026-01-02' day").writeTo("remote.db.t").append()
        frame = spark.table("remote.db.t").filter("id >= 5")
        plan = plan_of(frame)
        assert "IcebergPyParquetScan" not in plan
        assert sorted_ids(frame) == list(range(5, 20))
    scheme = "webdav" if isinstance(server, WebdavServer) else "sftp"
    lines = [r.getMessage() for r in caplog.records if "file system" in r.getMessage()]
    assert lines == [f"the JVM has no file system for {scheme}://; Python reads and writes there"]
    assert server.password not in plan
    spark.sql("delete from remote.db.t where id % 10 = 3")
    spark.sql("update remote.db.t set id = 100 where id = 19")
    spark.sql(
        "merge into remote.db.t t using (select id, date'2026-01-03' day from range(4)) s "
        "on t.id = s.id when matched then delete when not matched then insert *"
    )
    assert sorted_ids(spark.table("remote.db.t")) == [*range(3, 13), *range(14, 19), 100]
    table = session.table("remote.db.t")
    assert table.location.startswith(f"{scheme}://")
    assert table_problems(table) == []


def test_the_part_of_a_table_in_another_store_is_read_by_python(
    session: IcebergSession, server: WebdavServer | SftpServer, tmp_path: Path
) -> None:
    session.spark.sql(f"create table remote.db.mixed (id bigint) location '{tmp_path}/mixed'")
    table = session.table("remote.db.mixed")
    table.append(ids(0, 3))
    table.update_properties().set({"write.data.path": f"{server.new_folder()}/data"}).commit()
    table.append(ids(3, 6))
    delete_keys(table, "id", [1, 4])
    table.append(ids(6, 8))
    frame = session.spark.table("remote.db.mixed").filter("id > 0")
    plan = plan_of(frame)
    assert plan.count("IcebergPyParquetScan") == 1
    assert plan.count("MapInArrow") == 1
    assert sorted_ids(frame) == [2, 3, 5, 6, 7]
    # the part that Python reads has a size too, so Spark can broadcast a small table
    assert frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes() < 2**20
