"""Changelog views: the net changes of rows, by the procedure and from Python."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.spark.changelog import (
    compared_by,
    net_changes,
    with_update_images,
    without_carry_overs,
)
from iceberg_pyspark.spark.session import IcebergSession
from tests.amounts import FULL_WORK
from tests.support.frames import append_rows
from tests.support.native_lake import plan_of, sqlite_lake
from tests.support.parameters import cases

CASES = 60
CHANGE_COLUMNS = "_change_type string, _change_ordinal int, _commit_snapshot_id bigint"


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("logs"), "logs") as lake:
        yield lake


# General properties, checked on many random histories in one table.


def a_history(case: int, *, unique: bool) -> tuple[list[Any], list[Counter[Any]]]:
    """Return rows of `changes`, with carry-overs, and the rows of the table after each snapshot."""
    chance = random.Random(case)
    moments: list[Counter[Any]] = [Counter()]
    changes: list[Any] = []
    for ordinal in range(chance.randint(1, 6)):
        before = moments[-1]
        if unique:
            values = {row[1]: row for row in before}
            for key in chance.sample(range(6), chance.randint(1, 4)):
                values[key] = (case, key, chance.choice("abc"))
                if chance.random() < 0.3:
                    del values[key]
            after = Counter(values.values())
        else:
            remaining = [row for row in before.elements() if chance.random() < 0.6]
            new = [(case, chance.choice([1, 2, None]), chance.choice("ab")) for _ in range(3)]
            after = Counter(remaining + new[: chance.randint(0, 3)])
        # Copy-on-write may rewrite rows that are in both snapshots: these are the carry-overs.
        again = Counter(row for row in (before & after).elements() if chance.random() < 0.5)
        for type_, rows in (("DELETE", before - after), ("INSERT", after - before)):
            changes += [(*row, type_, ordinal, ordinal + 100) for row in (rows + again).elements()]
        moments.append(after)
    chance.shuffle(changes)
    return changes, moments


def of_cases(spark: SparkSession, *, unique: bool) -> tuple[DataFrame, list[list[Counter[Any]]]]:
    created = [a_history(case, unique=unique) for case in range(CASES)]
    rows = [row for changes, _ in created for row in changes]
    frame = spark.createDataFrame(
        rows, f"case int, id int, v string, {CHANGE_COLUMNS}"
    ).repartition(3)
    return frame, [moments for _, moments in created]


def changed(rows: list[Any], *types: str, **metadata_columns: int) -> Counter[Any]:
    return Counter(
        tuple(r[:3])
        for r in rows
        if r["_change_type"] in types
        and all(r[f"_{n}"] == value for n, value in metadata_columns.items())
    )


@cases("unique", fast=[False], nightly=[True])
def test_changes_lead_from_one_snapshot_to_the_next(spark: SparkSession, unique: bool) -> None:
    frame, cases = of_cases(spark, unique=unique)
    actual = without_carry_overs(frame).collect()
    net = net_changes(frame).collect()
    if unique:
        imaged = with_update_images(frame, [F.col("case"), F.col("id")], "id").collect()
    for case, moments in enumerate(cases):
        of_case = [row for row in actual if row.case == case]
        for ordinal, (before, after) in enumerate(pairwise(moments)):
            deleted, inserted = before - after, after - before
            number = {"change_ordinal": ordinal, "commit_snapshot_id": ordinal + 100}
            assert changed(of_case, "DELETE", **number) == deleted
            assert changed(of_case, "INSERT", **number) == inserted
            if not unique:
                continue
            images = [row for row in imaged if row.case == case]
            keys = {row[1] for row in deleted} & {row[1] for row in inserted}
            for types, rows in (
                (("DELETE", "UPDATE_BEFORE"), deleted),
                (("INSERT", "UPDATE_AFTER"), inserted),
            ):
                assert changed(images, *types, **number) == rows
                updated = changed(images, types[1], **number)
                assert {row[1] for row in updated} == keys
        of_case = [row for row in net if row.case == case]
        assert changed(of_case, "INSERT") == moments[-1]
        assert not changed(of_case, "DELETE")


@pytest.mark.nightly
def test_net_changes_of_a_part_are_the_difference(spark: SparkSession) -> None:
    frame, cases = of_cases(spark, unique=False)
    net = net_changes(frame.where("_change_ordinal >= 1")).collect()
    for case, moments in enumerate(cases):
        of_case = [row for row in net if row.case == case]
        begun = moments[min(1, len(moments) - 1)]
        assert changed(of_case, "INSERT") == moments[-1] - begun
        assert changed(of_case, "DELETE") == begun - moments[-1]


@pytest.mark.nightly
def test_net_changes_say_when(spark: SparkSession) -> None:
    rows = [(1, "INSERT", n, n) for n in (0, 1, 3)] + [(1, "DELETE", 2, 2), (2, "DELETE", 1, 1)]
    rows += [(3, "INSERT", 0, 0), (3, "DELETE", 1, 1), (3, "INSERT", 1, 1)]
    actual = net_changes(spark.createDataFrame(rows, f"id int, {CHANGE_COLUMNS}")).collect()
    assert sorted(tuple(r)[:3] for r in actual) == [
        (1, "INSERT", 0),
        (1, "INSERT", 3),
        (2, "DELETE", 1),
        (3, "INSERT", 1),
    ]


VALUES = [
    ("double", "double('0.0')", "double('-0.0')"),
    ("float", "float('nan')", "float('inf')"),
    ("map<string,int>", "map('a', 1, 'b', 2)", "map('a', 1)"),
    ("map<string,int>", "map()", "cast(null as map<string,int>)"),
    ("struct<d:double,m:map<int,double>>", "named_struct('d', 1D, 'm', map(1, double('0')))",
     "named_struct('d', 1D, 'm', map(1, double('-0')))"),
    ("struct<a:double>", "named_struct('a', cast(null as double))",
     "cast(null as struct<a:double>)"),
    ("array<map<int,int>>", "array(map(1, 1), null)", "array(null, map(1, 1))"),
    ("array<double>", "array(double('0'))", "array(double('-0'))"),
    ("binary", "X'00'", "X''"),
]  # fmt: skip


def test_values_are_equal_or_not(spark: SparkSession) -> None:
    """In each case, delete a value and add an equal and a different one; each case has a column."""
    changes = "values (1, 'DELETE'), (1, 'INSERT'), (2, 'INSERT') as changes (value, _change_type)"
    # Not with if(), of which Spark's optimizer leaves one branch where 0.0 and -0.0 are the two.
    columns = [
        f"case when `case` = {n} then cast(array({one}, {other})[value - 1] as {kind}) end v{n}"
        for n, (kind, one, other) in enumerate(VALUES)
    ]
    frame = spark.sql(
        f"select `case`, {', '.join(columns)}, _change_type, 0 _change_ordinal, "
        f"1L _commit_snapshot_id from {changes} "
        f"cross join (select int(id) `case` from range(0, {len(VALUES)}, 1, 1))"
    )
    actual = without_carry_overs(frame)
    assert actual.schema == frame.schema
    remaining_rows = actual.selectExpr("case", "_change_type", "cast(v0 as string) v0").collect()
    assert sorted((r.case, r["_change_type"]) for r in remaining_rows) == [
        (case, "INSERT") for case in range(len(VALUES))
    ]
    assert [r.v0 for r in remaining_rows if r.case == 0] == ["-0.0"]


@pytest.mark.nightly
def test_maps_have_no_order(spark: SparkSession) -> None:
    maps = "select map('a', 1, 'b', 2) v, 'DELETE' t union all select map('b', 2, 'a', 1), 'INSERT'"
    frame = spark.sql(
        f"select v, t _change_type, 0 _change_ordinal, 1L _commit_snapshot_id from ({maps})"
    )
    assert without_carry_overs(frame).count() == 0


@pytest.mark.nightly
def test_values_that_cannot_be_compared(spark: SparkSession) -> None:
    frame = spark.sql("select array(parse_json('1')) v")
    with pytest.raises(UnsupportedFeatureError, match="column v is of type variant, whose values"):
        compared_by(frame.schema.fields)


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_changes_of_tables_with_variants(session: IcebergSession, mode: str) -> None:
    """Rewritten rows have other bytes: Spark's reader makes variants from typed columns."""
    sql, t = session.spark.sql, f"logs.db.variants_{mode[0]}"
    sql(
        f"create table {t} (id bigint, v variant, s struct<w: variant>) tblproperties "
        f"('format-version' = '3', 'write.update.mode' = '{mode}')"
    )
    text = "concat('{\"a\": ', id, ', \"b\": [', id, '.50, \"x\", null]}')"
    frame = sql(f"select id, parse_json({text}) v, struct(parse_json({text}) as w) s from range(5)")
    frame.coalesce(1).writeTo(t).option("shred-variants", "true").append()
    sql(f'update {t} set v = parse_json(\'{{"b": [2.5, "y", null], "a": 2}}\') where id = 2')
    [(view,)] = sql(
        f"call logs.system.create_changelog_view(table => '{t[5:]}', compute_updates => true)"
    ).collect()
    changed = sql(f"select _change_type, id, v:b[1]::string from {view} where _change_ordinal = 1")
    assert sorted(map(tuple, changed.collect())) == [
        ("UPDATE_AFTER", 2, "y"),
        ("UPDATE_BEFORE", 2, "x"),
    ]


