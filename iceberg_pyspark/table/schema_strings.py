"""Schemas as users write them: `id BIGINT NOT NULL, ts TIMESTAMP`.

Type names are Spark SQL's: TIMESTAMP is Iceberg's `timestamptz`, TIMESTAMP_NTZ its `timestamp`.
What is not understood is refused by name. Field ids are given in order; a new table renumbers them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, pairwise

import sqlglot
from sqlglot import exp

from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    Type,
    UUIDType,
    VariantType,
)

_PRIMITIVES: Mapping[exp.DType, PrimitiveType] = {
    exp.DType.BOOLEAN: BooleanType(),
    exp.DType.TINYINT: IntegerType(),
    exp.DType.SMALLINT: IntegerType(),
    exp.DType.INT: IntegerType(),
    exp.DType.BIGINT: LongType(),
    exp.DType.FLOAT: FloatType(),
    exp.DType.DOUBLE: DoubleType(),
    exp.DType.DATE: DateType(),
    exp.DType.TIME: TimeType(),
    exp.DType.TIMESTAMPTZ: TimestamptzType(),
    exp.DType.TIMESTAMPLTZ: TimestamptzType(),
    exp.DType.TIMESTAMPNTZ: TimestampType(),
    exp.DType.TEXT: StringType(),
    exp.DType.BINARY: BinaryType(),
    exp.DType.UUID: UUIDType(),
    exp.DType.VARIANT: VariantType(),
}
# Spark checks their length itself; Iceberg has one type for text
_BOUNDED_STRINGS = (exp.DType.VARCHAR, exp.DType.CHAR)
_DEFAULT_PRECISION = 10


def parse_schema(text: str) -> Schema:
    """The schema a column list says; raises `InvalidRequestError`.

    >>> schema = parse_schema("id BIGINT NOT NULL, tags ARRAY<STRING>")
    >>> [(f.name, str(f.type), f.required) for f in schema.fields]
    [('id', 'long', True), ('tags', 'list<string>', False)]
    """
    columns = _parse_columns(text)
    return Schema(fields=_fields(columns, count(1)))


def _parse_columns(text: str) -> list[exp.Expression]:
    _refuse_fixed(text)
    try:
        parsed = sqlglot.parse_one(f"CREATE TABLE t (\n{text}\n)", dialect="spark")
    except (sqlglot.ParseError, sqlglot.TokenError, AttributeError) as e:
        raise InvalidRequestError(
            f"schema '{_shortened(text)}': not a list of columns as Spark SQL writes them, "
            "'id BIGINT NOT NULL, ts TIMESTAMP'; a name that is a keyword needs backticks"
        ) from e
    columns = parsed.this.expressions if isinstance(parsed.this, exp.Schema) else []
    # what stands after the columns, such as USING, cannot be part of a schema
    clauses = [k for k, v in parsed.args.items() if v and k not in ("this", "kind")]
    if not isinstance(parsed, exp.Create) or clauses or not columns:
        raise InvalidRequestError(
            f"schema '{_shortened(text)}': expected columns and nothing else, as in 'id BIGINT, "
            "ts TIMESTAMP'"
        )
    return list(columns)


def _refuse_fixed(text: str) -> None:
    # the parser takes FIXED(n) for a decimal, as MySQL does; in Iceberg it is bytes
    try:
        tokens = sqlglot.tokenize(text, dialect="spark")
    except sqlglot.TokenError as e:
        raise InvalidRequestError(f"schema '{_shortened(text)}': {e}") from e
    for token, following in pairwise(tokens):
        if token.text.upper() == "FIXED" and following.text == "(":
            raise InvalidRequestError(
                "type FIXED(n) is not part of Spark SQL; build the schema from Iceberg types "
                "instead"
            )


def _fields(columns: Sequence[exp.Expression], ids: Iterator[int]) -> tuple[NestedField, ...]:
    """Fields of one struct: all of its own ids before any nested one."""
    numbered = [(next(ids), column) for column in columns]
    fields = tuple(_field(field_id, column, ids) for field_id, column in numbered)
    seen: set[str] = set()
    for f in fields:
        if f.name in seen:
            raise InvalidRequestError(f"column '{f.name}' is there twice")
        seen.add(f.name)
    return fields


def _field(field_id: int, column: exp.Expression, ids: Iterator[int]) -> NestedField:
    shown = column.sql(dialect="spark")
    if not isinstance(column, exp.ColumnDef) or not isinstance(column.this, exp.Identifier):
        raise InvalidRequestError(
            f"column '{shown}': expected a name and a type; a name that is a keyword needs "
            "backticks"
        )
    kind = column.args.get("kind")
    if kind is None:
        raise InvalidRequestError(f"column '{shown}' has no type")
    required = False
    doc: str | None = None
    for constraint in column.args.get("constraints") or ():
        match constraint.kind:
            case exp.NotNullColumnConstraint():
                required = not constraint.kind.args.get("allow_null")
            case exp.CommentColumnConstraint():
                doc = constraint.kind.this.this
            case _:
                raise InvalidRequestError(
                    f"column '{shown}': only NOT NULL and COMMENT may follow a type"
                )
    name = column.this.this
    return NestedField(
        field_id=field_id, name=name, type=_type(kind, name, ids), required=required, doc=doc
    )


def _type(kind: exp.Expression, name: str, ids: Iterator[int]) -> Type:
    dtype = kind.this if isinstance(kind, exp.DataType) else None
    parts = kind.expressions
    if dtype is exp.DType.STRUCT and parts:
        return StructType(_fields(parts, ids))
    if dtype is exp.DType.ARRAY and len(parts) == 1:
        element_id = next(ids)
        return ListType(element_id=element_id, element_type=_type(parts[0], name, ids))
    if dtype is exp.DType.MAP and len(parts) == 2:
        key_id, value_id = next(ids), next(ids)
        return MapType(
            key_id=key_id,
            key_type=_type(parts[0], name, ids),
            value_id=value_id,
            value_type=_type(parts[1], name, ids),
        )
    if dtype is exp.DType.DECIMAL:
        return _decimal(parts, name)
    if dtype in _BOUNDED_STRINGS and len(parts) == 1:
        return StringType()
    primitive = _PRIMITIVES.get(dtype) if dtype is not None else None
    if primitive is not None and not parts:
        return primitive
    raise InvalidRequestError(
        f"column '{name}': type {kind.sql(dialect='spark')} is not known here; there are BOOLEAN, "
        "INT, BIGINT, FLOAT, "
        "DOUBLE, DECIMAL(p, s), DATE, TIMESTAMP, TIMESTAMP_NTZ, STRING, BINARY, UUID, TIME, "
        "VARIANT, "
        "STRUCT<...>, ARRAY<...>, MAP<..., ...>"
    )


def _decimal(parts: Sequence[exp.Expression], name: str) -> DecimalType:
    numbers = [int(p.name) for p in parts if p.name.isdecimal()]
    precision = numbers[0] if numbers else _DEFAULT_PRECISION
    scale = numbers[1] if len(numbers) > 1 else 0
    try:
        if len(numbers) != len(parts) or len(numbers) > 2 or scale > precision:
            raise InvalidMetadataError(
                "scale and precision must be numbers, scale at most precision"
            )
        return DecimalType(precision, scale)
    except InvalidMetadataError as e:
        raise InvalidRequestError(f"column '{name}': {e}") from e


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."
