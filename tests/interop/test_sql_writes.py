"""Writes through Spark's own API: Java reads our tables, which look like tables that Java wrote."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812

from tests.amounts import FULL_WORK
from tests.support.both_writers import (
    COUNTS,
    JAVAS,
    OURS,
    both,
    by_java,
    rows_of_each,
    writers_lake,
)
from tests.support.oracle import Oracle
from tests.support.parameters import cases
from tests.support.readings import our_table

DYNAMIC = "spark.sql.sources.partitionOverwriteMode"
EVERY_STATEMENT = FULL_WORK
"""Whether to run each statement, or of several alike only some, as in `make test`."""


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with writers_lake(oracle) as lake:
        yield lake


TYPED = (
    "create table {t} (b boolean, i int, l bigint, f float, d double, dec decimal(12,3), day date, "
    "ts timestamp, ntz timestamp_ntz, s string, bin binary, "
    "st struct<x int, y string>, li array<int>, ma map<string,int>) using iceberg "
)
TYPED_ROWS = (
    "select id % 2 = 0, cast(id - 50 as int), id * 7000000001, cast(id as float) / 3, id / 7d, "
    "cast(id * 1.125 as decimal(12,3)), date_add(date'1969-12-01', cast(id as int)), "
    "timestamp'1969-12-31 22:00:00' + make_interval(0, 0, 0, 0, cast(id as int)), "
    "timestamp_ntz'1969-12-31 22:00:00' + make_interval(0, 0, 0, 0, cast(id as int)), "
    "concat('é', id), encode(concat('b', id), 'utf-8'), "
    "named_struct('x', cast(id as int), 'y', 'v'), array(cast(id as int), null), "
    "map('k', cast(id as int)) from range(60) union all "
    "select null, null, null, null, null, null, null, null, null, null, null, null, null, null"
)


@cases(
    "spec",
    fast=["partitioned by (bucket(3, s), bucket(2, dec), bucket(2, bin), bucket(2, i))"],
    nightly=[
        "",
        "partitioned by (bucket(3, day), bucket(2, ts), bucket(2, ntz), bucket(2, l))",
        "partitioned by (truncate(50, i), truncate(1, s), truncate(30, dec), truncate(2, bin), b)",
        "partitioned by (days(ts), years(day))",
        "partitioned by (hours(ntz), months(day))",
    ],
)
def test_rows_lie_in_the_partitions_and_files_that_java_makes(lake: Oracle, spec: str) -> None:
    both(
        lake,
        f"typed{len(spec)}",
        TYPED + spec,
        "insert into {t} " + TYPED_ROWS,
        "insert into {t} (l, s) select id, 'x' from range(3)",
    )


def test_tables_are_created_and_replaced_as_java_does(lake: Oracle) -> None:
    both(
        lake,
        "ctas",
        "create table {t} using iceberg partitioned by (g) tblproperties ('a'='1', 'b'='1') as "
        "select id, id % 3 g, named_struct('x', id) st from range(10)",
        "create or replace table {t} using iceberg partitioned by (truncate(2, name)) "
        "tblproperties ('b'='2') as select 'new' name, id, named_struct('y', 1, 'x', 2L) st "
        "from range(4)",
        "insert into {t} values ('more', 9, named_struct('y', 3, 'x', 4L))",
        "replace table {t} using iceberg as select id, 1 g from range(2)",
        "create or replace table {t} (g int, z string) using iceberg partitioned by (g)",
        "insert into {t} select 1, 'z'",
    )
    ours, java = rows_of_each(
        lake, [f"{JAVAS}.writes.ctas_by_{w}.history" for w in (OURS, JAVAS)], "parent_id is null"
    )
    assert ours == java
    lake.sql(f"create table if not exists {OURS}.writes.ctas_by_lake using iceberg as select 2 z")
    assert lake.spark.table(f"{OURS}.writes.ctas_by_lake").columns == ["g", "z"]


@pytest.mark.nightly
def test_version_1_keeps_the_places_of_partition_fields(lake: Oracle) -> None:
    both(
        lake,
        "v1",
        "create table {t} using iceberg partitioned by (g) tblproperties ('format-version'='1') "
        "as select id, id % 3 g from range(10)",
        "create or replace table {t} using iceberg partitioned by (bucket(2, id)) "
        "as select id, id % 2 g from range(10)",
        "insert overwrite {t} select id, 5 from range(3)",
    )


@pytest.mark.nightly
def test_overwrites(lake: Oracle) -> None:
    def dynamically(lake: Oracle, table: str) -> None:
        lake.spark.conf.set(DYNAMIC, "dynamic")
        lake.sql(f"insert overwrite {table} select id, 7, 'dynamic' from range(3)")
        lake.sql(f"insert overwrite {table} select id, 7, 'none' from range(0)")
        if EVERY_STATEMENT:
            lake.sql(f"insert overwrite {table} partition (g = 1) select id, 'both' from range(3)")
        lake.spark.conf.unset(DYNAMIC)

    def by_frame(lake: Oracle, table: str) -> None:
        frame = lake.sql("select 1L id, 2 g, 'frame' s")
        frame.writeTo(table).overwrite(F.col("g") == 2)
        frame.withColumn("g", F.lit(3)).writeTo(table).overwritePartitions()
        if EVERY_STATEMENT:
            frame.write.insertInto(table, overwrite=True)
            frame.write.mode("append").saveAsTable(table)

    more = (
        "insert overwrite {t} partition (g = 9) select id, 'new' from range(3)",
        "insert into {t} select 1, 1, 'x' from range(0)",
        "truncate table {t}",
    )
    both(
        lake,
        "overwritten",
        "create table {t} (id bigint, g int, s string) using iceberg partitioned by (g)",
        "insert into {t} select id, cast(id % 4 as int), 'first' from range(40)",
        "insert overwrite {t} partition (g = 1) select id, 'static' from range(3)",
        "insert overwrite {t} partition (g) select id, 5, 'all' from range(3)",
        dynamically,
        by_frame,
        "insert overwrite {t} select 1, 1, 'x' from range(0)",
        "insert into {t} values (1, null, 'null')",
        "insert overwrite {t} partition (g = null) values (2, 'other null')",
        *(more if EVERY_STATEMENT else ()),
        "truncate table {t}",
    )


@pytest.mark.nightly
def test_rows_are_sorted_as_the_table_asks(lake: Oracle) -> None:
    both(
        lake,
        "ordered",
        "create table {t} (id bigint, g int, s string) using iceberg partitioned by (g)",
        "insert into {t} select id, cast(id % 2 as int), cast(id as string) from range(50)",
        lambda lake, table: lake.sql(
            f"alter table {by_java(table)} write ordered by bucket(3, id), s desc nulls last"
        ),
        "insert into {t} select id, cast(id % 2 as int), cast(id as string) from range(50)",
        lambda lake, table: (
            lake.sql("select id, 1 g, '' s from range(5)")
            .writeTo(table)
            .option("use-table-distribution-and-ordering", "false")
            .append()
        ),
        lambda lake, table: (
            lake.sql("select id, 1 g, '' s from range(5)")
            .writeTo(table)
            .option("distribution-mode", "none")
            .append()
        ),
    )
    names = [f"{JAVAS}.writes.ordered_by_{writer}" for writer in (OURS, JAVAS)]
    for rows in rows_of_each(lake, names, "s", "_file"):
        by_file: dict[str, list[str]] = {}
        for text, file in rows:
            if text:
                by_file.setdefault(file, []).append(text)
        assert any(v[:2] != sorted(v)[:2] for v in by_file.values())


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("mode", "adaptive"),
    [("none", "true"), ("hash", "true"), ("range", "true"), ("hash", "false")],
)
def test_as_few_files_as_java_writes(lake: Oracle, mode: str, adaptive: str) -> None:
    lake.spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        both(
            lake,
            f"files_{mode}_{adaptive}",
            "create table {t} (id bigint, d date) using iceberg partitioned by (months(d)) "
            f"tblproperties ('write.distribution-mode'='{mode}')",
            "insert into {t} select id, date_add(date'2020-01-01', cast(id % 300 as int)) "
            "from range(0, 3000, 1, 6)",
        )
    finally:
        lake.spark.conf.set("spark.sql.adaptive.enabled", "true")


@pytest.mark.nightly
def test_branches_and_staged_snapshots(lake: Oracle) -> None:
    def staged(lake: Oracle, table: str) -> None:
        lake.spark.conf.set("spark.wap.id", "audit-1")
        lake.sql(f"insert into {table} values (5)")
        lake.spark.conf.unset("spark.wap.id")
        lake.spark.conf.set("spark.wap.branch", "audited")
        lake.sql(f"insert into {table} values (6)")
        lake.sql(f"insert overwrite {table} values (7)")
        assert lake.table_rows(table) == [(7,)]
        lake.spark.conf.unset("spark.wap.branch")

    both(
        lake,
        "branched",
        "create table {t} (id bigint) using iceberg tblproperties ('write.wap.enabled'='true')",
        "insert into {t} values (1)",
        lambda lake, table: lake.sql(f"alter table {by_java(table)} create branch b"),
        "insert into {t}.branch_b values (2)",
        lambda lake, table: lake.spark.range(3, 4).writeTo(f"{table}.branch_b").append(),
        staged,
        # On a branch that a write starts, Java counts totals from zero.
        counts=[c for c in COUNTS if not c.startswith("total-")],
    )
    for writer in (OURS, JAVAS):
        name = f"{JAVAS}.writes.branched_by_{writer}"
        assert lake.table_rows(f"{name}.branch_b") == [(1,), (2,), (3,)]
        assert lake.table_rows(f"{name}.branch_audited") == [(7,)]
        assert lake.table_rows(name) == [(1,)]
        ids = [snapshot.summary.get("wap.id") for snapshot in our_table(lake, name).snapshots]
        assert [audited for audited in ids if audited is not None] == ["audit-1"]
    lake.sql(f"call {JAVAS}.system.publish_changes('writes.branched_by_lake', 'audit-1')")
    assert lake.table_rows(f"{JAVAS}.writes.branched_by_lake") == [(1,), (5,)]


@pytest.mark.nightly
def test_columns_that_are_new_are_merged(lake: Oracle) -> None:
    def merged(lake: Oracle, table: str) -> None:
        frame = lake.sql("select 'n' n, 5L id, named_struct('y', 1, 'x', 2) st")
        options = {"merge-schema": "true", "check-ordering": "false"}
        frame.writeTo(table).options(**options).append()
        lake.sql("select 6L id").writeTo(table).append()

    both(
        lake,
        "merged",
        "create table {t} (id int, st struct<x int>) using iceberg partitioned by (bucket(2, id)) "
        "tblproperties ('write.spark.accept-any-schema'='true')",
        "insert into {t} select 1 id, named_struct('x', 1) st",
        merged,
    )


@pytest.mark.nightly
def test_columns_are_not_merged_without_the_property(lake: Oracle) -> None:
    def unmerged(lake: Oracle, table: str) -> None:
        merging = {"mergeSchema": "true"}
        lake.sql("select cast(2 as int) id").writeTo(table).options(**merging).append()
        wider = lake.sql("select 3L id, 'n' n").writeTo(table).options(**merging)
        with pytest.raises(PySparkException, match="TOO_MANY_DATA_COLUMNS"):
            wider.append()

    both(lake, "unmerged", "create table {t} (id bigint) using iceberg", unmerged)


@pytest.mark.nightly
def test_files_are_written_by_an_older_spec_where_asked(lake: Oracle) -> None:
    both(
        lake,
        "specs",
        "create table {t} (id bigint, g int) using iceberg partitioned by (g)",
        lambda lake, table: lake.sql(
            f"alter table {by_java(table)} add partition field bucket(2, id)"
        ),
        "insert into {t} select id, cast(id % 2 as int) from range(20)",
        lambda lake, table: (
            lake.sql("select id, cast(id % 2 as int) g from range(20)")
            .writeTo(table)
            .option("output-spec-id", "0")
            .append()
        ),
    )


@pytest.mark.nightly
def test_paths_and_properties_of_files(lake: Oracle) -> None:
    both(
        lake,
        "stored",
        "create table {t} (id bigint, `a b/c` string) using iceberg partitioned by (`a b/c`) "
        "tblproperties ('write.object-storage.enabled'='true')",
        "insert into {t} values (1, 'x=1/y z'), (2, null), (3, '')",
    )
    ours, java = (
        sorted(
            p.split("/data/")[1].split("/", 4)[-1].rpartition("/")[0]
            for p in lake.data_files(f"{JAVAS}.writes.stored_by_{w}")
        )
        for w in (OURS, JAVAS)
    )
    assert ours == java


@pytest.mark.nightly
@pytest.mark.parametrize(
    "statement",
    [
        "insert into {t} values (1)",
        "insert into {t} values ('x', 1)",
        "insert into {t} values (null, 1)",
        "insert into {t} (g) values (1)",
        "insert into {t} (id, nothing) values (1, 1)",
        "insert into {t}.tag_kept values (1, 1)",
        "insert into {t}.branch_nothing values (1, 1)",
        "insert overwrite {t} partition (id = 1) values (1)",
        "insert into {t}.snapshots select * from {t}.snapshots",
        "replace table {t}_nothing using iceberg as select 1 a",
        "create table {t} using iceberg as select 1 a",
        "create table {t}_failed using iceberg as select cast(raise_error('no') as int) a",
    ],
)
def test_write_that_java_refuses_changes_nothing(lake: Oracle, statement: str) -> None:
    tables = [f"{w}.writes.refusing_by_{w}" for w in (OURS, JAVAS)]
    for writer, table in zip((OURS, JAVAS), tables, strict=True):
        if not lake.spark.catalog.tableExists(table):
            lake.sql(f"create table {table} (id int not null, g int) using iceberg")
            lake.sql(f"insert into {table} values (1, 1), (2, 2)")
            lake.sql(f"alter table {JAVAS}.writes.refusing_by_{writer} create tag kept")
    kinds = []
    for table in tables:
        with pytest.raises((PySparkException, Py4JJavaError)) as e:
            lake.sql(statement.format(t=table)).collect()
        kinds.append(e.value.getCondition() if isinstance(e.value, PySparkException) else None)
        assert lake.table_rows(table) == [(1, 1), (2, 2)]
        assert len(our_table(lake, by_java(table)).snapshots) == 1
        assert not lake.spark.catalog.tableExists(f"{table}_failed")
    if kinds[1] is not None:
        assert kinds[0] == kinds[1]
