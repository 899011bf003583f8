from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row

from tests.services.hadoop_aws import s3a_jars
from tests.services.iceberg_aws import aws_sdk_jar
from tests.services.rest_fixture import rest_server
from tests.services.server import Server, absent
from tests.support.java_tables import JavaTables, java_tables
from tests.support.oracle import ORACLE_VERSION, Oracle, OracleUnavailableError, start_oracle
from tests.support.readings import INTERPRETED, INTERPRETED_QUERY
from tests.support.rows import PlainRow
from tests.support.spark_settings import configured

_CHANGES_OF_JAVA = re.compile(
    r"\s*(create|replace|insert|update|delete|merge|call)\b(?!.*\blake\.).*\bjava_",
    re.IGNORECASE | re.DOTALL,
)
_QUERIES_OF_JAVA = re.compile(
    r"\s*(select|table|with)\b(?!.*\blake\.).*\bjava_\w+\.", re.IGNORECASE | re.DOTALL
)


class InterpretedOracle(Oracle):
    """An oracle for which Spark interprets the statements of Java alone, instead of compiling."""

    def sql(self, text: str) -> DataFrame:
        if _CHANGES_OF_JAVA.match(text):
            with configured(self.spark, INTERPRETED):
                return super().sql(text)
        frame = super().sql(text)
        if _QUERIES_OF_JAVA.match(text):
            vars(frame)["collect"] = partial(self._collect, frame)
        return frame

    def _collect(self, frame: DataFrame) -> list[Row]:
        """Collect a frame under settings that count because Spark plans it only now."""
        with configured(self.spark, INTERPRETED_QUERY):
            return type(frame).collect(frame)

    def table_rows(self, name: str) -> list[PlainRow]:
        if not name.startswith("java_"):
            return super().table_rows(name)
        with configured(self.spark, INTERPRETED_QUERY):
            return super().table_rows(name)


def s3_jars() -> list[Path]:
    """Return the jars with which Java and Spark reach S3; none if they cannot be downloaded."""
    try:
        # The AWS SDK must be the connector's, and Netty must be Spark's own.
        s3a = [jar for jar in s3a_jars() if not jar.name.startswith("netty-")]
        return [aws_sdk_jar(ORACLE_VERSION), *s3a]
    except pytest.skip.Exception:
        return []


@pytest.fixture(scope="session")
def oracle(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Oracle]:
    """Yield a Spark session with Iceberg's Java runtime; without the jar, skip or (in CI) fail."""
    try:
        needs_s3 = any(item.path.name == "test_s3_file_io.py" for item in request.session.items)
        jars = s3_jars() if needs_s3 else []
        started = start_oracle(tmp_path_factory.mktemp("oracle"), more_jars=jars)
    except OracleUnavailableError as error:
        absent("the oracle", str(error))
    yield InterpretedOracle(**vars(started))
    started.spark.stop()


@pytest.fixture(scope="session")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield a REST server on which each test has namespaces of its own."""
    with rest_server(tmp_path_factory.mktemp("rest")) as server:
        yield server


@pytest.fixture(scope="session")
def java(oracle: Oracle) -> JavaTables:
    """Return Iceberg's Java library on the oracle's catalogs; it starts no Spark jobs."""
    return java_tables(oracle)
