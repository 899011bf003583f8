"""Extracts this package's errors from JVM exceptions that pyspark captures.

An error in a task or in a Python data source is wrapped: by Spark in the text of the failed job or
data source, by py4j in the name of the called Java method. While Iceberg is installed, this
conversion runs after pyspark's own.
"""

from __future__ import annotations

from typing import Any

from pyspark.errors.exceptions import captured

from iceberg_pyspark.spark.error_text import iceberg_error_in, with_class_name

_ORIGINAL = "_iceberg_pyspark_original"


class TaskException(captured.PythonException):
    """A failure of a Spark task that an error of this package caused."""

    def __str__(self) -> str:
        """Return the error's own text; newer pyspark releases put words before the error of a
        worker.
        """
        return captured.CapturedException.__str__(self)


def say_our_errors_first() -> None:
    """Make pyspark exceptions that contain an error of this package start with its message."""
    convert = captured.convert_exception
    if hasattr(convert, _ORIGINAL):
        return

    def convert_with_our_error(e: Any) -> captured.CapturedException:
        exception = convert(e)
        # pyspark would raise an exception of an unknown class as py4j's exception.
        text = (
            exception._stackTrace
            if isinstance(exception, captured.UnknownException)
            else exception._desc
        )
        error = iceberg_error_in(text or "")
        if error is None:
            return exception
        if isinstance(exception, captured.UnknownException):
            exception = captured.QueryExecutionException(origin=e)
        elif isinstance(exception, captured.PythonException):
            exception = TaskException(origin=e)
        exception._desc = with_class_name(*error)
        return exception

    setattr(convert_with_our_error, _ORIGINAL, convert)
    captured.convert_exception = convert_with_our_error


def thrown_in(error: BaseException) -> Any:
    """Return the JVM exception inside a py4j or pyspark exception, or None."""
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


def say_errors_as_before() -> None:
    """Restore pyspark's own conversion, unless another library has replaced it in the meantime."""
    captured.convert_exception = getattr(
        captured.convert_exception, _ORIGINAL, captured.convert_exception
    )
