"""Projects a row predicate through a partition spec.

Specification, "Scan Planning". The inclusive projection is true for every partition that may hold a
matching row, the strict projection only for partitions in which every row matches. Every manifest
is filtered with the projection for its own spec.

The result refers to partition fields: the column id is the partition field id, the type is the
transform's result type. Unknown and void transforms and transforms of several columns prove
nothing: their inclusive projection is true, their strict projection false.

Some old writers rounded times before 1970 towards zero, and so wrote hours, days, months and years
that are one too high (docs/conformance.md 55). The stored value of a time transform is therefore
assumed to be t or, for t < 0, t + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias

from iceberg_pyspark.expressions import predicates
from iceberg_pyspark.expressions.literals import integer_range
from iceberg_pyspark.expressions.rewriting import (
    and_,
    none_of,
    not_bound,
    not_null,
    one_of,
    or_,
    push_not,
)
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    accepts,
    apply_transform,
)
from iceberg_pyspark.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    Type,
)
from iceberg_pyspark.spec.values import decimal_of, unscaled_value

_ProjectLeaf: TypeAlias = Callable[[predicates.BoundLeaf], predicates.Predicate]
_ProjectValues: TypeAlias = Callable[
    [Transform, predicates.BoundLiteral | predicates.BoundSet, predicates.BoundColumn],
    predicates.Predicate | None,
]


def project_inclusive(
    predicate: predicates.Predicate, spec: PartitionSpec, partition_type: StructType
) -> predicates.Predicate:
    """Return a predicate that is true for every partition with a matching row."""

    def project(leaf: predicates.BoundLeaf) -> predicates.Predicate:
        # a comparison selects no null, and only null has the partition value null
        return and_(
            *(
                _on_field(f, leaf, c, _inclusive_values, otherwise=not_null(c))
                for f, c in _fields_of(leaf, spec, partition_type)
            )
        )

    return _project(predicate, project)


def project_strict(
    predicate: predicates.Predicate, spec: PartitionSpec, partition_type: StructType
) -> predicates.Predicate:
    """Return a predicate that is true only for partitions in which every row matches."""

    def project(leaf: predicates.BoundLeaf) -> predicates.Predicate:
        return or_(
            *(
                _on_field(f, leaf, c, _strict_values, otherwise=predicates.AlwaysFalse())
                for f, c in _fields_of(leaf, spec, partition_type)
            )
        )

    return _project(predicate, project)


def _project(predicate: predicates.Predicate, project_leaf: _ProjectLeaf) -> predicates.Predicate:
    match predicate:
        case predicates.And(left, right):
            return and_(_project(left, project_leaf), _project(right, project_leaf))
        case predicates.Or(left, right):
            return or_(_project(left, project_leaf), _project(right, project_leaf))
        case predicates.Not():
            return _project(push_not(predicate), project_leaf)
        case predicates.AlwaysTrue() | predicates.AlwaysFalse():
            return predicate
        case predicates.BoundUnary() | predicates.BoundLiteral() | predicates.BoundSet():
            return project_leaf(predicate)
        case _:
            raise not_bound(predicate)


def _fields_of(
    leaf: predicates.BoundLeaf, spec: PartitionSpec, partition_type: StructType
) -> list[tuple[Transform, predicates.BoundColumn]]:
    """Return the usable transforms of the leaf's column, with their partition fields."""
    return [
        (f.transform, _partition_column(f, partition_type))
        for f in spec.fields
        if f.source_ids == (leaf.column.field_id,)
        and not isinstance(f.transform, VoidTransform | UnknownTransform)
        and accepts(f.transform, leaf.column.type)
    ]


def _partition_column(field: PartitionField, partition_type: StructType) -> predicates.BoundColumn:
    types = {f.field_id: f.type for f in partition_type.fields}
    return predicates.BoundColumn(
        field_id=field.field_id, name=field.name, type=types[field.field_id], required=False
    )


def _on_field(
    transform: Transform,
    leaf: predicates.BoundLeaf,
    target: predicates.BoundColumn,
    project_values: _ProjectValues,
    *,
    otherwise: predicates.Predicate,
) -> predicates.Predicate:
    """Return the leaf on a partition field; `otherwise` if the field's values do not decide it."""
    if isinstance(leaf, predicates.BoundUnary):
        return replace(leaf, column=target)
    exact = _exact(transform, leaf, target)
    if exact is not None:
        return exact
    projection = project_values(transform, leaf, target)
    return otherwise if projection is None else projection


def _exact(
    transform: Transform,
    leaf: predicates.BoundLiteral | predicates.BoundSet,
    target: predicates.BoundColumn,
) -> predicates.Predicate | None:
    """Return the projection that is both inclusive and strict, or None if there is none."""
    if isinstance(transform, IdentityTransform):
        return replace(leaf, column=target)
    if isinstance(transform, DayTransform) and isinstance(leaf.column.type, DateType):
        return replace(leaf, column=target)
    if (
        isinstance(transform, TruncateTransform)
        and isinstance(leaf, predicates.BoundLiteral)
        and isinstance(leaf.column.type, StringType | BinaryType)
    ):
        return _exact_prefix(transform.width, leaf, target)
    return None


