"""CALL: procedures of our catalogs, with the names and arguments of the JVM connector."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import install, load_catalog
from iceberg_pyspark.table.maintenance.procedures import PROCEDURES
from tests.support.native_lake import sqlite_lake

LATER = "TIMESTAMP '2099-01-01 00:00:00'"
COUNTS = (
    "deleted_data_files_count",
    "deleted_position_delete_files_count",
    "deleted_equality_delete_files_count",
    "deleted_manifest_files_count",
    "deleted_manifest_lists_count",
    "deleted_statistics_files_count",
)


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the folder of the catalog `kept`, which has the namespace `db`."""
    folder: Path = tmp_path_factory.mktemp("kept")
    with sqlite_lake(spark, folder, "kept"):
        yield folder


def make(spark: SparkSession, name: str) -> None:
    spark.sql(f"CREATE TABLE kept.db.{name} (id INT)")
    table = install(spark).table(f"kept.db.{name}")
    for number in range(3):
        table.overwrite(pa.table({"id": pa.array([number], pa.int32())}))


def snapshot_ids(spark: SparkSession, name: str) -> list[int]:
    return [s.snapshot_id for s in install(spark).table(f"kept.db.{name}").snapshots]


def test_snapshots_expire(spark: SparkSession, folder: Path) -> None:
    make(spark, "e")
    first, _, last = snapshot_ids(spark, "e")
    [row] = spark.sql(
        f"CALL kept.system.expire_snapshots(table => 'db.e', snapshot_ids => array({first}))"
    ).collect()
    assert tuple(row.asDict()) == COUNTS
    assert row["deleted_data_files_count"] == 1
    # By position, and with all arguments.
    [row] = spark.sql(
        f"CALL kept.system.expire_snapshots('kept.db.e', {LATER}, 1, 4, true, array(), true)"
    ).collect()
    assert row["deleted_data_files_count"] == row["deleted_manifest_lists_count"] == 1
    assert snapshot_ids(spark, "e") == [last]
    spark.sql("USE kept.db")
    try:
        [row] = spark.sql(f"CALL system.expire_snapshots('e', {LATER})").collect()
    finally:
        spark.sql("USE spark_catalog.default")
    assert set(row.asDict().values()) == {0}
    assert spark.table("kept.db.e").collect() == [(2,)]
    spark.sql("INSERT INTO kept.db.e VALUES (3)")


def test_orphan_files_go(spark: SparkSession, folder: Path) -> None:
    make(spark, "o")
    file = folder / "db" / "o" / "data" / "stray.parquet"
    file.touch()
    past = time.time() - 4 * 86_400
    os.utime(file, (past, past))
    for more in (
        "dry_run => true, prefix_listing => true, stream_results => true",
        "equal_schemes => map('a,b', 'c')",
        "dry_run => true",
    ):
        there = file.exists()
        rows = spark.sql(f"CALL kept.system.remove_orphan_files(table => 'db.o', {more})")
        assert rows.columns == ["orphan_file_location"]
        assert [row[0] for row in rows.collect()] == [str(file)] * there
    assert not file.exists()


def test_orphan_files_of_an_inventory_go(spark: SparkSession, folder: Path) -> None:
    make(spark, "i")
    data = folder / "db" / "i" / "data"
    strays = [data / f"{name}.parquet" for name in ("old", "new", "unlisted", "_hidden")]
    outside = folder / "db" / "outside.parquet"
    for file in (*strays, outside):
        file.touch()
    files = spark.sql("SELECT file_path FROM kept.db.i.all_files").collect()
    needed = [str(row.file_path) for row in files]
    # The inventory dates all files but one as old, whatever the store says.
    listed = [
        str(strays[0]),
        str(strays[3]),
        str(outside),
        f"{data}/../../outside.parquet",
        *needed,
    ]
    rows = ", ".join(f"('{path}', TIMESTAMP'2026-01-01')" for path in listed)
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW inventory AS SELECT * FROM VALUES "
        f"{rows}, ('{strays[1]}', NULL), (NULL, NULL) AS t(file_path, last_modified)"
    )
    text = "remove_orphan_files(table => 'db.i', file_list_view => 'inventory'"
    assert call(spark, f"{text}, dry_run => true)") == [(str(strays[0]),)]
    assert strays[0].exists()
    assert call(spark, f"{text})") == [(str(strays[0]),)]
    assert [file.exists() for file in (*strays, outside)] == [False, True, True, True, True]
    assert spark.table("kept.db.i").collect() == [(2,)]


