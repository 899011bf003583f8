from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark import install
from tests.services.rest_fixture import rest_server
from tests.support.data_source_steps import read_by_steps
from tests.support.oracle import bring_local_files
from tests.support.read_paths import Read, ReadPath, read_natively
from tests.support.spark_sessions import start_session


@dataclass(frozen=True)
class Configured:
    """The configuration that Spark's Python workers read; they inherit the JVM's environment."""

    home: Path
    """The folder of `.pyiceberg.yaml`; every query reads that file again."""
    warehouse: Path
    """The warehouse of the catalog `from-env`, which environment variables configure."""


_NO_WAITS_FOR_NODES = """<configuration>
<property><name>dfs.client.failover.sleep.base.millis</name><value>1</value></property>
<property><name>dfs.client.failover.sleep.max.millis</name><value>1</value></property>
</configuration>
"""
"""Hadoop's configuration: where no name node listens, its client for Python waits seconds."""


@pytest.fixture(scope="session")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Configured]:
    """Set the environment variables before the Spark session of all tests starts."""
    result = Configured(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("from-env"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYICEBERG_HOME", str(result.home))
        hadoop = result.home / "etc" / "hadoop"
        hadoop.mkdir(parents=True)
        (hadoop / "hdfs-site.xml").write_text(_NO_WAITS_FOR_NODES, encoding="utf-8")
        patch.setenv("HADOOP_HOME", str(result.home))
        patch.setenv("PYICEBERG_CATALOG__FROM_ENV__TYPE", "hadoop")
        patch.setenv("PYICEBERG_CATALOG__FROM_ENV__WAREHOUSE", str(result.warehouse))
        yield result


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory, configured: Configured
) -> Iterator[SparkSession]:
    """Yield one classic Spark session on local[2] for all tests of this folder."""
    bring_local_files()
    session = start_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def rest_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a REST catalog; each file of tests has namespaces of its own in it."""
    with rest_server(tmp_path_factory.mktemp("rest")) as server:
        yield server.endpoint


@pytest.fixture(scope="module", params=["portable", "native"])
def read_path(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[ReadPath]:
    """Run a test twice: `format("iceberg-py")` is read by Python workers, then natively.

    Both paths see the same tables; only the plan may show which path was used.
    """
    if request.param == "portable":
        yield "portable"
        return
    session = install(spark)
    assert session.is_native
    yield "native"
    session.uninstall()


@pytest.fixture(scope="module")
def read(spark: SparkSession, read_path: ReadPath) -> Read:
    """Return a function that reads a table on the read path of the test."""
    return read_by_steps if read_path == "portable" else partial(read_natively, spark)
