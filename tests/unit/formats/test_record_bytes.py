"""Numbers in encoded records are replaced as if the record was decoded and encoded again."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.formats.avro.record_bytes import compile_change

LONGS = st.integers(-(2**63), 2**63 - 1)
VALUES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("null", st.none()),
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", LONGS),
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
    ("string", st.text(max_size=100)),
    ("bytes", st.binary(max_size=100)),
    ({"type": "fixed", "name": "f", "size": 3}, st.binary(min_size=3, max_size=3)),
    ({"type": "long", "logicalType": "other"}, LONGS),
    ({"type": "array", "items": "long"}, st.lists(LONGS, max_size=70)),
    ({"type": "map", "values": "string"}, st.dictionaries(st.text(), st.text(), max_size=3)),
    (
        {
            "type": "array",
            "items": {
                "type": "record",
                "name": "pair",
                "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}],
            },
        },
        st.lists(
            st.builds(lambda k, v: {"key": k, "value": v}, st.integers(0, 9), st.binary()),
            max_size=3,
        ),
    ),
]
FIELDS = st.sampled_from(VALUES) | st.sampled_from(
    [([a, "null"] if i % 2 else ["null", a], v | st.none()) for i, (a, v) in enumerate(VALUES[1:])]
)


def encoded(schema: Any, record: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, record)
    return out.getvalue()


def with_name(schema: Any, name: str) -> Any:
    """Return a schema with a name of its own for its fixed or record type."""
    match schema:
        case [*branches]:
            return [with_name(branch, name) for branch in branches]
        case {"items": items}:
            return {**schema, "items": with_name(items, name)}
        case {"name": _}:
            return {**schema, "name": name}
        case _:
            return schema


@given(st.data())
def test_replaced_numbers(data: st.DataObject) -> None:
    inner, outer = (data.draw(st.lists(FIELDS, max_size=3)) for _ in range(2))
    number = data.draw(st.sampled_from(["long", ["null", "long"], ["long", "null"]]))
    numbers = LONGS | st.none() if isinstance(number, list) else LONGS

    def named(fields: list[Any], name: str) -> list[dict[str, Any]]:
        return [
            {"name": f"{name}{n}", "type": with_name(schema, f"type_{name}{n}")}
            for n, (schema, _) in enumerate(fields)
        ]

    def values(fields: list[Any], name: str) -> dict[str, Any]:
        return {f"{name}{n}": data.draw(value) for n, (_, value) in enumerate(fields)}

    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "a", "type": "int"},
            *named(outer, "outer"),
            {
                "name": "file",
                "type": {
                    "type": "record",
                    "name": "file",
                    "fields": [*named(inner, "inner"), {"name": "b", "type": number}],
                },
            },
            {"name": "c", "type": number},
        ],
    }
    change = compile_change(schema, ["a", "b", "c"])
    before = {
        "a": data.draw(st.integers(0, 9)),
        **values(outer, "outer"),
        "file": {**values(inner, "inner"), "b": data.draw(numbers)},
        "c": data.draw(numbers),
    }
    new = {"a": data.draw(st.integers(0, 999)), "b": data.draw(numbers)}
    after = {**before, "a": new["a"], "file": {**before["file"], "b": new["b"]}}
    record = encoded(schema, before)
    end = 1 + len(record)
    text = b"x" + record + b"y"
    assert change(text, 1, {}) == (record, end)
    assert change(text, 1, new) == (encoded(schema, after), end)


def test_items_whose_bytes_are_counted() -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "a", "type": {"type": "array", "items": "long"}}],
    }
    change = compile_change(schema, [])
    # -2 items in 3 bytes, then one item
    assert change(bytes([3, 6, 2, 0x80, 1, 2, 4, 0]), 0, {})[1] == 8
    for damaged in ([], [2], [2, 0x80], [0x80] * 11):
        with pytest.raises((IndexError, ValueError)):
            change(bytes(damaged), 0, {})
