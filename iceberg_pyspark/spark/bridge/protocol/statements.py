"""A DELETE, UPDATE or MERGE that Spark has analysed.

This message is not a response: Python asks for it while it carries out the statement
(`bridge/jvm.py`).
"""

from __future__ import annotations

from typing import Literal

from iceberg_pyspark.spark.bridge.protocol.messages import Message


class AnalysedAssignment(Message, frozen=True, kw_only=True):
    """An assignment to a column or a field inside it; the value is the number of an expression."""

    path: tuple[str, ...]
    value: int


class AnalysedAction(Message, frozen=True, kw_only=True):
    """The action of a WHEN ... THEN clause of a MERGE."""

    op: Literal["update", "delete", "insert"]
    condition: int | None
    assignments: tuple[AnalysedAssignment, ...]


class AnalysedStatement(Message, frozen=True, kw_only=True):
    """A DELETE, UPDATE or MERGE that Spark has analysed (`IcebergPyStatement`)."""

    kind: Literal["delete", "update", "merge"]
    handle: str
    """The handle of the table."""

    reads_iceberg: bool
    """Whether the statement also reads other tables of this package."""

    condition: int | None
    assignments: tuple[AnalysedAssignment, ...] = ()
    adds_columns: bool = False
    matched_actions: tuple[AnalysedAction, ...] = ()
    not_matched_actions: tuple[AnalysedAction, ...] = ()
    not_matched_by_source_actions: tuple[AnalysedAction, ...] = ()
