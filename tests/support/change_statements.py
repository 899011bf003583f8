"""Random changes of a table as Spark SQL statements that any catalog can run.

Statements name the table {t}. `Shape` holds the columns and partition fields that a statement may
use. In rows that a statement reads, fields of structs are in another order or case, and seldom
others than in the table. Values come from a small set, so that keys match and conditions hold for
some rows only.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pyspark.sql import types as spark_types

from iceberg_pyspark.spec.types import (
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    Type,
)
from tests.support.plain_values import plain_values
from tests.support.sql_conditions import conditions, literal_text

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
            kept = [replace(f, type=varied(draw, f.type)) for f in fields]
            kept = draw(st.permutations(kept)) if draw(st.integers(0, 2)) else kept
            if draw(st.integers(0, 3)) == 0:
                kept = [replace(f, name=f.name.upper()) for f in kept]
            kind = draw(st.integers(0, 47))
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


def _is_null(draw: Draw, *, required: bool) -> bool:
    """Draw whether a value is null: seldom a required one, for which the statement is refused."""
    return bool(draw(st.integers(0, 79 if required else 5)) == 0)


def a_value(draw: Draw, type_: AnyType, *, required: bool = False) -> str:
    """Draw a value in SQL, sometimes null, with few draws: Hypothesis limits their number."""
    match type_:
        case _ if _is_null(draw, required=required):
            return f"cast(null as {sql_of(type_)})"
        case Struct(fields):
            items = [f"'{f.name}', {a_value(draw, f.type, required=f.required)}" for f in fields]
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


KEY = "k"
"""A column whose values no statement changes."""

_TYPES: dict[str, PrimitiveType] = {
    "bigint": LongType(),
    "int": IntegerType(),
    "string": StringType(),
    "date": DateType(),
    "timestamp": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
    "double": DoubleType(),
}
_TRANSFORMS = {
    "bigint": ["bucket[3]", "truncate[4]"],
    "int": ["identity", "bucket[2]", "truncate[2]"],
    "string": ["identity", "bucket[2]", "truncate[1]"],
    "date": ["identity", "day", "month", "year"],
    "timestamp": ["day", "month", "hour"],
    "timestamp_ntz": ["day", "year", "bucket[2]"],
}


@dataclass
class Shape:
    """The columns of a table, as types by name, and its partition fields."""

    columns: dict[str, AnyType]
    fields: list[tuple[str, str]] = field(default_factory=list)
    """Source column and transform of each current partition field."""

    sources: set[str] = field(default_factory=set)
    """Source columns of any partition spec so far, past or current."""

    required: frozenset[str] = frozenset()
    """The columns that take no nulls."""

    is_version_1: bool = False
    next_key: int = 0
    next_name: int = 0

    @property
    def struct(self) -> StructType:
        """The columns and fields of structs that conditions may be about."""
        return _struct(self.columns.items())

    @property
    def columns_in_sql(self) -> str:
        """The columns as CREATE TABLE names them."""
        return ", ".join(
            f"{name} {sql_of(type_)}{' not null' * (name in self.required)}"
            for name, type_ in self.columns.items()
        )

    def read_columns(self, shown: spark_types.StructType) -> None:
        """Take over the columns of a DataFrame's schema."""
        self.columns = {f.name: type_of(f.dataType) for f in shown.fields}

    def copy(self) -> Shape:
        """Return an independent copy of the shape."""
        return replace(
            self, columns=dict(self.columns), fields=list(self.fields), sources=set(self.sources)
        )

    def name(self) -> str:
        """Return a column name that no column has had."""
        self.next_name += 1
        return f"c{self.next_name}"


def _struct(columns: Iterable[tuple[str, AnyType]]) -> StructType:
    """Return the primitive columns, and structs of them, as the types of `conditions`."""
    ids = itertools.count()
    fields = []
    for name, type_ in columns:
        created: Type | None = None
        if isinstance(type_, Struct):
            created = _struct((f.name, f.type) for f in type_.fields)
        elif isinstance(type_, str):
            created = _TYPES[type_]
        if created is not None and created != StructType(()):
            fields.append(NestedField(field_id=next(ids), name=name, type=created))
    return StructType(tuple(fields))


def a_shape(draw: Draw) -> Shape:
    """Draw the columns and the partitioning of a new table."""
    moment = draw(st.sampled_from(["date", "timestamp", "timestamp_ntz"]))
    shape = Shape({KEY: "bigint", "p": "int", "s": "string", "d": moment, "x": "double"})
    for name in ("st", "nested")[: draw(st.integers(0, 2))]:
        shape.columns[name] = a_nested_type(draw)
    shape.required = frozenset(draw(st.sampled_from(["", KEY, "p", "ks", "kd"])))
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
        result = new_field(draw, shape)
        if result is not None:
            add_field(shape, *result)
    return shape


