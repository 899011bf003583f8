"""Random nested types and their values in SQL, for statements whose fields are in another order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pyspark.sql import types as spark_types

Draw: TypeAlias = Callable[[SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Field:
    """A field of a struct."""

    name: str
    type: AnyType
    required: bool = False


@dataclass(frozen=True)
class Struct:
    """A struct."""

    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Array:
    """A list."""

    element: AnyType


@dataclass(frozen=True)
class Map:
    """A map whose keys are strings."""

    value: AnyType


AnyType: TypeAlias = str | Struct | Array | Map
"""A type; a string is the SQL text of a primitive type."""

_LEAVES = ("int", "string", "double")
_VALUES = ("0", "1", "-7")


def sql_of(type_: AnyType) -> str:
    """Return the SQL text of a type."""
    match type_:
        case Struct(fields):
            inner = (f"{f.name}: {sql_of(f.type)}{' not null' * f.required}" for f in fields)
            return f"struct<{', '.join(inner)}>"
        case Array(element):
            return f"array<{sql_of(element)}>"
        case Map(value):
            return f"map<string, {sql_of(value)}>"
        case _:
            return type_


def type_of(type_: spark_types.DataType) -> AnyType:
    """Return a type of Spark."""
    match type_:
        case spark_types.StructType():
            return Struct(
                tuple(Field(f.name, type_of(f.dataType), not f.nullable) for f in type_.fields)
            )
        case spark_types.ArrayType():
            return Array(type_of(type_.elementType))
        case spark_types.MapType():
            return Map(type_of(type_.valueType))
        case _:
            return type_.simpleString()


def a_struct(draw: Draw, depth: int = 0) -> Struct:
    """Draw a struct of two or three fields, some of them required."""
    names = ("a", "b", "c")[: draw(st.integers(2, 3))]
    return Struct(
        tuple(
            Field(
                name,
                a_type(draw, depth + 1),
                required=draw(st.integers(0, 5)) == 0,
            )
            for name in names
        )
    )


def a_nested_type(draw: Draw) -> AnyType:
    """Draw a struct, or a list or map of structs."""
    struct = a_struct(draw)
    return draw(st.sampled_from((struct, struct, Array(struct), Map(struct))))  # type: ignore[no-any-return]


def a_type(draw: Draw, depth: int) -> AnyType:
    """Draw the type of a field at a depth."""
    if depth > 1 or draw(st.integers(0, 3)):
        return str(draw(st.sampled_from(_LEAVES)))
    return a_nested_type(draw) if depth == 0 else a_struct(draw, depth)


def varied(draw: Draw, type_: AnyType) -> AnyType:
    """Draw the type of a source: with fields in another order or case, seldom with other fields."""
    match type_:
        case Struct(fields):
            kept = [replace(f, type=varied(draw, f.type), required=False) for f in fields]
            kept = draw(st.permutations(kept)) if draw(st.integers(0, 2)) else kept
            if draw(st.integers(0, 3)) == 0:
                kept = [replace(f, name=f.name.upper()) for f in kept]
            kind = draw(st.integers(0, 15))
            if kind == 0 and len(kept) > 1:
                kept = kept[1:]
            if kind == 1:
                kept = [*kept, Field("more", "int")]
            return Struct(tuple(kept))
        case Array(element):
            return Array(varied(draw, element))
        case Map(value):
            return Map(varied(draw, value))
        case _:
            return type_


def a_value(draw: Draw, type_: AnyType) -> str:
    """Draw a value in SQL, sometimes null, with few draws: Hypothesis limits their number."""
    match type_:
        case _ if draw(st.integers(0, 5)) == 0:
            return f"cast(null as {sql_of(type_)})"
        case Struct(fields):
            items = [f"'{f.name}', {a_value(draw, f.type)}" for f in fields]
            return f"named_struct({', '.join(items)})"
        case Array(element):
            items = [a_value(draw, element) for _ in range(draw(st.integers(1, 2)))]
            return f"array({', '.join(items)})"
        case Map(value):
            return f"map('k', {a_value(draw, value)})"
        case _:
            return f"cast({draw(st.sampled_from(_VALUES))} as {type_})"


def structs_in(type_: AnyType, path: str) -> list[tuple[str, Struct]]:
    """Return the structs in a type with their paths in ALTER TABLE."""
    match type_:
        case Struct(fields):
            below = [s for f in fields for s in structs_in(f.type, f"{path}.{f.name}")]
            return [(path, type_), *below]
        case Array(element):
            return structs_in(element, f"{path}.element")
        case Map(value):
            return structs_in(value, f"{path}.value")
        case _:
            return []


def with_struct(type_: AnyType, path: str, at: str, struct: Struct) -> AnyType:
    """Return a type in which the struct at a path is another."""
    match type_:
        case Struct() if path == at:
            return struct
        case Struct(fields):
            return Struct(
                tuple(
                    replace(f, type=with_struct(f.type, f"{path}.{f.name}", at, struct))
                    for f in fields
                )
            )
        case Array(element):
            return Array(with_struct(element, f"{path}.element", at, struct))
        case Map(value):
            return Map(with_struct(value, f"{path}.value", at, struct))
        case _:
            return type_
