"""Files that Iceberg did not write, taken into a table: no field ids, INT96, old layouts.

Conformance 66, 67; the quirks of interop.md 5 on migrated Parquet.
"""

from __future__ import annotations

import pytest

from tests.support.oracle import Oracle
from tests.support.readings import assert_filters_alike, assert_read_alike, our_scan, our_table

COLUMNS = (
    "id INT, b BYTE, sh SHORT, d4 DECIMAL(9, 2), d8 DECIMAL(18, 3), d16 DECIMAL(38, 4), "
    "ts TIMESTAMP, s STRING, st STRUCT<a: INT, `b.c`: STRING>, "
    "li ARRAY<STRUCT<x: INT>>, ma MAP<STRING, INT>"
)
ROWS = (
    "SELECT CAST(id AS INT) AS id, CAST(id AS BYTE) AS b, CAST(-id AS SHORT) AS sh, "
    "CAST(id - 2.25 AS DECIMAL(9, 2)) AS d4, CAST(-id AS DECIMAL(18, 3)) AS d8, "
    "CAST(id - 3 AS DECIMAL(38, 4)) AS d16, "
    "TIMESTAMP '1969-12-31 23:59:59.999999' + make_interval(0, 0, 0, CAST(id AS INT)) AS ts, "
    "concat('s', id) AS s, if(id = 3, null, named_struct('a', CAST(id AS INT), 'b.c', 'x')) AS st, "
    "if(id = 2, null, array(named_struct('x', CAST(id AS INT)), null)) AS li, "
    "map('k', CAST(id AS INT), 'n', null) AS ma FROM range(0, 5, 1, 1)"
)
WRITER = {
    "int96": {"spark.sql.parquet.outputTimestampType": "INT96"},
    "millis": {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"},
    "legacy": {
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.parquet.writeLegacyFormat": "true",
    },
    "field_ids_off": {
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.fieldId.write.enabled": "false",
    },
}


def write_plain_parquet(oracle: Oracle, folder: str, settings: dict[str, str], rows: str) -> None:
    for key, value in settings.items():
        oracle.spark.conf.set(key, value)
    try:
        oracle.sql(rows).write.parquet(folder)
    finally:
        for key in settings:
            oracle.spark.conf.unset(key)


@pytest.mark.parametrize("writer", WRITER)
def test_add_files_of_plain_spark(oracle: Oracle, writer: str) -> None:
    name = f"java_hadoop.imported.{writer}"
    folder = f"{oracle.warehouse}/imported/{writer}/data/plain"
    oracle.sql(f"CREATE TABLE {name} ({COLUMNS}) USING iceberg")
    write_plain_parquet(oracle, folder, WRITER[writer], ROWS)
    oracle.sql(
        f"CALL java_hadoop.system.add_files(table => 'imported.{writer}', "
        f"source_table => '`parquet`.`{folder}`')"
    )
    assert "schema.name-mapping.default" in our_table(oracle, name).properties
    oracle.sql(f"ALTER TABLE {name} RENAME COLUMN s TO renamed")
    oracle.sql(f"ALTER TABLE {name} RENAME COLUMN st.a TO aa")
    oracle.sql(f"ALTER TABLE {name} ADD COLUMN extra INT")
    oracle.sql(f"ALTER TABLE {name} ALTER COLUMN id TYPE BIGINT")
    oracle.sql(f"INSERT INTO {name} (id, renamed, extra) VALUES (3000000000, 'own', 5)")
    rows = assert_read_alike(oracle, name, through_spark=writer == "legacy")
    assert len(rows) == 6
    filters = [
        "id > 3",
        "renamed = 's1'",
        "d16 < 0",
        "d8 <= -4",
        "st.aa = 4",
        "st.`b.c` IS NULL",
        "sh = -2",
        "extra = 5",
    ]
    if writer != "millis":  # of which Java derives bounds that are wrong
        filters += ["ts >= TIMESTAMP '1970-01-02 23:59:59'", "ts < TIMESTAMP '1970-01-01 00:00:00'"]
    assert_filters_alike(oracle, name, filters, "id, st")
    last = our_scan(oracle, name, filter="id > 3000000").describe().statistics
    assert last.data_files_kept == 1


def test_folders_of_partitions_whose_columns_are_not_in_the_files(oracle: Oracle) -> None:
    name = "java_sql.imported.folders"
    folder = f"{oracle.sql_warehouse}/imported/folders/data/plain"
    oracle.sql(f"CREATE TABLE {name} (id INT, p STRING, n INT) USING iceberg PARTITIONED BY (p, n)")
    values = "(1, 'a b', 1), (2, 'ä/ö=%', 2), (3, null, 3), (4, 'a b', null)"
    oracle.sql(f"SELECT * FROM VALUES {values} AS t(id, p, n)").write.partitionBy("p", "n").parquet(
        folder
    )
    oracle.sql(
        "CALL java_sql.system.add_files(table => 'imported.folders', "
        f"source_table => '`parquet`.`{folder}`')"
    )
    oracle.sql(f"INSERT INTO {name} VALUES (5, 'own', 1)")
    assert len(assert_read_alike(oracle, name, through_spark=True)) == 5
    filters = ["p = 'a b'", "n > 1", "p IS NULL", "p = 'ä/ö=%' AND id = 2"]
    assert_filters_alike(oracle, name, filters, "n, id")
    for text in filters:
        assert our_scan(oracle, name, filter=text).describe().statistics.data_files_kept < 5
