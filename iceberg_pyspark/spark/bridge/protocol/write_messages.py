"""Requests about writes and row-level changes.

A DELETE, UPDATE or MERGE that Spark has analysed.

This message is not a response: Python asks for it while it carries out the statement
(`bridge/jvm.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from iceberg_pyspark.spark.bridge.protocol.messages import (
    Expression,
    Message,
    Request,
    RequestWithPlan,
    Response,
)

OutputMode: TypeAlias = Literal["append", "complete", "update"]
"""What a batch of a stream has: new rows, all rows, or the rows that are new or have changed."""


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


class WriteEnvironment(Message, frozen=True, kw_only=True):
    """The session's settings for writes, and the application's entries for the snapshot summary."""

    session: Mapping[str, str]
    application: Mapping[str, str]


WriteKind: TypeAlias = Literal["append", "overwrite", "overwrite_partitions"]


class WriteRun(RequestWithPlan, frozen=True, kw_only=True):
    """The request to write the rows of `plan` to a table of a catalog."""

    session: str
    handle: str
    kind: WriteKind
    options: Mapping[str, str]
    condition: Expression | None
    """The condition on the rows that an overwrite replaces."""

    environment: WriteEnvironment


class EpochWrite(RequestWithPlan, frozen=True, kw_only=True):
    """The request to write the rows of `plan`, which are one batch of a stream."""

    session: str
    handle: str
    query: str
    """The id of the streaming query."""

    epoch: int
    """The number of the batch."""

    mode: OutputMode
    """How the rows of the batch change the table's."""

    stateful: bool
    """Whether Spark needs the batch to run even if its rows are in the table."""

    options: Mapping[str, str]
    environment: WriteEnvironment


class EpochRows(Response, frozen=True, kw_only=True):
    """The number of rows that a batch of a stream has written; 0 if the table has it already."""

    rows: int


class SourceWrite(RequestWithPlan, frozen=True, kw_only=True):
    """The request to write the rows of `plan` to the table that the format's options name."""

    session: str
    options: Mapping[str, str]
    overwrite: bool
    creates: bool
    """Whether the table must not exist yet."""


class DmlRun(RequestWithPlan, frozen=True, kw_only=True):
    """The request to run a DELETE, UPDATE or MERGE; `plan` is Spark's analysed statement."""

    session: str
    referenced_tables: tuple[str, ...] = ()
    """The handles of the tables that the statement reads besides its target."""


class TableTruncate(Request, frozen=True, kw_only=True):
    """The request of TRUNCATE TABLE."""

    handle: str
    environment: WriteEnvironment
