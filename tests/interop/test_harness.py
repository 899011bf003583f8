"""The oracle behaves as the other tests of this folder assume; only Java reads here."""

from __future__ import annotations

import datetime as dt
import sqlite3
from decimal import Decimal

import pytest

from tests.support.oracle import Oracle
from tests.support.parameters import pairs

CATALOGS = ("java_hadoop", "java_sql")


@pytest.mark.parametrize(("format_version", "catalog"), pairs([1, 2, 3], CATALOGS))
def test_both_catalogs_write_and_read_every_format_version(
    oracle: Oracle, catalog: str, format_version: int
) -> None:
    name = f"{catalog}.harness.versions_{format_version}"
    oracle.sql(
        f"CREATE TABLE {name} (id BIGINT, ts TIMESTAMP, tags ARRAY<STRING>) USING iceberg "
        f"PARTITIONED BY (days(ts)) TBLPROPERTIES ('format-version' = '{format_version}')"
    )
    oracle.sql(
        f"INSERT INTO {name} VALUES (2, TIMESTAMP '2026-01-02 00:00:00', array('x', null)), "
        "(1, TIMESTAMP '2026-01-01 10:00:00', null), (null, null, array())"
    )
    assert oracle.table_rows(name) == [
        (None, None, ()),
        (1, dt.datetime(2026, 1, 1, 10), None),
        (2, dt.datetime(2026, 1, 2), ("x", None)),
    ]
    assert oracle.load_java_table(name).spec().isPartitioned()


@pytest.mark.nightly
def test_the_hadoop_table_lies_where_the_warehouse_says(oracle: Oracle) -> None:
    oracle.sql("CREATE TABLE java_hadoop.harness.place (id INT) USING iceberg")
    assert (oracle.warehouse / "harness/place/metadata/v1.metadata.json").is_file()


@pytest.mark.nightly
def test_the_sql_table_is_a_row_of_the_sqlite_file(oracle: Oracle) -> None:
    oracle.sql("CREATE TABLE java_sql.harness.row (id INT) USING iceberg")
    with sqlite3.connect(oracle.sql_file) as connection:
        rows = connection.execute(
            "SELECT catalog_name, table_namespace, iceberg_type, metadata_location "
            "FROM iceberg_tables WHERE table_name = 'row'"
        ).fetchall()
    connection.close()
    [(catalog, namespace, kind, location)] = rows
    assert (catalog, namespace, kind) == ("java_sql", "harness", "TABLE")
    assert location.startswith(f"{oracle.sql_warehouse}/harness/row/metadata/00000-")


@pytest.mark.nightly
def test_equality_deletes_remove_equal_rows_written_before(oracle: Oracle) -> None:
    name = "java_hadoop.harness.equality"
    oracle.sql(f"CREATE TABLE {name} (id BIGINT, v STRING) USING iceberg")
    oracle.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, null), (3, 'c')")
    oracle.write_equality_deletes(name, ["v", "id"], [("a", 1), (None, 2), ("x", 3)])
    oracle.sql(f"INSERT INTO {name} VALUES (1, 'a')")
    assert oracle.table_rows(name) == [(1, "a"), (3, "c")]
    [content] = oracle.sql(f"SELECT content FROM {name}.delete_files").collect()
    assert content == (2,)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("sql_type", "literals", "deleted", "remainder"),
    [
        ("FLOAT", ("1.5", "2.5"), 1.5, 2.5),
        ("INT", ("1", "2"), 1, 2),
        ("BIGINT", ("1", "2"), 1, 2),
        ("DOUBLE", ("1.5", "2.5"), 1.5, 2.5),
        ("BOOLEAN", ("true", "false"), True, False),
        ("STRING", ("'a'", "'b'"), "a", "b"),
        pytest.param(*("DECIMAL(9, 2)", ("1.50", "2.50"), Decimal("1.50"), Decimal("2.50"))),
        (
            "DATE",
            ("DATE '2026-01-01'", "DATE '1969-12-31'"),
            dt.date(2026, 1, 1),
            dt.date(1969, 12, 31),
        ),
        (
            "TIMESTAMP",
            ("TIMESTAMP '2026-01-01 01:02:03.000004'", "TIMESTAMP '1969-12-31 23:59:59'"),
            dt.datetime(2026, 1, 1, 1, 2, 3, 4),
            dt.datetime(1969, 12, 31, 23, 59, 59),
        ),
        (
            "TIMESTAMP_NTZ",
            ("TIMESTAMP_NTZ '2026-01-01 01:02:03'", "TIMESTAMP_NTZ '2026-01-02 00:00:00'"),
            dt.datetime(2026, 1, 1, 1, 2, 3),
            dt.datetime(2026, 1, 2),
        ),
        ("BINARY", ("X'0102'", "X'03'"), b"\x01\x02", b"\x03"),
    ],
)
def test_equality_deletes_speak_every_type(
    oracle: Oracle, sql_type: str, literals: tuple[str, str], deleted: object, remainder: object
) -> None:
    name = "java_hadoop.harness.equality_types"
    oracle.sql(f"DROP TABLE IF EXISTS {name}")
    oracle.sql(f"CREATE TABLE {name} (v {sql_type}) USING iceberg")
    oracle.sql(
        f"INSERT INTO {name} SELECT CAST(v AS {sql_type}) "
        f"FROM VALUES ({literals[0]}), ({literals[1]}) AS literals(v)"
    )
    oracle.write_equality_deletes(name, ["v"], [(deleted,)])
    assert oracle.table_rows(name) == [(remainder,)]


