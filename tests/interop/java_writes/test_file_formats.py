"""Data files in Avro and ORC, beside Parquet and with deletes of each kind."""

from __future__ import annotations

import pytest

from iceberg_pyspark.errors import StorageError
from tests.support.oracle import Oracle
from tests.support.readings import assert_filters_alike, assert_read_alike, our_rows, our_scan

COLUMNS = """
    id INT NOT NULL, b BOOLEAN, l BIGINT, f FLOAT, d DOUBLE, s STRING, bin BINARY, dt DATE,
    ts TIMESTAMP, ntz TIMESTAMP_NTZ, d4 DECIMAL(9, 2), d4b DECIMAL(9, 2), d16 DECIMAL(38, 10),
    st STRUCT<a: INT, `b b`: STRUCT<c: STRING, d: ARRAY<INT>>>,
    li ARRAY<STRUCT<x: INT, y: ARRAY<STRING>>>, `d.o.t` INT,
    ma MAP<STRING, STRUCT<v: DECIMAL(10, 3), w: MAP<INT, DATE>>>,
    mk MAP<STRUCT<k: INT, n: STRING>, ARRAY<DOUBLE>>, ms MAP<STRING, TIMESTAMP>
"""
ROWS = """
    (1, true, 9223372036854775807, float('NaN'), double('NaN'), 'é𐍈', X'00FF', DATE '9999-12-31',
     TIMESTAMP '2262-01-01 23:59:59.999999', TIMESTAMP_NTZ '1700-12-31 23:59:59.999999',
     9999999.99, -1.5, 9999999999999999999999999999.9999999999,
     struct(1, struct('c', array(1, null))),
     array(struct(1, array('a', null)), null, struct(null, null)), 7,
     map('k', struct(1.5, map(1, DATE '2020-02-29'))),
     map(struct(1, 'n'), array(double('NaN'), null)),
     map('t', TIMESTAMP '1969-12-31 23:59:59.999999', 'n', null)),
    (2, false, -9223372036854775808, float('-0.0'), double('-Infinity'), '', X'',
     DATE '0001-01-01', TIMESTAMP '1960-12-31 23:59:59.999999',
     TIMESTAMP_NTZ '1969-12-31 23:59:59.999999', -9999999.99, null, -0.0000000001,
     struct(null, struct(null, array())), array(), null, map(), map(), map()),
    (3, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
     null, null, null),
    (4, true, 0, 0, 0, ' ', X'00', DATE '1969-12-31', TIMESTAMP '1970-01-01 00:00:00',
     TIMESTAMP_NTZ '1970-01-01 00:00:00', 0, 0, 0, struct(5, null), array(null), 0,
     map('', null, 'x', struct(null, null), 'y', struct(0, map(7, null))),
     map(struct(null, null), null, struct(2, null), array()), null)
"""
FORMATS = pytest.mark.parametrize("file_format", ["avro", "orc"])


@FORMATS
def test_all_types_and_schema_evolution(oracle: Oracle, file_format: str) -> None:
    name = f"java_hadoop.formats.types_{file_format}"
    oracle.sql(
        f"CREATE TABLE {name} ({COLUMNS}) USING iceberg TBLPROPERTIES "
        f"('write.format.default' = '{file_format}')"
    )
    oracle.sql(f"INSERT INTO {name} VALUES {ROWS}")
    rows = assert_read_alike(oracle, name, through_spark=True)
    assert len(rows) == 4
    filters = ["d4 > 0", "ts < TIMESTAMP '1970-01-01 00:00:00'", "st.a = 5", "d IS NULL"]
    assert_filters_alike(oracle, name, filters, "`d.o.t`, mk, _pos")
    assert our_scan(oracle, name).count() == 4
    for change in (
        "ALTER COLUMN f TYPE DOUBLE",
        "ALTER COLUMN id TYPE BIGINT",
        "RENAME COLUMN st.`b b` TO bb",
        "ADD COLUMN st.new INT FIRST",
        "ADD COLUMN li.element.new STRING",
        "DROP COLUMN s",
        "ADD COLUMN s STRING FIRST",
        "ALTER COLUMN d16 FIRST",
    ):
        oracle.sql(f"ALTER TABLE {name} {change}")
    assert_read_alike(oracle, name)
    # Projections of struct fields from formats in which readers read whole columns.
    parts = oracle.sql(
        f"SELECT if(st IS NULL, null, named_struct('new', st.new, 'a', st.a)) AS st FROM {name}"
    )
    assert_read_alike(oracle, name, parts, columns="st.new,st.a")


@pytest.mark.nightly
@FORMATS
@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_each_kind(oracle: Oracle, file_format: str, version: int) -> None:
    """Spark writes position deletes in the table's format too."""
    name = f"java_sql.formats.deletes_{file_format}_{version}"
    oracle.sql(
        f"CREATE TABLE {name} (id BIGINT, p STRING, v STRING) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('write.format.default' = '{file_format}', "
        f"'format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
    )
    oracle.sql(
        f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, concat('p', id % 2), "
        "concat('v', id) FROM range(0, 100)"
    )
    oracle.sql(f"DELETE FROM {name} WHERE id % 10 IN (3, 4)")
    oracle.write_equality_deletes(name, ["v"], [("v5",), ("v7",), ("v6",)], ("p1",))
    oracle.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.format.default' = 'parquet')")
    oracle.sql(f"INSERT INTO {name} VALUES (5, 'p1', 'v5')")
    columns = "id, _pos, _file" + (", _row_id" if version == 3 else "")
    java = oracle.sql(f"SELECT {columns} FROM {name}")
    assert len(assert_read_alike(oracle, name, java, columns=columns)) == 79
    assert_filters_alike(oracle, name, ["p = 'p1' AND id > 90"], "v")
    formats = {task.file_format for task in our_scan(oracle, name).plan_files()}
    assert formats == {file_format, "parquet"}


@pytest.mark.nightly
def test_orc_timestamps_out_of_arrows_range_are_refused(oracle: Oracle) -> None:
    name = "java_hadoop.formats.far"
    oracle.sql(
        f"CREATE TABLE {name} (id INT, ts TIMESTAMP) USING iceberg "
        "TBLPROPERTIES ('write.format.default' = 'orc')"
    )
    oracle.sql(f"INSERT INTO {name} VALUES (1, TIMESTAMP '9999-12-31 00:00:00')")
    with pytest.raises(StorageError, match="out of range"):
        our_rows(oracle, name)
    assert our_rows(oracle, name, columns="id") == [(1,)]