def new_field(draw: Draw, shape: Shape) -> tuple[str, str] | None:
    """Draw a partition field to add, at most one per source column; None if there is none."""
    used = {source for source, _ in shape.fields}
    free = [n for n, t in shape.columns.items() if t in _TRANSFORMS and n not in used]
    if not free:
        return None
    source = draw(st.sampled_from(free))
    return source, draw(st.sampled_from(_TRANSFORMS[sql_of(shape.columns[source])]))


def add_field(shape: Shape, source: str, transform: str) -> None:
    """Record that the table is now partitioned by this field."""
    shape.fields.append((source, transform))
    shape.sources.add(source)


def field_in_sql(source: str, transform: str) -> str:
    """Return a partition field in Spark's SQL syntax."""
    name, _, rest = transform.partition("[")
    if name == "identity":
        return source
    if rest:
        return f"{name}({rest[:-1]}, {source})"
    return f"{name}s({source})"


def _cell(draw: Draw, type_: AnyType, *, required: bool = False) -> str:
    if type_ not in _TYPES:
        return a_value(draw, type_, required=required)
    assert isinstance(type_, str)
    if _is_null(draw, required=required):
        return f"cast(null as {type_})"
    # Java prunes files by bounds, which ignore NaN, while Spark treats NaN as the greatest number.
    value = draw(plain_values(_TYPES[type_]).filter(lambda v: v == v))
    return f"cast({literal_text(_TYPES[type_], value)} as {type_})"


def _rows(
    draw: Draw, shape: Shape, columns: Sequence[str], keys: Sequence[int], *, by_name: bool = True
) -> str:
    """Return a query with one row for each key, in which structs have their fields in any order.

    Unless Spark finds the fields by name, they are seldom in another order.
    """
    varies = by_name or draw(st.integers(0, 7)) == 0
    types = {c: varied(draw, t) if varies else t for c, t in shape.columns.items() if c in columns}
    if not keys:
        cells = [f"cast(null as {sql_of(types[c])}) {c}" for c in columns]
        return f"select {', '.join(cells)} where false"
    rows = []
    for key in keys:
        cells = [
            f"{key}L" if c == KEY else _cell(draw, types[c], required=c in shape.required)
            for c in columns
        ]
        rows.append(f"({', '.join(cells)})")
    return f"select * from values {', '.join(rows)} as v({', '.join(columns)})"


def _new_keys(draw: Draw, shape: Shape) -> list[int]:
    count = draw(st.integers(1, 8))
    start = shape.next_key
    shape.next_key += count
    return list(range(start, start + count))


def insert(draw: Draw, shape: Shape) -> str:
    """Draw an INSERT of rows with new keys, for all columns or for some columns by name."""
    keys = _new_keys(draw, shape)
    kind = draw(st.integers(0, 3))
    if kind < 2:
        return f"insert into {{t}} {_rows(draw, shape, list(shape.columns), keys, by_name=False)}"
    if kind == 2:
        return f"insert into {{t}} by name {new_rows(draw, shape, keys)}"
    columns = draw(st.permutations([KEY, *_columns_of_new_rows(draw, shape)]))
    return f"insert into {{t}} ({', '.join(columns)}) {_rows(draw, shape, columns, keys)}"


def _columns_of_new_rows(draw: Draw, shape: Shape) -> list[str]:
    """Draw columns other than the key, among them those that are required, seldom not."""
    others = [c for c in shape.columns if c != KEY]
    some = draw(st.lists(st.sampled_from(others), max_size=3, unique=True))
    needed = shape.required if draw(st.integers(0, 7)) else ()
    return [*some, *(c for c in others if c in needed and c not in some)]


def new_rows(draw: Draw, shape: Shape, keys: Sequence[int] | None = None) -> str:
    """Draw a query of rows with new keys, whose columns are in another order."""
    columns = draw(st.permutations(list(shape.columns)))
    return _rows(draw, shape, columns, _new_keys(draw, shape) if keys is None else keys)


def overwrite(draw: Draw, shape: Shape) -> str:
    """Draw an INSERT OVERWRITE of the new rows' partitions or of everything, as configured."""
    keys = _new_keys(draw, shape) if draw(st.integers(0, 5)) else []
    rows = _rows(draw, shape, list(shape.columns), keys, by_name=False)
    return f"insert overwrite {{t}} {rows}"


