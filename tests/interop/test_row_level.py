"""DELETE, UPDATE and MERGE through our catalog and through Java's: Java reads the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from pyspark.errors import PySparkException

from iceberg_pyspark import install
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.native_read import deleted_rows
from tests.amounts import FULL_WORK
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.parameters import cases
from tests.support.readings import our_frame
from tests.support.rows import PlainRow

SOURCE = (
    "select id, cast(id % 3 as int) g, concat('n', id) s, named_struct('a', 1, 'b', 'y') st "
    "from range(90, 120) where id % 2 = 0"
)
WHOSE = ("ours", "java")
# Summary properties that differ: sizes by a few bytes, and ids by the writer.
OWN = ("-files-size", "write-id", "iceberg-version")
STATEMENTS = (
    "update {t} set s = concat(s, 'x'), g = 7, st.a = 5 where id < 10 or id in (select 50L)",
    "delete from {t} where exists (select 1 from src where src.id = {t}.id) and id < 94",
    "merge into {t} t using src u on t.id = u.id when matched and u.id > 96 then delete "
    "when matched then update set s = u.s, st.b = 'm' when not matched and u.g <> 1 then insert * "
    "when not matched by source and t.id % 10 = 3 then delete "
    "when not matched by source and t.id = 5 then update set s = 'five'",
    "delete from {t} where g = 2 or s like 'n10%'",
)


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as native_oracle:
        native_oracle.sql(SOURCE).createOrReplaceTempView("src")
        yield native_oracle
        native_oracle.spark.catalog.dropTempView("src")


def make_pair(
    lake: Oracle,
    name: str,
    version: int,
    mode: str,
    whose: Sequence[str] = WHOSE,
    **properties: str,
) -> None:
    """Create the same evolved table twice: <name>_ours and <name>_java."""
    options = {
        "format-version": str(version),
        **{f"write.{op}.mode": mode for op in ("delete", "update", "merge")},
        **{k.replace("_", "."): v for k, v in properties.items()},
    }
    properties_sql = ", ".join(f"'{k}'='{v}'" for k, v in options.items())
    for side in whose:
        table = f"java_hadoop.{name}_{side}"
        lake.sql(
            f"create table {table} using iceberg partitioned by (g) "
            f"tblproperties ({properties_sql}) as "
            "select id, cast(id % 3 as int) g, cast(id as string) text from range(100)"
        )
        lake.sql(f"alter table {table} rename column text to s")
        lake.sql(f"alter table {table} add column st struct<a: int, b: string>")
        lake.sql(f"alter table {table} add partition field bucket(2, id)")


def rows(lake: Oracle, name: str, columns: str) -> list[PlainRow]:
    return sorted(map(tuple, lake.sql(f"select {columns} from java_hadoop.{name}").collect()))


def rows_of_both(lake: Oracle, name: str, columns: str) -> tuple[list[PlainRow], list[PlainRow]]:
    """Return Java's rows of <name>_ours and <name>_java, both in one query."""
    ours, java = (
        f"select {number} side, {columns} from java_hadoop.{name}_{whose}"
        for number, whose in enumerate(WHOSE)
    )
    both = sorted(map(tuple, lake.sql(f"{ours} union all {java}").collect()))
    return [r[1:] for r in both if r[0] == 0], [r[1:] for r in both if r[0] == 1]


