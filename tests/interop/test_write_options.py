"""Write options that only affect metadata or concurrent commits act as in Java."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812

from tests.amounts import FULL_WORK
from tests.support.both_writers import JAVAS, OURS, both, by_java, writers_lake
from tests.support.oracle import Oracle
from tests.support.readings import our_table, snapshot_ids
from tests.support.spark_settings import configured

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with writers_lake(oracle) as lake:
        yield lake


def test_files_are_of_the_sort_order_that_was_asked_for(lake: Oracle) -> None:
    def of_order(lake: Oracle, table: str) -> None:
        frame = lake.sql("select (id * 7) % 20 id, cast(id as string) s from range(20)").coalesce(1)
        for order_id in ("1", "0"):
            writer = frame.writeTo(table).option("output-sort-order-id", order_id)
            writer.option("distribution-mode", "none").append()
        with pytest.raises((PySparkException, Py4JJavaError), match="sort order"):
            frame.writeTo(table).option("output-sort-order-id", "7").append()

    both(
        lake,
        "sort_ids",
        "create table {t} (id bigint, s string) using iceberg",
        lambda lake, table: lake.sql(f"alter table {by_java(table)} write ordered by id"),
        lambda lake, table: lake.sql(f"alter table {by_java(table)} write ordered by s desc"),
        "insert into {t} select /*+ coalesce(1) */ id, cast(id as string) s from range(5)",
        of_order,
    )
    # Java sorts each file by the table's order, whatever order id it records.
    name = f"{JAVAS}.writes.sort_ids_by_{OURS}"
    rows = lake.sql(
        f"select f.sort_order_id, t.id, t.s, t._pos from (select *, _file, _pos from {name}) t "
        f"join {name}.files f on t._file = f.file_path"
    ).collect()
    rows.sort(key=lambda row: row._pos)
    ids = {n: [r.id for r in rows if r.sort_order_id == n] for n in (0, 1)}
    assert ids[1] == list(range(20))
    assert ids[0] == [(i * 7) % 20 for i in range(20)]
    texts = [r.s for r in rows if r.sort_order_id == 2]
    assert texts == sorted(texts, reverse=True)


# The kind of overwrite, the isolation level, another writer's change in between, and the success.
OVERWRITES: list[tuple[str, str | None, str, bool]] = [
    ("filter", "serializable", "insert into {t} values (9, 1)", False),
    ("filter", "serializable", "insert into {t} values (9, 2)", True),
    ("filter", "snapshot", "insert into {t} values (9, 1)", True),
    ("filter", "snapshot", "delete from {t} where g = 1 and id % 4 = 1", False),
    ("filter", None, "insert into {t} values (9, 1)", True),
    ("partitions", "serializable", "insert into {t} values (9, 1)", False),
    ("partitions", "snapshot", "delete from {t} where g = 1 and id % 4 = 3", False),
]
if not FULL_WORK:
    # The isolation levels differ alike in tests/unit/table/commits/test_commit_conflicts.py.
    OVERWRITES = [OVERWRITES[i] for i in (0, 1, 3, 5)]


def test_overwrites_are_validated_from_a_snapshot(lake: Oracle) -> None:
    outcomes = {}
    for writer in (OURS, JAVAS):
        table = f"{writer}.writes.validated_by_{writer}"
        lake.sql(
            f"create table {table} (id bigint, g int) using iceberg partitioned by (g) "
            "tblproperties ('write.delete.mode'='merge-on-read')"
        )
        lake.sql(f"insert into {table} select id, cast(id % 3 as int) from range(24)")
        outcomes[writer] = [
            is_done(lake, table, mode, isolation, between)
            for mode, isolation, between, _ in OVERWRITES
        ]
        unknown = str(min(snapshot_ids(lake, by_java(table))) // 2)
        assert not overwrites(lake, table, "filter", "serializable", unknown)
    assert outcomes[OURS] == outcomes[JAVAS]
    assert outcomes[OURS] == [is_a_success for *_, is_a_success in OVERWRITES]
    ours, javas = (lake.table_rows(f"{JAVAS}.writes.validated_by_{w}") for w in (OURS, JAVAS))
    assert ours == javas


def is_done(lake: Oracle, table: str, mode: str, isolation: str | None, between: str) -> bool:
    """Overwrite from the state before `between`; return whether the overwrite succeeded."""
    base = our_table(lake, by_java(table)).refs["main"].snapshot_id
    lake.sql(between.format(t=by_java(table)))
    return overwrites(lake, table, mode, isolation, str(base))


def overwrites(lake: Oracle, table: str, mode: str, isolation: str | None, base: str) -> bool:
    writer = lake.sql("select id, 1 g from range(100, 108)").writeTo(table)
    writer.option("validate-from-snapshot-id", base)
    if isolation is not None:
        writer.option("isolation-level", isolation)
    try:
        if mode == "filter":
            writer.overwrite(F.col("g") == 1)
        else:
            writer.overwritePartitions()
    except (PySparkException, Py4JJavaError):
        return False
    return True


ADVISED = "spark.sql.iceberg.advisory-partition-size"
UPDATE = "update {t} set id = -1 where mod(id, 2) = 0"
# A change of 4 files, each read by its own task, in a mode, with an advisory size; if the table is
# partitioned; the distribution mode; and how many files Java writes.
CHANGES: list[tuple[str, str, str, bool, str, int]] = [
    (UPDATE, "copy-on-write", "256m", False, "hash", 1),
    (UPDATE, "copy-on-write", "100", False, "hash", 4),
    (UPDATE, "copy-on-write", "100", True, "hash", 4),
    (UPDATE, "merge-on-read", "256m", True, "hash", 1),
    (UPDATE, "merge-on-read", "100", False, "hash", 4),
    (UPDATE, "merge-on-read", "256m", False, "none", 4),
    ("delete from {t} where mod(id, 2) = 0", "copy-on-write", "256m", False, "hash", 1),
]
if FULL_WORK:
    CHANGES += [
        (change, mode, size, partitioned, by, 1 if (size, by) == ("256m", "hash") else 4)
        for change, modes in (
            (UPDATE, ("copy-on-write", "merge-on-read")),
            ("delete from {t} where mod(id, 2) = 0", ("copy-on-write",)),
        )
        for mode in modes
        for size in ("256m", "100")
        for partitioned in (False, True)
        for by in ("hash", "none")
    ]


def test_an_advisory_size_decides_how_many_files_a_change_writes(lake: Oracle) -> None:
    counts: dict[str, list[int]] = {OURS: [], JAVAS: []}
    for writer, of_writer in counts.items():
        for number, (change, mode, size, partitioned, distribution, _) in enumerate(CHANGES):
            table = f"{writer}.writes.advised_{number}_by_{writer}"
            properties = ", ".join(
                f"'write.{of}.mode' = '{mode}', 'write.{of}.distribution-mode' = '{distribution}'"
                for of in ("update", "delete")
            )
            lake.sql(
                f"create table {table} (id int, g string) using iceberg "
                f"{'partitioned by (g)' if partitioned else ''} tblproperties ({properties}, "
                "'read.split.open-file-cost' = '2147483647')"
            )
            for file in range(4):
                rows = f"range({file * 100}, {file * 100 + 100}, 1, 1)"
                lake.sql(f"insert into {table} select cast(id as int), 'a' from {rows}")
            bytes_ = str(256 << 20) if size == "256m" else size
            settings = {"spark.sql.shuffle.partitions": "4", ADVISED: bytes_}
            with configured(lake.spark, settings):
                lake.sql(change.format(t=table))
            (summary,) = lake.sql(
                f"select summary from {table}.snapshots order by committed_at desc limit 1"
            ).collect()
            of_writer.append(int(summary[0]["added-data-files"]))
    expected = [count for *_, count in CHANGES]
    assert counts[OURS] == expected
    for i, of_java in enumerate(counts[JAVAS]):
        _, _, _, is_partitioned, by, count = CHANGES[i]
        # Java groups the rows by the hash of their file's random name. Spark splits a group of two
        # or more files, and merges groups of one file each: four of these become one file.
        at_least = 1 if by == "hash" and not is_partitioned else count
        assert at_least <= of_java <= count, CHANGES[i]
