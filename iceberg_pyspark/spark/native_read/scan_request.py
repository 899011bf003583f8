"""The request of a query for a scan, apart from its files and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iceberg_pyspark.expressions.predicates import Predicate


@dataclass(frozen=True, kw_only=True)
class ScanCondition:
    """One of a query's conditions on the rows of a scan; the query evaluates all of them."""

    predicate: Predicate | None
    """The bound predicate of exactly the rows that fulfil the condition, or None without one."""

    columns: frozenset[str]
    """The columns of the scan that the condition needs."""


@dataclass(frozen=True, kw_only=True)
class ScanRequest:
    """The conditions of a query, and what it does with the rows."""

    conditions: Sequence[ScanCondition] = ()
    required_columns: frozenset[str] | None = None
    """The columns that are needed for more than conditions; None means all columns."""

    limit: int | None = None
    """The greatest number of rows that the query takes, which may be any rows."""

    grouped: bool = False
    """Whether files of equal partition values form one group."""


EVERY_COLUMN = ScanRequest()
