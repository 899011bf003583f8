"""Writes and row-level changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from iceberg_pyspark.spark.bridge.protocol.messages import Message, PlanQuestion, Question
from iceberg_pyspark.spark.bridge.protocol.values import Expression


class WriteEnvironment(Message, frozen=True, kw_only=True):
    """Where a statement runs: the session's settings for writes, and what a summary says of it."""

    session: Mapping[str, str]
    application: Mapping[str, str]


WriteKind: TypeAlias = Literal["append", "overwrite", "overwrite_partitions"]


class WriteRun(PlanQuestion, frozen=True, kw_only=True):
    """Write the rows of `plan` to a table of a catalog."""

    session: str
    handle: str
    kind: WriteKind
    options: Mapping[str, str]
    condition: Expression | None
    """Which rows an overwrite replaces."""

    environment: WriteEnvironment


class SourceWrite(PlanQuestion, frozen=True, kw_only=True):
    """Write the rows of `plan` to the table that options of the format name."""

    session: str
    options: Mapping[str, str]
    overwrite: bool
    creates: bool
    """Whether the table must not be there yet."""


class DmlRun(PlanQuestion, frozen=True, kw_only=True):
    """Carry out the DELETE, UPDATE or MERGE that `plan` is."""

    session: str


class TableTruncate(Question, frozen=True, kw_only=True):
    """TRUNCATE TABLE."""

    handle: str
    environment: WriteEnvironment
