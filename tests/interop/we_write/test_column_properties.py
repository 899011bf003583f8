"""Name mapping and column properties after equal schema changes by this package and by Java."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from iceberg_pyspark.changes.schema_changes import SchemaChanges
from iceberg_pyspark.spec.name_mapping import name_mapping_of, name_mapping_to_text
from tests.support.oracle import Oracle
from tests.support.readings import our_table

pytestmark = pytest.mark.nightly

MAPPING = "schema.name-mapping.default"
METRICS = "write.metadata.metrics.column."


def mapped(text: str) -> Any:
    """Parse a name mapping and sort its names, whose order Java does not keep."""

    def of(fields: list[dict[str, Any]]) -> list[Any]:
        result = [(f.get("field-id"), sorted(f["names"]), of(f.get("fields", []))) for f in fields]
        return sorted(result, key=str)

    return of(json.loads(text))


def test_the_same_changes_leave_the_same_mapping(oracle: Oracle) -> None:
    types = oracle.jvm.org.apache.iceberg.types.Types
    whole = types.IntegerType.get()

    def point() -> Any:
        fields = oracle.jvm.java.util.ArrayList()
        for i, name in ((1, "x"), (2, "y")):
            fields.add(types.NestedField.optional(i, name, whole))
        return types.StructType.of(fields)

    names = ("java_hadoop.mapped.theirs", "java_hadoop.mapped.ours")
    for name in names:
        oracle.sql(
            f"CREATE TABLE {name} (id INT, s STRUCT<x: INT, y: INT>, l ARRAY<STRUCT<x: INT>>, "
            "m MAP<STRING, STRUCT<x: INT>>, z INT) USING iceberg TBLPROPERTIES ("
            f"'{METRICS}id'='full', '{METRICS}z'='none')"
        )
    schema = our_table(oracle, names[0]).schema
    text = name_mapping_to_text(name_mapping_of(schema))
    java_text = oracle.jvm.org.apache.iceberg.mapping.NameMappingParser.toJson(
        oracle.jvm.org.apache.iceberg.mapping.MappingUtil.create(
            oracle.load_java_table(names[0]).schema()
        )
    )
    assert mapped(text) == mapped(java_text)
    for name in names:
        oracle.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{MAPPING}'='{text}')")
    ours_point = next(f.type for f in schema.fields if f.name == "s")
    steps: list[tuple[Callable[[Any], Any], Callable[[SchemaChanges], Any]]] = [
        (lambda j: j.renameColumn("id", "key"), lambda c: c.rename_column("id", "key")),
        (lambda j: j.addColumn("id", whole), lambda c: c.add_column("id", "int")),
        (
            lambda j: j.renameColumn("s.x", "a").addColumn("s", "w", whole),
            lambda c: c.rename_column("s.x", "a").add_column("s.w", "int"),
        ),
        (
            lambda j: j.addColumn("l", "new", point()).addColumn("m", "new", whole),
            lambda c: c.add_column("l.new", ours_point).add_column("m.new", "int"),
        ),
        (
            lambda j: j.deleteColumn("z").addColumn("z", point()),
            lambda c: c.drop_column("z").add_column("z", ours_point),
        ),
        (
            lambda j: j.renameColumn("m.value.x", "y").updateColumnDoc("key", "d"),
            lambda c: c.rename_column("m.value.x", "y").update_doc("key", "d"),
        ),
        (
            lambda j: j.renameColumn("s.a", "y").renameColumn("s.y", "a"),
            lambda c: (
                c.rename_column("s.a", "t").rename_column("s.y", "a").rename_column("s.t", "y")
            ),
        ),
        (lambda j: j.renameColumn("key", "k2"), lambda c: c.rename_column("key", "k2")),
    ]
    for number, (java, ours) in enumerate(steps):
        java(oracle.load_java_table(names[0]).updateSchema()).commit()
        update = our_table(oracle, names[1]).update_schema()
        ours(update)
        update.commit()
        left, right = (our_table(oracle, name) for name in names)
        assert left.schema.name_by_id == right.schema.name_by_id, number
        theirs, mine = dict(left.properties), dict(right.properties)
        assert mapped(mine.pop(MAPPING)) == mapped(theirs.pop(MAPPING)), number
        assert mine == theirs, number