@cases(
    ("version", "mode", "read_by"),
    fast=[(2, "merge-on-read", "executors"), (3, "copy-on-write", "driver")],
    nightly=[
        (3, "merge-on-read", "driver"),
        (3, "merge-on-read", "executors"),
        (2, "merge-on-read", "driver"),
    ],
)
def test_the_same_statements_leave_the_same_rows(
    lake: Oracle, version: int, mode: str, read_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if read_by == "executors":
        monkeypatch.setattr(deleted_rows, "MAX_VECTOR_BYTES", -1)
        monkeypatch.setattr(deleted_rows, "MAX_POSITION_BYTES", -1)
    name = f"changes.v{version}_{mode[0]}_{read_by}"
    make_pair(lake, name, version, mode)
    columns = "id, g, s, st" + (", _last_updated_sequence_number" if version == 3 else "")
    for statement in STATEMENTS:
        lake.sql(statement.format(t=f"java_hadoop.{name}_java"))
        lake.sql(statement.format(t=f"lake.{name}_ours"))
        ours, java = rows_of_both(lake, name, columns)
        assert ours == java
    if version == 3:
        # Rows from id 90 on were inserted in no fixed order.
        ours, java = rows_of_both(lake, name, "id, _row_id")
        assert [r for r in ours if r[0] < 90] == [r for r in java if r[0] < 90]
        actual = [deletes(lake, f"{name}_{w}") for w in WHOSE]
        # We drop a file whose rows are all deleted; Java keeps it with a vector of all its rows.
        assert set(actual[0]) <= set(actual[1])


# No statement deletes all rows of a file: we would drop the file, Java would keep it.
COUNTED = (
    "delete from {t} where id in (3, 50)",
    "update {t} set s = concat(s, 'x') where id = 7 or id = 51",
    "merge into {t} t using src u on t.id = u.id when matched and u.id < 94 then delete when "
    "matched then update set s = u.s when not matched then insert (id, g, s) "
    "values (u.id, u.g, u.s)",
)


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_summaries_count_what_javas_count(lake: Oracle, mode: str) -> None:
    modes = ", ".join(f"'write.{op}.mode'='{mode}'" for op in ("delete", "update", "merge"))
    names = [f"counted_{mode[0]}_{whose}" for whose in WHOSE]
    for name in names:
        lake.sql(
            f"create table java_hadoop.changes.{name} using iceberg partitioned by (g) "
            f"tblproperties ('format-version'='3', {modes}) as select /*+ coalesce(1) */ id, "
            "cast(id % 3 as int) g, cast(id as string) s from range(100)"
        )
    for statement in COUNTED:
        actual = []
        for catalog, name in zip(("lake", "java_hadoop"), names, strict=True):
            lake.sql(statement.format(t=f"{catalog}.changes.{name}"))
            summaries = lake.sql(
                f"select committed_at, summary from java_hadoop.changes.{name}.snapshots"
            ).collect()
            summary = max(summaries, key=lambda row: row.committed_at).summary
            actual.append({k: v for k, v in summary.items() if not k.endswith(OWN)})
        assert actual[0] == actual[1], statement


DRAWN = (
    "update {t} set s = uuid() where id < 110",
    "update {t} set g = monotonically_increasing_id() % 4, st.b = concat(uuid(), rand())",
    "update {t} set s = case when id < 95 then uuid() else 'same' end where id in (select 92L)",
    "update {t} set st = named_struct('a', cast(randn() * 100 as int), 'b', uuid())",
    "update {t} set s = concat((select max(s) from {t}), uuid()) where id > 115",
)
REFUSED_DRAWS = (
    "update {t} set s = 'x' where rand() < 2",
    "delete from {t} where rand() < 2",
    "merge into {t} t using src u on t.id = u.id when matched then update set s = uuid()",
    "merge into {t} t using src u on t.id = u.id and rand() < 2 when matched then delete",
    "merge into {t} t using src u on t.id = u.id when matched and rand() < 2 then delete",
)


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_random_values_are_drawn_once_for_each_row(lake: Oracle, mode: str) -> None:
    make_pair(lake, "drawn", 2, mode)
    counts = "select count(*), count(distinct s), count(distinct g) > 1, count(distinct st.b), "
    counts += "max(length(s)) from {t}"
    ours, javas = "lake.drawn_ours", "java_hadoop.drawn_java"
    for statement in DRAWN:
        lake.sql(statement.format(t=ours))
        lake.sql(statement.format(t=javas))
        assert (
            lake.sql(counts.format(t=ours)).collect() == lake.sql(counts.format(t=javas)).collect()
        ), statement
    written = lake.sql(f"select * from {ours} order by id").collect()
    assert written == lake.sql(f"select * from {ours} order by id").collect()
    for statement in REFUSED_DRAWS:
        for t in (ours, javas):
            with pytest.raises(PySparkException, match="NON_DETERMINISTIC"):
                lake.sql(statement.format(t=t))
    for t in (ours, javas):
        lake.sql(f"drop table {t}")


def deletes(lake: Oracle, name: str) -> list[tuple[object, ...]]:
    """Return Java's view of the live delete files, without their names and sizes."""
    result = lake.sql(
        "select d.content, d.file_format, d.spec_id, d.partition, d.record_count, "
        "d.referenced_data_file is not null, d.content_offset is not null, d.sort_order_id "
        f"from java_hadoop.{name}.delete_files d"
    )
    return sorted(tuple(map(str, r)) for r in result.collect())


@pytest.mark.nightly
def test_java_deletes_what_we_have_deleted_from(lake: Oracle) -> None:
    """Each writer merges the other's position deletes and vectors, also after an upgrade."""
    name = "changes.both"
    # The same statements in the same order leave two equal tables.
    sides = WHOSE if FULL_WORK else WHOSE[:1]
    make_pair(lake, name, 2, "merge-on-read", sides)
    for version in (2, 3):
        for whose in sides:
            table = f"{name}_{whose}"
            if version == 3:
                lake.sql(
                    f"alter table java_hadoop.{table} set tblproperties ('format-version'='3')"
                )
            lake.sql(f"delete from java_hadoop.{table} where id % 10 = {version}")
            lake.sql(f"delete from lake.{table} where id % 10 = {version + 3}")
            lake.sql(f"delete from java_hadoop.{table} where id % 20 = {version + 4}")
        remaining_ids = [r[0] for r in rows(lake, f"{name}_ours", "id")]
        deleted = {2, 5} if version == 2 else {2, 5, 3, 6}
        assert remaining_ids == [
            i
            for i in range(100)
            if i % 10 not in deleted and i % 20 not in ({6} if version == 2 else {6, 7})
        ]
        for whose in sides[1:]:
            assert [r[0] for r in rows(lake, f"{name}_{whose}", "id")] == remaining_ids
    formats = {r[1] for r in deletes(lake, f"{name}_ours")}
    for whose in sides:
        assert formats == {r[1] for r in deletes(lake, f"{name}_{whose}")}


@pytest.mark.nightly
def test_a_merge_with_schema_evolution(lake: Oracle) -> None:
    make_pair(lake, "changes.evolving", 3, "merge-on-read")
    merge = (
        "merge with schema evolution into {t} t using (select id, g, s, st, id * 2 more from src) "
        "u on t.id = u.id when matched then update set * when not matched then insert *"
    )
    lake.sql(merge.format(t="java_hadoop.changes.evolving_java"))
    lake.sql(merge.format(t="lake.changes.evolving_ours"))
    ours, java = rows_of_both(lake, "changes.evolving", "id, g, s, st, more")
    assert ours == java


@pytest.mark.nightly
def test_equality_deletes_that_java_applies(lake: Oracle) -> None:
    name = "changes.keyed"
    lake.sql(
        f"create table java_hadoop.{name} using iceberg partitioned by (g) as "
        "select id, cast(id % 2 as int) g, cast(id as string) s from range(10)"
    )
    table = install(lake.spark).table(f"lake.{name}")
    with pytest.raises(InvalidRequestError, match="are partitioned by g"):
        table.write_equality_deletes(lake.spark.range(3), ["id"])
    keys = lake.sql("select cast(id as int) id, cast(id % 2 as int) g from range(3, 6)")
    table.write_equality_deletes(keys, ["id", "g"])
    lake.sql(f"insert into lake.{name} values (4, 0, 'again')")
    expected = [(i, str(i)) for i in (0, 1, 2, 6, 7, 8, 9)] + [(4, "again")]
    assert rows(lake, name, "id, s") == sorted(expected)
    assert sorted(map(tuple, lake.sql(f"select id, s from lake.{name}").collect())) == sorted(
        expected
    )


@pytest.mark.nightly
def test_equality_deletes_of_an_unpartitioned_spec_hold_everywhere(lake: Oracle) -> None:
    name = "changes.keyed_before"
    lake.sql(f"create table java_hadoop.{name} using iceberg as select id, 0 g from range(10)")
    lake.sql(f"alter table java_hadoop.{name} add partition field g")
    lake.sql(f"insert into java_hadoop.{name} select id, cast(id % 2 as int) from range(10, 20)")
    install(lake.spark).table(f"lake.{name}").write_equality_deletes(
        lake.spark.range(8, 12), ["id"]
    )
    expected = [(i,) for i in range(20) if not 8 <= i < 12]
    assert rows(lake, name, "id") == expected
    assert sorted(map(tuple, lake.sql(f"select id from lake.{name}").collect())) == expected


@pytest.mark.nightly
@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_delete_files_of_other_formats_are_read_by_the_other(
    lake: Oracle, file_format: str
) -> None:
    name = f"changes.deletes_in_{file_format}"
    make_pair(lake, name, 2, "merge-on-read", write_delete_format_default=file_format)
    for catalog, whose in zip(("lake", "java_hadoop"), WHOSE, strict=True):
        lake.sql(f"delete from {catalog}.{name}_{whose} where id % 10 = 1")
    # Only our delete files name the data file that they refer to, as the specification allows.
    ours, java = ([r[:5] for r in deletes(lake, f"{name}_{whose}")] for whose in WHOSE)
    assert ours == java
    # Each writer continues on the other's table.
    for catalog, whose in zip(("java_hadoop", "lake"), WHOSE, strict=True):
        lake.sql(f"update {catalog}.{name}_{whose} set s = 'new' where id % 10 = 2")
        lake.sql(f"delete from {catalog}.{name}_{whose} where id % 10 = 3")
    keys = lake.sql("select id, cast(id % 3 as int) g from range(4, 6)")
    for whose in WHOSE:
        install(lake.spark).table(f"lake.{name}_{whose}").write_equality_deletes(keys, ["id", "g"])
        actual = deletes(lake, f"{name}_{whose}")
        assert {r[:2] for r in actual} == {(c, file_format.upper()) for c in ("1", "2")}
        expected = [
            (i, "new" if i % 10 == 2 else str(i))
            for i in range(100)
            if i % 10 not in (1, 3) and i not in (4, 5)
        ]
        assert rows(lake, f"{name}_{whose}", "id, s") == expected
        for frame in (
            lake.spark.table(f"lake.{name}_{whose}"),
            our_frame(lake, f"java_hadoop.{name}_{whose}"),
        ):
            assert sorted(map(tuple, frame.select("id", "s").collect())) == expected