def delete(draw: Draw, shape: Shape) -> str:
    """Draw a DELETE with a condition."""
    condition = _where(draw, shape)
    if "NOT (" in condition:
        # In a metadata-only delete, Java drops files with only nulls for NOT (d IN (...)), which is
        # unknown for null. The cast prevents a metadata-only delete.
        condition += " and cast(k as string) <> ''"
    return f"delete from {{t}} where {condition}"


def update(draw: Draw, shape: Shape) -> str:
    """Draw an UPDATE of a few columns or fields."""
    return f"update {{t}} set {_assignments(draw, shape)} where {_where(draw, shape)}"


def condition(draw: Draw, shape: Shape) -> str:
    """Draw a condition on a row."""
    return _condition(draw, shape)


def update_by_call(draw: Draw, shape: Shape) -> tuple[dict[str, str], str]:
    """Draw the values and the condition of an UPDATE."""
    names = _some_columns(draw, shape)
    values = (_assigned(draw, shape, name, None).split(" = ", 1) for name in names)
    return dict(values), _condition(draw, shape)


def _condition(draw: Draw, shape: Shape, *above: str) -> str:
    # Java refuses filters with a NaN literal.
    result = conditions(shape.struct, above).filter(lambda c: "'nan'" not in c.text)
    return str(draw(result).text)


def _where(draw: Draw, shape: Shape) -> str:
    kind = draw(st.integers(0, 9))
    if kind < 6:
        return _condition(draw, shape)
    keys = draw(st.lists(st.integers(0, max(shape.next_key, 1)), min_size=1, max_size=5))
    if kind < 8:
        return f"k in ({', '.join(map(str, keys))})"
    rows = ", ".join(f"({k}L)" for k in keys)
    if kind == 8:
        return f"k in (select n from values {rows} as v(n))"
    return f"not exists (select 1 from values {rows} as v(n) where n = {{t}}.k or n = p)"


def _assignments(draw: Draw, shape: Shape, source: str | None = None) -> str:
    """Draw the assignments of SET; with a source, some values are source columns."""
    return _in_sql(_values_to_set(draw, shape, source))


def _values_to_set(draw: Draw, shape: Shape, source: str | None) -> dict[str, str]:
    names = _some_columns(draw, shape)
    assigned = (_assigned(draw, shape, name, source).split(" = ", 1) for name in names)
    return dict(assigned)


