"""Our own error inside the text of a Spark exception.

Errors raised in Spark's Python workers reach the driver as text only: a traceback whose last line
is `package.module.ClassName: message`.
"""

from __future__ import annotations

import re

from iceberg_pyspark import errors

_NAMES = "|".join(
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.IcebergError)
)
_RAISED = re.compile(
    rf"iceberg_pyspark\.errors\.({_NAMES}): (.*?)"
    r"(?=\n\s*\n|\n\s+at |\nTraceback|\nThe above|\s+SQLSTATE: |\Z)",
    re.DOTALL,
)


def iceberg_error_in(text: str) -> tuple[str, str] | None:
    """Class name and message of the last of our errors in a text, or None."""
    found = _RAISED.findall(text)
    if not found:
        return None
    name, message = found[-1]
    return name, " ".join(message.split())
