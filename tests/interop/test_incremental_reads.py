"""Reads of the rows appended between snapshots, compared with Java's reads of the same ranges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.errors.exceptions.captured import UnsupportedOperationException
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from tests.amounts import FULL_WORK
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.readings import INTERPRETED_QUERY, java_rows, snapshot_ids
from tests.support.rows import PlainRow, spark_rows
from tests.support.spark_settings import configured

pytestmark = pytest.mark.nightly

V2, V3, PARTS = "between.v2", "between.v3", "between.parts"
EACH = pytest.mark.parametrize("table", [V2, V3, PARTS])
EVERY_RANGE = FULL_WORK
NO_ANCESTOR = ("snapshot {}, the start .* is not an ancestor", "{} is not a parent ancestor of end")
ONE_SNAPSHOT = "appends between snapshots, and {} for one snapshot; keep one"
NO_RANGES = "Incremental append scan is not supported"


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as lake:
        lake.sql("create namespace java_hadoop.between")
        yield lake


def make(lake: Oracle, table: str) -> None:
    """Create a table with appends and all other kinds of snapshots, unless a test has created it.

    Both writers take turns.
    """
    version = 2 if table == V2 else 3
    clauses = "partitioned by (bucket(3, id))" if table == PARTS else ""
    name, ours = f"java_hadoop.{table}", f"lake.{table}"
    if lake.spark.catalog.tableExists(name):
        return
    modes = ", ".join(f"'write.{op}.mode'='merge-on-read'" for op in ("delete", "update"))
    lake.sql(
        f"create table {name} (id bigint, g int) using iceberg {clauses} "
        f"tblproperties ('format-version'='{version}', {modes})"
    )
    lake.sql(f"insert into {name} select id, id % 3 from range(10)")
    lake.sql(f"insert into {ours} select id, id % 3 from range(10, 20)")
    lake.sql(f"delete from {name} where id in (3, 12)")
    lake.sql(f"alter table {name} add column v string")
    lake.sql(f"insert into {name} select id, id % 3, 'v' from range(20, 30)")
    lake.write_equality_deletes(name, ["g"], [(1,)], (0,) if clauses else None)
    lake.sql(f"update {ours} set v = 'w' where id in (15, 25)")
    lake.sql(f"call java_hadoop.system.rewrite_data_files('{table}')")
    lake.sql(f"insert overwrite {name} select id, 7, 'o' from range(40, 45)")
    lake.sql(f"alter table {name} rename column g to h")
    lake.sql(f"insert into {ours} select id, id % 3, 'x' from range(50, 60)")
    lake.sql(f"delete from {name} where h = 2")
    lake.sql(f"insert into {name} select id, id % 3, 'y' from range(60, 65)")


def ids_of(lake: Oracle, table: str) -> list[int]:
    return snapshot_ids(lake, f"java_hadoop.{table}")


def read(lake: Oracle, catalog: str, name: str, options: Mapping[str, Any]) -> DataFrame:
    return lake.spark.read.options(**options).table(f"{catalog}.{name}")


def numbered(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all frames, each behind the number of its frame."""
    return reduce(DataFrame.union, [f.select(lit(i), "*") for i, f in enumerate(frames)])


def bounds(start: int, end: int | None) -> dict[str, int]:
    arguments = {"start-snapshot-id": start}
    return arguments if end is None else {**arguments, "end-snapshot-id": end}


def both(lake: Oracle, table: str, options: Mapping[str, Any], *columns: str) -> list[PlainRow]:
    """Check that our rows and columns equal Java's, and return the rows."""
    ours, javas = (
        read(lake, c, table, options).select(*columns or "*") for c in ("lake", "java_hadoop")
    )
    assert ours.columns == javas.columns
    rows = java_rows(lake, javas)
    assert spark_rows(ours.collect()) == rows
    return rows


@EACH
def test_the_same_rows_in_every_range(lake: Oracle, table: str) -> None:
    make(lake, table)
    ids = ids_of(lake, table)
    ranges = [
        bounds(ids[first], end)
        for first in range(0, len(ids) - 1, 1 if EVERY_RANGE else 3)
        for end in (None, *ids[first + 1 :][:2])
    ]
    ours, javas = ([read(lake, c, table, r) for r in ranges] for c in ("lake", "java_hadoop"))
    assert [frame.columns for frame in ours] == [frame.columns for frame in javas]
    rows = java_rows(lake, numbered(javas))
    assert spark_rows(numbered(ours).collect()) == rows
    counts = Counter(row[0] for row in rows)
    actual = [counts[number] for number in range(len(ranges))]
    assert max(actual) == 35
    assert min(actual) == 0


@EACH
def test_the_same_hidden_columns_and_lineage(lake: Oracle, table: str) -> None:
    make(lake, table)
    hidden = ["id", "_file", "_pos", "_spec_id"]
    if table == PARTS:
        hidden.append("_partition")
    if table != V2:
        hidden += ["_row_id", "_last_updated_sequence_number"]
    assert len(both(lake, table, bounds(ids_of(lake, table)[0], None), *hidden)) == 35


@EACH
def test_the_same_queries(lake: Oracle, table: str) -> None:
    make(lake, table)
    ids = ids_of(lake, table)
    queries = (
        "select count(*), min(id), max(id), count(v) from a",
        "select h, count(*) from a where id > 15 group by h",
        "select a.id, b.h from a join b on a.id = b.id",
        "select id from a except select id from whole",
        "select h, count(*) from a group by h union all select h, count(*) from b group by h",
    )
    actual = []
    for catalog in ("lake", "java_hadoop"):
        read(lake, catalog, table, bounds(ids[0], None)).createOrReplaceTempView("a")
        read(lake, catalog, table, bounds(ids[1], ids[5])).createOrReplaceTempView("b")
        read(lake, catalog, table, {}).createOrReplaceTempView("whole")
        with configured(lake.spark, INTERPRETED_QUERY if catalog == "java_hadoop" else {}):
            actual.append([spark_rows(lake.sql(query).collect()) for query in queries])
    for query, ours, javas in zip(queries, *actual, strict=True):
        assert ours == javas, query
        assert ours, query


