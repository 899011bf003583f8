"""Changes of the columns and the partitioning of a table with a history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    Type,
    UnknownType,
    UUIDType,
)
from tests.support.history_model import ID, History, schema_text
from tests.support.plain_values import plain_values
from tests.support.sql_conditions import Column, columns_of

COLUMN_NAMES = ["a", "b", "A", "c d", "ü"]


_FIELD_NAMES = ["x", "y", "X"]


_COMMON: list[PrimitiveType] = [
    BooleanType(),
    IntegerType(),
    LongType(),
    FloatType(),
    DoubleType(),
    DecimalType(9, 2),
    DecimalType(20, 2),
    DateType(),
    TimestampType(),
    TimestamptzType(),
    StringType(),
    BinaryType(),
]


_RARE: list[PrimitiveType] = [UUIDType(), FixedType(2), TimeType()]


_PROMOTED: dict[str, list[PrimitiveType]] = {
    "int": [LongType()],
    "float": [DoubleType()],
    "decimal(9, 2)": [DecimalType(18, 2), DecimalType(20, 2)],
    "date": [TimestampType()],
    "unknown": [IntegerType(), StringType()],
}


_TRANSFORMS = ["identity", "identity", "bucket[3]", "truncate[2]", "year", "month", "day", "hour"]


def column_types(version: int, next_id: Callable[[], int]) -> SearchStrategy[Type]:
    """Return a strategy for column types, sometimes nested; `next_id` numbers the inner fields."""
    rare = _RARE if version < 3 else [*_RARE, UnknownType()]
    common = st.sampled_from(_COMMON)
    primitive = st.one_of(common, common, common, st.sampled_from(rare))

    def struct(inner: SearchStrategy[Type]) -> SearchStrategy[Type]:
        fields = st.dictionaries(st.sampled_from(["x", "y"]), inner, min_size=1, max_size=2)
        return fields.map(
            lambda type_by_name: StructType(
                tuple(
                    NestedField(field_id=next_id(), name=n, type=t) for n, t in type_by_name.items()
                )
            )
        )

    stored = st.one_of(common, common, st.sampled_from(_RARE))
    nested = st.one_of(
        struct(primitive),
        struct(struct(common)),
        stored.map(lambda t: ListType(element_id=next_id(), element_type=t)),
        struct(common).map(lambda t: ListType(element_id=next_id(), element_type=t)),
        stored.map(
            lambda t: MapType(
                key_id=next_id(), key_type=StringType(), value_id=next_id(), value_type=t
            )
        ),
    )
    return st.one_of(primitive, primitive, primitive, nested)


def change_schema(h: History) -> None:
    """Add, rename, drop, widen or move a column; ignore a change that the table refuses."""
    columns = [c for c in columns_of(h.struct) if c.path != (ID,)]
    changes: list[Callable[[History, Sequence[Column]], str | None]] = [_add]
    if columns:
        changes += [_add, _rename, _rename, _drop, _drop, _add_again, _add_again, _promote, _move]
    change = h.draw(st.sampled_from(changes))
    try:
        done = change(h, columns)
    except InvalidRequestError as e:
        note(f"{change.__name__} refused: {e}")
        return
    if done is not None:
        h.table.refresh()
        note(f"{done}: {schema_text(h.table.schema)}")


def _parents(columns: Sequence[Column]) -> list[tuple[str, ...]]:
    return [(), *(c.path for c in columns if isinstance(c.type, StructType))]


def _free_name(h: History, parent: tuple[str, ...]) -> str | None:
    used = {c.path[-1].lower() for c in columns_of(h.struct) if c.path[:-1] == parent}
    free = [n for n in (_FIELD_NAMES if parent else COLUMN_NAMES) if n.lower() not in used]
    return h.draw(st.sampled_from(free)) if free else None


def _new_type(h: History) -> tuple[Type, Any]:
    ids = iter(range(100_000, 101_000))
    type_ = h.draw(column_types(h.version, lambda: next(ids)))
    if h.version < 3 or not isinstance(type_, PrimitiveType) or isinstance(type_, UnknownType):
        return type_, None
    return type_, h.draw(st.none() | plain_values(type_))


def _add(h: History, columns: Sequence[Column]) -> str | None:
    parent = h.draw(st.sampled_from(_parents(columns)))
    name = _free_name(h, parent)
    if name is None:
        return None
    type_, default = _new_type(h)
    above = ".".join(parent) or None
    h.table.update_schema().add_column(name, type_, parent=above, default=default).commit()
    return f"add {above}.{name} {type_} default {default}"


def _rename(h: History, columns: Sequence[Column]) -> str | None:
    c = h.draw(st.sampled_from(columns))
    name = _free_name(h, c.path[:-1])
    if name is None:
        return None
    h.table.update_schema().rename_column(".".join(c.path), name).commit()
    return f"rename {c.text} to {name}"


def _drop(h: History, columns: Sequence[Column]) -> str:
    c = h.draw(st.sampled_from(columns))
    h.table.update_schema().drop_column(".".join(c.path)).commit()
    return f"drop {c.text}"


def _add_again(h: History, columns: Sequence[Column]) -> str:
    c = h.draw(st.sampled_from(columns))
    type_, default = (c.type, None) if h.draw(st.booleans()) else _new_type(h)
    h.table.update_schema().drop_column(".".join(c.path)).commit()
    above = ".".join(c.path[:-1]) or None
    name = h.draw(st.sampled_from([c.path[-1], c.path[-1].swapcase()]))
    h.table.update_schema().add_column(name, type_, parent=above, default=default).commit()
    return f"drop {c.text}, add it again as {name} {type_} default {default}"


def _promote(h: History, columns: Sequence[Column]) -> str | None:
    result = [c for c in columns if str(c.type) in _PROMOTED]
    if not result:
        return None
    c = h.draw(st.sampled_from(result))
    type_ = h.draw(st.sampled_from(_PROMOTED[str(c.type)]))
    h.table.update_schema().update_type(".".join(c.path), type_).commit()
    return f"widen {c.text} to {type_}"


def _move(h: History, columns: Sequence[Column]) -> str:
    c = h.draw(st.sampled_from(columns))
    h.table.update_schema().move_first(".".join(c.path)).commit()
    return f"move {c.text} first"


def change_partitioning(h: History) -> None:
    """Add or remove a partition field; ignore a change that the table refuses."""
    columns = [c for c in columns_of(h.struct) if isinstance(c.type, PrimitiveType)]
    c = h.draw(st.sampled_from(columns))
    transform = h.draw(st.sampled_from(_TRANSFORMS))
    fields = [f.name for f in h.table.spec.fields]
    removed = h.draw(st.sampled_from(fields)) if fields and h.draw(st.booleans()) else None
    try:
        update = h.table.update_spec()
        if removed is not None:
            update.remove_field(removed)
        else:
            update.add_field(".".join(c.path), transform)
        update.commit()
    except InvalidRequestError as e:
        note(f"partitioning refused: {e}")
        return
    h.table.refresh()
    note(f"partitioned by {[(f.name, str(f.transform)) for f in h.table.spec.fields]}")
