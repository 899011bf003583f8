"""Predicates as JSON of the REST catalog, in both directions."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.evaluation import evaluate
from iceberg_pyspark.expressions.json import predicate_from_json, predicate_to_json
from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    LiteralPredicate,
    Predicate,
    SetPredicate,
    UnaryPredicate,
)
from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    LongType,
    StringType,
    TimeType,
    UUIDType,
)
from tests.support.strategies import columns, predicates, rows, schema_of

COLUMNS = columns(
    LongType(),
    StringType(),
    BooleanType(),
    DecimalType(9, 2),
    TimeType(),
    UUIDType(),
    FixedType(2),
    BinaryType(),
)
SCHEMA = schema_of(COLUMNS)


@given(predicates(COLUMNS), st.lists(rows(COLUMNS), min_size=1, max_size=3))
def test_a_predicate_survives_the_round_trip(
    predicate: Predicate, table: list[Mapping[int, Any]]
) -> None:
    text = json.dumps(predicate_to_json(predicate), allow_nan=False)
    back = predicate_from_json(json.loads(text), SCHEMA)
    for row in table:
        assert (evaluate(back, row) is True) == (evaluate(predicate, row) is True)


def test_the_written_form() -> None:
    [_, day] = columns(LongType(), DateType())
    schema = schema_of([COLUMNS[0], day])
    predicate = bind(LiteralPredicate("gt_eq", "c2", "2026-01-31"), schema)
    assert predicate_to_json(predicate) == {"type": "gt-eq", "term": "c2", "value": "2026-01-31"}
    members = bind(SetPredicate("not_in", "c1", (1, 2)), schema)
    assert predicate_to_json(members) == {"type": "not-in", "term": "c1", "values": [1, 2]}
    assert predicate_to_json(bind(UnaryPredicate("is_null", "c1"), schema)) == {
        "type": "is-null",
        "term": "c1",
    }
    assert predicate_to_json(AlwaysTrue()) is True


def test_alternative_json_of_predicates_is_parsed() -> None:
    assert predicate_from_json({"type": "true"}, SCHEMA) == AlwaysTrue()
    assert predicate_from_json(False, SCHEMA) == AlwaysFalse()
    predicate = predicate_from_json(
        {"type": "eq", "term": {"type": "reference", "term": "c1"}, "value": 5}, SCHEMA
    )
    assert predicate == bind(LiteralPredicate("eq", "c1", 5), SCHEMA)


NUMBERS = columns(LongType(), DoubleType(), StringType())
OF_NUMBERS = schema_of(NUMBERS)
NAN = float("nan")


def is_true(data: Any, row: Mapping[int, Any]) -> bool:
    """Evaluate as the expressions specification says, "Predicates"."""
    if isinstance(data, bool):
        return data
    op: str = data["type"]
    if op in ("and", "or"):
        sides = is_true(data["left"], row), is_true(data["right"], row)
        return all(sides) if op == "and" else any(sides)
    if op == "not":
        return not is_true(data["child"], row)

    def value_of(expression: Any) -> Any:
        if not isinstance(expression, dict):
            return expression
        if expression["type"] == "literal":
            return expression["value"]
        by_name = {f.name: i for i, f in OF_NUMBERS.field_by_id.items()}
        return row[expression["id"] if "id" in expression else by_name[expression["name"]]]

    if "child" in data:
        a, is_in = value_of(data["child"]), False
        if "values" in data:
            listed = data["values"]
            values = listed["values"] if isinstance(listed, dict) else map(value_of, listed)
            is_in = any(a == value for value in values)
        answers: dict[str, bool] = {
            "is-null": a is None,
            "not-null": a is not None,
            "is-nan": a != a,
            "not-nan": a == a,
            "in": is_in,
            "not-in": not is_in,
        }
        return answers[op]
    a, b = value_of(data["left"]), value_of(data["right"])
    if op in ("eq", "not-eq"):
        return bool(a == b) is (op == "eq")
    if op.endswith("starts-with"):
        return (a is not None and a.startswith(b)) is (op == "starts-with")
    ordered = a is not None and b is not None
    comparisons = {"lt": operator.lt, "gt": operator.gt, "lt-eq": operator.le, "gt-eq": operator.ge}
    return ordered and bool(comparisons[op](a, b))


def stored(value: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from([value, {"type": "literal", "value": value}])


def of_specification() -> st.SearchStrategy[Any]:
    """Return predicates in the form of the expressions specification."""
    numbers: st.SearchStrategy[Any] = st.integers(-1, 1)
    constants = {"c1": numbers, "c2": numbers | st.just(0.5), "c3": st.sampled_from(["a", "ab"])}

    def leaves(i: int) -> st.SearchStrategy[Any]:
        name = f"c{i}"
        reference = st.sampled_from(
            [
                {"type": "reference", "name": name},
                {"type": "reference", "id": NUMBERS[i - 1].field_id},
            ]
        )
        constant = constants[name]
        one = constant.flatmap(stored)
        compared = st.sampled_from(["eq", "not-eq", "lt", "lt-eq", "gt", "gt-eq"])
        tests = ["is-null", "not-null", *(["is-nan", "not-nan"] if i == 2 else [])]
        several = st.lists(constant, min_size=1, max_size=3)
        literals = several | several.map(lambda v: {"type": "literals", "values": v})
        forms = [
            st.fixed_dictionaries({"type": compared, "left": reference, "right": one}),
            st.fixed_dictionaries({"type": compared, "left": one, "right": reference}),
            st.fixed_dictionaries({"type": st.sampled_from(tests), "child": reference}),
            st.fixed_dictionaries(
                {"type": st.sampled_from(["in", "not-in"]), "child": reference, "values": literals}
            ),
        ]
        if i == 3:
            prefix = st.sampled_from(["starts-with", "not-starts-with"])
            forms.append(st.fixed_dictionaries({"type": prefix, "left": reference, "right": one}))
        return st.one_of(forms)

    return st.recursive(
        st.booleans() | leaves(1) | leaves(2) | leaves(3),
        lambda inner: (
            st.fixed_dictionaries({"type": st.just("not"), "child": inner})
            | st.fixed_dictionaries(
                {"type": st.sampled_from(["and", "or"]), "left": inner, "right": inner}
            )
        ),
        max_leaves=5,
    )


@given(
    of_specification(),
    st.none() | st.integers(-1, 1),
    st.sampled_from([None, NAN, -1.0, 0.0, 0.5, float("inf")]),
    st.sampled_from([None, "", "a", "ab", "b"]),
)
def test_predicates_of_the_expressions_specification_have_its_two_values(
    data: Any, number: int | None, double: float | None, text: str | None
) -> None:
    row = {f.field_id: v for f, v in zip(NUMBERS, (number, double, text), strict=True)}
    assert (evaluate(predicate_from_json(data, OF_NUMBERS), row) is True) == is_true(data, row)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {
                "type": "eq",
                "left": {"type": "apply", "function": ["bucket"], "arguments": [16]},
                "right": 1,
            },
            'expression.left: the function ["bucket"] is not supported',
        ),
        ({"type": "eq", "left": 1, "right": 2}, "only a column compared with a constant"),
        (
            {"type": "starts-with", "left": "a", "right": {"type": "reference", "name": "c2"}},
            "only a column compared with a constant",
        ),
        (
            {"type": "eq", "left": {"type": "reference", "id": 99}, "right": 2},
            "expression.left.id: no column has the id 99",
        ),
        (
            {"type": "lt", "left": {"type": "reference", "name": "c1"}, "right": None},
            "a constant is null; is-null",
        ),
        ({"type": "is-null", "child": 5}, "only a test of a column"),
        ({"type": "is-null", "child": {"type": "x"}}, "'x' is not a value expression"),
        (None, "expression: expected an expression object"),
        ({"type": "like", "term": "c1", "value": "a"}, "'like' is not an expression"),
        ({"type": "and", "left": True}, "expression.right: required"),
        ({"type": "not", "child": {"type": "eq", "term": "c1"}}, "expression.child.value"),
        (
            {"type": "eq", "term": {"type": "transform", "term": "c1"}, "value": 1},
            "expected a column name",
        ),
        ({"type": "eq", "term": "c8", "value": "xyz"}, "is not hexadecimal"),
        ({"type": "eq", "term": "nope", "value": 1}, "no column 'nope'"),
    ],
)
def test_invalid_predicate_json_is_refused_with_its_path(data: Any, message: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        predicate_from_json(data, SCHEMA)
    assert message in str(caught.value)