def call(spark: SparkSession, text: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in spark.sql(f"CALL kept.system.{text}").collect()]


@pytest.mark.nightly
def test_main_moves_between_snapshots(spark: SparkSession, folder: Path) -> None:
    make(spark, "m")
    first, second, third = snapshot_ids(spark, "m")
    rows = spark.table("kept.db.m")
    assert call(spark, f"rollback_to_snapshot('db.m', {second})") == [(third, second)]
    assert spark.table("kept.db.m").collect() == rows.collect() == [(1,)]
    assert call(spark, f"set_current_snapshot('db.m', {third})") == [(second, third)]
    spark.sql(f"ALTER TABLE kept.db.m CREATE TAG begun AS OF VERSION {first}")
    assert call(spark, "set_current_snapshot('db.m', ref => 'begun')") == [(third, first)]
    # A child of the current snapshot becomes the current snapshot itself, without a new commit.
    assert call(spark, f"cherrypick_snapshot('db.m', {second})") == [(second, second)]
    spark.sql("ALTER TABLE kept.db.m CREATE BRANCH next")
    spark.sql("INSERT INTO kept.db.m.branch_next VALUES (9)")
    branch = spark.sql("SELECT snapshot_id FROM kept.db.m.refs WHERE name = 'next'").first()
    assert branch is not None
    newest = branch[0]
    assert call(spark, "fast_forward('db.m', 'main', 'next')") == [("main", second, newest)]
    assert sorted(spark.table("kept.db.m").collect()) == [(1,), (9,)]
    assert [row[0] for row in call(spark, "ancestors_of('db.m')")] == [newest, second, first]
    assert [row[0] for row in call(spark, f"ancestors_of('db.m', {third})")] == [
        third,
        second,
        first,
    ]
    assert call(spark, "rollback_to_timestamp('db.m', now())") == [(newest, newest)]
    times = "SELECT CAST(committed_at AS STRING) FROM kept.db.m.snapshots"
    [when] = spark.sql(f"{times} WHERE snapshot_id = {second}").collect()
    before = f"rollback_to_timestamp('db.m', TIMESTAMP '{when[0]}')"
    assert call(spark, before) == [(newest, first)]


def test_a_metadata_file_is_registered(spark: SparkSession, folder: Path) -> None:
    make(spark, "g")
    files = "SELECT file FROM kept.db.g.metadata_log_entries ORDER BY timestamp"
    file = spark.sql(files).collect()[-1][0]
    assert call(spark, f"register_table('db.again', '{file}')") == [
        (snapshot_ids(spark, "g")[-1], 1, 1)
    ]
    assert spark.table("kept.db.again").collect() == [(2,)]


def test_data_files_are_rewritten(spark: SparkSession, folder: Path) -> None:
    spark.sql("CREATE TABLE kept.db.d (id INT)")
    table = install(spark).table("kept.db.d")
    for number in range(5):
        table.append(pa.table({"id": pa.array([number], pa.int32())}))
    frame = spark.table("kept.db.d")
    [(rewritten, added, size, failed, removed)] = call(spark, "rewrite_data_files('db.d')")
    assert (rewritten, added, failed, removed) == (5, 1, 0, 0)
    assert int(str(size)) > 0
    assert sorted(row.id for row in frame.collect()) == [0, 1, 2, 3, 4]
    assert call(spark, "rewrite_data_files(table => 'db.d', strategy => 'binpack')") == [(0,) * 5]
    all_of_them = "options => map('rewrite-all', 'true'), where => 'id > 7', branch => 'main'"
    assert call(spark, f"rewrite_data_files(table => 'db.d', {all_of_them})") == [(0,) * 5]
    spark.sql("INSERT INTO kept.db.d VALUES (9)")
    by_id = "sort_order => 'zorder(id)', options => map('min-input-files', '2')"
    assert call(spark, f"rewrite_data_files(table => 'db.d', {by_id})")[0][:2] == (2, 1)
    assert spark.table("kept.db.d").collect() == [(n,) for n in (0, 1, 2, 3, 4, 9)]
    for wrong, message in (
        ("sort_order => 'nothing'", "no column 'nothing'"),
        ("strategy => 'sort'", "has no sort order"),
        ("options => map('no', '1')", "has no option 'no'"),
        ("where => 'nothing = 1'", "nothing"),
    ):
        with pytest.raises(PySparkException, match=message):
            call(spark, f"rewrite_data_files(table => 'db.d', {wrong})")


