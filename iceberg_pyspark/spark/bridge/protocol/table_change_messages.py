"""The changes of an ALTER TABLE, and the DEFAULT of a column."""

from __future__ import annotations

from typing import TypeAlias

from iceberg_pyspark.spark.bridge.protocol.messages import Message
from iceberg_pyspark.spark.bridge.protocol.value_messages import Expression


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