def test_a_start_that_has_expired(lake: Oracle) -> None:
    lake.sql("create table java_hadoop.between.expired (id bigint) using iceberg")
    for _ in range(6):
        lake.sql("insert into java_hadoop.between.expired select id from range(5)")
    ids = ids_of(lake, "between.expired")
    lake.sql(
        "call java_hadoop.system.expire_snapshots(table => 'between.expired', "
        "older_than => timestamp '2999-01-01', retain_last => 4)"
    )
    remaining = ids_of(lake, "between.expired")
    assert remaining == ids[-4:]
    assert len(both(lake, "between.expired", bounds(ids[-5], None))) == 20
    for catalog, message in zip(("lake", "java_hadoop"), NO_ANCESTOR, strict=True):
        with pytest.raises(IllegalArgumentException, match=message.format(ids[-6])):
            read(lake, catalog, "between.expired", bounds(ids[-6], None)).collect()


def test_row_ids_of_a_table_that_became_version_3(lake: Oracle) -> None:
    name = "java_hadoop.between.became"
    lake.sql(f"create table {name} (id bigint) tblproperties ('format-version'='2')")
    for step in range(4):
        if step == 2:
            lake.sql(f"alter table {name} set tblproperties ('format-version'='3')")
        lake.sql(f"insert into {name} values ({step})")
    ids = ids_of(lake, "between.became")
    lineage = ("id", "_row_id", "_last_updated_sequence_number")
    for start, end in ((0, None), (0, 1), (1, 2)):
        options = bounds(ids[start], None if end is None else ids[end])
        assert both(lake, "between.became", options, *lineage)


@pytest.fixture(scope="module")
def ids(lake: Oracle) -> list[int]:
    """Return the snapshot ids of the table of version 3, oldest first."""
    make(lake, V3)
    return ids_of(lake, V3)


@pytest.mark.parametrize(
    ("place", "options", "ours", "javas"),
    [
        ("", {"start-snapshot-id": "x"}, "start-snapshot-id is a whole number, got 'x'", '"x"'),
        ("", {"start-snapshot-id": "7"}, *(text.format(7) for text in NO_ANCESTOR)),
        ("", {"end-snapshot-id": "LAST"}, "end-snapshot-id needs a start; give start-snapshot-id",
         "Cannot set only `end-snapshot-id`.*set `start-snapshot-id` too"),
        ("", {"start-snapshot-id": "LAST", "end-snapshot-id": "FIRST"},
         *(text.format("LAST") for text in NO_ANCESTOR)),
        ("", {"start-snapshot-id": "FIRST", "end-snapshot-id": "7"}, "has no snapshot 7 ",
         "Cannot find the end snapshot: 7"),
        ("", {"start-snapshot-id": "FIRST", "snapshot-id": "LAST"},
         "option snapshot-id .* use the option versionAsOf", "`snapshot-id`.*`versionAsOf`"),
        ("", {"start-snapshot-id": "FIRST", "as-of-timestamp": "1"},
         "option as-of-timestamp .* use the option timestampAsOf",
         "`as-of-timestamp`.*`timestampAsOf`"),
        ("", {"start-snapshot-id": "FIRST", "versionAsOf": "LAST"},
         ONE_SNAPSHOT.format("version"), "Cannot use time travel in incremental scan"),
        ("", {"start-snapshot-id": "FIRST", "timestampAsOf": "2999-01-01"},
         ONE_SNAPSHOT.format("as-of-timestamp"), "Cannot use time travel in incremental scan"),
        (".files", {"start-snapshot-id": "FIRST"}, "files shows one snapshot", NO_RANGES),
        (".snapshots", {"start-snapshot-id": "FIRST"}, "snapshots shows the whole table",
         NO_RANGES),
    ],
)  # fmt: skip
def test_range_that_java_refuses_is_refused(
    lake: Oracle, ids: list[int], place: str, options: dict[str, str], ours: str, javas: str
) -> None:
    """With the same class of error; Java's number parser has a subclass of ours."""
    snapshot_ids = {"FIRST": str(ids[0]), "LAST": str(ids[-1])}
    arguments = {name: snapshot_ids.get(value, value) for name, value in options.items()}
    error = UnsupportedOperationException if place else IllegalArgumentException
    for catalog, message in (("lake", ours), ("java_hadoop", javas)):
        for name, value in snapshot_ids.items():
            message = message.replace(name, value)
        with pytest.raises(error, match=message):
            read(lake, catalog, V3 + place, arguments).collect()


def test_range_that_starts_at_its_end_is_empty(lake: Oracle, ids: list[int]) -> None:
    """Java refuses a range that starts at its end; it ignores timestamps, except for changelogs."""
    start_at_end = {"start-snapshot-id": ids[-1]}
    assert read(lake, "lake", V3, start_at_end).collect() == []
    with pytest.raises(IllegalArgumentException, match="is not a parent ancestor"):
        read(lake, "java_hadoop", V3, start_at_end).collect()
    from_then = {"start-timestamp": 4_000_000_000_000}
    assert read(lake, "lake", V3, from_then).collect() == []
    javas = read(lake, "java_hadoop", V3, from_then)
    assert java_rows(lake, javas) == lake.table_rows(f"java_hadoop.{V3}")