def test_files_are_added(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE kept.db.f (id BIGINT, day DATE) PARTITIONED BY (day)")
    days = spark.sql("SELECT id, DATE'2026-01-01' + CAST(id % 3 AS INT) AS day FROM range(9)")
    days.repartition("day").write.partitionBy("day").parquet(f"{tmp_path}/source")
    source = f"source_table => '`parquet`.`{tmp_path}/source`'"
    only = "partition_filter => map('day', '2026-01-02')"
    assert call(spark, f"add_files(table => 'db.f', {source}, {only})") == [(1, 1)]
    actual = spark.table("kept.db.f")
    assert sorted(row.id for row in actual.collect()) == [1, 4, 7]
    with pytest.raises(PySparkException, match="duplicate their rows"):
        call(spark, f"add_files(table => 'db.f', {source}, check_duplicate_files => false)")
    with pytest.raises(PySparkException, match=r"no table spark_catalog\.db\.other in"):
        call(spark, "add_files('db.f', 'db.other')")


def test_wrong_call_is_refused(spark: SparkSession, folder: Path) -> None:
    make(spark, "r")
    for text, message in (
        ("nothing('db.r')", "there is no procedure system.nothing"),
        ("expire_snapshots()", "table"),
        ("expire_snapshots('db.r', retain_last => 0)", "retain_last must be at least 1"),
        ("expire_snapshots('db.missing')", "missing"),
        ("expire_snapshots('')", "the argument table must name a table"),
        ("expire_snapshots('db.r', nothing => 1)", "nothing"),
        (f"remove_orphan_files('db.r', {LATER})", "files of the last 24 hours"),
        ("set_current_snapshot('db.r')", "either snapshot_id or ref"),
        ("set_current_snapshot('db.r', 1, 'main')", "either snapshot_id or ref"),
        ("rollback_to_snapshot('db.r', 1)", "1"),
        ("rollback_to_snapshot('db.r', NULL)", "the argument snapshot_id must not be null"),
        ("publish_changes('db.r', 'no')", "no snapshot with the wap.id 'no'"),
        (
            "remove_orphan_files('db.r', file_list_view => 'kept.db.r')",
            "must have the columns file_path STRING and last_modified TIMESTAMP; it has id int",
        ),
    ):
        with pytest.raises(PySparkException, match=message):
            spark.sql(f"CALL kept.system.{text}").collect()
    with pytest.raises(PySparkException, match=r"there is no procedure db\.expire_snapshots"):
        spark.sql("CALL kept.db.expire_snapshots('db.r')")
    # EXPLAIN does not run the procedure.
    spark.sql(f"EXPLAIN CALL kept.system.expire_snapshots('db.r', {LATER})").collect()
    assert len(snapshot_ids(spark, "r")) == 3


def test_arguments_are_constant_expressions(spark: SparkSession, folder: Path) -> None:
    make(spark, "a")
    for arguments in (
        "table => 'db.a', older_than => current_timestamp() - INTERVAL 30 DAYS",
        "concat('db', '.a'), now() - make_interval(0, 0, 0, 30)",
        "'db.a', date_sub(current_date(), 3), 1 + 2",
        "'db.a', '2020-01-01 00:00:00', '3', stream_results => 1 = 1",
        "'db.a', cast('2020-01-01' AS TIMESTAMP), snapshot_ids => array(1L + 1)",
        "'db.a', snapshot_ids => sequence(1, 3)",
        "table => 'db.a', retain_last => (SELECT 3 + 1)",
    ):
        assert call(spark, f"expire_snapshots({arguments})")[0][0] == 0, arguments
    for options in (
        "map('min-input-files', concat('1', '0'))",
        "map_from_arrays(array('min-input-files'), array('10'))",
        "str_to_map('min-input-files=10', ',', '=')",
    ):
        where = "concat('id', ' >= ', 1 - 1)"
        text = f"rewrite_data_files(table => 'db.a', options => {options}, where => {where})"
        assert call(spark, text)[0][0] == 0, text
    for text, message in (
        ("expire_snapshots('db.a', retain_last => cast(rand() AS INT))", "is not constant: Spark"),
        ("expire_snapshots(uuid())", "an argument of CALL is not constant"),
        ("expire_snapshots('db.a', retain_last => max(3))", "an argument of CALL is not constant"),
        ("expire_snapshots('db.a', retain_last => c)", "UNRESOLVED_COLUMN"),
        ("expire_snapshots('db.a', 5)", r'requires the "TIMESTAMP" type'),
        ("expire_snapshots('db.a', retain_last => 1 / 0)", "DIVIDE_BY_ZERO"),
        ("expire_snapshots('db.a', snapshot_ids => array(null))", "snapshot_ids holds a null"),
        ("rewrite_data_files('db.a', options => map('a', null))", "options holds a null"),
    ):
        with pytest.raises(PySparkException, match=message):
            spark.sql(f"CALL kept.system.{text}").collect()
    assert len(snapshot_ids(spark, "a")) == 3


CALLS = {
    "add_files": "source_table => '`parquet`.`/nowhere`'",
    "cherrypick_snapshot": "snapshot_id => 1",
    "fast_forward": "branch => 'main', to => 'b'",
    "publish_changes": "wap_id => 'w'",
    "rewrite_table_path": "source_prefix => '/a', target_prefix => '/b'",
    "rollback_to_snapshot": "snapshot_id => 1",
    "rollback_to_timestamp": "timestamp => TIMESTAMP'2020-01-01 00:00:00'",
    "set_current_snapshot": "ref => 'main'",
}


OF_TABLES = sorted({*PROCEDURES} - {"migrate", "register_table", "snapshot"})


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=() if i % 4 == 0 else pytest.mark.nightly)
        for i, n in enumerate(OF_TABLES)
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_missing_table_is_the_error_that_spark_has_for_it(spark: SparkSession, name: str) -> None:
    """The three others make the table."""
    arguments = f", {CALLS[name]}" if name in CALLS else ""
    for table in ("db.missing", "kept.nowhere.missing"):
        with pytest.raises(
            AnalysisException, match=r"`kept`\.`(db|nowhere)`\.`missing`"
        ) as missing:
            spark.sql(f"CALL kept.system.{name}(table => '{table}'{arguments})")
        assert missing.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"