def _exact_prefix(
    width: int, leaf: predicates.BoundLiteral, target: predicates.BoundColumn
) -> predicates.Predicate | None:
    """Return the predicate on the first `width` characters, or None if they do not decide.

    A value and its prefix lie on the same side of any shorter text. A text of the prefix's length
    also cannot separate the two with `<` and `>=`.
    """
    length = len(leaf.literal)
    if length < width or (length == width and leaf.op in ("lt", "gt_eq")):
        return replace(leaf, column=target)
    if length == width and leaf.op == "starts_with":
        return replace(leaf, op="eq", column=target)
    if length == width and leaf.op == "not_starts_with":
        return replace(leaf, op="not_eq", column=target)
    return None


def _inclusive_values(
    transform: Transform,
    leaf: predicates.BoundLiteral | predicates.BoundSet,
    target: predicates.BoundColumn,
) -> predicates.Predicate | None:
    source = leaf.column.type
    partition_values = partial(_partition_values, transform, source)

    match leaf:
        case predicates.BoundSet(op="in", literals=literals):
            return _check_on_values(one_of, target, set().union(*map(partition_values, literals)))
        case predicates.BoundLiteral(op="eq", literal=literal):
            return _check_on_values(one_of, target, partition_values(literal))
        case predicates.BoundLiteral() if isinstance(transform, BucketTransform):
            return None
        case predicates.BoundLiteral(op="starts_with", literal=prefix):
            return _check_on_values(one_of, target, partition_values(prefix))
        case predicates.BoundLiteral(op="lt" | "lt_eq" as op, literal=literal):
            last = literal if op == "lt_eq" else _neighbour(source, literal, -1)
            return _checked_bound("lt_eq", target, max(partition_values(last)))
        case predicates.BoundLiteral(op="gt" | "gt_eq" as op, literal=literal):
            first = literal if op == "gt_eq" else _neighbour(source, literal, 1)
            return _checked_bound("gt_eq", target, min(partition_values(first)))
        case _:
            return None


def _strict_values(
    transform: Transform,
    leaf: predicates.BoundLiteral | predicates.BoundSet,
    target: predicates.BoundColumn,
) -> predicates.Predicate | None:
    source = leaf.column.type
    apply = partial(apply_transform, transform, source)
    partition_values = partial(_partition_values, transform, source)

    match leaf:
        case predicates.BoundSet(op="not_in", literals=literals):
            return _check_on_values(none_of, target, set().union(*map(partition_values, literals)))
        case predicates.BoundLiteral(op="not_eq", literal=literal):
            return _check_on_values(none_of, target, partition_values(literal))
        case predicates.BoundLiteral(op="not_starts_with", literal=prefix) if not isinstance(
            transform, BucketTransform
        ):
            return _check_on_values(none_of, target, partition_values(prefix))
        case _ if isinstance(transform, BucketTransform):
            return None
        case predicates.BoundLiteral(op="lt", literal=literal):
            return _checked_bound("lt", target, apply(literal))
        case predicates.BoundLiteral(op="lt_eq", literal=literal):
            return _checked_bound("lt", target, apply(_neighbour(source, literal, 1)))
        case predicates.BoundLiteral(op="gt", literal=literal):
            return _checked_bound("gt", target, max(partition_values(literal)))
        case predicates.BoundLiteral(op="gt_eq", literal=literal):
            before = _neighbour(source, literal, -1)
            return _checked_bound("gt", target, max(partition_values(before)))
        case predicates.BoundLiteral(op="eq", literal=literal):
            return _check_on_values(one_of, target, _alone({literal}, source, apply))
        case predicates.BoundSet(op="in", literals=literals):
            return _check_on_values(one_of, target, _alone(literals, source, apply))
        case _:
            return None


def _alone(values: Collection[Any], source: Type, apply: Callable[[Any], Any]) -> set[Any]:
    """Return the partition values of those `values` that are alone in their partition."""
    if isinstance(source, StringType | BinaryType):
        return set()
    return {
        apply(v)
        for v in values
        if apply(_neighbour(source, v, -1)) < apply(v) < apply(_neighbour(source, v, 1))
    }


def _partition_values(transform: Transform, source: Type, value: Any) -> set[Any]:
    """Return the partition values that old and new writers store for a row's value."""
    t = apply_transform(transform, source, value)
    is_time = not isinstance(transform, BucketTransform | TruncateTransform)
    return {t, t + 1} if is_time and t < 0 else {t}


def _neighbour(source: Type, value: Any, step: int) -> Any:
    """Return the next value in the direction of `step`; for text and bytes, the same value."""
    if isinstance(source, DecimalType):
        return decimal_of(unscaled_value(value) + step, source.scale)
    return value if isinstance(source, StringType | BinaryType) else value + step


def _check_on_values(
    build: Callable[[predicates.BoundColumn, Collection[Any]], predicates.Predicate],
    target: predicates.BoundColumn,
    values: Collection[Any],
) -> predicates.Predicate | None:
    return build(target, values) if all(_fits(target.type, v) for v in values) else None


def _checked_bound(
    op: predicates.Comparison, target: predicates.BoundColumn, value: Any
) -> predicates.Predicate | None:
    return predicates.BoundLiteral(op, target, value) if _fits(target.type, value) else None


def _fits(type_: Type, value: Any) -> bool:
    """Return whether a partition field can hold the value; truncation may leave its range."""
    match type_:
        case IntegerType() | LongType() | DateType():
            low, high = integer_range(type_)
            return bool(low <= value <= high)
        case DecimalType(precision=precision):
            return isinstance(value, Decimal) and abs(unscaled_value(value)) < 10**precision
        case _:
            return True
