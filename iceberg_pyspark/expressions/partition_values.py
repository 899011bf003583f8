"""Evaluates a bound predicate on one tuple of concrete values.

Used for partition tuples and, in tests, as the plain model of a predicate's meaning on a row.
`arrow/read/row_filter.py` evaluates predicates on columns of rows. `predicates.py` defines the
semantics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iceberg_pyspark.expressions import predicates
from iceberg_pyspark.expressions.rewriting import not_bound


def evaluate(predicate: predicates.Predicate, values: Mapping[int, Any]) -> bool | None:
    """Return True, False or None (unknown); `values` has a value or None by field id."""
    match predicate:
        case predicates.AlwaysTrue():
            return True
        case predicates.AlwaysFalse():
            return False
        case predicates.And(left, right):
            first = evaluate(left, values)
            if first is False:
                return False
            second = evaluate(right, values)
            return second if first or second is False else None
        case predicates.Or(left, right):
            first = evaluate(left, values)
            if first is True:
                return True
            second = evaluate(right, values)
            return second if first is False or second is True else None
        case predicates.Not(child):
            inner = evaluate(child, values)
            return None if inner is None else not inner
        case predicates.BoundUnary() | predicates.BoundLiteral() | predicates.BoundSet():
            return evaluate_leaf(predicate, values[predicate.column.field_id])
        case _:
            raise not_bound(predicate)


def evaluate_leaf(leaf: predicates.BoundLeaf, value: Any) -> bool | None:
    """Return the result of the leaf for one value of its column; None for unknown."""
    is_nan = isinstance(value, float) and value != value
    match leaf:
        case predicates.BoundUnary(op="is_null"):
            return value is None
        case predicates.BoundUnary(op="not_null"):
            return value is not None
        case predicates.BoundUnary(op="is_nan"):
            return is_nan
        case predicates.BoundUnary():
            return not is_nan
    if value is None:
        return None
    if is_nan:
        # NaN is greater than every literal, because a literal is never NaN
        return leaf.op in ("gt", "gt_eq", "not_eq", "not_in")
    if isinstance(leaf, predicates.BoundSet):
        return (value in leaf.literals) == (leaf.op == "in")
    literal = leaf.literal
    result: bool
    match leaf.op:
        case "lt":
            result = value < literal
        case "lt_eq":
            result = value <= literal
        case "gt":
            result = value > literal
        case "gt_eq":
            result = value >= literal
        case "eq":
            result = value == literal
        case "not_eq":
            result = value != literal
        case "starts_with":
            result = value.startswith(literal)
        case "not_starts_with":
            result = not value.startswith(literal)
    return result
