"""Raises the errors of this package that reach a client inside of the errors of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from iceberg_pyspark import errors
from iceberg_pyspark.spark.error_text import iceberg_error_in


@contextmanager
def servers_errors() -> Iterator[None]:
    """Raise an error of this package as itself, where Spark raises it as text."""
    try:
        yield
    except PySparkException as e:
        found = iceberg_error_in(str(e))
        if found is None:
            raise
        name, message = found
        raise getattr(errors, name)(message) from e
