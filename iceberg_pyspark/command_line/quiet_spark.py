"""A Spark session for a terminal: the JVM logs nothing, and errors are single lines."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

from iceberg_pyspark import errors
from iceberg_pyspark.errors import IcebergError, UnsupportedFeatureError

try:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
except ImportError as e:
    raise UnsupportedFeatureError(
        f"`iceberg-py sql` needs Spark ({e}); pip install 'iceberg-pyspark[spark]'"
    ) from e

from iceberg_pyspark.spark.error_text import iceberg_error_in
from iceberg_pyspark.spark.session import IcebergSession, install

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def start_spark(settings: Mapping[str, str]) -> IcebergSession:
    """A session with Iceberg installed and `settings`; what its JVM says is not shown."""
    builder = SparkSession.builder.appName("iceberg-py")
    # its workers need this package: they are to be this Python
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # pyspark logs each refused statement with the frames of its JVM
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    for key, value in {**_SETTINGS, **settings}.items():
        builder = builder.config(key, value)
    with tempfile.TemporaryFile() as output:
        try:
            with _jvm_says_to(output):
                return install(builder.getOrCreate())
        except (PySparkException, Py4JError, OSError) as e:
            output.seek(0)
            lines = output.read().decode("utf-8", "replace").split("\n")
            reason = next((line for line in lines if "java" in line.lower()), lines[-1])
            raise IcebergError(
                f"Spark does not start: {_first_line(str(e))} {reason.strip()}; it needs Java 17 "
                "or newer, which JAVA_HOME names"
            ) from e


@contextmanager
def spark_errors() -> Iterator[None]:
    """Raise errors of Spark as ours: their first lines, and the class of those that are ours."""
    try:
        yield
    except (PySparkException, Py4JError) as e:
        text = str(e)
        error = iceberg_error_in(text)
        if error is not None:
            raise getattr(errors, error[0])(error[1]) from e
        raise IcebergError(_first_line(text)) from e


@contextmanager
def _jvm_says_to(file: IO[bytes]) -> Iterator[None]:
    """A process that is started meanwhile has `file` as its standard error, unless we debug."""
    if logging.getLogger().isEnabledFor(logging.DEBUG):
        yield
        return
    sys.stderr.flush()
    before = os.dup(2)
    try:
        os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def _first_line(text: str) -> str:
    """The first part of Spark's message, without statement text, plan and JVM frames."""
    for end in ("\n\n", "\nJVM stacktrace", ";\n", "\n\tat "):
        text = text.partition(end)[0]
    return " ".join(text.split())
