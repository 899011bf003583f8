"""The metadata table `changes` and changelog views equal Java's, or the difference of the rows
where Java cannot read changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import reduce

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from tests.amounts import FULL_WORK
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.parameters import cases
from tests.support.readings import java_rows, our_frame, our_table, snapshot_ids, table_path
from tests.support.rows import PlainRow, spark_rows

WHOLE_FILES = ("changed.v2", "changed.v3")
CATALOGS = ("lake", "java_hadoop")
WITH_DELETES = ("changed.positions", "changed.vectors")
VERSIONS = dict(zip((*WHOLE_FILES, *WITH_DELETES), (2, 3, 2, 3), strict=True))
EACH_VERSION = cases("version", fast=[3], nightly=[2])
EVERY_RANGE = FULL_WORK


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as lake:
        lake.sql("create namespace java_hadoop.changed")
        yield lake


def make(lake: Oracle, table: str) -> None:
    """Create a table with all kinds of changes, unless another test has created it.

    Both writers take turns, and rewrite files.
    """
    name, ours = f"java_hadoop.{table}", f"lake.{table}"
    if lake.spark.catalog.tableExists(name):
        return
    mode = "merge-on-read" if table in WITH_DELETES else "copy-on-write"
    modes = ", ".join(f"'write.{op}.mode'='{mode}'" for op in ("delete", "update", "merge"))
    lake.sql(
        f"create table {name} (id bigint, g int) using iceberg partitioned by (bucket(2, id)) "
        f"tblproperties ('format-version'='{VERSIONS[table]}', {modes})"
    )
    lake.sql(f"insert into {name} select id, id % 3 from range(10)")
    lake.sql(f"insert into {ours} select id, id % 3 from range(10, 20)")
    lake.sql(f"delete from {name} where id in (3, 12)")
    lake.sql(f"delete from {ours} where id in (4, 12, 13)")
    lake.sql(f"alter table {name} add column v string")
    lake.sql(f"update {ours} set v = 'w' where id in (5, 15)")
    lake.sql(
        f"merge into {name} t using (select id from range(15, 22)) s on t.id = s.id "
        "when matched then delete when not matched then insert (id, g, v) values (s.id, 9, 'm')"
    )
    if table in WITH_DELETES:
        lake.write_equality_deletes(name, ["g"], [(1,)], (0,))
        lake.sql(f"call lake.system.rewrite_equality_deletes('{table}')")
        every = "options => map('rewrite-all', 'true')"
        lake.sql(f"call lake.system.rewrite_position_delete_files('{table}', {every})")
    else:
        lake.sql(
            f"call lake.system.rewrite_data_files('{table}', 'sort', 'id desc', "
            "map('rewrite-all', 'true'))"
        )
    lake.sql(f"call lake.system.rewrite_manifests('{table}')")
    lake.sql(
        f"call java_hadoop.system.rewrite_data_files(table => '{table}', "
        "options => map('rewrite-all', 'true'))"
    )
    lake.sql(f"insert overwrite {name} select id, 7, 'o' from range(40, 45)")
    lake.sql(f"alter table {name} rename column g to h")
    lake.sql(f"insert into {ours} select id, id % 3, 'x' from range(50, 60)")


def history(lake: Oracle, table: str) -> list[tuple[int, str]]:
    snapshots = our_table(lake, f"java_hadoop.{table}").snapshots
    return [(snapshot.snapshot_id, snapshot.summary["operation"]) for snapshot in snapshots]


def states(lake: Oracle, table: str, ids: list[int]) -> list[Counter[PlainRow]]:
    """Return the rows that Java reads in each snapshot, all in one query.

    The column v is null in snapshots from before the column was added.
    """
    frames = []
    for number, snapshot_id in enumerate(ids):
        frame = lake.spark.read.option("versionAsOf", snapshot_id).table(f"java_hadoop.{table}")
        if len(frame.columns) < 3:
            frame = frame.withColumn("v", lit(None).cast("string"))
        frames.append(frame.select(lit(number), "*"))
    result: list[Counter[PlainRow]] = [Counter() for _ in ids]
    for number, *row in java_rows(lake, reduce(DataFrame.union, frames)):
        result[number][tuple(row)] += 1
    return result


@EACH_VERSION
def test_the_same_changes_in_every_range(lake: Oracle, version: int) -> None:
    table = f"changed.v{version}"
    make(lake, table)
    ids = snapshot_ids(lake, f"java_hadoop.{table}")
    ranges: list[dict[str, int]] = [{}, {"start-snapshot-id": ids[1], "end-snapshot-id": ids[4]}]
    if EVERY_RANGE:
        ranges += [{"start-snapshot-id": ids[0]}, {"start-snapshot-id": ids[-2]}]
    rows_of_ranges = []
    for options in ranges:
        frames = [
            lake.spark.read.options(**options).table(f"{catalog}.{table}.changes")
            for catalog in ("lake", "java_hadoop")
        ]
        assert frames[0].schema.json() == frames[1].schema.json()
        ours, javas = spark_rows(frames[0].collect()), java_rows(lake, frames[1])
        assert ours == javas
        assert ours
        rows_of_ranges.append(javas)
    by_name = our_frame(lake, f"java_hadoop.{table}.changes")
    assert spark_rows(by_name.collect()) == rows_of_ranges[0]
    reader = lake.spark.read.format("iceberg-py").options(**ranges[1])
    by_path = reader.load(f"{table_path(lake, f'java_hadoop.{table}')}#changes")
    assert spark_rows(by_path.collect()) == rows_of_ranges[1]


@pytest.mark.nightly
def test_the_same_changes_by_name_and_by_time(lake: Oracle) -> None:
    """Ranges of time, loaded by the name of the metadata table and by the procedure."""
    table = WHOLE_FILES[1]
    make(lake, table)
    rows = our_table(lake, f"java_hadoop.{table}").snapshots
    counts = []
    for options in (
        {"start-snapshot-id": rows[1].snapshot_id, "end-snapshot-id": rows[4].snapshot_id},
        {"start-timestamp": rows[1].timestamp_ms},
        {"end-timestamp": rows[3].timestamp_ms - 1},
        {"start-timestamp": rows[0].timestamp_ms + 1, "end-timestamp": rows[4].timestamp_ms},
        {"start-timestamp": rows[2].timestamp_ms, "end-snapshot-id": rows[5].snapshot_id},
    ):
        frames = [
            lake.spark.read.format(format_name)
            .options(**options)
            .load(f"{catalog}.{table}.changes")
            for format_name, catalog in (("iceberg-py", "lake"), ("iceberg", "java_hadoop"))
        ]
        assert frames[0].schema.json() == frames[1].schema.json()
        ours, javas = spark_rows(frames[0].collect()), java_rows(lake, frames[1])
        assert ours == javas, options
        texts = ", ".join(f"'{name}', '{value}'" for name, value in options.items())
        views = [view(lake, c, table, f", options => map({texts})") for c in CATALOGS]
        assert views[0] == views[1], options
        counts.append((len(ours), len(views[0])))
    assert all(whole >= compared > 0 for whole, compared in counts)
    assert len(set(counts)) > 3


@pytest.mark.nightly
@pytest.mark.parametrize("table", WITH_DELETES)
def test_changes_lead_from_each_snapshot_to_the_next(lake: Oracle, table: str) -> None:
    make(lake, table)
    with pytest.raises((PySparkException, Py4JJavaError), match="not supported in changelog"):
        lake.spark.table(f"java_hadoop.{table}.changes").collect()
    changes = lake.spark.table(f"lake.{table}.changes")
    assert changes.where("_change_type = 'DELETE' and id = 12").count() == 1
    actual = changes.collect()
    before = Counter[PlainRow]()
    number = 0
    snapshots = history(lake, table)
    rows_after = states(lake, table, [snapshot_id for snapshot_id, _ in snapshots])
    for (snapshot_id, operation), after in zip(snapshots, rows_after, strict=True):
        of_snapshot = [row for row in actual if row["_commit_snapshot_id"] == snapshot_id]
        for type_, expected in (("INSERT", after - before), ("DELETE", before - after)):
            rows = [(r.id, r.h, r.v) for r in of_snapshot if r["_change_type"] == type_]
            assert Counter(spark_rows(rows)) == expected
        is_change = operation != "replace"
        assert {row["_change_ordinal"] for row in of_snapshot} == ({number} if is_change else set())
        number += is_change
        before = after
    assert number < len(snapshots)


def view(lake: Oracle, catalog: str, table: str, arguments: str) -> list[PlainRow]:
    call = f"call {catalog}.system.create_changelog_view(table => '{table}'{arguments})"
    result = lake.sql(call)
    assert result.schema.simpleString() == "struct<changelog_view:string>"
    [(name,)] = result.collect()
    rows = lake.sql(f"select * from {name}")
    assert rows.columns[-3:] == ["_change_type", "_change_ordinal", "_commit_snapshot_id"]
    return spark_rows(rows.collect()) if catalog == "lake" else java_rows(lake, rows)


@pytest.mark.nightly
@EACH_VERSION
def test_the_same_views(lake: Oracle, version: int) -> None:
    table = f"changed.v{version}"
    make(lake, table)
    ids = snapshot_ids(lake, f"java_hadoop.{table}")
    of_range = f", options => map('start-snapshot-id', '{ids[1]}', 'end-snapshot-id', '{ids[5]}')"
    change_types = set()
    calls = [
        "",
        of_range + ", net_changes => true",
        of_range + ", identifier_columns => array('id'), changelog_view => 'named'",
        ", identifier_columns => array('id'), compute_updates => false",
    ]
    if EVERY_RANGE:
        calls += [
            of_range,
            f", options => map('end-snapshot-id', '{ids[3]}')",
            ", net_changes => true",
            ", identifier_columns => array('id')",
        ]
    for arguments in calls:
        ours, javas = (view(lake, catalog, table, arguments) for catalog in CATALOGS)
        assert ours == javas, arguments
        assert ours
        change_types |= {row[-3] for row in ours}
    assert change_types == {"INSERT", "DELETE", "UPDATE_BEFORE", "UPDATE_AFTER"}


@pytest.mark.nightly
@pytest.mark.parametrize("table", [*WHOLE_FILES, *WITH_DELETES])
@pytest.mark.parametrize("arguments", ["", ", identifier_columns => array('id')"])
def test_changes_are_the_difference(lake: Oracle, table: str, arguments: str) -> None:
    make(lake, table)
    actual = view(lake, "lake", table, arguments)
    net = view(lake, "lake", table, ", net_changes => true")
    before = Counter[PlainRow]()
    ids = snapshot_ids(lake, f"java_hadoop.{table}")
    for snapshot_id, after in zip(ids, states(lake, table, ids), strict=True):
        of_snapshot = [row for row in actual if row[-1] == snapshot_id]
        for types, expected in (
            (("INSERT", "UPDATE_AFTER"), after - before),
            (("DELETE", "UPDATE_BEFORE"), before - after),
        ):
            assert Counter(r[:3] for r in of_snapshot if r[-3] in types) == expected
        before = after
    assert Counter(row[:3] for row in net if row[-3] == "INSERT") == before
    assert {row[-3] for row in net} == {"INSERT"}
