"""Random changes of rows that SQL, Spark's methods of a table, and those without Spark can make.

A change is a dict of JSON's types, so that another process can make it too. Values of a change are
`["value", v]`, or `["t", column]` and `["s", column]`: a column of the table's row, and of the
source's. Conditions are `["and", a, b]`, `["or", a, b]`, `["not", a]`, and comparisons of a path of
a side with a value. Names have all sorts of characters.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pyspark.sql import SparkSession

from iceberg_pyspark import Table
from iceberg_pyspark.arrow.arrow_schemas import arrow_type
from iceberg_pyspark.spark.spark_table import SparkTable
from iceberg_pyspark.table.row_level.touched_rows import RowChanges

Draw: TypeAlias = Callable[[SearchStrategy[Any]], Any]
Change: TypeAlias = dict[str, Any]

NAMES = ["p q", "Ä", "a.b", "Ab", "select", "x-1", "1st", "it's", "a`b", "s", "t", "_pos_", "k/1"]
FIELDS = ["in ner", "B", "c.d"]
"""Names of columns, and of fields of the column of structs."""

TYPES: dict[str, list[Any]] = {
    "bigint": [0, 1, 2, -5, 2**40],
    "int": [0, 1, 2, -5],
    "string": ["", "a", "b", "é", "a b"],
    "double": [0.0, 1.5, -2.0],
    "date": ["1969-12-31", "2026-01-01"],
    "boolean": [True, False],
    "decimal(9,2)": ["0.00", "1.25", "-7.10"],
    "timestamp_ntz": ["1960-01-01 01:02:03.000004", "2026-01-01 00:00:00"],
}
"""Types of columns in SQL, with values as JSON has them."""

COMPARED = ("bigint", "int", "string", "double", "date", "boolean")
"""The types that conditions compare."""

Shape: TypeAlias = dict[str, Any]
"""The types of a table's columns by name: texts, a dict of a struct's fields, or lists and maps as
`["array", type]` and `["map", type]`. The first column is the key."""


def quoted(*names: str) -> str:
    """Return a path in SQL."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def type_in_sql(type_: Any) -> str:
    """Return a type as CREATE TABLE has it."""
    match type_:
        case dict():
            fields = (f"{quoted(n)}: {type_in_sql(t)}" for n, t in type_.items())
            return f"struct<{', '.join(fields)}>"
        case ["array", element]:
            return f"array<{type_in_sql(element)}>"
        case ["map", value]:
            return f"map<string, {type_in_sql(value)}>"
        case _:
            return str(type_)


def value_in_sql(type_: Any, value: Any) -> str:
    """Return a value of a type as a SQL literal."""
    if value is None:
        return f"cast(null as {type_in_sql(type_)})"
    match type_:
        case dict():
            fields = (f"'{n}', {value_in_sql(t, value[n])}" for n, t in type_.items())
            return f"named_struct({', '.join(fields)})"
        case ["array", element]:
            items = ", ".join(value_in_sql(element, v) for v in value)
            return f"cast(array({items}) as {type_in_sql(type_)})"
        case ["map", of]:
            items = ", ".join(f"'{k}', {value_in_sql(of, v)}" for k, v in value.items())
            return f"cast(map({items}) as {type_in_sql(type_)})"
        case "string":
            return f"'{value}'"
        case "boolean":
            return str(value).lower()
        case _:
            return f"cast('{value}' as {type_})"


def value_in_python(type_: Any, value: Any) -> Any:
    """Return a value of a type as a program without Spark has it."""
    if value is None:
        return None
    match type_:
        case dict():
            return {n: value_in_python(t, value[n]) for n, t in type_.items()}
        case ["array", element]:
            return [value_in_python(element, v) for v in value]
        case ["map", of]:
            return [(k, value_in_python(of, v)) for k, v in value.items()]
        case "date":
            return dt.date.fromisoformat(value)
        case "timestamp_ntz":
            return dt.datetime.fromisoformat(value)
        case "decimal(9,2)":
            return Decimal(value)
        case _:
            return value


