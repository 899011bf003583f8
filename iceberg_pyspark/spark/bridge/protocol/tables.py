"""Tables of a catalog: list, load, create, alter and drop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from iceberg_pyspark.spark.bridge.protocol.catalogs import (
    CatalogQuestion,
    NamespaceQuestion,
    TableQuestion,
)
from iceberg_pyspark.spark.bridge.protocol.messages import Answer, Message, Question
from iceberg_pyspark.spark.bridge.protocol.table_changes import ColumnDefault, TableChange

NO_COLUMNS = '{"fields":[],"type":"struct"}'
"""A schema of Spark's as JSON."""


class TablesList(NamespaceQuestion, frozen=True, kw_only=True):
    """The tables in a namespace."""


class TableNames(Answer, frozen=True, kw_only=True):
    """Names in one namespace."""

    names: tuple[str, ...]


class TableExists(TableQuestion, frozen=True, kw_only=True):
    """Whether a table is there."""


class TableInvalidate(TableQuestion, frozen=True, kw_only=True):
    """Drop the cached state of a table."""


class TableLoad(TableQuestion, frozen=True, kw_only=True):
    """A table as it is, or at one version or time."""

    version: str | None = None
    timestamp_us: int | None = None
    wap_branch: str | None = None
    """The branch that the session writes to for an audit."""


class TableSelect(Question, frozen=True, kw_only=True):
    """A table that was loaded, as options of a read choose its snapshots."""

    handle: str
    options: Mapping[str, str]
    """By their names in lower case."""


class PartitionTransform(Message, frozen=True, kw_only=True):
    """A field that a table is partitioned by: a function of a column, as SQL writes it."""

    transform: str
    column: str
    number: int | None = None
    """Of buckets, or the width."""


class TableFacts(Answer, frozen=True, kw_only=True):
    """A table as Spark sees it."""

    handle: str
    """Enough to load the same state of it again."""

    name: str
    id: str | None = None
    version: str | None = None
    schema: str
    metadata_columns: str = NO_COLUMNS
    properties: Mapping[str, str] = {}
    partitioning: tuple[PartitionTransform, ...] = ()
    size_in_bytes: int
    rows: int = 0
    """The number of rows in its files; 0: unknown."""

    has_column_statistics: bool = False
    grouping: tuple[PartitionTransform, ...] = ()
    """The transforms by which files can be grouped."""

    filtered: tuple[str, ...] = ()
    """The columns by which files can be skipped."""

    accept_any_schema: bool = False


class TableCreate(TableQuestion, frozen=True, kw_only=True):
    """CREATE TABLE."""

    schema: str
    defaults: tuple[ColumnDefault | None, ...]
    partitioned_by: tuple[str, ...]
    properties: Mapping[str, str]


class TableStage(TableCreate, frozen=True, kw_only=True):
    """CREATE TABLE AS SELECT and REPLACE TABLE: nothing is there until it is committed."""

    mode: Literal["create", "replace", "create or replace"]


class StagedCommit(CatalogQuestion, frozen=True, kw_only=True):
    """Make a staged table."""

    handle: str


class StagedAbort(CatalogQuestion, frozen=True, kw_only=True):
    """Leave nothing of a staged table."""

    handle: str


class TableAlter(TableQuestion, frozen=True, kw_only=True):
    """ALTER TABLE: all of the changes or none."""

    changes: tuple[TableChange, ...]


class TableDrop(TableQuestion, frozen=True, kw_only=True):
    """DROP TABLE."""

    purge: bool


class DropResult(Answer, frozen=True, kw_only=True):
    """Whether the table existed."""

    existed: bool


class TableRename(TableQuestion, frozen=True, kw_only=True):
    """ALTER TABLE ... RENAME TO."""

    to_namespace: tuple[str, ...]
    to_name: str
