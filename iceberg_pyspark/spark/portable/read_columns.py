"""Which columns of the target an operation must read: those that its expressions may name.

The format cannot be told later what a plan needs of a read, as Spark tells its own readers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pyspark.sql import Column, SparkSession

from iceberg_pyspark.spark.bridge.call_arguments import SourceColumn, Sql, Value
from iceberg_pyspark.spark.portable.column_conditions import message_of
from iceberg_pyspark.spark.portable.portable_target import PortableTarget

# A star that has no left operand, a comment that could hide that, a name that is computed, or a
# quoted name with characters of a regular expression, which a session may take as one.
_MORE_THAN_NAMES = re.compile(
    r"(^|[(,.])\s*\*|/\*|--|\bidentifier\s*\(|`[^`]*[^`\w\s-][^`]*`", re.IGNORECASE
)
_STARS = ("unresolved_star", "unresolved_regex", "subquery_expression")
_ESCAPED = re.compile(r"\\([0-7]{3}|.)")


def named_columns(target: PortableTarget, values: Iterable[Value | None]) -> frozenset[str]:
    """Return the target's columns that values may name; all columns if that is not sure.

    A column is sure to be unnamed only if its name is no word of the values' texts. Where none is
    named, one may be misspelt: Spark's error suggests names of what is read.
    """
    every = frozenset(target.columns.names)
    texts = []
    for value in values:
        if value is None or isinstance(value, SourceColumn):
            continue
        text = _text(target.table.spark, value)
        if text is None:
            return every
        texts.append(text)
    if not texts:
        return frozenset()
    text = "\n".join(texts)
    named = frozenset(
        name
        for name in every
        if not name.isascii()
        or "`" in name
        or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
    )
    return named or every


def _text(spark: SparkSession, value: Any) -> str | None:
    """Return a text that has all names of a value, or None if there may be others."""
    if isinstance(value, Sql):
        return None if _MORE_THAN_NAMES.search(value.text) else value.text
    message = message_of(spark, value) if isinstance(value, Column) else None
    if message is None:
        return None
    text = str(message)
    if any(part in text for part in _STARS):
        return None
    if "expression_string" in text and ("*" in text or _MORE_THAN_NAMES.search(text)):
        return None
    return _ESCAPED.sub(" ", text)
