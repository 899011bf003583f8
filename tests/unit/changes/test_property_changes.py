"""Properties that name columns follow schema changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from iceberg_pyspark.changes.apply import apply_updates
from iceberg_pyspark.changes.new_table import new_table_metadata
from iceberg_pyspark.changes.schema_changes import SchemaChanges
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.name_mapping import name_mapping_of, name_mapping_to_text
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import NAME_MAPPING, check_set_properties
from iceberg_pyspark.spec.types import (
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

POINT = StructType(
    (
        NestedField(field_id=3, name="x", type=LongType()),
        NestedField(field_id=4, name="y", type=LongType()),
    )
)
SCHEMA = Schema(
    fields=(
        NestedField(field_id=1, name="id", type=IntegerType()),
        NestedField(field_id=2, name="s", type=POINT),
        NestedField(field_id=5, name="l", type=ListType(element_id=6, element_type=POINT)),
    )
)


def table(mapping: str | None = None, **properties: str) -> TableMetadata:
    """Return a table with columns id 1, s 2 (x 4, y 5), l 3 (element 6: x 7, y 8), mapped."""
    fields = list(SCHEMA.fields)
    inner = StructType(
        (
            NestedField(field_id=13, name="x", type=LongType()),
            NestedField(field_id=14, name="y", type=LongType()),
        )
    )
    fields[2] = NestedField(field_id=5, name="l", type=ListType(element_id=6, element_type=inner))
    metadata = new_table_metadata(
        Schema(fields=tuple(fields)), None, None, "/t", properties, table_uuid="u", now_ms=1
    )
    text = name_mapping_to_text(name_mapping_of(metadata.current_schema))
    metadata.properties[NAME_MAPPING] = mapping or text  # type: ignore[index]
    return metadata


def apply_changes(
    change: Callable[[SchemaChanges], object], metadata: TableMetadata | None = None
) -> TableMetadata:
    before = metadata or table()
    changes = SchemaChanges(before)
    change(changes)
    updates = changes.changes(before).updates
    return apply_updates(before, updates, now_ms=2, previous_metadata_location=None)


def mapped(metadata: TableMetadata) -> Any:
    """Return the name mapping as {id: (names, inner)}, where the key None is an unmapped id."""

    def of(fields: list[dict[str, Any]]) -> dict[Any, Any]:
        return {
            f.get("field-id"): (f["names"], of(f["fields"])) if "fields" in f else f["names"]
            for f in fields
        }

    return of(json.loads(metadata.properties[NAME_MAPPING]))


INNER = {7: ["x"], 8: ["y"]}
ALL = {1: ["id"], 2: (["s"], {4: ["x"], 5: ["y"]}), 3: (["l"], {6: (["element"], INNER)})}


def test_a_renamed_column_keeps_its_old_names() -> None:
    once = apply_changes(lambda c: c.rename_column("id", "key").rename_column("s.x", "a"))
    assert mapped(once) == {**ALL, 1: ["id", "key"], 2: (["s"], {4: ["x", "a"], 5: ["y"]})}
    twice = apply_changes(
        lambda c: c.rename_column("key", "again").rename_column("again", "last"), once
    )
    assert mapped(twice)[1] == ["id", "key", "last"]
    back = apply_changes(lambda c: c.rename_column("last", "id"), twice)
    assert mapped(back)[1] == ["id", "key", "last"]


def test_new_columns_are_mapped_with_all_that_is_in_them() -> None:
    added = apply_changes(
        lambda c: c.add_column("n", POINT).add_column("s.z", "int").add_column("l.z", "int")
    )
    mapping = mapped(added)
    assert mapping[9] == (["n"], {10: ["x"], 11: ["y"]})
    assert mapping[2] == (["s"], {4: ["x"], 5: ["y"], 12: ["z"]})
    assert mapping[3] == (["l"], {6: (["element"], {**INNER, 13: ["z"]})})


def test_a_name_given_to_another_column_moves() -> None:
    swapped = apply_changes(
        lambda c: c.rename_column("s.x", "t").rename_column("s.y", "x").rename_column("s.t", "y")
    )
    assert mapped(swapped)[2] == (["s"], {4: ["y"], 5: ["x"]})
    again = apply_changes(lambda c: c.drop_column("id").add_column("id", StringType()))
    # The dropped column keeps its mapping entry without a name.
    assert mapped(again) == {**ALL, 1: [], 9: ["id"]}
    renamed = apply_changes(lambda c: c.rename_column("id", "key"))
    metadata = apply_changes(lambda c: c.add_column("id", "int"), renamed)
    assert mapped(metadata)[1] == ["key"]
    assert mapped(metadata)[9] == ["id"]


def test_name_mapping_keeps_dropped_columns_and_names_without_ids() -> None:
    assert mapped(apply_changes(lambda c: c.drop_column("id"))) == ALL
    own = json.dumps([{"names": ["ignored"]}, {"field-id": 1, "names": ["ID", "no"]}])
    after = apply_changes(lambda c: c.add_column("n", "int").update_doc("id", "d"), table(own))
    assert mapped(after) == {None: ["ignored"], 1: ["ID", "no", "id"], 9: ["n"]}


def test_change_without_names_keeps_the_text_of_the_name_mapping() -> None:
    text = '[ {"field-id": 1, "names": ["id"]} ]'
    after = apply_changes(lambda c: c.update_type("id", "long"), table(text))
    assert after.properties[NAME_MAPPING] == text
    damaged = table("[")
    assert (
        apply_changes(lambda c: c.add_column("n", "int"), damaged).properties[NAME_MAPPING] == "["
    )
    with pytest.raises(InvalidRequestError, match=NAME_MAPPING):
        check_set_properties({NAME_MAPPING: "["})


def test_properties_of_single_columns_follow_their_columns() -> None:
    metrics, bloom = "write.metadata.metrics.column.", "write.parquet.bloom-filter-enabled.column."
    before = table(
        **{f"{metrics}id": "full", f"{bloom}s.x": "true", f"{metrics}gone": "none"},
        **{f"{metrics}s.y": "counts", f"{metrics}l.element.x": "none"},
    )
    after = apply_changes(
        lambda c: c.rename_column("id", "key").rename_column("s", "t").drop_column("t.y"), before
    ).properties
    assert {k: v for k, v in after.items() if ".column." in k} == {
        f"{metrics}key": "full",
        f"{bloom}t.x": "true",
        f"{metrics}gone": "none",
        f"{metrics}l.element.x": "none",
    }
    swapped = apply_changes(
        lambda c: c.rename_column("s.x", "t").rename_column("s.y", "x").rename_column("s.t", "y"),
        table(**{f"{metrics}s.x": "full", f"{metrics}s.y": "none"}),
    ).properties
    assert (swapped[f"{metrics}s.y"], swapped[f"{metrics}s.x"]) == ("full", "none")