# Tables with real snapshots.


def make(session: IcebergSession, name: str, version: int, mode: str) -> str:
    """Create snapshots: 0 appends 1 to 4, 1 updates 2, 2 deletes 3, 3 rewrites, 4 merges."""
    table = f"logs.db.{name}"
    sql = session.spark.sql
    modes = ", ".join(f"'write.{op}.mode'='{mode}'" for op in ("delete", "update", "merge"))
    sql(
        f"create table {table} (id bigint, v string, m map<string,int>) using iceberg "
        f"tblproperties ('format-version'='{version}', {modes})"
    )
    rows = [{"id": i, "v": "a", "m": {"k": 1}} for i in range(1, 5)]
    append_rows(session.table(table), rows)
    sql(f"update {table} set v = 'b' where id = 2")
    sql(f"delete from {table} where id = 3")
    options = "options => map('rewrite-all', 'true')"
    sql(f"call logs.system.rewrite_data_files(table => 'db.{name}', {options})")
    sql(
        f"merge into {table} t using (select explode(array(4L, 9L)) id) s on t.id = s.id "
        "when matched then update set v = 'c' when not matched then insert (id, v) "
        "values (s.id, 'n')"
    )
    return table


def call(session: IcebergSession, name: str, arguments: str = "") -> list[tuple[Any, ...]]:
    """Create a changelog view and return (ordinal, type, id, v) of each change, in order."""
    text = f"call logs.system.create_changelog_view(table => 'db.{name}'{arguments})"
    [(view,)] = session.spark.sql(text).collect()
    return shown(session.spark.sql(f"select * from {view}"))


