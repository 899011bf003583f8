"""Schemas, partitioning and sort orders as users write them: `id BIGINT`, `days(ts)`, `v DESC`.

Type names are Spark SQL's: TIMESTAMP is Iceberg's `timestamptz`, TIMESTAMP_NTZ its `timestamp`.
Partition and sort terms are those of Spark DDL. What is not understood is refused by name. Field
ids are given in order; a new table renumbers them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise

import sqlglot
from sqlglot import exp

from iceberg_pyspark.catalogs.identifiers import parse_levels
from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.spec.partitioning import (
    FIRST_PARTITION_FIELD_ID,
    PartitionField,
    PartitionSpec,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import UNSORTED, Direction, NullOrder, SortField, SortOrder
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
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

_TERM = re.compile(r"(?P<function>\w+)\s*\((?P<arguments>.*)\)", re.DOTALL)
_ALIAS = re.compile(r"(?P<term>.*\S)\s+AS\s+(?P<name>\w+|`(?:[^`]|``)+`)", re.DOTALL | re.I)
_SORT = re.compile(
    r"(?P<term>.*?)(?:\s+(?P<direction>ASC|DESC))?(?:\s+NULLS\s+(?P<nulls>FIRST|LAST))?",
    re.DOTALL | re.IGNORECASE,
)
_ARGUMENT = re.compile(r"(?:`(?:[^`]|``)*`|[^,`])+")

_TIME_TRANSFORMS: Mapping[str, tuple[Transform, str]] = {
    "year": (YearTransform(), "year"),
    "years": (YearTransform(), "year"),
    "month": (MonthTransform(), "month"),
    "months": (MonthTransform(), "month"),
    "day": (DayTransform(), "day"),
    "days": (DayTransform(), "day"),
    "date": (DayTransform(), "day"),
    "hour": (HourTransform(), "hour"),
    "hours": (HourTransform(), "hour"),
    "date_hour": (HourTransform(), "hour"),
    "void": (VoidTransform(), "null"),
}


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


def parse_partitioning(terms: Sequence[str], schema: Schema) -> PartitionSpec:
    """The partition spec that terms such as `days(ts)`, `bucket(16, id)` and `country` say.

    `AS name` renames a field. Raises `InvalidRequestError`.

    >>> schema = parse_schema("id BIGINT, ts TIMESTAMP")
    >>> [f.name for f in parse_partitioning(["days(ts)", "bucket(16, id)"], schema).fields]
    ['ts_day', 'id_bucket']
    """
    fields: list[PartitionField] = []
    for position, term in enumerate(terms):
        text, alias = term, None
        if m := _ALIAS.fullmatch(term.strip()):
            text, alias = m["term"], ".".join(parse_levels(m["name"]))
        parsed = _parse_term(text, schema)
        fields.append(
            PartitionField(
                source_ids=(parsed.source_id,),
                field_id=FIRST_PARTITION_FIELD_ID + position,
                name=alias or parsed.field_name,
                transform=parsed.transform,
            )
        )
    names = [f.name for f in fields]
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequestError(
                f"partition field '{name}' is there twice; give one of them another name with AS"
            )
    return PartitionSpec(spec_id=0, fields=tuple(fields))


def parse_sort_order(terms: Sequence[str], schema: Schema) -> SortOrder:
    """The sort order that terms such as `ts DESC NULLS LAST` say; raises `InvalidRequestError`.

    As in Spark, ascending puts nulls first and descending puts them last unless told otherwise.
    """
    fields: list[SortField] = []
    for term in terms:
        m = _SORT.fullmatch(term.strip())
        if m is None or not m["term"]:
            raise InvalidRequestError(
                f"sort term '{term}': expected a column or a transform of one"
            )
        parsed = _parse_term(m["term"], schema)
        direction: Direction = "desc" if (m["direction"] or "").upper() == "DESC" else "asc"
        nulls = (m["nulls"] or ("LAST" if direction == "desc" else "FIRST")).upper()
        null_order: NullOrder = "nulls-last" if nulls == "LAST" else "nulls-first"
        fields.append(
            SortField(
                source_ids=(parsed.source_id,),
                transform=parsed.transform,
                direction=direction,
                null_order=null_order,
            )
        )
    return SortOrder(order_id=1, fields=tuple(fields)) if fields else UNSORTED


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    """A transform of a column, and the name its partition field has by default."""

    source_id: int
    transform: Transform
    field_name: str


def _parse_term(text: str, schema: Schema) -> _Term:
    m = _TERM.fullmatch(text.strip())
    if m is None:
        name, source_id = _column(text, schema)
        return _Term(source_id=source_id, transform=IdentityTransform(), field_name=name)
    function = m["function"].lower()
    arguments = [a.strip() for a in _ARGUMENT.findall(m["arguments"])]
    numbers = [int(a) for a in arguments if a.isdecimal()]
    columns = [a for a in arguments if not a.isdecimal()]
    if len(columns) != 1:
        raise InvalidRequestError(f"'{text}': a transform takes one column")
    name, source_id = _column(columns[0], schema)
    if function in ("bucket", "truncate"):
        if len(numbers) != 1 or numbers[0] < 1:
            raise InvalidRequestError(
                f"'{text}': {function} takes a positive number and a column, as {function}(16, id)"
            )
        bucket = function == "bucket"
        return _Term(
            source_id=source_id,
            transform=BucketTransform(numbers[0]) if bucket else TruncateTransform(numbers[0]),
            field_name=f"{name}_{'bucket' if bucket else 'trunc'}",
        )
    if numbers:
        raise InvalidRequestError(f"'{text}': {function} takes a column only")
    if function == "identity":
        return _Term(source_id=source_id, transform=IdentityTransform(), field_name=name)
    if function not in _TIME_TRANSFORMS:
        raise InvalidRequestError(
            f"'{text}': transform {function} is not known; there are identity, years, months, "
            "days, hours, "
            "bucket(n, column), truncate(n, column)"
        )
    transform, suffix = _TIME_TRANSFORMS[function]
    return _Term(source_id=source_id, transform=transform, field_name=f"{name}_{suffix}")


def _column(text: str, schema: Schema) -> tuple[str, int]:
    """Full name and id of the column a term names, in its exact case or any other."""
    wanted = ".".join(parse_levels(text.strip()))
    found = schema.find(wanted, case_sensitive=wanted in schema.id_by_name)
    return schema.name_by_id[found.field_id], found.field_id
