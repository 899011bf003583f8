"""Files of several partition specs, and deletes under an old spec (docs/conformance.md 24, 57,
59-63).
"""

from __future__ import annotations

import pytest

from tests.support.oracle import Oracle
from tests.support.parameters import cases
from tests.support.readings import (
    EVERY_READ,
    assert_filters_alike,
    assert_read_alike,
    java_planned_files,
    our_scan,
)

VALUES = (
    "(1, TIMESTAMP '2026-01-01 05:00:00', 'abc', 10), "
    "(2, TIMESTAMP '2026-02-01 05:00:00', 'abd', 20), "
    "(3, TIMESTAMP '1969-12-31 23:30:00', null, 30), (4, null, 'x', null)"
)
FILTERS = (
    "ts >= TIMESTAMP '2026-02-01 00:00:00'",
    "ts < TIMESTAMP '1970-01-01 00:00:00'",
    "ts IS NULL",
    "s = 'abd'",
    "startswith(s, 'ab')",
    "s IS NOT NULL AND n > 10",
    "n = 10 OR ts IS NULL",
    "n IN (10, 30)",
)


@cases("version", fast=[2], nightly=[1, 3])
def test_specs_that_grow_shrink_and_change(oracle: Oracle, version: int) -> None:
    name = f"java_sql.specs.evolved_{version}"
    oracle.sql(
        f"CREATE TABLE {name} (id INT, ts TIMESTAMP, s STRING, n INT) USING iceberg "
        f"TBLPROPERTIES ('format-version' = '{version}', "
        "'write.metadata.metrics.default' = 'none')"
    )
    oracle.sql(f"INSERT INTO {name} VALUES {VALUES}")
    for changes in (
        ["ADD PARTITION FIELD months(ts)", "ADD PARTITION FIELD n"],
        ["REPLACE PARTITION FIELD months(ts) WITH days(ts) AS day"],
        ["DROP PARTITION FIELD n", "ADD PARTITION FIELD truncate(2, s)"],
        ["DROP PARTITION FIELD day", "ADD PARTITION FIELD bucket(3, n) AS n_bucket"],
        ["ADD PARTITION FIELD n"],
    ):
        for change in changes:
            oracle.sql(f"ALTER TABLE {name} {change}")
        oracle.sql(f"INSERT INTO {name} VALUES {VALUES}")
    assert len(assert_read_alike(oracle, name, through_spark=version == 1)) == 24
    native_filters = FILTERS if EVERY_READ else FILTERS[::2]
    assert_filters_alike(oracle, name, native_filters, "id, n", natively=True)
    for text in FILTERS:
        kept_files = our_scan(oracle, name, filter=text).describe().statistics.data_files_kept
        assert kept_files == java_planned_files(oracle, name, text), text
        assert kept_files < 21


@pytest.mark.nightly
def test_deletes_under_every_spec(oracle: Oracle) -> None:
    name = "java_hadoop.specs.deletes"
    oracle.sql(
        f"CREATE TABLE {name} (id INT, ts TIMESTAMP, s STRING, n INT) USING iceberg "
        "PARTITIONED BY (s) TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', "
        "'write.delete.granularity' = 'partition')"
    )
    oracle.sql(f"INSERT INTO {name} VALUES {VALUES}")
    oracle.sql(f"ALTER TABLE {name} ADD PARTITION FIELD days(ts)")
    oracle.sql(f"INSERT INTO {name} VALUES {VALUES}")
    oracle.sql(f"DELETE FROM {name} WHERE id = 1 AND ts > TIMESTAMP '2026-01-01 00:00:00'")
    oracle.write_equality_deletes(name, ["n"], [(20,), (30,)], ("abd",), spec_id=0)
    oracle.sql(f"ALTER TABLE {name} DROP PARTITION FIELD s")
    oracle.sql(f"INSERT INTO {name} VALUES {VALUES}")
    oracle.sql(f"DELETE FROM {name} WHERE id = 4")
    assert [row[0] for row in assert_read_alike(oracle, name)] == [1, 2, 2, 3, 3, 3]
    oracle.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '3')")
    oracle.sql(f"DELETE FROM {name} WHERE id = 3 AND s IS NULL")
    rows = assert_read_alike(oracle, name, through_spark=EVERY_READ)
    assert [row[0] for row in rows] == [1, 2, 2]


@pytest.mark.nightly
def test_a_field_whose_source_column_was_dropped(oracle: Oracle) -> None:
    name = "java_sql.specs.dropped_source"
    oracle.sql(
        f"CREATE TABLE {name} (id INT, ts TIMESTAMP, s STRING, n INT) USING iceberg "
        "PARTITIONED BY (s, bucket(2, n))"
    )
    oracle.sql(f"INSERT INTO {name} VALUES {VALUES}")
    oracle.sql(f"ALTER TABLE {name} DROP PARTITION FIELD s")
    oracle.sql(f"ALTER TABLE {name} DROP COLUMN s")
    oracle.sql(f"INSERT INTO {name} VALUES (5, null, 10)")
    rows = assert_read_alike(oracle, name, through_spark=EVERY_READ)
    assert len(rows) == 5
    text = "n = 10"
    assert_filters_alike(oracle, name, [text], natively=True)
    kept_files = our_scan(oracle, name, filter=text).describe().statistics.data_files_kept
    assert kept_files == java_planned_files(oracle, name, text)


@pytest.mark.nightly
def test_identity_partitions_of_columns_that_were_promoted_and_renamed(oracle: Oracle) -> None:
    name = "java_hadoop.specs.promoted"
    oracle.sql(
        f"CREATE TABLE {name} (id INT, p INT, d DECIMAL(5, 2), f FLOAT, st STRUCT<n: STRING>) "
        "USING iceberg PARTITIONED BY (p, d, f, st.n)"
    )
    oracle.sql(
        f"INSERT INTO {name} VALUES (1, 1, 1.25, float('NaN'), struct('a')), "
        "(2, null, null, null, struct(null)), (3, -1, -1.25, float('-0.0'), struct(null))"
    )
    for change in (
        "RENAME COLUMN p TO q",
        "ALTER COLUMN q TYPE BIGINT",
        "ALTER COLUMN d TYPE DECIMAL(20, 2)",
        "ALTER COLUMN f TYPE DOUBLE",
        "RENAME COLUMN st.n TO m",
    ):
        oracle.sql(f"ALTER TABLE {name} {change}")
    oracle.sql(f"INSERT INTO {name} VALUES (4, 3000000000, 1e15, 1e300, struct('b'))")
    assert len(assert_read_alike(oracle, name, through_spark=True)) == 4
    filters = ["q > 0", "q = 1", "d = 1.25", "d >= 0", "f <= 0", "st.m = 'a'", "st.m IS NULL"]
    assert_filters_alike(oracle, name, filters, natively=True)
    for text in filters:
        kept_files = our_scan(oracle, name, filter=text).describe().statistics.data_files_kept
        assert kept_files == java_planned_files(oracle, name, text), text