def shown(frame: DataFrame) -> list[tuple[Any, ...]]:
    rows = frame.select("_change_ordinal", "_change_type", "id", "v").collect()
    return sorted(map(tuple, rows))


APPENDED = [(0, "INSERT", n, "a") for n in (1, 2, 3, 4)]
CHANGED = [
    *[(1, "DELETE", 2, "a"), (1, "INSERT", 2, "b"), (2, "DELETE", 3, "a")],
    *[(3, "DELETE", 4, "a"), (3, "INSERT", 4, "c"), (3, "INSERT", 9, "n")],
]
IMAGES = [
    *[(1, "UPDATE_AFTER", 2, "b"), (1, "UPDATE_BEFORE", 2, "a"), (2, "DELETE", 3, "a")],
    *[(3, "INSERT", 9, "n"), (3, "UPDATE_AFTER", 4, "c"), (3, "UPDATE_BEFORE", 4, "a")],
]
NET = [("INSERT", *row) for row in ((1, "a"), (2, "b"), (4, "c"), (9, "n"))]


@cases(
    ("version", "mode"),
    fast=[(3, "merge-on-read")],
    nightly=[(3, "copy-on-write"), (2, "merge-on-read"), (2, "copy-on-write")],
)
def test_views_of_all_kinds(session: IcebergSession, version: int, mode: str) -> None:
    name = f"v{version}_{mode.replace('-', '_')}"
    table = make(session, name, version, mode)
    assert call(session, name) == [*APPENDED, *CHANGED]
    assert session.spark.table(f"{name}_changes").columns[:3] == ["id", "v", "m"]
    # tests/interop/test_changes.py has views of ranges and with named identifiers beside Java.
    if FULL_WORK:
        assert call(session, name, ", identifier_columns => array('ID')") == [*APPENDED, *IMAGES]
        ids = [s.snapshot_id for s in session.table(table).snapshots]
        part = f", options => map('start-snapshot-id', '{ids[0]}', 'end-snapshot-id', '{ids[3]}')"
        assert call(session, name, part) == [(o - 1, *rest) for o, *rest in CHANGED[:3]]
        ended = f", options => map('end-snapshot-id', '{ids[0]}')"
        assert call(session, name, ended) == APPENDED
    net = call(session, name, ", net_changes => true")
    assert sorted(row[1:] for row in net) == NET
    if version == 3:
        updates = call(session, name, ", compute_updates => true")
        assert updates == [*APPENDED, *IMAGES]
        rows = session.spark.sql(
            f"select id, _row_id, _file, _pos from {table}.changes where _change_ordinal = 3"
        ).collect()
        assert Counter(r.id for r in rows)[4] == 2
        assert len({r["_row_id"] for r in rows if r.id == 4}) == 1
    else:
        with pytest.raises(
            PySparkException, match="no identifier columns to match updated rows by"
        ):
            call(session, name, ", compute_updates => true")
    portable = session.table(session.table(table).location)
    if version == 3:
        by_lineage = portable.create_changelog_view("by_path", compute_updates=True)
        assert shown(by_lineage) == [*APPENDED, *IMAGES]
        assert by_lineage.columns[-4:-3] == ["m"]
    if version != 3 or FULL_WORK:
        assert shown(portable.create_changelog_view("by_path")) == [*APPENDED, *CHANGED]


