"""Appended rows match the table by name at any depth, and are read as they were, or refused.

The rows come as other programs build them: fields in any order, absent or unknown, in another case,
nullable everywhere, and null below a null struct.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    Type,
    UUIDType,
    walk_fields,
)
from iceberg_pyspark.table.table import Table
from tests.support.commit_tables import commit_table

LEAVES: dict[Type, tuple[pa.DataType, list[Any]]] = {
    IntegerType(): (pa.int16(), [1, -2, 3]),
    LongType(): (pa.int32(), [5, 6]),
    StringType(): (pa.large_string(), ["x", "", "text"]),
    UUIDType(): (pa.binary(), [b"\x01" * 16, b"\xfe" * 16]),
}
KEYS = pa.string()
OFTEN = [True] * 12 + [False]


class Case:
    """The choices of one example, and what is wrong with its rows."""

    def __init__(self, data: st.DataObject, *, wrong: bool) -> None:
        self.draw = data.draw
        self.wrong = wrong
        self.ids = count(1)
        self.schema_problems: set[str] = set()
        self.null_problems: set[str] = set()

    def of(self, options: list[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def type(self, depth: int) -> Type:
        """Return a type with required and optional fields, nested at most `depth` times."""
        kind = self.of(["struct", "struct", "list", "map", "leaf"]) if depth else "leaf"
        if kind == "struct":
            return StructType(self.fields(depth - 1))
        if kind == "list":
            return ListType(
                element_id=next(self.ids),
                element_type=self.type(depth - 1),
                element_required=self.of([True, False]),
            )
        if kind == "map":
            return MapType(
                key_id=next(self.ids),
                key_type=StringType(),
                value_id=next(self.ids),
                value_type=self.type(depth - 1),
                value_required=self.of([True, False]),
            )
        return self.of(list(LEAVES))  # type: ignore[no-any-return]

    def fields(self, depth: int) -> tuple[NestedField, ...]:
        return tuple(
            NestedField(
                field_id=next(self.ids),
                name=name,
                type=self.type(depth),
                required=self.of([True, False]),
            )
            for name in "abc"[: self.of([1, 2, 3])]
        )

    def value(self, type_: Type, *, required: bool) -> Any:
        if not required and self.of([True, False, False]):
            return None
        match type_:
            case StructType(fields=fields):
                return {f.name: self.value(f.type, required=f.required) for f in fields}
            case ListType():
                return [
                    self.value(type_.element_type, required=type_.element_required)
                    for _ in range(self.of([0, 1, 2]))
                ]
            case MapType():
                return [
                    (key, self.value(type_.value_type, required=type_.value_required))
                    for key in ["k", "l"][: self.of([0, 1, 2])]
                ]
        return self.of(LEAVES[type_][1])

    def encode(self, f: NestedField, values: list[Any], path: str) -> tuple[pa.Array, list[Any]]:
        """Return the values of a field as others may write them, and as they are read."""
        present = [i for i, v in enumerate(values) if v is not None]
        if self.wrong and f.required and present and not self.of(OFTEN):
            values = list(values)
            values[present[0]] = None
            self.null_problems.add(path)
        mask = pa.array([v is None for v in values], pa.bool_())
        match f.type:
            case StructType(fields=fields):
                columns, names, read = self.struct(fields, values, f"{path}.")
                rows = [None if v is None else r for v, r in zip(values, read, strict=True)]
                return pa.StructArray.from_arrays(columns, names, mask=mask), rows
            case ListType():
                below = [e for v in values for e in v or ()]
                array, read = self.encode(f.type.element, below, f"{path}.element")
                parts = iter(read)
                rows = [None if v is None else [next(parts) for _ in v] for v in values]
                kinds = [pa.ListArray, pa.LargeListArray]
                return self.of(kinds).from_arrays(offsets(values), array, mask=mask), rows
            case MapType():
                keys = pa.array([k for v in values for k, _ in v or ()], KEYS)
                items = [e for v in values for _, e in v or ()]
                array, read = self.encode(f.type.value, items, f"{path}.value")
                parts = iter(read)
                rows = [None if v is None else [(k, next(parts)) for k, _ in v] for v in values]
                return pa.MapArray.from_arrays(offsets(values), keys, array, mask=mask), rows
        return pa.array(values, self.of([LEAVES[f.type][0], None]) or plain(f.type)), values

    def struct(
        self, fields: tuple[NestedField, ...], values: list[Any], path: str
    ) -> tuple[list[pa.Array], list[str], list[Any]]:
        columns: list[tuple[str, pa.Array]] = []
        read: list[dict[str, Any]] = [{} for _ in values]
        for f in fields:
            if not self.of(OFTEN) and (self.wrong or f.optional):
                rows = [None] * len(values)
                if f.required:
                    self.schema_problems.add(f"{path}{f.name}")
                if self.wrong and self.of([True, False]):
                    columns.append((f.name.upper(), pa.nulls(len(values))))
                    self.schema_problems.add(f"{path}{f.name.upper()}")
            else:
                # the values of a null struct do not exist, so none of them is missing
                below = [None if v is None else v[f.name] for v in values]
                array, rows = self.encode(f, below, f"{path}{f.name}")
                columns.append((f.name, array))
            for row, value in zip(read, rows, strict=True):
                row[f.name] = value
        if self.wrong and not (columns and self.of(OFTEN)):
            columns.append(("unknown", pa.nulls(len(values), pa.int32())))
            self.schema_problems.add(f"{path}unknown")
        if not columns:
            # pyarrow cannot build structs without fields: all are there
            return (
                [pa.nulls(len(values)) for _ in fields],
                [f.name for f in fields],
                [dict.fromkeys(f.name for f in fields) for _ in values],
            )
        order = self.draw(st.permutations(columns))
        return [a for _, a in order], [n for n, _ in order], read

    def rows(self, schema: Schema) -> tuple[pa.Table, list[dict[str, Any]]]:
        struct = schema.as_struct
        values = [self.value(struct, required=True) for _ in range(self.of([1, 3, 4]))]
        columns, names, read = self.struct(struct.fields, values, "")
        table = pa.table(dict(zip(names, columns, strict=True)))
        start = self.of([0, 0, len(values) // 2])
        if self.schema_problems or self.null_problems:
            start = 0
        half = len(values) // 2
        parts = [table.slice(start, max(half - start, 0)), table.slice(max(half, start))]
        return pa.concat_tables(parts), read[start:]


def offsets(values: list[Any]) -> pa.Array:
    ends = [0]
    for v in values:
        ends.append(ends[-1] + len(v or ()))
    return pa.array(ends, pa.int32())


def plain(type_: Type) -> pa.DataType:
    texts: dict[Type, pa.DataType] = {
        IntegerType(): pa.int32(),
        LongType(): pa.int64(),
        StringType(): pa.string(),
    }
    return texts.get(type_, pa.binary(16))


def evolved(value: Any, before: Type, after: Type) -> Any:
    """Return a value of an older type as it is read with a newer one, fields by their ids."""
    if value is None:
        return None
    match (before, after):
        case (StructType(), StructType()):
            old = {f.field_id: f for f in before.fields}
            return {
                f.name: evolved(value[o.name], o.type, f.type)
                if (o := old.get(f.field_id)) is not None
                else None
                for f in after.fields
            }
        case (ListType(), ListType()):
            return [evolved(v, before.element_type, after.element_type) for v in value]
        case (MapType(), MapType()):
            return [(k, evolved(v, before.value_type, after.value_type)) for k, v in value]
    return value


def read(table: Table) -> list[str]:
    return sorted(map(repr, table.scan().to_arrow().to_pylist()))


def new_table(case: Case) -> Table:
    properties = {"write.format.default": case.of(["parquet", "parquet", "orc", "avro"])}
    t = commit_table(schema=Schema(fields=case.fields(3)), properties=properties)
    return Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)


@settings(max_examples=settings().max_examples * 3, deadline=None)
@given(st.data())
def test_rows_that_fit_are_read_by_name(data: st.DataObject) -> None:
    case = Case(data, wrong=False)
    table = new_table(case)
    first, expected = case.rows(table.schema)
    table.append(first)
    assert read(table) == sorted(map(repr, expected))
    before, gone = table.schema, set[int]()
    with table.update_schema() as update:
        for f in list(walk_fields(before.as_struct)):
            parent = before.parent_by_id.get(f.field_id)
            if parent in gone:
                gone.add(f.field_id)
                continue
            type_ = before.as_struct if parent is None else before.field_by_id[parent].type
            if not isinstance(type_, StructType) or case.of(OFTEN[6:]):
                continue
            name = before.name_by_id[f.field_id]
            match case.of(["drop", "rename", "add", "first"]):
                case "drop" if len(type_.fields) > 1 and f is type_.fields[-1]:
                    update.drop_column(name)
                    gone.add(f.field_id)
                case "rename" if not isinstance(f.type, StructType | ListType | MapType):
                    update.rename_column(name, f"{f.name}x")
                case "first":
                    update.move_first(name)
                case "add" if isinstance(f.type, StructType):
                    update.add_column(f"{name}.new", StringType())
    expected = [evolved(row, before.as_struct, table.schema.as_struct) for row in expected]
    assert read(table) == sorted(map(repr, expected))
    second, added = case.rows(table.schema)
    match case.of(["append", "overwrite", "transaction"]):
        case "append":
            table.append(second)
            added = expected + added
        case "overwrite":
            table.overwrite(second)
        case _:
            with table.transaction() as transaction:
                transaction.append(second)
            table = table.refresh()
            added = expected + added
    assert read(table) == sorted(map(repr, added))


@settings(max_examples=settings().max_examples * 3, deadline=None)
@given(st.data())
def test_rows_that_do_not_fit_are_refused_by_name(data: st.DataObject) -> None:
    case = Case(data, wrong=True)
    table = new_table(case)
    rows, expected = case.rows(table.schema)
    write = table.append if case.of([True, False]) else table.overwrite
    if problems := case.schema_problems or case.null_problems:
        with pytest.raises(InvalidRequestError) as caught:
            write(rows)
        named = [f"'{p}'" in str(caught.value) for p in problems]
        assert all(named) if case.schema_problems else any(named)
        assert read(table) == []
    else:
        write(rows)
        assert read(table) == sorted(map(repr, expected))
