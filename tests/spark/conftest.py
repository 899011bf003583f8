from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark import install
from tests.support.data_source_steps import read_by_steps
from tests.support.read_paths import Read, ReadPath, read_natively
from tests.support.spark_sessions import start_session


@dataclass(frozen=True)
class Configured:
    """Where Spark's Python workers find catalogs: they inherit the environment of the JVM."""

    home: Path
    """The folder of `.pyiceberg.yaml`, read anew by every query."""
    warehouse: Path
    """The warehouse of catalog `from-env`, which is set by variables."""


@pytest.fixture(scope="session")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Configured]:
    """The environment that the session of all tests starts in."""
    result = Configured(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("from-env"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYICEBERG_HOME", str(result.home))
        patch.setenv("PYICEBERG_CATALOG__FROM_ENV__TYPE", "hadoop")
        patch.setenv("PYICEBERG_CATALOG__FROM_ENV__WAREHOUSE", str(result.warehouse))
        yield result


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory, configured: Configured
) -> Iterator[SparkSession]:
    """One classic session on local[2] for all tests of this folder."""
    session = start_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(scope="module", params=["portable", "native"])
def read_path(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[ReadPath]:
    """Tests that ask for it run twice: where `format("iceberg-py")` is read portably and natively.

    Both see the same tables, and none but the plan may show which it was.
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
    """Reads a table on the path of the test."""
    return read_by_steps if read_path == "portable" else partial(read_natively, spark)