@pytest.mark.nightly
def test_equality_deletes_reach_nested_fields(oracle: Oracle) -> None:
    name = "java_hadoop.harness.equality_nested"
    oracle.sql(f"CREATE TABLE {name} (s STRUCT<x: INT, y: INT>, id INT) USING iceberg")
    oracle.sql(f"INSERT INTO {name} VALUES (struct(1, 2), 1), (struct(3, 4), 2)")
    oracle.write_equality_deletes(name, ["s.y"], [(4,)])
    assert oracle.table_rows(name) == [((1, 2), 1)]


@pytest.mark.nightly
def test_equality_deletes_stay_in_their_partition(oracle: Oracle) -> None:
    name = "java_hadoop.harness.equality_partitioned"
    oracle.sql(
        f"CREATE TABLE {name} (id BIGINT, d DATE, ts TIMESTAMP, s STRING) USING iceberg "
        "PARTITIONED BY (d, days(ts), truncate(2, s), bucket(4, id))"
    )
    oracle.sql(
        f"INSERT INTO {name} VALUES "
        "(1, DATE '2026-01-01', TIMESTAMP '2026-03-01 05:00:00', 'abc'), "
        "(1, DATE '2026-01-02', TIMESTAMP '2026-03-01 05:00:00', 'abc')"
    )
    buckets = oracle.sql(f"SELECT DISTINCT partition.id_bucket FROM {name}.partitions").collect()
    [[bucket]] = buckets
    partition = (dt.date(2026, 1, 1), dt.date(2026, 3, 1), "ab", bucket)
    written = oracle.write_equality_deletes(name, ["id"], [(1,)], partition)
    assert f"/d=2026-01-01/ts_day=2026-03-01/s_trunc=ab/id_bucket={bucket}/" in written
    assert [row[1] for row in oracle.table_rows(name)] == [dt.date(2026, 1, 2)]
    with pytest.raises(ValueError, match="4 partition values needed"):
        oracle.write_equality_deletes(name, ["id"], [(1,)])


@pytest.mark.nightly
def test_equality_deletes_of_an_unpartitioned_spec_are_global(oracle: Oracle) -> None:
    name = "java_hadoop.harness.equality_global"
    oracle.sql(f"CREATE TABLE {name} (id BIGINT, p INT) USING iceberg")
    oracle.sql(f"ALTER TABLE {name} ADD PARTITION FIELD p")
    oracle.sql(f"INSERT INTO {name} VALUES (1, 1), (1, 2), (2, 2)")
    oracle.write_equality_deletes(name, ["id"], [(1,)], spec_id=0)
    assert oracle.table_rows(name) == [(2, 2)]


@pytest.mark.nightly
@pytest.mark.parametrize(("format_version", "extension"), [(2, ".parquet"), (3, ".puffin")])
def test_position_deletes_remove_rows_by_number(
    oracle: Oracle, format_version: int, extension: str
) -> None:
    name = f"java_sql.harness.positions_{format_version}"
    oracle.sql(
        f"CREATE TABLE {name} (id BIGINT, p INT) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version' = '{format_version}')"
    )
    for start in (0, 10):
        oracle.sql(f"INSERT INTO {name} SELECT id, 7 FROM range({start}, {start + 5}, 1, 1)")
    first, second = oracle.data_files(name)
    written = oracle.write_position_deletes(name, [(second, 4), (first, 0), (first, 2)], (7,))
    assert written.endswith(extension)
    rows = oracle.sql(f"SELECT id % 10, _file FROM {name}").collect()
    assert sorted(row[0] for row in rows if row[1] == first) == [1, 3, 4]
    assert sorted(row[0] for row in rows if row[1] == second) == [0, 1, 2, 3]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("format_version", "granularity", "file_format", "count"),
    [(2, "partition", "PARQUET", 1), (2, "file", "PARQUET", 2), (3, "file", "PUFFIN", 2)],
)
def test_merge_on_read_deletes_write_delete_files(
    oracle: Oracle, format_version: int, granularity: str, file_format: str, count: int
) -> None:
    name = f"java_hadoop.harness.merge_on_read_{format_version}_{granularity}"
    oracle.sql(
        f"CREATE TABLE {name} (id BIGINT) USING iceberg TBLPROPERTIES "
        f"('format-version' = '{format_version}', 'write.delete.mode' = 'merge-on-read', "
        f"'write.delete.granularity' = '{granularity}')"
    )
    for start in (0, 10):
        oracle.sql(f"INSERT INTO {name} SELECT id FROM range({start}, {start + 5}, 1, 1)")
    oracle.sql(f"DELETE FROM {name} WHERE id % 10 = 3")
    assert oracle.table_rows(name) == [(id_,) for id_ in (0, 1, 2, 4, 10, 11, 12, 14)]
    files = oracle.sql(f"SELECT file_format FROM {name}.delete_files").collect()
    assert [row.file_format for row in files] == [file_format] * count


@pytest.mark.nightly
def test_a_v3_table_has_row_lineage_and_its_own_types(oracle: Oracle) -> None:
    name = "java_hadoop.harness.lineage"
    oracle.sql(
        f"CREATE TABLE {name} (id BIGINT, v VARIANT) USING iceberg "
        "TBLPROPERTIES ('format-version' = '3')"
    )
    oracle.sql(f"""INSERT INTO {name} VALUES (5, parse_json('{{"a": 1}}'))""")
    [row] = oracle.sql(
        "SELECT id, variant_get(v, '$.a', 'int'), _row_id, _last_updated_sequence_number "
        f"FROM {name}"
    ).collect()
    assert tuple(row) == (5, 1, 0, 1)
