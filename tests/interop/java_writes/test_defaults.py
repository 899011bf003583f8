"""Columns with an initial default, which older rows get (docs/conformance.md 66, 69, 71)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.oracle import Oracle
from tests.support.readings import EVERY_READ, assert_filters_alike, assert_read_alike

pytestmark = pytest.mark.nightly

DEFAULTS = {
    "b": ("boolean", True),
    "i": ("int", -7),
    "l": ("long", 2**40),
    "f": ("float", 1.5),
    "d": ("double", -0.0),
    "s": ("string", "é𐍈"),
    "empty": ("string", ""),
    "dt": ("date", "1969-12-31"),
    "ts": ("timestamp", "1969-12-31T23:59:59.999999"),
    "tstz": ("timestamptz", "2026-01-01T00:00:00.000001+00:00"),
    "d4": ("decimal(9, 2)", "-1.50"),
    "d16": ("decimal(38, 10)", "9999999999.0000000001"),
}


def literal(oracle: Oracle, type_: Any, value: Any) -> Any:
    """Return a default as Java needs it, of exactly the column's type."""
    created = oracle.jvm.org.apache.iceberg.expressions.Expressions.lit(value)
    return created.to(type_)


def test_initial_defaults_of_every_type_at_the_top_and_below(oracle: Oracle) -> None:
    name = "java_hadoop.defaults.all"
    oracle.sql(
        f"CREATE TABLE {name} (id INT, st STRUCT<a: INT>, li ARRAY<STRUCT<a: INT>>, "
        "ma MAP<STRING, STRUCT<a: INT>>) USING iceberg TBLPROPERTIES ('format-version' = '3')"
    )
    oracle.sql(
        f"INSERT INTO {name} VALUES (1, struct(1), array(struct(1), null), map('k', struct(1))), "
        "(2, null, null, null), (3, struct(null), array(), map('n', null))"
    )
    table = oracle.load_java_table(name)
    types = oracle.jvm.org.apache.iceberg.types.Types
    change = table.updateSchema()
    for column, (type_name, value) in DEFAULTS.items():
        type_ = types.fromPrimitiveString(type_name)
        change = change.addColumn(column, type_, literal(oracle, type_, value))
    whole = types.fromPrimitiveString("int")
    change = change.addRequiredColumn("required", whole, literal(oracle, whole, 5))
    for parent in ("st", "li", "ma"):
        change = change.addColumn(parent, "added", whole, "doc", literal(oracle, whole, 9))
    change.commit()
    assert_read_alike(oracle, name, through_spark=EVERY_READ)
    oracle.sql(
        f"INSERT INTO {name} (id, st, li, ma, i, required) VALUES "
        "(4, named_struct('a', 2, 'added', null), array(named_struct('a', 2, 'added', 3)), "
        "map('k', named_struct('a', null, 'added', null)), null, 6)"
    )
    change = oracle.load_java_table(name).updateSchema()
    change.updateColumnDefault("s", literal(oracle, types.fromPrimitiveString("string"), "later"))
    change.renameColumn("dt", "day").commit()
    oracle.sql(f"INSERT INTO {name} (id, st, required) VALUES (5, null, 7)")
    rows = assert_read_alike(oracle, name, through_spark=True)
    assert len(rows) == 5
    filters = (
        "i = -7",
        "i IS NULL",
        "s >= 'z'",
        "day < DATE '2000-01-01'",
        "d16 > 1",
        "required = 5",
        "st.added = 9",
        "st.added IS NULL",
        "b",
    )
    assert_filters_alike(oracle, name, filters, "id, i")


def test_a_default_of_a_column_that_equality_deletes_name(oracle: Oracle) -> None:
    """Older files have the default in an added column (docs/conformance.md 29)."""
    name = "java_sql.defaults.deleted"
    oracle.sql(
        f"CREATE TABLE {name} (id INT, p STRING) USING iceberg PARTITIONED BY (p) "
        "TBLPROPERTIES ('format-version' = '3')"
    )
    oracle.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    table = oracle.load_java_table(name)
    whole = oracle.jvm.org.apache.iceberg.types.Types.fromPrimitiveString("int")
    table.updateSchema().addColumn("v", whole, literal(oracle, whole, 3)).commit()
    oracle.sql(f"INSERT INTO {name} VALUES (3, 'a', 3), (4, 'a', null), (5, 'a', 4)")
    oracle.write_equality_deletes(name, ["v"], [(3,)], ("a",))
    rows = assert_read_alike(oracle, name, through_spark=True)
    assert [row[0] for row in rows] == [2, 4, 5]
