"""Schema changes at the top level or in nested fields (docs/conformance.md 66-74)."""

from __future__ import annotations

import pytest

from tests.support.oracle import Oracle
from tests.support.readings import EVERY_READ, assert_filters_alike, assert_read_alike


def test_columns_added_dropped_renamed_reordered_promoted_and_added_again(oracle: Oracle) -> None:
    name = "java_sql.evolution.flat"
    oracle.sql(
        f"CREATE TABLE {name} (id INT, a INT, b STRING, f FLOAT, d DECIMAL(9, 2), c DATE, p INT) "
        "USING iceberg PARTITIONED BY (p)"
    )
    row = "'b', 1.25, 1.25, DATE '2026-01-01'"
    oracle.sql(
        f"INSERT INTO {name} VALUES (1, 10, {row}, 1), (2, null, null, null, null, null, null)"
    )
    for change in (
        "RENAME COLUMN a TO swapped",
        "RENAME COLUMN b TO a",
        "RENAME COLUMN swapped TO b",
        "ALTER COLUMN b TYPE BIGINT",
        "ALTER COLUMN f TYPE DOUBLE",
        "ALTER COLUMN d TYPE DECIMAL(38, 2)",
        "ALTER COLUMN p TYPE BIGINT",
        "ALTER COLUMN d FIRST",
        "ALTER COLUMN id AFTER f",
        "DROP COLUMN c",
        "ADD COLUMN c DATE AFTER d",
        "ADD COLUMN n STRUCT<x: INT>",
    ):
        oracle.sql(f"ALTER TABLE {name} {change}")
    columns = oracle.spark.table(name).columns
    assert columns == ["d", "c", "b", "a", "f", "id", "p", "n"]
    oracle.sql(
        f"INSERT INTO {name} VALUES (1e30, DATE '2026-02-02', 9223372036854775807, 'new', 1e300, "
        "3, 9223372036854775806, struct(5))"
    )
    rows = assert_read_alike(oracle, name, through_spark=EVERY_READ)
    assert sum(row[1] is None for row in rows) == 2
    filters = (
        "b > 9",
        "b = 10",
        "b > 3000000000",
        "a = 'b'",
        "f >= 1.25",
        "d < 2",
        "c IS NULL",
        "c >= DATE '2000-01-01'",
        "p IN (1, 9223372036854775806)",
        "n.x = 5",
        "n.x IS NULL",
    )
    assert_filters_alike(oracle, name, filters, "id, b, n")


@pytest.mark.nightly
def test_nested_fields_in_structs_lists_and_maps(oracle: Oracle) -> None:
    name = "java_hadoop.evolution.nested"
    oracle.sql(
        f"CREATE TABLE {name} (id INT, s STRUCT<a: INT, b: STRUCT<x: FLOAT, y: STRING>>, "
        "l ARRAY<STRUCT<a: INT, b: STRING>>, m MAP<STRING, STRUCT<a: INT, b: STRING>>, "
        "li ARRAY<INT>, mi MAP<INT, FLOAT>) USING iceberg"
    )
    oracle.sql(
        f"INSERT INTO {name} VALUES "
        "(1, struct(1, struct(1.5, 'y')), array(struct(1, 'b'), null, struct(null, null)), "
        "map('k', struct(1, 'b'), 'n', null), array(1, null), map(1, 1.5, 2, null)), "
        "(2, struct(2, null), array(), map(), null, null), "
        "(3, null, null, null, array(), map()), "
        "(4, struct(null, struct(null, null)), array(null), map('x', struct(null, null)), "
        "null, null)"
    )
    for change in (
        "ADD COLUMN s.c INT FIRST",
        "ADD COLUMN s.b.z ARRAY<INT> AFTER x",
        "ALTER COLUMN s.b.x TYPE DOUBLE",
        "RENAME COLUMN s.b.y TO yy",
        "ADD COLUMN l.element.c STRUCT<q: INT>",
        "RENAME COLUMN l.element.a TO aa",
        "ALTER COLUMN l.element.b FIRST",
        "ADD COLUMN m.value.c BIGINT FIRST",
        "DROP COLUMN m.value.b",
        "ADD COLUMN m.value.b STRING",
        "ALTER COLUMN li.element TYPE BIGINT",
        "ALTER COLUMN mi.value TYPE DOUBLE",
        "DROP COLUMN s.a",
        "RENAME COLUMN id TO key",
    ):
        oracle.sql(f"ALTER TABLE {name} {change}")
    assert_read_alike(oracle, name, through_spark=EVERY_READ)
    oracle.sql(
        f"INSERT INTO {name} VALUES (5, struct(7, struct(1e300, array(1), 'yy')), "
        "array(struct('b', 1, struct(1))), map('k', struct(8, 9, 'b')), "
        "array(9223372036854775807), map(1, 1e300))"
    )
    assert_read_alike(oracle, name, through_spark=True)
    # Projections of a struct: a null struct differs from a struct of nulls
    # (docs/conformance.md 74).
    for column, java in {
        "s.c": "if(s IS NULL, null, named_struct('c', s.c))",
        "s.b.z": "if(s IS NULL, null, named_struct('b', "
        "if(s.b IS NULL, null, named_struct('z', s.b.z))))",
    }.items():
        parts = oracle.sql(f"SELECT {java} AS s, key FROM {name}")
        assert_read_alike(oracle, name, parts, columns=f"{column},key")
        parts = oracle.sql(f"SELECT {java} AS s FROM {name} WHERE s.b.yy IS NOT NULL")
        assert_read_alike(oracle, name, parts, columns=column, filter="s.b.yy IS NOT NULL")


@pytest.mark.nightly
@pytest.mark.parametrize("version", [1, 2, 3])
def test_old_snapshots_are_read_with_their_own_schema(oracle: Oracle, version: int) -> None:
    name = f"java_sql.evolution.travel_{version}"
    oracle.sql(
        f"CREATE TABLE {name} (id INT, a STRING) USING iceberg "
        f"TBLPROPERTIES ('format-version' = '{version}')"
    )
    oracle.sql(f"INSERT INTO {name} VALUES (1, 'a')")
    oracle.sql(f"ALTER TABLE {name} CREATE TAG before")
    oracle.sql(f"ALTER TABLE {name} CREATE BRANCH side")
    oracle.sql(f"ALTER TABLE {name} RENAME COLUMN a TO b")
    oracle.sql(f"ALTER TABLE {name} ADD COLUMN c INT FIRST")
    oracle.sql(f"INSERT INTO {name} VALUES (2, 2, 'b')")
    assert_read_alike(oracle, name)
    [[old]] = oracle.sql(f"SELECT snapshot_id FROM {name}.refs WHERE name = 'before'").collect()
    as_of = oracle.sql(f"SELECT * FROM {name} VERSION AS OF {old}")
    assert as_of.columns == ["id", "a"]
    assert_read_alike(oracle, name, as_of, through_spark=version == 3, snapshot_id=old)
    tag = oracle.sql(f"SELECT * FROM {name} VERSION AS OF 'before'")
    assert_read_alike(oracle, name, tag, tag="before")
    branch = oracle.sql(f"SELECT * FROM {name} VERSION AS OF 'side'")
    assert_read_alike(oracle, name, branch, through_spark=version == 3, branch="side")
