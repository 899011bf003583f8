"""Append and every kind of overwrite, read by Java, Spark with Java, PyIceberg and this package.

The tests cover every format version and both catalogs, by the data source and the table API.
"""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from tests.support.java_tables import JavaTables
from tests.support.oracle import Oracle
from tests.support.our_tables import CATALOGS, VERSIONS, assert_all_read, new_table, write_frame
from tests.support.parameters import pairs
from tests.support.readings import our_table

pytestmark = pytest.mark.nightly

COLUMNS = "id BIGINT, ts TIMESTAMP, v STRING"
ROW = tuple[int | None, dt.datetime | None, str | None]
FIRST: list[ROW] = [
    (1, dt.datetime(2026, 1, 1, 5), "a"),
    (2, dt.datetime(2026, 1, 2, 6), None),
    (None, None, "c"),
]
SECOND: list[ROW] = [(3, dt.datetime(2026, 1, 2, 7), "d"), (4, dt.datetime(1969, 12, 31, 23), "e")]
THIRD: list[ROW] = [(5, dt.datetime(2026, 1, 2, 8), "f"), (6, None, "g")]
FOURTH: list[ROW] = [(7, dt.datetime(2026, 1, 1, 9), "h")]
# The rows after each step: append, append, dynamic overwrite, overwrite by filter.
AFTER_DYNAMIC = [FIRST[0], SECOND[1], *THIRD]
AFTER_FILTER = [SECOND[1], *THIRD, *FOURTH]
DAY = "ts >= TIMESTAMP '2026-01-01 00:00:00' AND ts < TIMESTAMP '2026-01-02 00:00:00'"


def arrow(rows: list[ROW]) -> pa.Table:
    schema = pa.schema(
        [("id", pa.int64()), ("ts", pa.timestamp("us", tz="UTC")), ("v", pa.string())]
    )
    columns = [list(column) for column in zip(*rows, strict=True)]
    return pa.table(columns, schema=schema) if rows else schema.empty_table()


@pytest.mark.parametrize("catalog", CATALOGS)
@pytest.mark.parametrize("version", VERSIONS)
def test_through_the_table_api(
    oracle: Oracle, java: JavaTables, catalog: str, version: int
) -> None:
    name = f"{catalog}.we_write.api_{version}"
    table = new_table(
        oracle,
        name,
        COLUMNS,
        partitioned_by=["days(ts)"],
        properties={"format-version": str(version)},
    )
    assert_all_read(java, name, arrow([]))
    table.append(arrow(FIRST))
    assert_all_read(java, name, arrow(FIRST))
    table.append(arrow(SECOND))
    assert_all_read(java, name, arrow([*FIRST, *SECOND]), through_spark=True)
    table.overwrite(arrow(THIRD), dynamic=True)
    assert_all_read(java, name, arrow(AFTER_DYNAMIC))
    table.overwrite(arrow(FOURTH), DAY)
    assert_all_read(java, name, arrow(AFTER_FILTER))
    table.delete("ts IS NULL")
    assert_all_read(java, name, arrow([SECOND[1], THIRD[0], *FOURTH]))
    table.overwrite(arrow(FIRST))
    assert_all_read(java, name, arrow(FIRST))
    table.delete("true")
    assert_all_read(java, name, arrow([]))
    snapshots = oracle.sql(
        f"SELECT committed_at, operation, summary['total-records'] FROM {name}.snapshots"
    ).collect()
    assert [tuple(row[1:]) for row in sorted(snapshots)] == [
        ("append", "3"),
        ("append", "5"),
        ("overwrite", "4"),
        ("overwrite", "4"),
        ("delete", "3"),
        ("overwrite", "3"),
        ("delete", "0"),
    ]


@pytest.mark.parametrize(("version", "catalog"), pairs(VERSIONS, CATALOGS))
def test_through_the_data_source(
    oracle: Oracle, java: JavaTables, catalog: str, version: int
) -> None:
    name = f"{catalog}.we_write.source_{version}"

    def write(rows: list[ROW], mode: str = "append", **options: str) -> None:
        frame = oracle.spark.createDataFrame(rows, "id long, ts timestamp, v string").coalesce(1)
        write_frame(oracle, frame, name, mode, **options)

    # Each write takes a second or two, so only one table makes the remaining writes.
    write([*FIRST, *SECOND], partitioned_by="days(ts)", format_version=str(version))
    assert our_table(oracle, name).metadata.format_version == version
    write(THIRD, "overwrite", overwrite_mode="dynamic")
    assert_all_read(java, name, arrow(AFTER_DYNAMIC))
    write(FOURTH, "overwrite", overwrite_filter=DAY)
    assert_all_read(java, name, arrow(AFTER_FILTER), through_spark=True)
    if (catalog, version) == ("java_sql", 3):
        write(FIRST, "overwrite")
        assert_all_read(java, name, arrow(FIRST))
        write(SECOND)
        assert_all_read(java, name, arrow([*FIRST, *SECOND]))


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unpartitioned_table(oracle: Oracle, java: JavaTables, version: int) -> None:
    name = f"java_sql.we_write.unpartitioned_{version}"
    table = new_table(oracle, name, COLUMNS, properties={"format-version": str(version)})
    table.append(arrow(FIRST))
    table.append(arrow(SECOND))
    assert_all_read(java, name, arrow([*FIRST, *SECOND]))
    table.overwrite(arrow(FOURTH), "id >= 3")
    assert_all_read(java, name, arrow([*FIRST, *FOURTH]))
    table.overwrite(arrow(THIRD), dynamic=True)
    assert_all_read(java, name, arrow(THIRD))


@pytest.mark.parametrize("version", VERSIONS)
def test_java_and_pyiceberg_write_on(oracle: Oracle, java: JavaTables, version: int) -> None:
    name = f"java_sql.we_write.write_on_{version}"
    table = new_table(
        oracle,
        name,
        COLUMNS,
        partitioned_by=["days(ts)"],
        properties={"format-version": str(version)},
    )
    table.append(arrow(FIRST))
    oracle.sql(f"INSERT INTO {name} VALUES (8, TIMESTAMP '2026-01-01 00:00:00', 'java')")
    oracle.sql(f"DELETE FROM {name} WHERE id = 2")
    oracle.sql(f"UPDATE {name} SET v = 'changed' WHERE id = 1")
    expected: list[ROW] = [
        (1, dt.datetime(2026, 1, 1, 5), "changed"),
        FIRST[2],
        (8, dt.datetime(2026, 1, 1), "java"),
    ]
    assert_all_read(java, name, arrow(expected), through_spark=True)
    table.refresh().append(arrow(FOURTH))
    assert_all_read(java, name, arrow([*expected, *FOURTH]))