@dataclass
class History:
    """Draws the changes of a table."""

    draw: Draw
    shape: Shape

    @classmethod
    def new(cls, draw: Draw) -> History:
        """Draw the columns of a new table."""
        names = draw(st.lists(st.sampled_from(NAMES), min_size=4, max_size=6, unique=True))
        key, value, *others = names
        plain = st.sampled_from(sorted(TYPES))
        shape: Shape = {key: draw(st.sampled_from(["bigint", "int", "string", "date"]))}
        shape[value] = "int"
        struct = {name: draw(plain) for name in FIELDS}
        nested = [struct, ["array", "string"], ["map", "int"], ["array", struct]]
        for name in others:
            shape[name] = draw(st.one_of(plain, st.sampled_from(nested)))
        return cls(draw, shape)

    @property
    def key(self) -> str:
        """The key."""
        return next(iter(self.shape))

    def partitioning(self) -> str:
        """Draw the transforms of the partition spec, in SQL."""
        simple = [c for c, t in self.shape.items() if t in ("int", "bigint", "string", "date")]
        column = quoted(self.draw(st.sampled_from(simple)))
        return str(self.draw(st.sampled_from(["", "", column, f"bucket(2, {column})"])))

    def value(self, type_: Any) -> Any:
        """Draw a value of a type."""
        draw = self.draw
        if draw(st.integers(0, 4)) == 0:
            return None
        match type_:
            case dict():
                return {n: self.value(t) for n, t in type_.items()}
            case ["array", element]:
                return [self.value(element) for _ in range(draw(st.integers(0, 2)))]
            case ["map", of]:
                keys = draw(st.lists(st.sampled_from("ab"), max_size=2, unique=True))
                return {k: self.value(of) for k in keys}
            case _:
                return draw(st.sampled_from(TYPES[type_]))

    def rows(self, columns: Sequence[str], most: int) -> list[list[Any]]:
        """Draw rows, whose keys may be equal or null."""
        return [
            [self.value(self.shape[c]) for c in columns]
            for _ in range(self.draw(st.integers(0, most)))
        ]

    def insert(self) -> Change:
        """Draw an append of rows with all columns."""
        return {"kind": "insert", "rows": self.rows(list(self.shape), 8)}

    def condition(self, sides: str, depth: int = 0) -> Any:
        """Draw a condition on columns of sides."""
        draw = self.draw
        kind = draw(st.integers(0, 5)) if depth < 2 else 5
        if kind < 2:
            both = [self.condition(sides, depth + 1) for _ in range(2)]
            return [draw(st.sampled_from(["and", "or"])), *both]
        if kind == 2:
            return ["not", self.condition(sides, depth + 1)]
        paths: list[tuple[list[str], str]] = []
        for name, type_ in self.shape.items():
            if isinstance(type_, dict):
                paths += [([name, f], t) for f, t in type_.items() if t in COMPARED]
            elif type_ in COMPARED:
                paths.append(([name], type_))
        path, type_ = draw(st.sampled_from(paths))
        side = draw(st.sampled_from(sides))
        op = draw(st.sampled_from(["=", "<>", "<", ">=", "is null", "is not null"]))
        return [op, side, path, type_, draw(st.sampled_from(TYPES[type_]))]

    def values(self, sides: str) -> dict[str, Any]:
        """Draw values for a few columns besides the key."""
        others = list(self.shape)[1:]
        names = self.draw(st.lists(st.sampled_from(others), min_size=1, max_size=3, unique=True))
        return {name: self._assigned(name, sides) for name in names}

    def _assigned(self, name: str, sides: str) -> list[Any]:
        side = self.draw(st.sampled_from([*sides, "value"]))
        if side == "value":
            return ["value", self.value(self.shape[name])]
        alike = [c for c, t in self.shape.items() if t == self.shape[name]]
        return [side, self.draw(st.sampled_from(alike))]

    def change(self) -> Change:
        """Draw a change."""
        kinds = ["delete", "update", "upsert", "merge", "merge", "insert"]
        match self.draw(st.sampled_from(kinds)):
            case "insert":
                return self.insert()
            case "delete":
                return {"kind": "delete", "condition": self.condition("t")}
            case "update":
                condition = self.condition("t")
                return {"kind": "update", "values": self.values("t"), "condition": condition}
            case "upsert":
                rows = {repr(r[0]): r for r in self.rows(list(self.shape), 6)}
                return {"kind": "upsert", "rows": list(rows.values())}
            case _:
                return self._merge()

    def _merge(self) -> Change:
        draw = self.draw
        clauses: list[dict[str, Any]] = []
        for when, sides, of_values in (
            ("when matched", "ts", "ts"),
            ("when not matched", "s", "s"),
            ("when not matched by source", "t", "t"),
        ):
            count = draw(
                st.sampled_from([0, 1, 1, 2] if when != "when not matched by source" else [0, 0, 1])
            )
            for number in range(count):
                is_last = number == count - 1
                has_condition = not is_last or draw(st.booleans())
                clauses.append(
                    {
                        "when": when,
                        "condition": self.condition(sides) if has_condition else None,
                        **self._action(when, of_values),
                    }
                )
        if not clauses:
            clauses = [{"when": "when matched", "condition": None, "action": "delete"}]
        return {"kind": "merge", "rows": self.rows(list(self.shape), 6), "clauses": clauses}

    def _action(self, when: str, sides: str) -> dict[str, Any]:
        draw = self.draw
        if when == "when not matched":
            if draw(st.booleans()):
                return {"action": "insert", "values": None}
            return {"action": "insert", "values": {self.key: ["s", self.key], **self.values(sides)}}
        if draw(st.booleans()):
            return {"action": "delete"}
        everything = when == "when matched" and draw(st.booleans())
        return {"action": "update", "values": None if everything else self.values(sides)}


