"""Starts a Spark session for a terminal: the JVM logs nothing, and errors are single lines."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

from iceberg_pyspark import errors
from iceberg_pyspark.errors import IcebergError, InvalidRequestError, UnsupportedFeatureError

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

_REFUSALS = ("AnalysisException", "ParseException")
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def start_spark(settings: Mapping[str, str]) -> IcebergSession:
    """Return a session with Iceberg installed and `settings`; the JVM's output is hidden."""
    builder = SparkSession.builder.appName("iceberg-py")
    # the workers must run this Python, which has this package
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # pyspark would log each refused statement with JVM stack frames
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    for key, value in {**_SETTINGS, **settings}.items():
        builder = builder.config(key, value)
    with tempfile.TemporaryFile() as output:
        try:
            with _jvm_output_to(output):
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
    """Convert Spark's errors: an error of this package keeps its class, others become one line.

    A statement or a request that Spark refuses is an `InvalidRequestError`.
    """
    try:
        yield
    except (PySparkException, Py4JError) as e:
        text = str(e)
        error = iceberg_error_in(text)
        if error is not None:
            raise getattr(errors, error[0])(error[1]) from e
        is_refused = type(e).__name__ in _REFUSALS
        raise (InvalidRequestError if is_refused else IcebergError)(_first_line(text)) from e


@contextmanager
def _jvm_output_to(file: IO[bytes]) -> Iterator[None]:
    """Redirect standard error of processes started meanwhile to `file`, unless debug is logged."""
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
    """Return the first part of Spark's message, without statement text, plan and JVM frames."""
    for end in ("\n\n", "\nJVM stacktrace", "=== Streaming Query ===", ";\n", "\n\tat "):
        text = text.partition(end)[0]
    return " ".join(text.split())
