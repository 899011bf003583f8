"""Binds predicates: names become column ids, plain literals become values of the column's type.

An unknown name or a literal of a wrong type is refused. Conditions that can be decided without
looking at a row are folded (a literal outside the column's range, null, `is_null` of a required
column). `literals.py` describes how literals of other types compare.

Negation is removed first: the result has no `Not`, and selects exactly the rows that the original
predicate selects. The result may be false where the original is unknown, so negate a predicate
before binding it, not after.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.expressions import predicates
from iceberg_pyspark.expressions.condition_text import literal_text
from iceberg_pyspark.expressions.literals import BoundLiteralValue, place_literal
from iceberg_pyspark.expressions.rewriting import and_, none_of, not_null, one_of, or_, push_not
from iceberg_pyspark.expressions.variant_fields import FIELD_TYPES
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.variant_paths import field_path, normalized_path

_NOT_COMPARABLE = (types.VariantType, types.GeometryType, types.GeographyType)


def bind(
    predicate: predicates.Predicate, schema: Schema, *, case_sensitive: bool | None = True
) -> predicates.Predicate:
    """Return the predicate bound to a schema; bound parts stay unchanged.

    >>> from iceberg_pyspark.spec.schema import Schema
    >>> from iceberg_pyspark.spec.types import IntegerType, NestedField
    >>> schema = Schema(fields=(NestedField(field_id=1, name="id", type=IntegerType()),))
    >>> bound = bind(LiteralPredicate("lt", "id", 1.5), schema)
    >>> bound.op, bound.column.field_id, bound.literal
    ('lt_eq', 1, 1)
    """
    return _bind(push_not(predicate), schema, case_sensitive)


def _bind(
    predicate: predicates.Predicate, schema: Schema, case_sensitive: bool | None
) -> predicates.Predicate:
    match predicate:
        case predicates.And(left, right):
            return and_(_bind(left, schema, case_sensitive), _bind(right, schema, case_sensitive))
        case predicates.Or(left, right):
            return or_(_bind(left, schema, case_sensitive), _bind(right, schema, case_sensitive))
        case predicates.UnaryPredicate(op, name):
            return _bind_test(op, bind_column(name, schema, case_sensitive=case_sensitive))
        case predicates.LiteralPredicate(op, name, literal):
            column = bind_column(name, schema, case_sensitive=case_sensitive)
            return _bind_literal(op, column, literal)
        case predicates.SetPredicate(op, name, literals):
            column = bind_column(name, schema, case_sensitive=case_sensitive)
            return _bind_set(op, column, literals)
        case _:
            return predicate


def bind_column(
    name: predicates.UnboundColumn, schema: Schema, *, case_sensitive: bool | None = True
) -> predicates.BoundColumn:
    """Return the column with that full dotted name, or the field of a variant column.

    A column inside a list or map is refused.
    """
    if isinstance(name, predicates.VariantField):
        return _bind_variant_field(name, schema, case_sensitive)
    field = schema.find(name, case_sensitive=case_sensitive)
    required = field.required
    field_id = field.field_id
    while (parent_id := schema.parent_by_id.get(field_id)) is not None:
        parent = schema.field_by_id[parent_id]
        if isinstance(parent.type, types.ListType | types.MapType):
            raise InvalidRequestError(
                f"column '{name}' lies inside '{schema.name_by_id[parent_id]}', a {parent.type}; "
                "a filter can only use columns outside lists and maps"
            )
        required = required and parent.required
        field_id = parent_id
    return predicates.BoundColumn(
        field_id=field.field_id,
        name=schema.name_by_id[field.field_id],
        type=field.type,
        required=required,
    )


def _bind_variant_field(
    field: predicates.VariantField, schema: Schema, case_sensitive: bool | None
) -> predicates.ExtractedColumn:
    column = bind_column(field.column, schema, case_sensitive=case_sensitive)
    if not isinstance(column.type, types.VariantType):
        raise InvalidRequestError(f"{field}: column '{column.name}' is {column.type}, no variant")
    try:
        type_ = types.primitive_from_string(_TYPE_NAMES.get(field.type.lower(), field.type))
    except InvalidMetadataError as e:
        raise InvalidRequestError(f"{field}: {e}") from e
    if not isinstance(type_, FIELD_TYPES):
        raise InvalidRequestError(f"{field}: a variant has no fields of type {type_}")
    path = field_path(field.path)
    shown = predicates.VariantField(column.name, normalized_path(path), str(type_))
    return predicates.ExtractedColumn(
        field_id=column.field_id, name=str(shown), type=type_, required=False, path=path
    )


_TYPE_NAMES = {"bigint": "long", "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}
"""Types by their names in SQL."""


def _bind_box(
    op: predicates.Comparison, column: predicates.BoundColumn, box: Any
) -> predicates.Predicate:
    if not isinstance(column.type, types.GeometryType):
        raise InvalidRequestError(
            f"st_intersects: column '{column.name}' is {column.type}; only geometries are compared "
            "with a box"
        )
    if not (
        isinstance(box, tuple)
        and len(box) == 4
        and all(isinstance(c, int | float | Decimal) and not isinstance(c, bool) for c in box)
    ):
        raise InvalidRequestError("st_intersects takes a column, xmin, ymin, xmax and ymax")
    corners = tuple(map(float, box))
    if not (corners[0] <= corners[2] and corners[1] <= corners[3]):
        raise InvalidRequestError(
            f"st_intersects: the box {corners} has a corner above the other; xmin and ymin come "
            "first"
        )
    return predicates.BoundLiteral(op, column, corners)


def _bind_test(op: predicates.Test, column: predicates.BoundColumn) -> predicates.Predicate:
    always_null = isinstance(column.type, types.UnknownType)
    floating = isinstance(column.type, types.FloatType | types.DoubleType)
    match op:
        case "is_null" if always_null:
            return predicates.AlwaysTrue()
        case "not_null" if always_null:
            return predicates.AlwaysFalse()
        case "is_null" if column.required:
            return predicates.AlwaysFalse()
        case "not_null" if column.required:
            return predicates.AlwaysTrue()
        case "is_nan" | "not_nan" if not isinstance(column.type, types.PrimitiveType):
            raise InvalidRequestError(f"{op}: column '{column.name}' is a {column.type}")
        case "is_nan" if not floating:
            return predicates.AlwaysFalse()
        case "not_nan" if not floating:
            return predicates.AlwaysTrue()
        case _:
            return predicates.BoundUnary(op, column)


def _bind_literal(
    op: predicates.Comparison, column: predicates.BoundColumn, literal: Any
) -> predicates.Predicate:
    if op == "intersects" or op == "not_intersects":
        return _bind_box(op, column, literal)
    _check_comparable(column)
    if literal is None or isinstance(column.type, types.UnknownType):
        return predicates.AlwaysFalse()
    if op == "starts_with" or op == "not_starts_with":
        return _bind_prefix(op, column, literal)
    bound_value = _place(column, literal)
    if op == "eq":
        return _equal_to(column, bound_value)
    if op == "not_eq":
        return _different_from(column, bound_value)
    return _comparison(op, column, bound_value)


def _comparison(
    op: predicates.Comparison, column: predicates.BoundColumn, bound_value: BoundLiteralValue
) -> predicates.Predicate:
    less = op in ("lt", "lt_eq")
    match bound_value.where:
        case "at":
            return predicates.BoundLiteral(op, column, bound_value.value)
        case "after":
            return predicates.BoundLiteral("lt_eq" if less else "gt", column, bound_value.value)
        case "nan":
            # NaN is the greatest value: all values except NaN are less
            if op == "lt":
                return _different_from(column, bound_value)
            if op == "gt_eq":
                return _equal_to(column, bound_value)
            return not_null(column) if less else predicates.AlwaysFalse()
        case "above":
            return not_null(column) if less else predicates.AlwaysFalse()
        case "below":
            return predicates.AlwaysFalse() if less else not_null(column)


def _equal_to(column: predicates.BoundColumn, *places: BoundLiteralValue) -> predicates.Predicate:
    nan = any(p.where == "nan" for p in places)
    return or_(
        one_of(column, [p.value for p in places if p.where == "at"]),
        predicates.BoundUnary("is_nan", column) if nan else predicates.AlwaysFalse(),
    )


def _different_from(
    column: predicates.BoundColumn, *places: BoundLiteralValue
) -> predicates.Predicate:
    nan = any(p.where == "nan" for p in places)
    # not_nan selects null but none_of does not, so the conjunction is exact
    return and_(
        none_of(column, [p.value for p in places if p.where == "at"]),
        predicates.BoundUnary("not_nan", column) if nan else predicates.AlwaysTrue(),
    )


def _bind_prefix(
    op: predicates.Comparison, column: predicates.BoundColumn, literal: Any
) -> predicates.Predicate:
    if not isinstance(column.type, types.StringType | types.BinaryType):
        raise InvalidRequestError(
            f"{op}: column '{column.name}' is {column.type}, only string and binary have prefixes"
        )
    prefix = _place(column, literal).value
    if not prefix:
        return not_null(column) if op == "starts_with" else predicates.AlwaysFalse()
    return predicates.BoundLiteral(op, column, prefix)


def _bind_set(
    op: predicates.Membership, column: predicates.BoundColumn, literals: tuple[Any, ...]
) -> predicates.Predicate:
    _check_comparable(column)
    if isinstance(column.type, types.UnknownType):
        return predicates.AlwaysFalse()
    places = [_place(column, v) for v in literals if v is not None]
    has_null = len(places) < len(literals)
    if op == "in":
        return _equal_to(column, *places)
    # NOT IN with a null among the values is false or unknown for every row
    return predicates.AlwaysFalse() if has_null else _different_from(column, *places)


def _check_comparable(column: predicates.BoundColumn) -> None:
    if not isinstance(column.type, types.PrimitiveType) or isinstance(column.type, _NOT_COMPARABLE):
        raise InvalidRequestError(
            f"column '{column.name}' is {column.type}; it can only be tested for null"
        )


def _place(column: predicates.BoundColumn, literal: Any) -> BoundLiteralValue:
    try:
        return place_literal(column.type, literal)
    except (TypeError, ValueError, OverflowError) as e:
        raise InvalidRequestError(
            f"column '{column.name}' is {column.type}, which does not compare with "
            f"{literal_text(literal)}: {e}"
        ) from e
