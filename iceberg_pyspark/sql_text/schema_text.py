"""Parses schemas: `id BIGINT NOT NULL, ts TIMESTAMP`.

Type names are Spark SQL's: TIMESTAMP is Iceberg's `timestamptz`, TIMESTAMP_NTZ is `timestamp`.
Unknown types are refused. Field ids are assigned in order; a new table renumbers them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, pairwise

from sqlglot import exp

from iceberg_pyspark.display import cut_off
from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.sql_text.parser import SqlTextError, parse_statements, spark_tokens

_PRIMITIVES: Mapping[exp.DType, types.PrimitiveType] = {
    exp.DType.BOOLEAN: types.BooleanType(),
    exp.DType.TINYINT: types.IntegerType(),
    exp.DType.SMALLINT: types.IntegerType(),
    exp.DType.INT: types.IntegerType(),
    exp.DType.BIGINT: types.LongType(),
    exp.DType.FLOAT: types.FloatType(),
    exp.DType.DOUBLE: types.DoubleType(),
    exp.DType.DATE: types.DateType(),
    exp.DType.TIME: types.TimeType(),
    exp.DType.TIMESTAMPTZ: types.TimestamptzType(),
    exp.DType.TIMESTAMPLTZ: types.TimestamptzType(),
    exp.DType.TIMESTAMPNTZ: types.TimestampType(),
    exp.DType.TEXT: types.StringType(),
    exp.DType.BINARY: types.BinaryType(),
    exp.DType.UUID: types.UUIDType(),
    exp.DType.VARIANT: types.VariantType(),
}
# Spark checks the length itself; Iceberg has one type for text
_BOUNDED_STRINGS = (exp.DType.VARCHAR, exp.DType.CHAR)
_DEFAULT_PRECISION = 10


def parse_schema(text: str) -> Schema:
    """Return the schema of a column list; raise `InvalidRequestError`.

    >>> schema = parse_schema("id BIGINT NOT NULL, tags ARRAY<STRING>")
    >>> [(f.name, str(f.type), f.required) for f in schema.fields]
    [('id', 'long', True), ('tags', 'list<string>', False)]
    """
    columns = _parse_columns(text)
    return Schema(fields=_fields(columns, count(1)))


def _parse_columns(text: str) -> list[exp.Expression]:
    _refuse_fixed_type(text)
    try:
        statement, *others = parse_statements(f"CREATE TABLE t (\n{text}\n)")
    except SqlTextError as e:
        raise InvalidRequestError(
            f"schema '{cut_off(text)}': not a list of columns as Spark SQL writes them, "
            f"'id BIGINT NOT NULL, ts TIMESTAMP'; a name that is a keyword needs backticks ({e})"
        ) from e
    if not isinstance(statement, exp.Create) or others:
        raise _not_columns(text)
    columns = statement.this.expressions if isinstance(statement.this, exp.Schema) else []
    # clauses after the columns, such as USING, cannot be part of a schema
    clauses = [k for k, v in statement.args.items() if v and k not in ("this", "kind")]
    if clauses or not columns:
        raise _not_columns(text)
    return list(columns)


def _not_columns(text: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"schema '{cut_off(text)}': expected columns and nothing else, as in 'id BIGINT, "
        "ts TIMESTAMP'"
    )


def _refuse_fixed_type(text: str) -> None:
    # the parser reads FIXED(n) as a decimal, as MySQL does; in Iceberg FIXED is bytes
    try:
        tokens = spark_tokens(text)
    except SqlTextError as e:
        raise InvalidRequestError(f"schema '{cut_off(text)}': {e}") from e
    for token, following in pairwise(tokens):
        if token.text.upper() == "FIXED" and following.text == "(":
            raise InvalidRequestError(
                "type FIXED(n) is not part of Spark SQL; build the schema from Iceberg types "
                "instead"
            )


def _fields(
    columns: Sequence[exp.Expression], ids: Iterator[int], depth: int = 1
) -> tuple[types.NestedField, ...]:
    """Return the fields of a struct; all its ids come before ids of nested fields."""
    columns_by_id = [(next(ids), column) for column in columns]
    fields = tuple(_field(field_id, column, ids, depth) for field_id, column in columns_by_id)
    names: set[str] = set()
    for f in fields:
        if f.name in names:
            raise InvalidRequestError(f"column '{f.name}' occurs twice")
        names.add(f.name)
    return fields


def _field(
    field_id: int, column: exp.Expression, ids: Iterator[int], depth: int
) -> types.NestedField:
    if not isinstance(column, exp.ColumnDef) or not isinstance(column.this, exp.Identifier):
        raise InvalidRequestError(
            f"column '{_sql(column)}': expected a name and a type; a name that is a keyword needs "
            "backticks"
        )
    kind = column.args.get("kind")
    if kind is None:
        raise InvalidRequestError(f"column '{_sql(column)}' has no type")
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
                    f"column '{_sql(column)}': only NOT NULL and COMMENT may follow a type"
                )
    name = column.this.this
    type_ = _type(kind, name, ids, depth + 1)
    return types.NestedField(field_id=field_id, name=name, type=type_, required=required, doc=doc)


def _type(kind: exp.Expression, name: str, ids: Iterator[int], depth: int) -> types.Type:
    if depth > types.MAX_TYPE_DEPTH:
        raise InvalidRequestError(
            f"column '{cut_off(name)}': types nest deeper than {types.MAX_TYPE_DEPTH} levels"
        )
    dtype = kind.this if isinstance(kind, exp.DataType) else None
    parts = kind.expressions
    if dtype is exp.DType.STRUCT and parts:
        return types.StructType(_fields(parts, ids, depth))
    if dtype is exp.DType.ARRAY and len(parts) == 1:
        element_id = next(ids)
        element_type = _type(parts[0], name, ids, depth + 1)
        return types.ListType(element_id=element_id, element_type=element_type)
    if dtype is exp.DType.MAP and len(parts) == 2:
        key_id, value_id = next(ids), next(ids)
        return types.MapType(
            key_id=key_id,
            key_type=_type(parts[0], name, ids, depth + 1),
            value_id=value_id,
            value_type=_type(parts[1], name, ids, depth + 1),
        )
    if dtype is exp.DType.DECIMAL:
        return _decimal(parts, name)
    if dtype is exp.DType.GEOMETRY or dtype is exp.DType.GEOGRAPHY:
        return _geo_type(dtype, parts, name)
    if dtype in _BOUNDED_STRINGS and len(parts) == 1:
        return types.StringType()
    primitive = _PRIMITIVES.get(dtype) if dtype is not None else None
    if primitive is not None and not parts:
        return primitive
    raise InvalidRequestError(
        f"column '{name}': type {_sql(kind)} is not known here; there are BOOLEAN, "
        "INT, BIGINT, FLOAT, "
        "DOUBLE, DECIMAL(p, s), DATE, TIMESTAMP, TIMESTAMP_NTZ, STRING, BINARY, UUID, TIME, "
        "VARIANT, GEOMETRY(srid), GEOGRAPHY(srid), "
        "STRUCT<...>, ARRAY<...>, MAP<..., ...>"
    )


def _geo_type(
    dtype: exp.DType, parts: Sequence[exp.Expression], name: str
) -> types.GeometryType | types.GeographyType:
    """Return the type that Spark writes with the number of its reference system."""
    crs = types.DEFAULT_CRS
    if parts:
        if len(parts) > 1 or not (parts[0].name.isdecimal() and len(parts[0].name) < 10):
            raise InvalidRequestError(
                f"column '{name}': geometry and geography take the number of a reference system; "
                "others are given by update_schema, as in 'geometry(projjson:name)'"
            )
        crs = types.crs_of_number(int(parts[0].name))
    return types.GeometryType(crs) if dtype is exp.DType.GEOMETRY else types.GeographyType(crs)


def _decimal(parts: Sequence[exp.Expression], name: str) -> types.DecimalType:
    # Python's int() refuses numbers of thousands of digits
    numbers = [int(p.name) for p in parts if p.name.isdecimal() and len(p.name) < 10]
    precision = numbers[0] if numbers else _DEFAULT_PRECISION
    scale = numbers[1] if len(numbers) > 1 else 0
    try:
        if len(numbers) != len(parts) or len(numbers) > 2 or scale > precision:
            raise InvalidMetadataError(
                "scale and precision must be numbers, scale at most precision"
            )
        return types.DecimalType(precision, scale)
    except InvalidMetadataError as e:
        raise InvalidRequestError(f"column '{name}': {e}") from e


def _sql(node: exp.Expression) -> str:
    try:
        return cut_off(node.sql(dialect="spark"))
    except RecursionError:
        return "(nested too deeply)"
