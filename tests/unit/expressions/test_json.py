"""Predicates as JSON of the REST catalog, in both directions."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize(
    ("data", "message"),
    [
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
