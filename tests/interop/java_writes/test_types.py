"""Every type that Spark can write, nested with nulls at each level, in every format version."""

from __future__ import annotations

from tests.support.oracle import Oracle
from tests.support.parameters import cases
from tests.support.readings import (
    assert_read_alike,
    path_frame,
)
from tests.support.rows import spark_rows

COLUMNS = """
    id INT NOT NULL, b BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, s STRING, bin BINARY, dt DATE,
    ts TIMESTAMP, ntz TIMESTAMP_NTZ, d4 DECIMAL(9, 2), d8 DECIMAL(18, 0), d16 DECIMAL(38, 10),
    st STRUCT<a: INT, `b b`: STRUCT<c: STRING, d: ARRAY<INT>>>,
    li ARRAY<STRUCT<x: INT, y: ARRAY<STRING>>>,
    ma MAP<STRING, STRUCT<v: DECIMAL(10, 3), w: MAP<INT, DATE>>>,
    mk MAP<STRUCT<k: INT, n: STRING>, ARRAY<DOUBLE>>
"""
ROWS = """
    (1, true, 2147483647, 9223372036854775807, float('NaN'), double('NaN'), 'é𐍈\\n\\'"', X'00FF',
     DATE '9999-12-31',
     TIMESTAMP '9999-12-31 23:59:59.999999', TIMESTAMP_NTZ '9999-12-31 23:59:59.999999',
     9999999.99, 999999999999999999, 9999999999999999999999999999.9999999999,
     struct(1, struct('c', array(1, null))),
     array(struct(1, array('a', null)), null, struct(null, null)),
     map('k', struct(1.5, map(1, DATE '2020-02-29'))),
     map(struct(1, 'n'), array(double('NaN'), null))),
    (2, false, -2147483648, -9223372036854775808, float('-Infinity'), double('Infinity'), '', X'',
     DATE '0001-01-01',
     TIMESTAMP '0001-01-02 00:00:00', TIMESTAMP_NTZ '1969-12-31 23:59:59.999999',
     -9999999.99, -999999999999999999, -9999999999999999999999999999.9999999999,
     struct(null, struct(null, array())), array(), map(), map()),
    (3, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
     null, null),
    (4, true, 0, -1, float('-0.0'), double('-0.0'), ' ', X'00', DATE '1969-12-31',
     TIMESTAMP '1969-12-31 23:59:59.999999', TIMESTAMP_NTZ '1970-01-01 00:00:00',
     0, 0, 0.0000000001,
     struct(5, null), array(null),
     map('', null, 'x', struct(null, null), 'y', struct(0, map(7, null))),
     map(struct(null, null), null, struct(2, null), array()))
"""


@cases(
    ("catalog", "version"),
    fast=[("java_hadoop", 3)],
    nightly=[("java_hadoop", 1), ("java_sql", 2)],
)
def test_all_types_with_nulls_at_every_level(oracle: Oracle, catalog: str, version: int) -> None:
    name = f"{catalog}.types.all_{version}"
    oracle.sql(
        f"CREATE TABLE {name} ({COLUMNS}) USING iceberg "
        f"TBLPROPERTIES ('format-version' = '{version}')"
    )
    oracle.sql(f"INSERT INTO {name} VALUES {ROWS}")
    rows = assert_read_alike(oracle, name, through_spark=True)
    assert len(rows) == 4
    if catalog == "java_hadoop":
        assert spark_rows(path_frame(oracle, name).collect()) == rows