def condition_in_sql(condition: Any, *, qualified: bool) -> str:
    """Return a condition as text."""
    match condition:
        case ["and" | "or", a, b]:
            both = [condition_in_sql(c, qualified=qualified) for c in (a, b)]
            return f"({both[0]} {condition[0]} {both[1]})"
        case ["not", inner]:
            return f"(not {condition_in_sql(inner, qualified=qualified)})"
        case [op, side, path, type_, value]:
            name = f"{side}.{quoted(*path)}" if qualified else quoted(*path)
            if op.startswith("is"):
                return f"{name} {op}"
            return f"{name} {op} {_literal(type_, value)}"
    raise AssertionError(condition)


def _literal(type_: str, value: Any) -> str:
    match type_:
        case "date":
            return f"date '{value}'"
        case "string":
            return f"'{value}'"
        case "double":
            return f"cast('{value}' as double)"
        case "boolean":
            return str(value).lower()
        case _:
            return str(value)


def rows_in_sql(shape: Shape, rows: Sequence[Sequence[Any]]) -> str:
    """Return a query of rows of all columns."""
    columns = list(shape)
    if not rows:
        cells = (f"{value_in_sql(t, None)} {quoted(c)}" for c, t in shape.items())
        return f"select {', '.join(cells)} where false"
    lines = (
        f"({', '.join(value_in_sql(shape[c], v) for c, v in zip(columns, row, strict=True))})"
        for row in rows
    )
    return f"select * from values {', '.join(lines)} as v({', '.join(map(quoted, columns))})"


def _assignment(shape: Shape, name: str, value: Sequence[Any], *, qualified: bool) -> str:
    side, what = value
    if side == "value":
        return value_in_sql(shape[name], what)
    return f"{side}.{quoted(what)}" if qualified else quoted(what)


def _assignments(
    shape: Shape, values: Mapping[str, Sequence[Any]], *, qualified: bool = True
) -> dict[str, str]:
    return {n: _assignment(shape, n, v, qualified=qualified) for n, v in values.items()}


def in_sql(shape: Shape, change: Change) -> str:
    """Return a change as a statement on the table {t}."""
    match change["kind"]:
        case "insert":
            return f"insert into {{t}} {rows_in_sql(shape, change['rows'])}"
        case "delete":
            return (
                f"delete from {{t}} where {condition_in_sql(change['condition'], qualified=False)}"
            )
        case "update":
            values = _assignments(shape, change["values"], qualified=False)
            listed = ", ".join(f"{quoted(n)} = {v}" for n, v in values.items())
            where = condition_in_sql(change["condition"], qualified=False)
            return f"update {{t}} set {listed} where {where}"
    text = f"merge into {{t}} t using ({rows_in_sql(shape, change['rows'])}) s on {on(shape)}"
    for clause in clauses_of(change):
        condition = clause["condition"]
        test = "" if condition is None else f" and {condition_in_sql(condition, qualified=True)}"
        text += f" {clause['when']}{test} then {_action_in_sql(shape, clause)}"
    return text


def clauses_of(change: Change) -> list[dict[str, Any]]:
    """Return the clauses of a merge or an upsert."""
    if change["kind"] == "merge":
        return list(change["clauses"])
    return [
        {"when": "when matched", "condition": None, "action": "update", "values": None},
        {"when": "when not matched", "condition": None, "action": "insert", "values": None},
    ]