def test_procedure_on_a_view_is_refused(spark: SparkSession, folder: Path) -> None:
    spark.sql("CREATE VIEW kept.db.shown AS SELECT 1 AS n")
    with pytest.raises(PySparkException, match=r"db\.shown"):
        call(spark, "expire_snapshots('db.shown')")


def test_show_and_describe_procedures(spark: SparkSession, folder: Path) -> None:
    actual = spark.sql("SHOW PROCEDURES IN kept.system").collect()
    assert sorted(row["procedure_name"] for row in actual) == sorted(PROCEDURES)
    described = spark.sql("DESCRIBE PROCEDURE kept.system.expire_snapshots").collect()
    assert PROCEDURES["expire_snapshots"].help in str(described)


@pytest.mark.nightly
def test_calls_suggested_by_a_health_report_run(spark: SparkSession, folder: Path) -> None:
    remaining = load_catalog(
        "kept", type="sql", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=str(folder)
    )
    remaining.create_namespace("db", if_not_exists=True)
    for name in ("db.h", "db.`it's an`"):
        remaining.create_table(name, "id INT")
        calls = [gain.call for gain in remaining.load_table(name).health().procedures]
        assert len(calls) == 6
        for call in calls:
            assert call is not None
            spark.sql(call).collect()


@pytest.fixture(scope="module")
def plain(spark: SparkSession, folder: Path) -> Iterator[str]:
    """Yield a namespace of Spark's own catalog; its table has two partitions and a stray folder."""
    spark.sql(f"CREATE NAMESPACE plain LOCATION '{folder}/pl ain'")
    try:
        spark.sql(
            "CREATE TABLE plain.p (id BIGINT COMMENT 'a number', v STRING, day DATE, n INT) "
            "USING parquet PARTITIONED BY (day, n) TBLPROPERTIES ('a' = 'b')"
        )
        spark.sql(
            "INSERT INTO plain.p VALUES (1, 'x', DATE'2026-01-01', 1), (2, 'y', NULL, 2), "
            "(3, 'z', DATE'2026-01-03', 3)"
        )
        # The files of the dropped partition stay, but do not belong to the table any more.
        files = list((folder / "pl ain").rglob("n=3/*.parquet"))
        remaining = [(file, file.read_bytes()) for file in files]
        spark.sql("ALTER TABLE plain.p DROP PARTITION (day = DATE'2026-01-03', n = 3)")
        for file, data in remaining:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        yield "plain"
    finally:
        spark.sql("DROP NAMESPACE plain CASCADE")


