"""migrate: a Spark table becomes an Iceberg table in place, or stays unchanged."""

from __future__ import annotations

import itertools
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import install, load_catalog
from iceberg_pyspark.errors import CommitStateUnknownError, InvalidRequestError
from iceberg_pyspark.spark.bridge.session_tables import set_table_type
from iceberg_pyspark.spark.procedures import adoption, migrate
from iceberg_pyspark.spark.procedures.adoption import table_source
from iceberg_pyspark.table.commits.add_files import FileImport
from tests.amounts import FULL_WORK
from tests.spark.killed_migration import die_at
from tests.support.native_lake import session_catalog
from tests.support.parameters import cases

PREFIX = "spark.sql.catalog.spark_catalog"
_numbers = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("migrate")


@pytest.fixture(scope="module")
def session(spark: SparkSession, folder: Path) -> Iterator[SparkSession]:
    """Yield a session whose `spark_catalog` is an iceberg_pyspark catalog on SQLite."""
    with session_catalog(spark, folder) as new_session:
        yield new_session


@pytest.fixture
def db(session: SparkSession, folder: Path) -> Iterator[str]:
    name = f"moved{next(_numbers)}"
    session.sql(f"CREATE NAMESPACE {name} LOCATION '{folder}/{name} in a folder'")
    yield name
    session.sql("USE default")
    session.sql(f"DROP NAMESPACE IF EXISTS {name} CASCADE")


def make(session: SparkSession, table: str, *, at: Path | None = None) -> None:
    """Create a table with two partitions; EXTERNAL if `at` is given, otherwise MANAGED."""
    place = "" if at is None else f"LOCATION '{at}'"
    session.sql(
        f"CREATE TABLE {table} (id BIGINT COMMENT 'a number', Name STRING, Day DATE) USING parquet "
        f"PARTITIONED BY (Day) {place} "
        "TBLPROPERTIES ('a' = 'b')"
    )
    session.sql(
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'x', DATE'2026-01-01'), "
        "(2, NULL, DATE'2026-01-01'), (3, 'z', NULL)"
    )


def call(session: SparkSession, text: str, catalog: str = "spark_catalog") -> list[tuple[Any, ...]]:
    return [tuple(r) for r in session.sql(f"CALL {catalog}.system.migrate({text})").collect()]


def rows(session: SparkSession, table: str) -> list[str]:
    return sorted(map(str, session.table(table).collect()))


def tables(session: SparkSession, db: str) -> list[str]:
    return sorted(row.tableName for row in session.sql(f"SHOW TABLES IN {db}").collect())


def described(session: SparkSession, table: str) -> dict[str, str]:
    result = session.sql(f"DESCRIBE EXTENDED {table}").collect()
    return {row[0]: row[1] for row in result if row[0] not in ("Last Access", "")}


def files(place: Path) -> dict[Path, bytes]:
    return {f: f.read_bytes() for f in place.rglob("*") if f.is_file()}


def place_of(session: SparkSession, table: str) -> Path:
    return Path(described(session, table)["Location"].removeprefix("file:"))


