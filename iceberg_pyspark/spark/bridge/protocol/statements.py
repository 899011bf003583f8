"""A DELETE, UPDATE or MERGE that Spark has analysed.

It is not an answer: Python asks for it while it carries out the statement (`bridge/jvm.py`).
"""

from __future__ import annotations

from typing import Literal

from iceberg_pyspark.spark.bridge.protocol.messages import Message


class AnalysedAssignment(Message, frozen=True, kw_only=True):
    """What is assigned to a column, or to a field inside it; values are expressions' numbers."""

    path: tuple[str, ...]
    value: int


class AnalysedClause(Message, frozen=True, kw_only=True):
    """WHEN ... THEN of a MERGE."""

    op: Literal["update", "delete", "insert"]
    condition: int | None
    assignments: tuple[AnalysedAssignment, ...]


class AnalysedStatement(Message, frozen=True, kw_only=True):
    """A DELETE, UPDATE or MERGE that Spark has analysed (`IcebergPyStatement`)."""

    kind: Literal["delete", "update", "merge"]
    handle: str
    """That of the table."""

    reads_iceberg: bool
    """Whether it reads tables of ours besides."""

    condition: int | None
    assignments: tuple[AnalysedAssignment, ...] = ()
    adds_columns: bool = False
    matched: tuple[AnalysedClause, ...] = ()
    not_matched: tuple[AnalysedClause, ...] = ()
    not_matched_by_source: tuple[AnalysedClause, ...] = ()
