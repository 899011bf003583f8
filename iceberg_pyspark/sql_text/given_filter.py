"""A filter as callers give it: as text, as a predicate, or not at all."""

from __future__ import annotations

from iceberg_pyspark.expressions.predicates import Predicate


def predicate_of(filter: str | Predicate) -> Predicate:
    """The unbound predicate; raises `InvalidRequestError` for text that is none."""
    if not isinstance(filter, str):
        return filter
    # the SQL parser takes a fifth of a second to import, which reads and writes without a filter
    # need not pay in each of Spark's worker processes
    from iceberg_pyspark.sql_text.filters import parse_filter  # noqa: PLC0415

    return parse_filter(filter)