@pytest.mark.nightly
def test_a_view_from_python_stays_as_it_is(session: IcebergSession) -> None:
    table = make(session, "python", 2, "merge-on-read")
    times = [s.timestamp_ms for s in session.table(table).snapshots]
    rows = session.table(table).create_changelog_view(
        "from_python", {"start-timestamp": times[0], "end-timestamp": times[1]}, net_changes=True
    )
    assert shown(rows) == [(0, "DELETE", 2, "a"), (0, "INSERT", 2, "b")]
    whole = session.table(table).create_changelog_view()
    session.spark.sql(f"insert into {table} values (50, 'z', null)")
    of_view = session.spark.table("python_changes")
    # Both are the same plan, so that one job has the rows of both.
    both = shown(whole.union(of_view))
    assert both == sorted(2 * [*APPENDED, *CHANGED])
    session.spark.sql(f"alter table {table} create branch b")
    session.spark.sql(f"insert into {table}.branch_b values (60, 'z', null)")
    of_branch = session.table(table).create_changelog_view(options={"branch": "b"})
    assert len(shown(of_branch)) == len(both) // 2 + 2


@pytest.mark.nightly
def test_appends_alone_are_not_sorted(session: IcebergSession) -> None:
    session.spark.sql("create table logs.db.log (id bigint, v string) using iceberg")
    table = session.table("logs.db.log")
    assert shown(table.create_changelog_view(identifier_columns=["id"])) == []
    session.spark.sql("insert into logs.db.log values (1, 'a')")
    session.spark.sql("insert into logs.db.log values (1, 'a')")
    rows = table.create_changelog_view(identifier_columns=["id"])
    assert shown(rows) == [(0, "INSERT", 1, "a"), (1, "INSERT", 1, "a")]
    assert "Window" not in plan_of(rows)
    session.spark.sql("update logs.db.log set v = 'b'")
    rows = table.create_changelog_view(identifier_columns=["id"])
    assert "Window" in plan_of(rows)
    with pytest.raises(PySparkException, match="several rows with the same id, so that updates"):
        rows.collect()


