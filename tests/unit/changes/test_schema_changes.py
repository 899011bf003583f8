"""Schema evolution: allowed changes, the ids that they assign, and refused changes."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.changes.apply import apply_updates
from iceberg_pyspark.changes.changes import AssertCurrentSchemaId, AssertLastAssignedFieldId
from iceberg_pyspark.changes.new_table import new_table_metadata
from iceberg_pyspark.changes.schema_changes import SchemaChanges
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.json_fields import JsonObject
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.retyped_columns import can_promote
from iceberg_pyspark.spec.schema import Schema, schema_from_json, schema_to_json
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import BucketTransform, DayTransform, Transform
from iceberg_pyspark.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzType,
    Type,
    UnknownType,
    VariantType,
)

POINT = StructType(
    (
        NestedField(field_id=20, name="x", type=DoubleType(), required=True),
        NestedField(field_id=21, name="y", type=DoubleType()),
    )
)
SCHEMA = Schema(
    fields=(
        NestedField(field_id=10, name="id", type=IntegerType(), required=True),
        NestedField(field_id=11, name="p", type=POINT),
        NestedField(field_id=12, name="d", type=DateType()),
        NestedField(
            field_id=13,
            name="m",
            type=MapType(
                key_id=30,
                key_type=StructType((NestedField(field_id=31, name="k", type=IntegerType()),)),
                value_id=32,
                value_type=StructType((NestedField(field_id=33, name="v", type=IntegerType()),)),
            ),
        ),
        NestedField(
            field_id=14,
            name="l",
            type=ListType(
                element_id=40,
                element_type=StructType((NestedField(field_id=41, name="e", type=FloatType()),)),
            ),
        ),
    )
)
"""Field ids: id 1, p 2, d 3, m 4, l 5, p.x 6, p.y 7, key 8, value 9, k 10, v 11, element 12, e 13.
"""


def table(version: int = 3, spec: PartitionSpec | None = None) -> TableMetadata:
    return new_table_metadata(
        SCHEMA, spec, None, "t", {}, format_version=version, table_uuid="u", now_ms=1
    )


def apply_changes(changes: SchemaChanges, metadata: TableMetadata) -> TableMetadata:
    return apply_updates(
        metadata,
        changes.changes(metadata).updates,
        now_ms=2,
        previous_metadata_location=None,
    )


def names(metadata: TableMetadata) -> list[str]:
    return [f.name for f in metadata.current_schema.fields]


def test_a_column_is_added_at_the_end_with_the_next_id() -> None:
    metadata = table()
    after = apply_changes(SchemaChanges(metadata).add_column("n", "string", doc="why"), metadata)
    added = after.current_schema.fields[-1]
    assert added == NestedField(field_id=14, name="n", type=StringType(), doc="why")
    assert (after.last_column_id, after.current_schema_id) == (14, 1)


def test_nested_columns_get_ids_after_their_parent() -> None:
    metadata = table()
    changes = SchemaChanges(metadata).add_column("q", POINT).add_column("r", "int")
    assert {n: i for n, i in changes.schema.id_by_name.items() if i > 13} == {
        "q": 14,
        "q.x": 15,
        "q.y": 16,
        "r": 17,
    }


@pytest.mark.parametrize(
    ("parent", "name"), [("p", "p.z"), ("m", "m.value.z"), ("l", "l.element.z")]
)
def test_structs_take_columns_also_inside_lists_and_maps(parent: str, name: str) -> None:
    changes = SchemaChanges(table()).add_column("z", "int", parent=parent)
    assert changes.schema.find(name).field_id == 14
    assert SchemaChanges(table()).add_column(f"{parent}.z", "int").schema == changes.schema


def test_a_name_with_a_dot_beside_a_struct() -> None:
    changes = SchemaChanges(table()).add_column("p.z", "int", parent="")
    assert [f.name for f in changes.schema.fields][-1] == "p.z"
    with pytest.raises(InvalidRequestError, match=r"p\.z"):
        changes.add_column("z", "int", parent="p")


def test_drop_and_add_again_is_another_column() -> None:
    """docs/conformance.md 68."""
    metadata = table()
    after = apply_changes(
        SchemaChanges(metadata).drop_column("d").add_column("d", "date"), metadata
    )
    assert after.current_schema.find("d").field_id == 14
    without_column = apply_changes(SchemaChanges(after).drop_column("d"), after)
    assert without_column.last_column_id == 14


def test_rename_keeps_the_id() -> None:
    """docs/conformance.md 68."""
    changes = SchemaChanges(table()).rename_column("p.x", "lon").rename_column("p", "point")
    assert changes.schema.find("point.lon").field_id == 6


def test_columns_are_moved_within_their_struct() -> None:
    """docs/conformance.md 68."""
    metadata = table()
    changes = SchemaChanges(metadata)
    changes.move_first("l").move_after("id", "m").move_before("d", "p").move_first("p.y")
    after = apply_changes(changes, metadata)
    assert names(after) == ["l", "d", "p", "m", "id"]
    point = after.current_schema.find("p").type
    assert isinstance(point, StructType)
    assert [f.name for f in point.fields] == ["y", "x"]
    assert after.current_schema.field_by_id.keys() == metadata.current_schema.field_by_id.keys()


def test_types_are_promoted_also_when_nested() -> None:
    """docs/conformance.md 72."""
    changes = SchemaChanges(table())
    changes.update_type("id", "long").update_type("m.value.v", "long")
    changes.update_type("l.element.e", "double").update_type("d", "timestamp")
    types = [changes.schema.find(n).type for n in ("id", "m.value.v", "l.element.e", "d")]
    assert types == [LongType(), LongType(), DoubleType(), TimestampType()]


PROMOTIONS: list[tuple[Type, Type, int]] = [
    (IntegerType(), LongType(), 1),
    (FloatType(), DoubleType(), 1),
    (DecimalType(9, 2), DecimalType(10, 2), 1),
    (DateType(), TimestampType(), 3),
    (DateType(), TimestampNsType(), 3),
    (UnknownType(), StringType(), 3),
]


@pytest.mark.parametrize(("old", "new", "version"), PROMOTIONS)
def test_promotions_need_their_format_version(old: Type, new: Type, version: int) -> None:
    """docs/conformance.md 72."""
    for v in (1, 2, 3):
        assert can_promote(old, new, v) == (v >= version)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LongType(), IntegerType()),
        (IntegerType(), DoubleType()),
        (DecimalType(10, 2), DecimalType(9, 2)),
        (DecimalType(9, 2), DecimalType(10, 3)),
        (DateType(), TimestamptzType()),
        (StringType(), BinaryType()),
        (TimestampType(), TimestampNsType()),
    ],
)
def test_other_promotions_are_refused(old: Type, new: Type) -> None:
    """docs/conformance.md 72."""
    assert not can_promote(old, new, 3)


@pytest.mark.parametrize(
    ("transform", "allowed"), [(DayTransform(), True), (BucketTransform(4), False)]
)
def test_a_promotion_must_not_change_partition_values(transform: Transform, allowed: bool) -> None:
    """docs/conformance.md 72."""
    spec = PartitionSpec(
        spec_id=0,
        fields=(PartitionField(source_ids=(12,), field_id=1000, name="dp", transform=transform),),
    )
    changes = SchemaChanges(table(spec=spec))
    if allowed:
        assert changes.update_type("d", "timestamp").schema.find("d").type == TimestampType()
    else:
        with pytest.raises(InvalidRequestError, match="'dp'"):
            changes.update_type("d", "timestamp")


def test_defaults_of_a_promoted_date_are_promoted() -> None:
    changes = SchemaChanges(table()).add_column("e", "date", default=2)
    changes.update_type("e", "timestamp")
    promoted = changes.schema.find("e")
    assert promoted.initial_default == promoted.write_default == 2 * 86_400_000_000


def test_the_default_of_a_promoted_float_stays_the_value_that_rows_have() -> None:
    """docs/conformance.md 71."""
    changes = SchemaChanges(table()).add_column("f", "float", default=0.1)
    promoted = changes.update_type("f", "double").schema.find("f")
    nearest = 0.10000000149011612
    assert (promoted.initial_default, promoted.write_default) == (nearest, nearest)


def test_values_inside_a_default_are_promoted_with_their_column() -> None:
    """docs/conformance.md 71."""
    type_ = StructType(
        (
            NestedField(
                field_id=1,
                name="l",
                type=ListType(element_id=2, element_type=DateType()),
            ),
            NestedField(
                field_id=3,
                name="m",
                type=MapType(
                    key_id=4,
                    key_type=StringType(),
                    value_id=5,
                    value_type=StructType((NestedField(field_id=6, name="d", type=DateType()),)),
                ),
            ),
        )
    )
    list_type, map_type = (f.type for f in type_.fields)
    changes = SchemaChanges(table())
    changes.add_column("dates", list_type, default=[dt.date(1970, 1, 3), None])
    changes.add_column("by_name", map_type, default={"a": {"d": dt.date(1970, 1, 2)}, "b": None})
    changes.update_type("dates.element", "timestamp")
    changes.update_type("by_name.value.d", "timestamp_ns")
    d = changes.schema.find("by_name.value.d").field_id
    day = 86_400_000_000
    for name, expected in (
        ("dates", [2 * day, None]),
        ("by_name", [("a", {d: day * 1000}), ("b", None)]),
    ):
        f = changes.schema.find(name)
        assert f.initial_default == f.write_default == expected


@pytest.mark.parametrize(
    ("type_", "literal", "value"),
    [
        ("date", dt.date(1970, 1, 3), 2),
        ("timestamp", dt.datetime(1970, 1, 1, 0, 0, 1), 1_000_000),
        ("timestamptz", "1970-01-01T00:00:01+00:00", 1_000_000),
        ("time", dt.time(0, 0, 1), 1_000_000),
        ("decimal(9, 2)", Decimal("1.5"), Decimal("1.50")),
        ("decimal(9, 2)", 3, Decimal("3.00")),
        ("uuid", uuid.UUID(int=1), bytes(15) + b"\x01"),
        ("string", "x", "x"),
        ("fixed[2]", b"ab", b"ab"),
        ("double", 1, 1),
        ("long", 2**40, 2**40),
        ("boolean", False, False),
    ],
)
def test_defaults_are_plain_values(type_: str, literal: object, value: object) -> None:
    """docs/conformance.md 70."""
    changes = SchemaChanges(table()).add_column("n", type_, default=literal)
    assert changes.schema.find("n").initial_default == value
    assert changes.update_default("n", literal).schema.find("n").write_default == value
    assert changes.changes(table()).updates


@pytest.mark.parametrize(
    ("type_", "literal"),
    [
        ("int", "three"),
        ("int", "3"),
        ("int", 2**31),
        ("int", 1.5),
        ("boolean", 1),
        ("long", True),
        ("date", "today"),
        ("decimal(3, 2)", Decimal("1.234")),
        ("decimal(3, 2)", 10),
        ("fixed[2]", b"abc"),
        # Defaults are stored as JSON, which has no such numbers.
        ("double", float("nan")),
        ("float", float("-inf")),
        ("float", 1e300),
    ],
)
def test_a_default_is_a_value_of_its_column(type_: str, literal: object) -> None:
    """docs/conformance.md 70."""
    with pytest.raises(InvalidRequestError, match="column 'n'"):
        SchemaChanges(table()).add_column("n", type_, default=literal).changes(table())


INTS = ListType(element_id=1, element_type=IntegerType())
SOME = ListType(element_id=1, element_type=DateType(), element_required=True)
COUNTS = MapType(key_id=1, key_type=StringType(), value_id=2, value_type=IntegerType())
PAIR = StructType(
    (
        NestedField(field_id=1, name="x", type=IntegerType(), write_default=5, initial_default=4),
        NestedField(field_id=2, name="y", type=IntegerType()),
    )
)
PAIRS = ListType(element_id=3, element_type=PAIR)


@pytest.mark.parametrize(
    ("type_", "literal", "value"),
    [
        (INTS, [1, None], [1, None]),
        (INTS, (), []),
        (SOME, [dt.date(1970, 1, 2), 3], [1, 3]),
        (COUNTS, {"a": 1, "b": None}, [("a", 1), ("b", None)]),
        (COUNTS, [["a", 1]], [("a", 1)]),
        (PAIR, {}, {}),
    ],
)
def test_defaults_of_lists_maps_and_structs(type_: Type, literal: Any, value: Any) -> None:
    """docs/conformance.md 70."""
    base = table()
    changes = SchemaChanges(base).add_column("n", type_, default=literal)
    assert changes.schema.find("n").initial_default == value
    written = json.loads(json.dumps(schema_to_json(changes.schema)))
    assert schema_from_json(JsonObject(written)).find("n") == changes.schema.find("n")
    assert changes.update_default("n", literal).schema.find("n").write_default == value
    assert changes.changes(base).updates


def test_structs_in_defaults_get_the_ids_of_the_new_columns() -> None:
    changes = SchemaChanges(table()).add_column("n", PAIRS, default=[{"y": 7}, {1: 1}])
    n = changes.schema.find("n")
    assert isinstance(n.type, ListType)
    assert isinstance(n.type.element_type, StructType)
    x, y = (f.field_id for f in n.type.element_type.fields)
    assert n.initial_default == n.write_default == [{y: 7}, {x: 1}]


@pytest.mark.parametrize(
    ("type_", "literal"),
    [
        (INTS, ["x"]),
        (INTS, [2**31]),
        (INTS, [True]),
        (INTS, 3),
        (INTS, "3"),
        (SOME, [None]),
        (COUNTS, [("a", 1), ("a", 2)]),
        (COUNTS, {None: 1}),
        (COUNTS, {"a": 2**40}),
        (COUNTS, [1]),
        (COUNTS, 1),
        (PAIR, {"x": 1}),
        (PAIR, 1),
        (PAIRS, [{"z": 1}]),
        (PAIRS, [1]),
        (ListType(element_id=1, element_type=VariantType()), [b""]),
    ],
)
def test_a_nested_default_is_a_value_of_its_column(type_: Type, literal: Any) -> None:
    """docs/conformance.md 70."""
    with pytest.raises(InvalidRequestError, match="column 'n'"):
        SchemaChanges(table()).add_column("n", type_, default=literal)
    changes = SchemaChanges(table()).add_column("n", type_)
    with pytest.raises(InvalidRequestError, match="column 'n'"):
        changes.update_default("n", literal)


def test_a_required_column_needs_a_default() -> None:
    """docs/conformance.md 71."""
    with pytest.raises(InvalidRequestError, match="without a default"):
        SchemaChanges(table()).add_column("n", "int", required=True)
    added = SchemaChanges(table()).add_column("n", "int", required=True, default=3)
    assert added.schema.find("n").initial_default == 3
    with pytest.raises(InvalidRequestError, match="format version 3"):
        SchemaChanges(table(2)).add_column("n", "int", required=True, default=3)
    forced = SchemaChanges(table(2), allow_incompatible_changes=True)
    assert forced.add_column("n", "int", required=True).schema.find("n").required


def test_the_initial_default_never_changes() -> None:
    """docs/conformance.md 71."""
    changes = SchemaChanges(table()).add_column("n", "int", default=3).update_default("n", 4)
    n = changes.schema.find("n")
    assert (n.initial_default, n.write_default) == (3, 4)
    with pytest.raises(InvalidRequestError, match="cannot default to null"):
        SchemaChanges(table()).update_default("id", None)


def test_nullability_widens_and_narrows_only_when_allowed() -> None:
    assert SchemaChanges(table()).make_optional("id").schema.find("id").optional
    with pytest.raises(InvalidRequestError, match="allow incompatible"):
        SchemaChanges(table()).require("d")
    forced = SchemaChanges(table(), allow_incompatible_changes=True).require("d")
    assert forced.schema.find("d").required
    assert SchemaChanges(table()).require("id").schema.find("id").required


def test_identifier_fields_are_set_by_name_and_protected() -> None:
    """docs/conformance.md 75."""
    changes = SchemaChanges(table()).set_identifier_fields("id")
    assert changes.schema.identifier_field_ids == (1,)
    with pytest.raises(InvalidRequestError, match="identifier field"):
        changes.drop_column("id")
    with pytest.raises(InvalidRequestError, match="identifier field"):
        changes.make_optional("id")
    assert changes.set_identifier_fields().drop_column("id").schema.fields[0].name == "p"
    with pytest.raises(InvalidRequestError, match="optional"):
        SchemaChanges(table()).set_identifier_fields("d")


Change = Callable[[SchemaChanges], object]


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.drop_column("m.key.k"),
        lambda c: c.rename_column("m.key.k", "j"),
        lambda c: c.update_type("m.key.k", "long"),
        lambda c: c.add_column("j", "int", parent="m.key"),
        lambda c: c.move_first("m.key.k"),
    ],
)
def test_the_key_of_a_map_never_changes(change: Change) -> None:
    """docs/conformance.md 73."""
    with pytest.raises(InvalidRequestError, match="map's key"):
        change(SchemaChanges(table()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.add_column("d", "int"), "already exists"),
        (lambda c: c.add_column("z", "int", parent="id"), "not a struct"),
        (lambda c: c.drop_column("nope"), "no column 'nope'"),
        (lambda c: c.drop_column("l.element"), "list or map"),
        (lambda c: c.rename_column("m.value", "x"), "no own name"),
        (lambda c: c.rename_column("d", "id"), "already exists"),
        (lambda c: c.update_type("id", "string"), "cannot change 'id'"),
        (lambda c: c.move_after("d", "p.x"), "different structs"),
        (lambda c: c.move_after("d", "d"), "relative to itself"),
    ],
)
def test_impossible_schema_change_is_refused_by_name(change: Change, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        change(SchemaChanges(table()))


def test_changes_that_cancel_out_make_no_update() -> None:
    metadata = table()
    changes = SchemaChanges(metadata).rename_column("d", "e").rename_column("e", "d")
    assert changes.changes(metadata).updates == ()


def test_changes_require_the_schema_they_were_made_on() -> None:
    """docs/conformance.md 95."""
    metadata = table()
    required = SchemaChanges(metadata).drop_column("d").changes(metadata).requirements
    assert AssertCurrentSchemaId(0) in required
    assert AssertLastAssignedFieldId(13) in required


def test_union_by_name_adds_widens_and_relaxes() -> None:
    metadata = table()
    other = Schema(
        fields=(
            NestedField(field_id=1, name="id", type=LongType()),
            NestedField(
                field_id=2,
                name="p",
                type=StructType(
                    (
                        NestedField(field_id=3, name="x", type=FloatType(), required=True),
                        NestedField(field_id=4, name="z", type=DoubleType(), required=True),
                    )
                ),
            ),
            NestedField(
                field_id=5,
                name="l",
                type=ListType(
                    element_id=6,
                    element_type=StructType(
                        (NestedField(field_id=7, name="f", type=StringType()),)
                    ),
                ),
            ),
            NestedField(field_id=8, name="a.b", type=StringType()),
        )
    )
    after = apply_changes(SchemaChanges(metadata).union_by_name(other), metadata).current_schema
    assert after.find("id").type == LongType()
    assert after.find("id").optional
    assert after.find("p.x").type == DoubleType(), "a narrower type fits in"
    assert after.find("p.z").optional, "existing rows have no value"
    assert after.find("l.element.f").field_id > 13
    assert after.find("d").field_id == 3, "what the other lacks stays"
    assert after.find("a.b") in after.fields, "a dot in a name is a dot"


def test_union_by_name_refuses_what_does_not_fit() -> None:
    text = Schema(fields=(NestedField(field_id=1, name="id", type=StringType()),))
    with pytest.raises(InvalidRequestError, match="cannot change 'id'"):
        SchemaChanges(table()).union_by_name(text)
    nested = Schema(fields=(NestedField(field_id=1, name="id", type=POINT),))
    with pytest.raises(InvalidRequestError, match="'id' is int"):
        SchemaChanges(table()).union_by_name(nested)
    m = SCHEMA.fields[3]
    assert isinstance(m.type, MapType)
    key = Schema(fields=(replace(m, type=replace(m.type, key_type=StringType())),))
    with pytest.raises(InvalidRequestError, match="key of a map"):
        SchemaChanges(table()).union_by_name(key)


def test_union_with_itself_changes_nothing() -> None:
    metadata = table()
    assert SchemaChanges(metadata).union_by_name(SCHEMA).changes(metadata).updates == ()


EDITS: Mapping[str, Callable[[SchemaChanges, str, str], object]] = {
    "rename": lambda c, name, other: c.rename_column(name, other),
    "doc": lambda c, name, other: c.update_doc(name, other),
    "drop": lambda c, name, _: c.drop_column(name),
    "add": lambda c, name, _: c.add_column(name, "int"),
    "optional": lambda c, name, _: c.make_optional(name),
    "require": lambda c, name, _: c.require(name),
    "promote": lambda c, name, _: c.update_type(name, "long"),
    "default": lambda c, name, _: c.update_default(name, 1),
    "first": lambda c, name, _: c.move_first(name),
    "after": lambda c, name, other: c.move_after(name, other),
    "identify": lambda c, name, _: c.set_identifier_fields(name),
}


@given(st.data())
def test_changes_one_by_one_are_those_of_one_schema(data: st.DataObject) -> None:
    """Changes of single columns are kept apart: every other change sees them."""
    together = SchemaChanges(table(), allow_incompatible_changes=True)
    schema = together.schema
    names = st.sampled_from(["id", "d", "a", "b", "p", "p.x", "l.e", "p.a", "c.d"])
    for _ in range(data.draw(st.integers(1, 12))):
        kind = data.draw(st.sampled_from(list(EDITS)))
        name, other = data.draw(names), data.draw(names)

        metadata = replace(table(), schemas=(schema,), last_column_id=99)
        alone = SchemaChanges(metadata, allow_incompatible_changes=True)
        outcomes = []
        for changes in (alone, together):
            try:
                EDITS[kind](changes, name, other)
                outcomes.append("done")
            except InvalidRequestError as e:
                outcomes.append(str(e))
        assert outcomes[0] == outcomes[1]
        if kind != "add":
            assert alone.schema == together.schema
        assert [f.name for f in alone.schema.fields] == [f.name for f in together.schema.fields]
        schema = together.schema
