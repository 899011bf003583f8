from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame

from tests.services.rest_fixture import rest_server
from tests.services.server import Server
from tests.support.oracle import Oracle, OracleUnavailableError, start_oracle
from tests.support.readings import INTERPRETED
from tests.support.rows import PlainRow
from tests.support.spark_settings import configured

_CHANGES_OF_JAVA = re.compile(
    r"\s*(create|replace|insert|update|delete|merge|call)\b(?!.*\blake\.).*\bjava_",
    re.IGNORECASE | re.DOTALL,
)


class InterpretedOracle(Oracle):
    """An oracle for which Spark interprets the statements of Java alone, instead of compiling."""

    def sql(self, text: str) -> DataFrame:
        if not _CHANGES_OF_JAVA.match(text):
            return super().sql(text)
        with configured(self.spark, INTERPRETED):
            return super().sql(text)

    def table_rows(self, name: str) -> list[PlainRow]:
        if not name.startswith("java_"):
            return super().table_rows(name)
        with configured(self.spark, INTERPRETED):
            return super().table_rows(name)


@pytest.fixture(scope="session")
def oracle(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Oracle]:
    """Yield a Spark session with Iceberg's Java runtime; without the jar, skip or (in CI) fail."""
    try:
        started = start_oracle(tmp_path_factory.mktemp("oracle"))
    except OracleUnavailableError as error:
        if request.config.getoption("--require-oracle"):
            pytest.fail(f"the oracle is required here: {error}")
        pytest.skip(str(error))
    yield InterpretedOracle(**vars(started))
    started.spark.stop()


@pytest.fixture(scope="session")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield a REST server on which each test has namespaces of its own."""
    with rest_server(tmp_path_factory.mktemp("rest")) as server:
        yield server
