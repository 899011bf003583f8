"""ALTER TABLE: converts Spark's changes to changes of the table, made in one commit.

Spark stores the text of a default and evaluates it in every write; Iceberg stores one value
(specification, "Default Values"), so only literals are supported.

Iceberg's own statements pass through Spark: a parser in front of Spark's parser
(`bridge/java/extensions/`) sends each statement to Python, which makes it a change of a table
property. So Spark resolves the table as in every ALTER TABLE, and passes the change to the
catalog's `table.alter`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from math import isfinite
from typing import Any

from pyspark.sql import types as spark_types

from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.expressions.literals import nearest_float, place_literal
from iceberg_pyspark.spark.bridge.protocol.messages import LiteralValue
from iceberg_pyspark.spark.bridge.protocol.source_messages import (
    ParsedStatement,
    StatementParse,
    SyntaxProblem,
)
from iceberg_pyspark.spark.bridge.protocol.table_messages import (
    AddColumn,
    ColumnChange,
    ColumnDefault,
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
from iceberg_pyspark.spark.bridge.spark_conditions import literal_value
from iceberg_pyspark.spark.rows.spark_types import from_spark_schema
from iceberg_pyspark.spark.sql_catalog.character_types import character_properties
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_properties import CHARACTER_TYPE
from iceberg_pyspark.spec.types import (
    FloatType,
    PrimitiveType,
    StringType,
    TimestamptzNsType,
    TimestamptzType,
    Type,
)
from iceberg_pyspark.sql_text.extensions import (
    ExtensionSyntaxError,
    extension_statement,
    parse_clause,
)
from iceberg_pyspark.sql_text.names import quoted_name
from iceberg_pyspark.table.commits.pending_changes import UpdateProperties, UpdateSchema
from iceberg_pyspark.table.commits.transaction import Transaction
from iceberg_pyspark.table.run_sql_extensions import run_clause
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
        _keep_character_types(transaction, schema.schema, changes)


def _keep_character_types(
    transaction: Transaction, schema: Schema, changes: Sequence[TableChange]
) -> None:
    """Keep VARCHAR(n) of new columns, and of columns that get another type."""
    update = transaction.update_properties()
    for c in changes:
        if isinstance(c, AddColumn | UpdateType):
            f = schema.find(".".join(c.path))
            column = spark_types.StructType().add(f.name, _spark_type(c.type))
            kept = character_properties(column, Schema(fields=(f,)))
            update.set(kept)
            key = f"{CHARACTER_TYPE}{f.field_id}"
            if not kept and key in transaction.metadata.properties:
                update.remove(key)
    update.commit()


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
            schema.update_default(column, _default_value(column, type_, c.column_default))


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
        default=_default_value(column, type_, c.column_default),
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
    struct = spark_types.StructType().add("x", _spark_type(text))
    return from_spark_schema(struct).fields[0].type


def _spark_type(text: str) -> spark_types.DataType:
    """Return a type that Spark describes in JSON."""
    field = {"name": "x", "type": json.loads(text), "nullable": True, "metadata": {}}
    struct = spark_types.StructType.fromJson({"type": "struct", "fields": [field]})
    return struct.fields[0].dataType


def with_defaults(schema: Schema, defaults: Sequence[ColumnDefault | None]) -> Schema:
    """Return the schema with a default for each column; None in `defaults` means no default."""
    fields = []
    for f, default in zip(schema.fields, defaults, strict=True):
        value = _default_value(f.name, f.type, default)
        fields.append(replace(f, initial_default=value, write_default=value))
    return replace(schema, fields=tuple(fields))


def _default_value(column: str, type_: object, default: ColumnDefault | None) -> Any:
    """Return a default as a value of the column's type; raise `InvalidRequestError`."""
    if default is None:
        return None
    if default.value is None:
        raise UnsupportedFeatureError(
            f"column '{column}': DEFAULT {default.sql} is not a literal; write a literal, because "
            "Iceberg stores a value, not an expression"
        )
    if not isinstance(type_, PrimitiveType):
        if isinstance(default.value, LiteralValue) and default.value.value is None:
            return None
        raise UnsupportedFeatureError(
            f"column '{column}': DEFAULT {default.sql}: only NULL can be the default of a column "
            f"of type {type_}"
        )
    literal = literal_value(default.value)
    if literal is None:
        return None
    if isinstance(type_, TimestamptzType | TimestamptzNsType) and isinstance(literal, str):
        raise InvalidRequestError(
            f"column '{column}': write DEFAULT TIMESTAMP {default.sql}, so that the session's "
            "time zone is known"
        )
    if isinstance(type_, StringType) and not isinstance(literal, str):
        raise _no_value(column, type_, default)
    if isinstance(type_, FloatType) and isinstance(literal, Decimal | float):
        # Spark casts 0.1 to a column's type; what no float is near to is not a value of the type
        nearest = nearest_float(float(literal))
        literal = nearest if isfinite(nearest) else literal
    try:
        bound = place_literal(type_, literal)
    except (TypeError, ValueError) as e:
        raise _no_value(column, type_, default) from e
    if bound.where != "at":
        raise _no_value(column, type_, default)
    return bound.value


def _no_value(column: str, type_: object, default: ColumnDefault) -> InvalidRequestError:
    return InvalidRequestError(
        f"column '{column}': DEFAULT {default.sql} is not a value of type {type_}"
    )


STATEMENT_PROPERTY = "iceberg_pyspark.statement"
"""The property that carries a statement; no table has such a property."""


def statement_parse(request: StatementParse) -> ParsedStatement:
    """Return the parsed statement for the parser in front of Spark's parser."""
    statement = extension_statement(request.text)
    if statement is None:
        return ParsedStatement()
    table = tuple(statement.table)
    try:
        parse_clause(request.text, statement.offset)
    except ExtensionSyntaxError as e:
        problem = SyntaxProblem(
            near=e.near, expectation=e.expectation, line=e.line, position=e.position
        )
        return ParsedStatement(table=table, problem=problem)
    return ParsedStatement(
        table=table,
        quoted_table=quoted_name(statement.table),
        property=STATEMENT_PROPERTY,
        clause=request.text[statement.offset :],
    )


def statement_in(changes: Sequence[TableChange]) -> str | None:
    """Return the Iceberg statement that is carried by a change of an ALTER TABLE, or None."""
    for c in changes:
        if isinstance(c, SetProperty) and c.key == STATEMENT_PROPERTY:
            return c.value
    return None


def run_statement(table: Table, text: str, offset: int = 0) -> None:
    """Carry out the clause that begins at an offset of a text."""
    try:
        clause = parse_clause(text, offset)
    except ExtensionSyntaxError as e:
        raise InvalidRequestError(f"table {table.identifier}: {e}: {text}") from e
    run_clause(table, clause)
