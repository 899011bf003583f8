"""Finds an error of this package in the text of a Spark exception.

Errors in Spark's Python workers reach the driver as text only, in Python's form
`package.module.ClassName: message`, perhaps after a traceback. For errors of the bridge, or of
pyspark on its behalf, the message comes first, and the class on its own line.
"""

from __future__ import annotations

import re

from iceberg_pyspark import errors

_NAMES = "|".join(
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.IcebergError)
)
_RAISED_ERROR = re.compile(
    rf"iceberg_pyspark\.errors\.({_NAMES}): (.*?)"
    r"(?=\n\s*\n|\n\s+at |\nTraceback|\nThe above|\s+SQLSTATE: |\Z)",
    re.DOTALL,
)
_LEADING_MESSAGE = re.compile(
    r"\A(?:An error occurred while calling [^\n]*\n: )?(?:[\w.$]+Exception: )?"
    rf"(.*?)\n\(iceberg_pyspark\.errors\.({_NAMES})\)",
    re.DOTALL,
)

_NOT_FOLDABLE = "requirement failed: args must be foldable"
"""Spark's assertion for an argument of CALL, before a procedure sees it."""


def iceberg_error_in(text: str) -> tuple[str, str] | None:
    """Return the class name and message of the last error of this package in a text, or None."""
    if text.startswith(_NOT_FOLDABLE):
        return errors.InvalidRequestError.__name__, (
            "an argument of CALL is not constant: Spark evaluates expressions such as "
            "current_timestamp() - INTERVAL 30 DAYS, but no lambda, no aggregate, no window and no "
            "function whose value is random, such as rand() or uuid()"
        )
    first = _LEADING_MESSAGE.match(text)
    if first is not None:
        return first[2], first[1].strip()
    messages = _RAISED_ERROR.findall(text)
    if not messages:
        return None
    name, message = messages[-1]
    return name, message.strip()


def error_of_job(failure: Exception, job: str) -> errors.IcebergError:
    """Return the error of this package that ended a Spark job, or else a `StorageError`."""
    name, message = iceberg_error_in(str(failure)) or (
        errors.StorageError.__name__,
        f"{job}: Spark's job failed: {failure}",
    )
    error: errors.IcebergError = getattr(errors, name)(message)
    return error


def with_class_name(name: str, message: str) -> str:
    """Return the text of an exception that stands for an error of this package."""
    return f"{message}\n(iceberg_pyspark.errors.{name})"
