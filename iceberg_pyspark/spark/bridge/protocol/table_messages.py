"""Requests about tables of a catalog: list, load, create, alter and drop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from iceberg_pyspark.spark.bridge.protocol.catalog_messages import (
    CatalogRequest,
    NamespaceRequest,
    TableRequest,
)
from iceberg_pyspark.spark.bridge.protocol.messages import Expression, Message, Request, Response


class ColumnDefault(Message, frozen=True, kw_only=True):
    """The DEFAULT of a column: its text and, if the text is a literal, the literal's value."""

    sql: str
    value: Expression | None = None


class SetProperty(Message, frozen=True, kw_only=True, tag_field="op", tag="set_property"):
    """One property of SET TBLPROPERTIES."""

    key: str
    value: str


class RemoveProperty(Message, frozen=True, kw_only=True, tag_field="op", tag="remove_property"):
    """One property of UNSET TBLPROPERTIES."""

    key: str


class AddColumn(Message, frozen=True, kw_only=True, tag_field="op", tag="add_column"):
    """ADD COLUMN."""

    path: tuple[str, ...]
    type: str
    nullable: bool
    comment: str | None
    position: str | None
    """The column that the new column comes after; empty if it comes first."""

    column_default: ColumnDefault | None


class DeleteColumn(Message, frozen=True, kw_only=True, tag_field="op", tag="delete_column"):
    """DROP COLUMN."""

    path: tuple[str, ...]
    if_exists: bool


class RenameColumn(Message, frozen=True, kw_only=True, tag_field="op", tag="rename_column"):
    """RENAME COLUMN."""

    path: tuple[str, ...]
    name: str


class UpdateType(Message, frozen=True, kw_only=True, tag_field="op", tag="update_type"):
    """ALTER COLUMN ... TYPE."""

    path: tuple[str, ...]
    type: str


class UpdateNullability(
    Message, frozen=True, kw_only=True, tag_field="op", tag="update_nullability"
):
    """ALTER COLUMN ... SET and DROP NOT NULL."""

    path: tuple[str, ...]
    nullable: bool


class UpdateComment(Message, frozen=True, kw_only=True, tag_field="op", tag="update_comment"):
    """ALTER COLUMN ... COMMENT."""

    path: tuple[str, ...]
    comment: str | None


class UpdatePosition(Message, frozen=True, kw_only=True, tag_field="op", tag="update_position"):
    """ALTER COLUMN ... FIRST and AFTER."""

    path: tuple[str, ...]
    position: str


class UpdateDefault(Message, frozen=True, kw_only=True, tag_field="op", tag="update_default"):
    """ALTER COLUMN ... SET and DROP DEFAULT."""

    path: tuple[str, ...]
    column_default: ColumnDefault | None


class OtherChange(Message, frozen=True, kw_only=True, tag_field="op", tag="other"):
    """A change that Java does not know, with Spark's name for the change."""

    kind: str


ColumnChange: TypeAlias = (
    AddColumn
    | DeleteColumn
    | RenameColumn
    | UpdateType
    | UpdateNullability
    | UpdateComment
    | UpdatePosition
    | UpdateDefault
    | OtherChange
)
TableChange: TypeAlias = SetProperty | RemoveProperty | ColumnChange
"""One change of an ALTER TABLE."""


NO_COLUMNS = '{"fields":[],"type":"struct"}'
"""A Spark schema without columns, as JSON."""


class TablesList(NamespaceRequest, frozen=True, kw_only=True):
    """The request to list the tables in a namespace."""


class TableNames(Response, frozen=True, kw_only=True):
    """Table names in one namespace."""

    names: tuple[str, ...]


class TableExists(TableRequest, frozen=True, kw_only=True):
    """The request to check whether a table exists."""


class TableInvalidate(TableRequest, frozen=True, kw_only=True):
    """The request to drop the cached state of a table."""


class TableLoad(TableRequest, frozen=True, kw_only=True):
    """The request for a table at its current state, or at one version or timestamp."""

    version: str | None = None
    timestamp_us: int | None = None
    wap_branch: str | None = None
    """The branch that the session writes to for an audit (write-audit-publish)."""


class ChangelogLoad(TableRequest, frozen=True, kw_only=True):
    """The request for the change feed of a table, in Spark's terms; bounds may be absent."""

    branch: str | None
    start_version: str | None
    end_version: str | None
    start_time_us: int | None
    end_time_us: int | None
    start_inclusive: bool
    end_inclusive: bool
    deduplication: str
    compute_updates: bool


class TableSelect(Request, frozen=True, kw_only=True):
    """The request for a loaded table with the snapshots that read options select."""

    handle: str
    options: Mapping[str, str]
    """The options by their names in lower case."""


class PartitionTransform(Message, frozen=True, kw_only=True):
    """A partition field: a transform of a column, as SQL writes it."""

    transform: str
    column: str
    number: int | None = None
    """The number of buckets, or the width of a truncate."""


class TableDefinition(Response, frozen=True, kw_only=True):
    """The definition of a table for Spark."""

    handle: str
    """A handle from which the same state of the table can be loaded again."""

    name: str
    id: str | None = None
    version: str | None = None
    schema: str
    nanos_schema: str | None = None
    """The schema if Spark's timestamps in nanoseconds are on; None if it is the same."""

    metadata_columns: str = NO_COLUMNS
    properties: Mapping[str, str] = {}
    partitioning: tuple[PartitionTransform, ...] = ()
    size_in_bytes: int
    rows: int = 0
    """The number of rows in the table's files; 0 if unknown."""

    has_column_statistics: bool = False
    grouping: tuple[PartitionTransform, ...] = ()
    """The transforms by which files can be grouped."""

    filter_columns: tuple[str, ...] = ()
    """The columns by which files can be skipped."""

    compared_columns: tuple[str, ...] = ()
    """Further columns, whose bounds tell whether files can be skipped by them."""

    accept_any_schema: bool = False


class TableCreate(TableRequest, frozen=True, kw_only=True):
    """The request of CREATE TABLE."""

    schema: str
    defaults: tuple[ColumnDefault | None, ...]
    partitioned_by: tuple[str, ...]
    properties: Mapping[str, str]


class TableStage(TableCreate, frozen=True, kw_only=True):
    """CREATE TABLE AS SELECT or REPLACE TABLE: nothing is visible before `StagedCommit`."""

    mode: Literal["create", "replace", "create or replace"]


class StagedCommit(CatalogRequest, frozen=True, kw_only=True):
    """The request to create a staged table."""

    handle: str


class StagedAbort(CatalogRequest, frozen=True, kw_only=True):
    """The request to abandon a staged table and to remove its files."""

    handle: str


class TableAlter(TableRequest, frozen=True, kw_only=True):
    """The request of ALTER TABLE: all of the changes are made, or none."""

    changes: tuple[TableChange, ...]
    case_sensitive: bool
    """Whether names of columns are case-sensitive in the session."""


class TableDrop(TableRequest, frozen=True, kw_only=True):
    """The request of DROP TABLE."""

    purge: bool


class DropResult(Response, frozen=True, kw_only=True):
    """Whether the table existed."""

    existed: bool


class TableRename(TableRequest, frozen=True, kw_only=True):
    """The request of ALTER TABLE ... RENAME TO."""

    to_namespace: tuple[str, ...]
    to_name: str
