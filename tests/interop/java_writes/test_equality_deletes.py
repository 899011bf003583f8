"""Equality deletes, written by Java's API since Spark never writes them (docs/conformance.md 22-24,
27-30).
"""

from __future__ import annotations

import pytest

from tests.support.oracle import Oracle
from tests.support.readings import (
    EVERY_READ,
    assert_filters_alike,
    assert_read_alike,
    our_scan,
    rows_alike,
)


def test_several_columns_nulls_and_the_strict_sequence_rule(oracle: Oracle) -> None:
    name = "java_hadoop.equality.sequence"
    oracle.sql(f"CREATE TABLE {name} (id BIGINT, v STRING, d DOUBLE) USING iceberg")
    oracle.sql(
        f"INSERT INTO {name} VALUES (1, 'a', 1), (1, null, 2), (null, 'a', double('NaN')), "
        "(null, null, 4), (2, 'b', -0.0), (3, 'c', double('NaN'))"
    )
    oracle.write_equality_deletes(name, ["v", "id"], [(None, 1), ("a", None), ("x", 2)])
    oracle.sql(f"INSERT INTO {name} VALUES (1, null, 20), (null, 'a', 30)")
    rows = assert_read_alike(oracle, name, through_spark=EVERY_READ)
    assert [(r[0], r[1]) for r in rows] == [
        (None, None),
        (None, "a"),
        (1, None),
        (1, "a"),
        (2, "b"),
        (3, "c"),
    ]
    # These deletes have other columns and are newer than all data: both delete files apply to older
    # data files.
    oracle.write_equality_deletes(name, ["id"], [(None,), (3,)])
    assert [r[:2] for r in assert_read_alike(oracle, name)] == [(1, None), (1, "a"), (2, "b")]
    oracle.write_equality_deletes(name, ["d"], [(0.0,), (float("nan"),)])
    oracle.sql(f"INSERT INTO {name} VALUES (3, 'c', double('NaN'))")
    assert_read_alike(oracle, name)
    # The scan does not select the delete columns; deleted rows stay deleted.
    assert_filters_alike(oracle, name, ["v = 'a'", "d < 25", "id = 1"], "d", natively=True)
    assert_filters_alike(oracle, name, ["d < 25"], "_pos", natively=True)
    assert our_scan(oracle, name).count() == 3


PAIRS = {
    "INT": ("-1", "2147483647"),
    "BIGINT": ("-9223372036854775808", "7"),
    "FLOAT": ("float('NaN')", "float('-0.0')"),
    "DOUBLE": ("double('-0.0')", "double('NaN')"),
    "BOOLEAN": ("false", "true"),
    "STRING": ("'é𐍈'", "''"),
    "DECIMAL(9, 2)": ("-0.01", "9999999.99"),
    "DECIMAL(18, 3)": ("-0.001", "0"),
    "DECIMAL(38, 5)": ("-0.01", "999999999999999999999999999999999.99999"),
    "DATE": ("'1969-12-31'", "'9999-12-31'"),
    "TIMESTAMP": ("'1969-12-31 23:59:59.999999'", "'2026-01-01 00:00:00'"),
    "TIMESTAMP_NTZ": ("'1969-12-31 23:59:59.999999'", "'2026-01-01 00:00:00'"),
    "BINARY": ("X''", "X'00FF'"),
}
"""For each type, a deleted value and a remaining value."""


@pytest.mark.nightly
def test_a_column_of_every_type(oracle: Oracle) -> None:
    name = "java_sql.equality.typed"
    columns = {f"c{i}": type_ for i, type_ in enumerate(PAIRS)}
    definitions = ", ".join(f"{column} {type_}" for column, type_ in columns.items())
    oracle.sql(f"CREATE TABLE {name} (id STRING, {definitions}) USING iceberg")
    rows = [
        f"SELECT '{column} {n}' AS id, "
        + ", ".join(
            f"CAST({value if other == column else 'null'} AS {type_}) AS {other}"
            for other, type_ in columns.items()
        )
        for column, pair in zip(columns, PAIRS.values(), strict=True)
        for n, value in enumerate(pair)
    ]
    oracle.sql(f"INSERT INTO {name} {' UNION ALL '.join(rows)}")
    deleted = [r for r in oracle.spark.table(name).collect() if r.id.endswith(" 0")]
    for row in deleted:
        column = row.id.split()[0]
        oracle.write_equality_deletes(name, [column], [(row[column],)])
    remaining_rows = assert_read_alike(oracle, name, through_spark=True)
    assert [r[0] for r in remaining_rows] == sorted(f"{column} 1" for column in columns)


