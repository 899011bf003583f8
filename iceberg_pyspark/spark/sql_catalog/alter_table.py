"""ALTER TABLE: converts Spark's changes to changes of the table, made in one commit."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import types as spark_types

from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spark.bridge.protocol.table_change_messages import (
    AddColumn,
    ColumnChange,
    DeleteColumn,
    OtherChange,
    RemoveProperty,
    RenameColumn,
    SetProperty,
    TableChange,
    UpdateComment,
    UpdateDefault,
    UpdateNullability,
    UpdatePosition,
    UpdateType,
)
from iceberg_pyspark.spark.rows.spark_types import from_spark_schema
from iceberg_pyspark.spark.sql_catalog.column_defaults import default_value
from iceberg_pyspark.spec.types import PrimitiveType, Type
from iceberg_pyspark.table.commits.pending_changes import UpdateProperties, UpdateSchema
from iceberg_pyspark.table.commits.transaction import Transaction
from iceberg_pyspark.table.table import Table

_LOCATION = "location"
_SHOWN_ONLY = {
    _LOCATION: "a table has one; ALTER TABLE ... SET LOCATION gives it another",
    "provider": "every table here is Iceberg's",
    "format": "set write.format.default",
    "sort-order": "use ALTER TABLE ... WRITE ORDERED BY",
    "identifier-fields": "use ALTER TABLE ... SET IDENTIFIER FIELDS",
}


def alter_table(table: Table, changes: Sequence[TableChange]) -> None:
    """Carry out all changes of one statement together, or none of them."""
    with table.transaction() as transaction:
        _change_location(transaction, changes)
        _change_properties(transaction, changes, str(table.identifier))
        _change_columns(transaction, changes, str(table.identifier))


def _change_location(transaction: Transaction, changes: Sequence[TableChange]) -> None:
    """Carry out SET LOCATION, which Spark passes as a property."""
    for c in changes:
        if isinstance(c, SetProperty) and c.key == _LOCATION:
            transaction.update_location().set_location(c.value).commit()


def _change_properties(transaction: Transaction, changes: Sequence[TableChange], name: str) -> None:
    update: UpdateProperties = transaction.update_properties()
    any_change = False
    for c in changes:
        if not isinstance(c, SetProperty | RemoveProperty):
            continue
        if isinstance(c, SetProperty) and c.key == _LOCATION:
            continue
        any_change = True
        if c.key in _SHOWN_ONLY:
            raise UnsupportedFeatureError(
                f"table {name}: '{c.key}' is a read-only property; {_SHOWN_ONLY[c.key]}"
            )
        if isinstance(c, SetProperty):
            update.set({c.key: c.value})
        else:
            update.remove(c.key)
    if any_change:
        update.commit()


def _change_columns(transaction: Transaction, changes: Sequence[TableChange], name: str) -> None:
    schema = transaction.update_schema()
    any_change = False
    for c in changes:
        if isinstance(c, SetProperty | RemoveProperty):
            continue
        any_change = True
        _change_column(schema, c, name)
    if any_change:
        schema.commit()


def _change_column(schema: UpdateSchema, c: ColumnChange, table: str) -> None:
    if isinstance(c, OtherChange):
        raise UnsupportedFeatureError(f"ALTER TABLE {table}: {c.kind} is not supported")
    column = ".".join(c.path)
    match c:
        case AddColumn():
            _add_column(schema, c, column)
        case DeleteColumn():
            if not (c.if_exists and column not in schema.schema.id_by_name):
                schema.drop_column(column)
        case RenameColumn():
            schema.rename_column(column, c.name)
        case UpdateType():
            schema.update_type(column, _primitive(c, column))
        case UpdateNullability():
            if c.nullable:
                schema.make_optional(column)
            else:
                schema.require(column)
        case UpdateComment():
            schema.update_doc(column, c.comment)
        case UpdatePosition():
            _move(schema, c.path, c.position)
        case UpdateDefault():
            type_ = schema.schema.find(column).type
            schema.update_default(column, default_value(column, type_, c.column_default))


def _add_column(schema: UpdateSchema, c: AddColumn, column: str) -> None:
    type_ = _iceberg_type(c.type)
    *above, name = c.path
    schema.add_column(
        name,
        type_,
        # The name of one column may contain dots: no dots above it mean the table itself.
        parent=".".join(above),
        required=not c.nullable,
        doc=c.comment,
        default=default_value(column, type_, c.column_default),
    )
    if c.position is not None:
        _move(schema, c.path, c.position)


def _move(schema: UpdateSchema, path: Sequence[str], position: str) -> None:
    """Move a column after the named column, or to the first place if `position` is empty."""
    if not position:
        schema.move_first(".".join(path))
        return
    schema.move_after(".".join(path), ".".join((*path[:-1], position)))


def _primitive(c: UpdateType, column: str) -> PrimitiveType:
    type_ = _iceberg_type(c.type)
    if not isinstance(type_, PrimitiveType):
        raise UnsupportedFeatureError(
            f"column '{column}' cannot become {type_}; change the fields of the struct one by one"
        )
    return type_


def _iceberg_type(text: str) -> Type:
    field = {"name": "x", "type": json.loads(text), "nullable": True, "metadata": {}}
    struct = spark_types.StructType.fromJson({"type": "struct", "fields": [field]})
    return from_spark_schema(struct).fields[0].type
