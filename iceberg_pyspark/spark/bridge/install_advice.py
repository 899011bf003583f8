"""What pyspark says of a catalog of this package in a session without Iceberg.

The import of pyspark's exceptions calls this: so it imports nothing of pyspark itself.
"""

from __future__ import annotations

import re
from functools import wraps
from typing import Any

_NOT_INSTALLED = re.compile(
    r"(?:Cannot find catalog plugin class for catalog|PLUGIN_CLASS_NOT_FOUND)[^\n]*iceberg_pyspark"
)


def say_how_to_install(captured: Any) -> None:
    """Make the exceptions of `pyspark.errors.exceptions.captured` say what to do where a catalog of
    this package is named, and Iceberg is not installed in the session.
    """
    convert = captured.convert_exception

    @wraps(convert)
    def convert_with_advice(e: Any) -> Any:
        exception = convert(e)
        text = exception._desc or ""
        found = _NOT_INSTALLED.search(text)
        if found is None:
            return exception
        if isinstance(exception, captured.UnknownException):
            exception = captured.QueryExecutionException(origin=e)
        exception._desc = (
            f"{text}\niceberg_pyspark is not installed in this session: call "
            "iceberg_pyspark.install(spark); for sessions that a tool makes, import "
            "iceberg_pyspark.auto before, or set the environment variable ICEBERG_PYSPARK_AUTO=1"
        )
        return exception

    captured.convert_exception = convert_with_advice