@pytest.mark.nightly
def test_partitioned_deletes_stay_in_their_partition_and_spec(oracle: Oracle) -> None:
    """A spec with id 0 is global only if it has no fields (docs/conformance.md 23, 24)."""
    name = "java_sql.equality.partitions"
    oracle.sql(f"CREATE TABLE {name} (id BIGINT, p STRING, n INT) USING iceberg")
    values = "(1, 'a', 1), (1, 'b', 1), (1, null, 1), (2, 'a', 1), (2, null, 2)"
    oracle.sql(f"INSERT INTO {name} VALUES {values}")
    oracle.sql(f"ALTER TABLE {name} ADD PARTITION FIELD p")
    oracle.sql(f"INSERT INTO {name} VALUES {values}")
    oracle.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(1, n)")
    oracle.sql(f"INSERT INTO {name} VALUES {values}")
    oracle.write_equality_deletes(name, ["id"], [(1,)], ("a",), spec_id=1)
    assert len(assert_read_alike(oracle, name)) == 14
    oracle.write_equality_deletes(name, ["id"], [(1,)], (None, 0))
    assert len(assert_read_alike(oracle, name)) == 13
    oracle.write_equality_deletes(name, ["id", "p"], [(2, None)], spec_id=0)
    rows = assert_read_alike(oracle, name, through_spark=True)
    assert len(rows) == 10
    oracle.sql(f"ALTER TABLE {name} DROP PARTITION FIELD p")
    oracle.sql(f"INSERT INTO {name} VALUES {values}")
    assert len(assert_read_alike(oracle, name)) == 15
    assert_filters_alike(oracle, name, ["p = 'a'", "n = 2", "p IS NULL"], "id, n", natively=True)


@pytest.mark.nightly
@pytest.mark.parametrize("version", [2, 3])
def test_columns_that_were_dropped_added_renamed_or_promoted(oracle: Oracle, version: int) -> None:
    """Equality deletes follow schema evolution by field ids (docs/conformance.md 29, 30)."""
    name = f"java_hadoop.equality.evolved_{version}"
    oracle.sql(
        f"CREATE TABLE {name} (id INT, f FLOAT, d DECIMAL(5, 2), gone STRING, s STRUCT<x: INT>) "
        f"USING iceberg TBLPROPERTIES ('format-version' = '{version}')"
    )
    oracle.sql(
        f"INSERT INTO {name} VALUES "
        "(1, 1.5, 1.25, 'a', struct(1)), (2, 2.5, 2.25, 'b', struct(2)), "
        "(3, 3.5, 3.25, 'c', struct(3)), (4, 4.5, 4.25, 'd', null), "
        "(5, 5.5, 5.25, 'e', struct(5)), (6, null, null, null, struct(null))"
    )
    oracle.write_equality_deletes(name, ["gone"], [("a",)])
    oracle.write_equality_deletes(name, ["id"], [(2,)])
    oracle.sql(f"ALTER TABLE {name} DROP COLUMN gone")
    oracle.sql(f"ALTER TABLE {name} ADD COLUMN late STRING FIRST")
    oracle.sql(f"ALTER TABLE {name} ALTER COLUMN id TYPE BIGINT")
    oracle.sql(f"ALTER TABLE {name} ALTER COLUMN f TYPE DOUBLE")
    oracle.sql(f"ALTER TABLE {name} ALTER COLUMN d TYPE DECIMAL(12, 2)")
    oracle.sql(f"ALTER TABLE {name} RENAME COLUMN id TO key")
    assert len(assert_read_alike(oracle, name)) == 4
    # The old file has 32-bit columns; these deletes have wider columns.
    oracle.write_equality_deletes(name, ["key", "f"], [(3, 3.5), (4, 0.5)])
    oracle.write_equality_deletes(name, ["s.x"], [(5,)])
    oracle.sql(f"INSERT INTO {name} VALUES ('x', 3, 3.5, 3.25, struct(5)), (null, 9, 9.5, 9, null)")
    assert len(assert_read_alike(oracle, name)) == 4
    # The old files lack the column, so their rows have null in it.
    oracle.write_equality_deletes(name, ["late", "key"], [(None, 6), (None, 3), ("x", 9)])
    rows = assert_read_alike(oracle, name, through_spark=True)
    assert sorted(r[1] for r in rows) == [3, 4, 9]
    assert_filters_alike(oracle, name, ["key > 3"], "s", natively=True)
    # Java refuses a table in which a new column has the deleted column's name; we use field ids.
    oracle.sql(f"ALTER TABLE {name} ADD COLUMN gone STRING")
    assert rows_alike(oracle, name) == [(*row, None) for row in rows]


@pytest.mark.nightly
def test_equality_and_position_deletes_of_one_file(oracle: Oracle) -> None:
    """Both kinds apply in v2 and, after an upgrade, together with deletion vectors."""
    name = "java_hadoop.equality.mixed"
    oracle.sql(
        f"CREATE TABLE {name} (id BIGINT, v STRING) USING iceberg TBLPROPERTIES "
        "('format-version' = '2', 'write.delete.mode' = 'merge-on-read')"
    )
    oracle.sql(f"INSERT INTO {name} SELECT id, concat('v', id % 3) FROM range(0, 20, 1, 1)")
    oracle.sql(f"DELETE FROM {name} WHERE id IN (0, 1, 2)")
    oracle.write_equality_deletes(name, ["v"], [("v1",)])
    assert len(assert_read_alike(oracle, name)) == 11
    oracle.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '3')")
    oracle.sql(f"INSERT INTO {name} SELECT id, concat('v', id % 3) FROM range(20, 40, 1, 1)")
    oracle.sql(f"DELETE FROM {name} WHERE id IN (3, 5, 21)")
    oracle.write_equality_deletes(name, ["v", "id"], [("v2", 20), ("v0", 6), ("v0", 7)])
    rows = assert_read_alike(oracle, name, through_spark=True)
    assert len(rows) == 11 - 2 + 19 - 2
    tasks = list(our_scan(oracle, name).plan_files())
    assert sorted(len(task.deletes) for task in tasks) == [2, 3]
    assert all(any(d.is_deletion_vector for d in task.deletes) for task in tasks)