@pytest.mark.nightly
@pytest.mark.parametrize("is_managed", [True, False])
@pytest.mark.parametrize("drops_backup", [True, False])
def test_a_table_becomes_an_iceberg_table_and_its_files_stay_where_they_are(
    session: SparkSession, db: str, tmp_path: Path, is_managed: bool, drops_backup: bool
) -> None:
    table = f"{db}.t"
    make(session, table, at=None if is_managed else tmp_path / "t")
    assert described(session, table)["Type"] == ("MANAGED" if is_managed else "EXTERNAL")
    expected, place = rows(session, table), place_of(session, table)
    before = files(place)
    properties = "properties => map('x', 'y', 'a', 'c', 'format-version', '3')"
    drop = "true" if drops_backup else "false"
    assert call(session, f"table => '{table}', {properties}, drop_backup => {drop}") == [(2,)]
    assert tables(session, db) == (["t"] if drops_backup else ["t", "t_backup_"])
    actual = described(session, table)
    assert (actual["Provider"], actual["Location"]) == ("iceberg", f"file:{place}")
    shape = "struct<id:bigint,Name:string,Day:date>"
    assert session.table(table).schema.simpleString() == shape
    shown = {r[0]: r[1] for r in session.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    assert (shown["a"], shown["x"], shown["migrated"]) == ("c", "y", "true")
    assert shown["format-version"] == "3"
    assert "transient_lastDdlTime" not in shown
    assert rows(session, table) == expected
    after = files(place)
    assert {f: after.get(f) for f in before} == before
    # The migrated table accepts writes, and the backup can be dropped independently.
    session.sql(f"INSERT INTO {table} VALUES (4, 'w', DATE'2026-02-01')")
    if not drops_backup:
        backup = f"{table}_BACKUP_"
        assert described(session, backup)["Type"] == "EXTERNAL"
        assert rows(session, backup) == expected
        session.sql(f"DROP TABLE {backup}")
    assert len(rows(session, table)) == len(expected) + 1
    session.sql(f"DELETE FROM {table} WHERE id = 1")
    assert len(rows(session, table)) == len(expected)
    again = [*expected[1:], *(r for r in rows(session, table) if "id=4" in r)]
    assert rows(session, table) == sorted(again)


def test_only_files_that_spark_reads_are_in_it(session: SparkSession, db: str) -> None:
    make(session, f"{db}.t")
    session.sql(f"CREATE TABLE {db}.u USING parquet AS SELECT 1 AS id")
    for table in ("t", "u"):
        place = place_of(session, f"{db}.{table}")
        file = next(place.rglob("*.parquet"))
        for other in (file.parent / "nested", file.parent / "_hidden"):
            other.mkdir()
            shutil.copy(file, other / "a.parquet")
        expected = rows(session, f"{db}.{table}")
        call(session, f"'{db}.{table}', NULL, true")
        assert rows(session, f"{db}.{table}") == expected


@pytest.mark.nightly
def test_names_of_the_table_and_of_its_backup(session: SparkSession, db: str, folder: Path) -> None:
    for name in ("one", "two", "three"):
        session.sql(f"CREATE TABLE {db}.{name} USING parquet AS SELECT 1 AS id")
    session.conf.set("spark.sql.catalog.other", "iceberg_pyspark")
    session.conf.set("spark.sql.catalog.other.type", "hadoop")
    session.conf.set("spark.sql.catalog.other.warehouse", f"{folder}/other")
    assert call(session, f"'spark_catalog.{db}.one', backup_table_name => 'kept'", "other")
    session.sql(f"USE {db}")
    assert call(session, "'two'") == [(1,)]
    session.sql("USE other")
    with pytest.raises(PySparkException, match="would be a table of catalog other"):
        call(session, f"'{db}.three'", "other")
    assert call(session, f"'{db}.three'") == [(1,)]
    session.sql("USE spark_catalog.default")
    assert tables(session, db) == ["kept", "one", "three", "three_backup_", "two", "two_backup_"]


@pytest.mark.nightly
def test_a_table_without_rows(session: SparkSession, db: str) -> None:
    session.sql(f"CREATE TABLE {db}.t (id INT) USING orc")
    assert call(session, f"'{db}.t'") == [(0,)]
    session.sql(f"INSERT INTO {db}.t VALUES (1)")
    assert session.table(f"{db}.t").collect() == [(1,)]


def test_partitions_without_a_folder_are_refused_or_left_out(
    session: SparkSession, db: str
) -> None:
    make(session, f"{db}.t")
    place = place_of(session, f"{db}.t")
    shutil.rmtree(place / "Day=2026-01-01")
    session.sql(f"ALTER TABLE {db}.t ADD PARTITION (Day = DATE'2026-03-03')")
    with pytest.raises(PySparkException, match=r"Day=2026-01-01 is not there"):
        call(session, f"'{db}.t'")
    assert described(session, f"{db}.t")["Type"] == "MANAGED"
    assert call(session, f"'{db}.t', ignore_missing_files => true") == [(1,)]


def _state(session: SparkSession, db: str, place: Path) -> Any:
    """Return everything that a failed migration must leave unchanged, without a statement."""
    catalog = session._jsparkSession.sessionState().catalog().externalCatalog()
    nothing = session._jvm.scala.Option.empty()  # type: ignore[union-attr]
    entries = (
        catalog.getTable(db, "t"),
        catalog.listPartitions(db, "t", nothing),
        catalog.listTables(db),
    )
    return [entry.toString() for entry in entries], files(place)


STEPS = ("set_table_type", "rename_table", "table_source", "check_folders", "import_of")
# Which call of a step fails (the second one may undo the first), and whether its work is done.
FAILURES = [(0, True), (1, False)]
if FULL_WORK:
    FAILURES += [(0, False), (1, True)]


@cases("is_managed", fast=[True], nightly=[False])
def test_whatever_step_fails_the_table_is_as_it_was(
    session: SparkSession,
    db: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_managed: bool,
) -> None:
    make(session, f"{db}.t", at=None if is_managed else tmp_path / "t")
    place = place_of(session, f"{db}.t")
    before, expected = _state(session, db, place), rows(session, f"{db}.t")
    failed = 0
    for step in STEPS:
        for number, is_done in FAILURES:
            calls = itertools.count()
            real = getattr(migrate, step)

            def fails(
                *arguments: Any,
                real: Any = real,
                calls: Any = calls,
                number: int = number,
                is_done: bool = is_done,
            ) -> Any:
                if next(calls) != number:
                    return real(*arguments)
                if is_done:
                    real(*arguments)
                raise InvalidRequestError("the step has failed")

            with monkeypatch.context() as patched:
                patched.setattr(migrate, step, fails)
                # Fail the last step too, so that steps whose second call undoes the first have work
                # to do.
                patched.setattr(FileImport, "create", _fails)
                with pytest.raises(PySparkException, match="has failed") as e:
                    call(session, f"'{db}.t', drop_backup => true")
            if "could not be restored" in str(e.value):
                # The restoring step itself failed, so the error explains how to restore by hand.
                assert "no file was moved or deleted" in str(e.value)
                assert files(place) == before[-1]
                if "t" not in tables(session, db):
                    session.sql(f"ALTER TABLE {db}.t_BACKUP_ RENAME TO {db}.t")
                if is_managed:
                    table = table_source(session, (db, "t"))[0]
                    set_table_type(session, table, "MANAGED")
            assert _state(session, db, place) == before, (step, number, is_done)
            failed += 1
        assert rows(session, f"{db}.t") == expected, step
    assert failed == len(FAILURES) * len(STEPS)
    assert call(session, f"'{db}.t'") == [(2,)]


def _fails(_self: FileImport) -> Any:
    raise InvalidRequestError("the commit has failed")


def test_a_file_that_cannot_be_read_leaves_the_table_as_it_was(
    session: SparkSession, db: str
) -> None:
    make(session, f"{db}.t")
    place = place_of(session, f"{db}.t")
    before, expected = _state(session, db, place), rows(session, f"{db}.t")
    damaged = place / "Day=2026-01-01" / "part-damaged.parquet"
    damaged.write_bytes(b"no Parquet")
    with pytest.raises(PySparkException, match=r"part-damaged\.parquet"):
        call(session, f"'{db}.t'")
    damaged.unlink()
    assert _state(session, db, place) == before
    assert rows(session, f"{db}.t") == expected


@pytest.mark.nightly
def test_another_writer_takes_the_name_meanwhile(
    session: SparkSession, db: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other writer's table stays, and the files that the migration wrote are deleted."""
    make(session, f"{db}.t")
    place = place_of(session, f"{db}.t")
    before = files(place)
    ours = load_catalog(
        "spark_catalog", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/o"
    )
    real = adoption.check_folders

    def races(*arguments: Any) -> None:
        real(*arguments)
        ours.create_table(f"{db}.t", "id BIGINT")

    monkeypatch.setattr(migrate, "check_folders", races)
    with pytest.raises(PySparkException, match="was created by another writer in the meantime"):
        call(session, f"'{db}.t'")
    assert files(place) == before
    assert not (place / "metadata").exists()
    ours.drop_table(f"{db}.t")
    session.sql(f"REFRESH TABLE {db}.t")
    assert tables(session, db) == ["t"]
    assert described(session, f"{db}.t")["Type"] == "MANAGED"
    assert len(rows(session, f"{db}.t")) == 3


def test_commit_with_unknown_outcome_is_not_undone(
    session: SparkSession, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(session, f"{db}.t")
    real = FileImport.create

    def is_not_known(creation: FileImport) -> Any:
        real(creation)
        raise CommitStateUnknownError("the answer was lost")

    monkeypatch.setattr(FileImport, "create", is_not_known)
    expected = rows(session, f"{db}.t")
    with pytest.raises(PySparkException, match=r"the answer was lost.*t_BACKUP_ now"):
        call(session, f"'{db}.t'")
    assert tables(session, db) == ["t", "t_backup_"]
    assert rows(session, f"{db}.t") == rows(session, f"{db}.t_BACKUP_") == expected


@pytest.mark.nightly
def test_a_killed_migration_loses_no_file_and_can_be_run_again(
    session: SparkSession, db: str, folder: Path
) -> None:
    """The table has its old name or that of its backup, or is an Iceberg table."""
    states = set()
    for step in range(1, 60):
        name = f"t{step}"
        table = f"{db}.{name}"
        make(session, table)
        expected, place = rows(session, table), place_of(session, table)
        before = files(place)
        code = die_at(session, str(folder), table, step)
        after = files(place)
        assert {f: after.get(f) for f in before} == before
        existing = {name, f"{name}_backup_"} & set(tables(session, db))
        assert existing, step
        if name in existing:
            session.sql(f"REFRESH TABLE {table}")
        provider = described(session, table)["Provider"] if name in existing else None
        states.add((provider, f"{name}_backup_" in existing))
        for one in existing:
            assert rows(session, f"{db}.{one}") == expected, (step, one)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        if name not in existing:
            session.sql(f"ALTER TABLE {db}.{name}_BACKUP_ RENAME TO {table}")
        if provider != "iceberg":
            assert call(session, f"'{table}'") == [(2,)]
        assert described(session, table)["Provider"] == "iceberg"
        assert rows(session, table) == expected
    else:
        pytest.fail("the migration did not come to its end in 60 steps")
    assert step > 10
    assert states == {("parquet", False), (None, True), ("iceberg", True), ("iceberg", False)}


@pytest.mark.nightly
def test_a_killed_snapshot_makes_a_whole_table_or_none(
    session: SparkSession, db: str, folder: Path
) -> None:
    """The source stays as it is, and the procedure can be run again if there is no new table."""
    source = f"{db}.t"
    make(session, source)
    expected, before = rows(session, source), files(place_of(session, source))
    states = set()
    for step in range(1, 60):
        new = f"{db}.s{step}"
        code = die_at(session, str(folder), source, step, new)
        is_made = f"s{step}" in tables(session, db)
        states.add(is_made)
        if not is_made:
            statement = f"CALL spark_catalog.system.snapshot('spark_catalog.{source}', '{new}')"
            assert [tuple(r) for r in session.sql(statement).collect()] == [(2,)]
        assert described(session, new)["Provider"] == "iceberg"
        assert rows(session, new) == rows(session, source) == expected
        assert files(place_of(session, source)) == before
        if code == 0:
            break
        assert code == -signal.SIGKILL
    else:
        pytest.fail("the snapshot did not come to its end in 60 steps")
    assert step > 5
    assert states == {False, True}


def test_unsuitable_table_is_not_migrated(session: SparkSession, db: str, tmp_path: Path) -> None:
    make(session, f"{db}.t")
    session.sql(f"CREATE TABLE {db}.ice (id INT) USING iceberg")
    session.sql(f"CREATE TABLE {db}.c (id INT) USING csv")
    session.sql(f"CREATE TABLE {db}.p (id INT) USING parquet LOCATION '{tmp_path}/purged'")
    session.sql(f"ALTER TABLE {db}.p SET TBLPROPERTIES ('external.table.purge' = 'TRUE')")
    session.sql(f"CREATE VIEW {db}.v AS SELECT * FROM {db}.t")
    session.sql(f"CREATE TABLE {db}.b (id INT) USING parquet CLUSTERED BY (id) INTO 2 BUCKETS")
    before = tables(session, db)
    for text, message in (
        (f"'{db}.no'", "there is no table spark_catalog"),
        ("''", "the argument table must name a table"),
        ("'a.b.c'", "names such as spark_catalog.db.table"),
        (f"'{db}.ice'", "is already an Iceberg table"),
        (f"'{db}.c'", "of the format csv"),
        (f"'{db}.v'", "is a view"),
        (f"'{db}.b'", "is bucketed"),
        (f"'{db}.t', parallelism => 0", "parallelism must be larger than 0"),
        (f"'{db}.t', backup_table_name => 'p'", "p already exists"),
        (f"'{db}.t', backup_table_name => 'ice'", "ice already exists"),
        (f"'{db}.t', backup_table_name => 'x.y'", "not a valid name"),
        (f"'{db}.t', map('provider', 'orc')", "not one of the format orc"),
        (f"'{db}.t', map('format-version', '9')", "cannot write format version 9"),
        (f"'{db}.p', drop_backup => true", "external.table.purge = true"),
    ):
        with pytest.raises(PySparkException, match=message):
            call(session, text)
        assert tables(session, db) == before, text
    assert described(session, f"{db}.t")["Type"] == "MANAGED"
    assert len(rows(session, f"{db}.t")) == 3


def test_a_catalog_whose_folders_are_its_tables_is_refused(
    spark: SparkSession, db: str, tmp_path: Path
) -> None:
    new_session = spark.newSession()
    new_session.conf.set(PREFIX, "iceberg_pyspark")
    new_session.conf.set(f"{PREFIX}.type", "hadoop")
    new_session.conf.set(f"{PREFIX}.warehouse", str(tmp_path))
    installed = install(new_session)
    make(new_session, f"{db}.t")
    with pytest.raises(PySparkException, match="give spark_catalog another catalog type"):
        call(new_session, f"'{db}.t'")
    assert tables(new_session, db) == ["t"]
    assert len(rows(new_session, f"{db}.t")) == 3
    # A session whose `spark_catalog` has no Iceberg tables refuses the procedure too.
    new_session.conf.unset(PREFIX)
    installed.uninstall()
    plain = spark.newSession()
    plain.conf.set("spark.sql.catalog.only", "iceberg_pyspark")
    plain.conf.set("spark.sql.catalog.only.type", "hadoop")
    plain.conf.set("spark.sql.catalog.only.warehouse", str(tmp_path))
    again = install(plain)
    with pytest.raises(PySparkException, match="has no Iceberg tables in this session"):
        call(plain, f"'{db}.t'", "only")
    again.uninstall()
