from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

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
    found = Configured(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("from-env"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYICEBERG_HOME", str(found.home))
        patch.setenv("PYICEBERG_CATALOG__FROM_ENV__TYPE", "hadoop")
        patch.setenv("PYICEBERG_CATALOG__FROM_ENV__WAREHOUSE", str(found.warehouse))
        yield found


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory, configured: Configured
) -> Iterator[SparkSession]:
    """One classic session on local[2] for all tests of this folder."""
    session = start_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()
