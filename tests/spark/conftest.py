from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.support.spark_sessions import start_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One classic session on local[2] for all tests of this folder."""
    session = start_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()