@pytest.mark.nightly
def test_files_of_sparks_own_tables(spark: SparkSession, folder: Path, plain: str) -> None:
    rows = sorted(map(str, spark.table("plain.p").collect()))
    assert len(rows) == 2
    spark.sql(
        "CREATE TABLE kept.db.added (id BIGINT, v STRING, day DATE, n INT) PARTITIONED BY (day, n)"
    )
    assert call(spark, "add_files('db.added', 'plain.p', map('n', '2'))") == [(1, 1)]
    assert spark.table("kept.db.added").select("id").collect() == [(2,)]
    with pytest.raises(PySparkException, match=r"are in table .* already"):
        call(spark, "add_files('db.added', 'spark_catalog.plain.p')")
    assert call(spark, "snapshot('plain.p', 'db.snapped', properties => map('x', 'y'))") == [(2,)]
    assert sorted(map(str, spark.table("kept.db.snapped").collect())) == rows
    properties = {r[0]: r[1] for r in spark.sql("SHOW TBLPROPERTIES kept.db.snapped").collect()}
    assert (properties["gc.enabled"], properties["snapshot"]) == ("false", "true")
    assert (properties["a"], properties["x"]) == ("b", "y")
    # Changes of the snapshot table do not affect the source table.
    spark.sql("DELETE FROM kept.db.snapped WHERE id = 1")
    spark.sql("INSERT INTO kept.db.snapped VALUES (9, 'w', NULL, 9)")
    assert sorted(map(str, spark.table("plain.p").collect())) == rows
    with pytest.raises(PySparkException, match=r"gc\.enabled"):
        spark.sql("DROP TABLE kept.db.snapped PURGE")
    spark.sql("CREATE TABLE plain.e (id BIGINT) USING orc")
    assert call(spark, "snapshot('plain.e', 'db.empty')") == [(0,)]
    assert spark.table("kept.db.empty").columns == ["id"]
    spark.sql("INSERT INTO plain.e VALUES (7)")
    assert call(spark, "add_files('db.empty', 'plain.e')") == [(1, 1)]
    assert spark.table("kept.db.empty").collect() == [(7,)]


def test_sources_that_are_refused(spark: SparkSession, folder: Path, plain: str) -> None:
    spark.sql("CREATE TABLE plain.c (id BIGINT) USING csv")
    spark.sql("CREATE TABLE plain.b (id BIGINT) USING parquet CLUSTERED BY (id) INTO 2 BUCKETS")
    spark.sql("CREATE TABLE plain.i (id INTERVAL DAY) USING parquet")
    spark.sql("CREATE VIEW plain.v AS SELECT * FROM plain.p")
    spark.sql("CREATE TABLE plain.at (at ARRAY<TIMESTAMP>) USING orc")
    spark.sql("CREATE TABLE plain.ntz (at TIMESTAMP_NTZ) USING orc")
    spark.sql("CREATE TABLE plain.far (id BIGINT, n INT) USING parquet PARTITIONED BY (n)")
    spark.sql(f"ALTER TABLE plain.far ADD PARTITION (n = 1) LOCATION '{folder}/far'")
    inside = next((folder / "pl ain").rglob("p")) / "inside"
    for text, message in (
        ("snapshot('plain.no', 'db.x')", "there is no table spark_catalog.plain.no"),
        ("snapshot('a.b.c', 'db.x')", "Spark's own catalog"),
        ("snapshot('plain.c', 'db.x')", "of the format csv"),
        ("snapshot('plain.b', 'db.x')", "is bucketed"),
        ("snapshot('plain.i', 'db.x')", "column 'id': Spark type interval day"),
        ("snapshot('plain.v', 'db.x')", "is a view"),
        ("snapshot('plain.at', 'db.x')", "timestamp columns in ORC files"),
        ("snapshot('plain.ntz', 'db.x')", "timestamp columns in ORC files"),
        ("snapshot('plain.far', 'db.x')", "not in the folder of"),
        (f"snapshot('plain.p', 'db.x', '{inside}')", "give a location outside of them"),
        ("snapshot('plain.p', 'db.x', properties => map('gc.enabled', 'true'))", "must be false"),
        ("add_files('db.x', 'plain.p')", "`db`.`x` cannot be found"),
    ):
        with pytest.raises(PySparkException, match=message):
            call(spark, text)
    assert "x" not in {row[1] for row in spark.sql("SHOW TABLES IN kept.db").collect()}
    assert len(spark.table("plain.p").collect()) == 2