def _in_sql(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _some_columns(draw: Draw, shape: Shape) -> list[str]:
    others = [c for c in shape.columns if c != KEY]
    return list(draw(st.lists(st.sampled_from(others), min_size=1, max_size=3, unique=True)))


def _assigned(draw: Draw, shape: Shape, name: str, source: str | None) -> str:
    type_, target = shape.columns[name], "" if source is None else "t."
    kind = draw(st.integers(0, 5))
    if isinstance(type_, Struct) and kind < 3:
        path, field = name, draw(st.sampled_from(type_.fields))
        while isinstance(field.type, Struct) and draw(st.booleans()):
            path, field = f"{path}.{field.name}", draw(st.sampled_from(field.type.fields))
        value = _cell(draw, varied(draw, field.type), required=field.required)
        return f"{target}{path}.{field.name} = {value}"
    if source is not None and kind < 3:
        return f"{target}{name} = {source}.{name}"
    alike = [c for c, t in shape.columns.items() if t == type_]
    if kind == 3:
        return f"{target}{name} = {target}{draw(st.sampled_from(alike))}"
    if kind == 4:
        return f"{target}{name} = coalesce({target}{name}, {_cell(draw, type_)})"
    return f"{target}{name} = {_cell(draw, varied(draw, type_), required=name in shape.required)}"


@dataclass(frozen=True, slots=True)
class Action:
    """What a clause of a MERGE does; its text is as in SQL. No values mean all columns."""

    kind: Literal["delete", "update", "insert"]
    values: Mapping[str, str] | None = None

    def __str__(self) -> str:
        if self.kind == "delete":
            return "delete"
        if self.kind == "update":
            return f"update set {'*' if self.values is None else _in_sql(self.values)}"
        if self.values is None:
            return "insert *"
        return f"insert ({', '.join(self.values)}) values ({', '.join(self.values.values())})"


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a MERGE; its text is as in SQL."""

    when: str
    condition: str | None
    action: Action

    def __str__(self) -> str:
        condition = "" if self.condition is None else f" and {self.condition}"
        return f"{self.when}{condition} then {self.action}"


@dataclass(frozen=True, slots=True)
class Merge:
    """A MERGE into the table `t` of the rows `u` of a query; its text is as in SQL."""

    rows: str
    on: str
    clauses: Sequence[Clause]

    def __str__(self) -> str:
        clauses = " ".join(map(str, self.clauses))
        return f"merge into {{t}} t using ({self.rows}) u on {self.on} {clauses}"


def merge(draw: Draw, shape: Shape) -> str:
    """Draw a MERGE of rows with existing and new keys, with random clauses."""
    return str(a_merge(draw, shape))


def a_merge(draw: Draw, shape: Shape) -> Merge:
    """Draw the parts of such a MERGE."""
    existing_keys = st.integers(0, max(shape.next_key - 1, 0))
    unique = draw(st.integers(0, 7)) > 0
    keys = draw(st.lists(existing_keys, max_size=8, unique=unique))
    keys += _new_keys(draw, shape)[:4] if draw(st.booleans()) else []
    rows = _rows(draw, shape, list(shape.columns), keys)
    on = draw(
        st.sampled_from(
            ["t.k = u.k"] * 6
            + ["t.k = u.k and t.p = u.p", "u.k = t.k and t.s <=> u.s", "t.p = u.p"]
        )
    )

    def on_both() -> Action:
        result = _on_row(draw, shape, "u")
        # If rows match by another column, `update set *` would change keys.
        changes_keys = result == Action("update") and "t.k" not in on
        return Action("delete") if changes_keys else result

    both = [*_clauses(draw, shape, "when matched", on_both, "t")]
    new = [*_clauses(draw, shape, "when not matched", lambda: _insertion(draw, shape), "u")]
    alone = [
        *_clauses(
            draw, shape, "when not matched by source", lambda: _on_row(draw, shape, None), "t"
        )
    ]
    clauses = [*both, *new, *alone] or [Clause("when not matched", None, Action("insert"))]
    return Merge(rows, on, clauses)


def merge_source(draw: Draw, shape: Shape) -> str:
    """Draw a query of rows with existing and new keys, for `df.mergeInto`."""
    existing_keys = st.integers(0, max(shape.next_key - 1, 0))
    keys = draw(st.lists(existing_keys, max_size=6, unique=True))
    return new_rows(draw, shape, [*keys, *_new_keys(draw, shape)[:3]])


def evolving_merge(draw: Draw, shape: Shape) -> str:
    """Draw a MERGE WITH SCHEMA EVOLUTION whose source adds a column and may lack or widen another.

    Spark decides which columns the table has afterwards.
    """
    source = shape.copy()
    others = [c for c in shape.columns if c != KEY]
    if draw(st.booleans()):
        del source.columns[draw(st.sampled_from(others))]
    narrow = [c for c, t in source.columns.items() if t == "int"]
    if narrow and draw(st.booleans()):
        source.columns[draw(st.sampled_from(narrow))] = "bigint"
    more = shape.name()
    source.columns[more] = draw(st.sampled_from(["int", "string", "double", "date"]))
    existing_keys = st.integers(0, max(shape.next_key - 1, 0))
    keys = draw(st.lists(existing_keys, max_size=5, unique=True)) + _new_keys(draw, shape)[:3]
    rows = _rows(draw, source, list(source.columns), keys)
    both = _clauses(
        draw,
        shape,
        "when matched",
        lambda: draw(st.sampled_from([Action("delete"), Action("update")])),
        "t",
    )
    new = _clauses(draw, source, "when not matched", lambda: Action("insert"), "u")
    clauses = [*both, *new] or [Clause("when not matched", None, Action("insert"))]
    return (
        f"merge with schema evolution into {{t}} t using ({rows}) u on t.k = u.k "
        f"{' '.join(map(str, clauses))}"
    )


def _clauses(
    draw: Draw, shape: Shape, when: str, action: Callable[[], Action], side: str
) -> list[Clause]:
    """Draw up to two clauses of one kind; only the last clause may lack a condition."""
    count = draw(
        st.sampled_from([0, 1, 1, 2] if side == "u" or when == "when matched" else [0, 0, 1, 2])
    )
    result = []
    for number in range(count):
        condition = None
        if number < count - 1 or draw(st.booleans()):
            condition = _condition(draw, shape, side)
        result.append(Clause(when, condition, action()))
    return result


def _on_row(draw: Draw, shape: Shape, source: str | None) -> Action:
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return Action("delete")
    if kind == 1 and source is not None:
        return Action("update")
    # Without a source, the columns are still qualified by the table's alias.
    return Action("update", _values_to_set(draw, shape, source or "t"))


def _insertion(draw: Draw, shape: Shape) -> Action:
    if draw(st.booleans()):
        return Action("insert")
    values = {
        c: f"u.{c}" if draw(st.booleans()) else _cell(draw, varied(draw, shape.columns[c]))
        for c in _columns_of_new_rows(draw, shape)
    }
    return Action("insert", {KEY: "u.k", **values})


def change_columns(draw: Draw, shape: Shape) -> str:
    """Draw an ALTER TABLE that adds, renames, drops or widens a column, or a field in one."""
    kind = draw(st.sampled_from(["add", "add", "rename", "drop", "widen"]))
    others = [c for c in shape.columns if c != KEY]
    structs = [s for c, type_ in shape.columns.items() for s in structs_in(type_, c)]
    if structs and draw(st.booleans()):
        return _change_fields(draw, shape, kind, *draw(st.sampled_from(structs)))
    if kind == "rename":
        name = draw(st.sampled_from(others))
        new = shape.name()
        shape.columns = {new if c == name else c: t for c, t in shape.columns.items()}
        shape.fields = [(new if s == name else s, t) for s, t in shape.fields]
        shape.sources = {new if s == name else s for s in shape.sources}
        shape.required = frozenset(new if c == name else c for c in shape.required)
        return f"alter table {{t}} rename column {name} to {new}"
    free = [c for c in others if c not in shape.sources]
    if kind == "drop" and len(free) > 1:
        name = draw(st.sampled_from(free))
        del shape.columns[name]
        return f"alter table {{t}} drop column {name}"
    narrow = [c for c in others if shape.columns[c] == "int"]
    if kind == "widen" and narrow:
        name = draw(st.sampled_from(narrow))
        shape.columns[name] = "bigint"
        return f"alter table {{t}} alter column {name} type bigint"
    name, type_ = shape.name(), a_type(draw, 0)
    place = draw(st.sampled_from(["", "", " first", f" after {KEY}"]))
    columns = list(shape.columns.items())
    at = {"": len(columns), " first": 0}.get(place, [c for c, _ in columns].index(KEY) + 1)
    columns.insert(at, (name, type_))
    shape.columns = dict(columns)
    return f"alter table {{t}} add column {name} {sql_of(type_)}{place}"


def _change_fields(draw: Draw, shape: Shape, kind: str, path: str, struct: Struct) -> str:
    """Draw an ALTER TABLE that changes a struct at a path."""
    index = draw(st.integers(0, len(struct.fields) - 1))
    field, fields, new = struct.fields[index], list(struct.fields), shape.name()
    if kind == "rename":
        fields[index] = replace(field, name=new)
        text = f"rename column {path}.{field.name} to {new}"
    elif kind == "drop" and len(fields) > 1:
        del fields[index]
        text = f"drop column {path}.{field.name}"
    elif kind == "widen" and field.type == "int":
        fields[index] = replace(field, type="bigint")
        text = f"alter column {path}.{field.name} type bigint"
    else:
        added = Field(new, a_type(draw, 2))
        at = draw(st.sampled_from(["", " first", f" after {field.name}"]))
        fields.insert({"": len(fields), " first": 0}.get(at, index + 1), added)
        text = f"add column {path}.{new} {sql_of(added.type)}{at}"
    column = path.partition(".")[0]
    type_ = with_struct(shape.columns[column], column, path, Struct(tuple(fields)))
    shape.columns[column] = type_
    return f"alter table {{t}} {text}"


def change_properties(draw: Draw, shape: Shape) -> str:
    """Draw an ALTER TABLE that sets how later statements write."""
    modes = ["copy-on-write", "merge-on-read"][: 1 if shape.is_version_1 else 2]
    mode = draw(st.sampled_from(modes))
    granularity = draw(st.sampled_from(["file", "partition"]))
    operation = draw(st.sampled_from(["delete", "update", "merge"]))
    distribution = draw(st.sampled_from(["none", "hash", "range"]))
    return (
        f"alter table {{t}} set tblproperties ('write.{operation}.mode'='{mode}', "
        f"'write.delete.granularity'='{granularity}', 'write.distribution-mode'='{distribution}')"
    )


def sort_fields(draw: Draw, shape: Shape) -> list[tuple[str, str, bool]]:
    """Draw columns to sort by, as (source, transform, is descending); none means no sort order."""
    simple = [c for c, t in shape.columns.items() if t in _TRANSFORMS]
    names = draw(st.lists(st.sampled_from(simple), max_size=2, unique=True))
    return [
        (
            name,
            draw(st.sampled_from(["identity", *_TRANSFORMS[sql_of(shape.columns[name])]])),
            draw(st.booleans()),
        )
        for name in names
    ]