def on(shape: Shape) -> str:
    """Return the condition by which rows match."""
    key = quoted(next(iter(shape)))
    return f"t.{key} = s.{key}"


def _action_in_sql(shape: Shape, clause: Mapping[str, Any]) -> str:
    if clause["action"] == "delete":
        return "delete"
    if clause["values"] is None:
        return "update set *" if clause["action"] == "update" else "insert *"
    values = _assignments(shape, clause["values"])
    if clause["action"] == "update":
        return "update set " + ", ".join(f"t.{quoted(n)} = {v}" for n, v in values.items())
    return f"insert ({', '.join(map(quoted, values))}) values ({', '.join(values.values())})"


def by_spark(spark: SparkSession, table: SparkTable, shape: Shape, change: Change) -> RowChanges:
    """Make a change by Spark's methods of a table; an insert is appended by the format."""
    if change["kind"] == "delete":
        return table.delete(condition_in_sql(change["condition"], qualified=False))
    if change["kind"] == "update":
        values = _assignments(shape, change["values"], qualified=False)
        where = condition_in_sql(change["condition"], qualified=False)
        return table.update({quoted(n): v for n, v in values.items()}, where)
    source = spark.sql(rows_in_sql(shape, change["rows"]))
    if change["kind"] == "upsert":
        return table.upsert(source, [next(iter(shape))])
    builder = table.merge_into(source.alias("s"), on(shape))
    if change["kind"] == "insert":
        return table.merge_into(source.alias("s"), "false").whenNotMatched().insertAll().merge()
    for clause in change["clauses"]:
        condition = clause["condition"]
        test = None if condition is None else condition_in_sql(condition, qualified=True)
        given = clause.get("values")
        set_ = {} if given is None else _assignments(shape, given)
        of_clause = {quoted(n): v for n, v in set_.items()}
        if clause["when"] == "when not matched":
            insert = builder.whenNotMatched(test)
            builder = insert.insertAll() if given is None else insert.insert(of_clause)
            continue
        by_source = clause["when"] == "when not matched by source"
        step = (builder.whenNotMatchedBySource if by_source else builder.whenMatched)(test)
        if clause["action"] == "delete":
            builder = step.delete()
        else:
            builder = step.updateAll() if given is None else step.update(of_clause)
    return builder.merge()


def without_spark(table: Table, shape: Shape, change: Change) -> RowChanges | None:
    """Make a change by the methods of a table without Spark."""
    if change["kind"] == "delete":
        return table.delete(condition_in_sql(change["condition"], qualified=False))
    if change["kind"] == "update":
        where = condition_in_sql(change["condition"], qualified=False)
        return table.update(_python_values(shape, change["values"], qualified=False), where)
    source = _arrow(table, shape, change["rows"])
    if change["kind"] == "insert":
        table.append(source)
        return None
    key = next(iter(shape))
    if change["kind"] == "upsert":
        return table.upsert(source, key)
    merge = table.merge(source, key)
    for clause in change["clauses"]:
        condition = clause["condition"]
        test = None if condition is None else condition_in_sql(condition, qualified=True)
        given = clause.get("values")
        of_clause = None if given is None else _python_values(shape, given)
        name = f"{clause['when'].replace(' ', '_')}_{clause['action']}"
        if clause["action"] == "delete":
            getattr(merge, name)(test)
        else:
            getattr(merge, name)(of_clause, test)
    return merge.execute()


def _python_values(
    shape: Shape, values: Mapping[str, Sequence[Any]], *, qualified: bool = True
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in values.items():
        side, what = value
        if side != "value":
            result[name] = f"{side}.{quoted(what)}" if qualified else quoted(what)
            continue
        of = value_in_python(shape[name], what)
        # a text is an expression
        result[name] = pa.scalar(of, pa.string()) if isinstance(of, str) else of
    return result


def _arrow(table: Table, shape: Shape, rows: Sequence[Sequence[Any]]) -> pa.Table:
    types = {f.name: arrow_type(f.type) for f in table.schema.fields}
    columns = [
        pa.array([value_in_python(shape[c], row[i]) for row in rows], types[c])
        for i, c in enumerate(shape)
    ]
    return pa.Table.from_arrays(columns, list(shape))