def test_identifier_fields_of_the_table(session: IcebergSession) -> None:
    session.spark.sql(
        "create table logs.db.named (s struct<id: bigint not null> not null, id bigint, v string) "
        "using iceberg tblproperties ('format-version'='2')"
    )
    session.table("logs.db.named").update_schema().set_identifier_fields("s.id").commit()
    session.spark.sql("insert into logs.db.named values (named_struct('id', 1L), 7, 'a')")
    session.spark.sql("update logs.db.named set v = 'b', id = 8")
    actual = call(session, "named", ", compute_updates => true")
    assert [row[1:] for row in actual] == [
        ("INSERT", 7, "a"),
        ("UPDATE_AFTER", 8, "b"),
        ("UPDATE_BEFORE", 7, "a"),
    ]
    assert [row[1] for row in call(session, "named")] == ["INSERT", "DELETE", "INSERT"]


@pytest.mark.nightly
def test_rows_that_had_no_lineage_yet(session: IcebergSession) -> None:
    sql = session.spark.sql
    sql(
        "create table logs.db.upgraded (id bigint, v string) using iceberg "
        "tblproperties ('format-version'='2')"
    )
    sql("insert into logs.db.upgraded values (1, 'a'), (2, 'a')")
    sql("alter table logs.db.upgraded set tblproperties ('format-version'='3')")
    sql("update logs.db.upgraded set v = 'b' where id = 1")
    sql("update logs.db.upgraded set v = 'c' where id = 1")
    table = session.table("logs.db.upgraded")
    middle = table.snapshots[1].snapshot_id
    with pytest.raises(InvalidRequestError, match=f"start-snapshot-id {middle} or a later one"):
        table.create_changelog_view(compute_updates=True)
    later = table.create_changelog_view(options={"Start-Snapshot-Id": middle}, compute_updates=True)
    assert shown(later) == [(0, "UPDATE_AFTER", 1, "c"), (0, "UPDATE_BEFORE", 1, "b")]


def test_wrong_arguments_are_refused(session: IcebergSession) -> None:
    session.spark.sql("create table logs.db.refused (id bigint, v string) using iceberg")
    session.spark.sql("insert into logs.db.refused values (1, 'a')")
    images = "identifier_columns => array('id')"
    for arguments, message in (
        (f", {images}, net_changes => true", "net_changes shows what all snapshots together"),
        (", compute_updates => true, net_changes => true", "net_changes shows what all snapshots"),
        (", compute_updates => true", "no identifier columns to match updated rows by"),
        (", identifier_columns => array('no')", "no column 'no'; the table has: id, v"),
        (", options => map('nonsense', '1')", "unknown option 'nonsense'; there are branch, end-"),
        (", options => map('start-snapshot-id', 'x')", "start-snapshot-id is a whole number"),
        (", options => map('start-snapshot-id', '7')", "snapshot 7, the start .* an ancestor"),
        (", options => map('end-snapshot-id', '7')", "no snapshot 7"),
        (", options => map('start-snapshot-id', '7', 'start-timestamp', '7')", "are both given"),
        (", options => map('start-timestamp', '8', 'end-timestamp', '7')", "start-timestamp 8 is"),
        (", options => map('branch', 'no')", "no branch or tag 'no'"),
        (", changelog_view => 'db.v'", "a temporary view, whose name has one level"),
    ):
        with pytest.raises(PySparkException, match=message):
            call(session, "refused", arguments)
