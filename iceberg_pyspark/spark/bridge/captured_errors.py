"""Errors of ours that pyspark captures inside exceptions of the JVM's, said first and alone.

What fails in a task or in a Python data source comes wrapped: by Spark in the words for a failed
job or data source, by py4j in the name of the Java method that was called. While Iceberg is
installed pyspark's own conversion of such exceptions is followed by this one.
"""

from __future__ import annotations

from typing import Any

from pyspark.errors.exceptions import captured

from iceberg_pyspark.spark.error_text import iceberg_error_in, with_class_name

_ORIGINAL = "_iceberg_pyspark_original"


class TaskException(captured.PythonException):
    """A failure of a task by an error of ours."""

    def __str__(self) -> str:
        """The error's own text; newer releases of pyspark put words before that of a worker."""
        return captured.CapturedException.__str__(self)


def say_our_errors_first() -> None:
    """Have exceptions of pyspark's with an error of ours in them start with its message."""
    convert = captured.convert_exception
    if hasattr(convert, _ORIGINAL):
        return

    def converted(e: Any) -> captured.CapturedException:
        found = convert(e)
        # an exception that pyspark knows no class of would be raised as py4j's
        text = found._stackTrace if isinstance(found, captured.UnknownException) else found._desc
        error = iceberg_error_in(text or "")
        if error is None:
            return found
        if isinstance(found, captured.UnknownException):
            found = captured.QueryExecutionException(origin=e)
        elif isinstance(found, captured.PythonException):
            found = TaskException(origin=e)
        found._desc = with_class_name(*error)
        return found

    setattr(converted, _ORIGINAL, convert)
    captured.convert_exception = converted


def thrown_in(error: BaseException) -> Any:
    """The JVM's own exception in one of py4j's or pyspark's; None if there is none."""
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


def say_errors_as_before() -> None:
    """Leave pyspark's conversion as it was, unless somebody has put another on top."""
    captured.convert_exception = getattr(
        captured.convert_exception, _ORIGINAL, captured.convert_exception
    )
