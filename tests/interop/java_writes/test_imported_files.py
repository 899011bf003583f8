"""Imported files that Iceberg did not write: no field ids, INT96, old layouts.

See docs/conformance.md 66 and 67, and the quirks of migrated Parquet files.
"""

from __future__ import annotations

from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.errors import PySparkException

from iceberg_pyspark.errors import InvalidMetadataError
from tests.support.oracle import Oracle
from tests.support.readings import (
    assert_filters_alike,
    assert_read_alike,
    our_frame,
    our_scan,
    our_table,
)
from tests.support.rows import spark_rows

pytestmark = pytest.mark.nightly

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
    folder = f"{oracle.warehouse.parent}/plain/{writer}"
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
    if writer != "millis":  # Java derives wrong bounds from these.
        filters += ["ts >= TIMESTAMP '1970-01-02 23:59:59'", "ts < TIMESTAMP '1970-01-01 00:00:00'"]
    assert_filters_alike(oracle, name, filters, "id, st")
    last = our_scan(oracle, name, filter="id > 3000000").describe().statistics
    assert last.data_files_kept == 1


def test_folders_of_partitions_whose_columns_are_not_in_the_files(oracle: Oracle) -> None:
    name = "java_sql.imported.folders"
    folder = f"{oracle.sql_warehouse.parent}/plain/folders"
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


NOWHERE_IDS = pa.table(
    {
        "x": pa.array([1, 2], pa.int32()),
        "y": ["one", "two"],
        "z": pa.array([10, 20], pa.int32()),
        "b": pa.array([100, 200], pa.int32()),
        "l": pa.array([[1, None], []], pa.list_(pa.int32())),
    }
)
PLAIN_AVRO = {
    "type": "record",
    "name": "plain",
    "fields": [
        {"name": "x", "type": ["null", "int"]},
        {"name": "y", "type": ["null", "string"]},
        {"name": "z", "type": "int"},
        {"name": "b", "type": "int"},
        {"name": "l", "type": {"type": "array", "items": ["null", "int"]}},
    ],
}


def add_as_it_is(oracle: Oracle, name: str, rows: pa.Table, file_format: str) -> None:
    """Add another tool's file through Java's API, which sets no name mapping."""
    table = oracle.load_java_table(name)
    path = Path(table.location().removeprefix("file:"), "data", f"plain.{file_format}")
    path.parent.mkdir(exist_ok=True)
    match file_format:
        case "parquet":
            pq.write_table(rows, path)
        case "orc":
            orc.write_table(rows, str(path))
        case _:
            with path.open("wb") as out:
                fastavro.writer(out, PLAIN_AVRO, rows.to_pylist())
    builder = oracle.jvm.org.apache.iceberg.DataFiles.builder(table.spec())
    builder = builder.withPath(str(path)).withFormat(file_format)
    builder = builder.withFileSizeInBytes(path.stat().st_size).withRecordCount(rows.num_rows)
    table.newAppend().appendFile(builder.build()).commit()


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_files_without_field_ids_in_a_table_without_name_mapping(
    oracle: Oracle, file_format: str
) -> None:
    name = f"java_hadoop.imported.without_ids_{file_format}"
    columns = "gone INT, y STRING, z INT, x INT, l ARRAY<INT>"
    oracle.sql(f"CREATE TABLE {name} ({columns}) USING iceberg")
    oracle.sql(f"ALTER TABLE {name} DROP COLUMN gone")
    oracle.sql(f"ALTER TABLE {name} ADD COLUMN later INT")
    add_as_it_is(oracle, name, NOWHERE_IDS, file_format)
    oracle.sql(f"INSERT INTO {name} VALUES ('own', 30, 3, array(7), 8)")
    rows = assert_read_alike(oracle, name, through_spark=True)
    # In the Parquet file, x is read from the fourth column by position; in other formats, by name.
    first, second = (100, 200) if file_format == "parquet" else (1, 2)
    assert {row[0]: row[2] for row in rows} == {"one": first, "two": second, "own": 3}
    assert_filters_alike(oracle, name, ["z > 10", "y = 'one'", "later IS NULL"], "z", natively=True)
    oracle.write_equality_deletes(name, ["y"], [("two",)])
    assert len(assert_read_alike(oracle, name)) == 2


def test_struct_without_field_ids_is_refused_and_not_null(oracle: Oracle) -> None:
    """Java reads null where the file has a struct; we refuse, but still read the other columns."""
    name = "java_hadoop.imported.struct_without_ids"
    oracle.sql(f"CREATE TABLE {name} (s STRUCT<u: INT>, n INT) USING iceberg")
    rows = pa.table({"s": [{"u": 1}], "n": pa.array([9], pa.int32())})
    add_as_it_is(oracle, name, rows, "parquet")
    assert [tuple(row) for row in oracle.spark.table(name).collect()] == [(None, 9)]
    assert our_table(oracle, name).scan(columns=["n"]).to_arrow().to_pylist() == [{"n": 9}]
    with pytest.raises(InvalidMetadataError, match=r"column 's'.*schema\.name-mapping\.default"):
        our_table(oracle, name).scan().to_arrow()


def test_a_snapshot_of_a_table_reads_the_files_of_that_table(oracle: Oracle) -> None:
    """Both paths read the source's files by default; DROP and PURGE do not delete these files."""
    name, folder = "java_sql.imported.snapshot", f"{oracle.sql_warehouse.parent}/plain/snapshot"
    source = "spark_catalog.default.snapshot_source"
    oracle.sql(f"CREATE TABLE {source} USING parquet LOCATION '{folder}' AS {ROWS}")
    oracle.sql(f"CALL java_sql.system.snapshot(source_table => '{source}', table => '{name}')")
    oracle.sql(f"INSERT INTO {name} (id, s) VALUES (9, 'own')")
    assert len(assert_read_alike(oracle, name, through_spark=True)) == 6
    assert_filters_alike(oracle, name, ["id > 3", "s = 's1'"], "id, s")
    with pytest.raises(PySparkException, match="may only read files under"):
        spark_rows(our_frame(oracle, name, **{"read.restrict-locations": "true"}).collect())
    assert oracle.sql(f"SELECT * FROM {source}").count() == 5
