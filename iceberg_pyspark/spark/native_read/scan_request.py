"""The request of a query for a scan, apart from its files and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iceberg_pyspark.expressions.predicates import Predicate


@dataclass(frozen=True, kw_only=True)
class ScanCondition:
    """One of the conditions that a query has on the rows of a scan, all of which it evaluates."""

    predicate: Predicate | None
    """Bound, of exactly the rows that fulfil the condition; None: there is no such predicate."""

    columns: frozenset[str]
    """The columns of the scan that the condition needs."""


@dataclass(frozen=True, kw_only=True)
class ScanRequest:
    """The conditions of a query, and what it does with the rows."""

    conditions: Sequence[ScanCondition] = ()
    needed: frozenset[str] | None = None
    """The columns that are needed for more than conditions; None: all."""

    limit: int | None = None
    """The query takes any rows, up to this number."""

    grouped: bool = False
    """Whether files of equal partition values form one group."""


EVERY_COLUMN = ScanRequest()
