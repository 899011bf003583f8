"""snapshot and migrate of tables USING avro, in a Spark without the package spark-avro.

Spark only creates such a table with that package: `tests/support/avro_sources.py` makes the entry
in Spark's catalog and the files.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.bridge.session_tables import session_table
from tests.support.avro_sources import COLUMNS, EMPTY, FULL, set_provider, write
from tests.support.native_lake import session_catalog

pytestmark = pytest.mark.nightly

PREFIX = "spark.sql.catalog.lake"
_numbers = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("avro-sources")


@pytest.fixture(scope="module")
def session(spark: SparkSession, folder: Path) -> Iterator[SparkSession]:
    """Yield a session with Iceberg's `spark_catalog` on SQLite, and the Hadoop catalog `lake`."""
    with session_catalog(spark, folder) as new_session:
        for key, value in {
            PREFIX: "iceberg_pyspark",
            f"{PREFIX}.type": "hadoop",
            f"{PREFIX}.warehouse": f"{folder}/lake",
            "spark.sql.session.timeZone": "UTC",
        }.items():
            new_session.conf.set(key, value)
        new_session.sql("CREATE NAMESPACE lake.db")
        yield new_session


@pytest.fixture
def db(session: SparkSession, folder: Path) -> Iterator[str]:
    name = f"avro{next(_numbers)}"
    session.sql(f"CREATE NAMESPACE {name} LOCATION '{folder}/{name}'")
    yield name
    session.sql(f"DROP NAMESPACE IF EXISTS {name} CASCADE")


def make(
    session: SparkSession,
    db: str,
    *,
    partitioned: bool = False,
    tail: str = "",
) -> Path:
    """Create the table `db.t` with an entry like that of a table USING avro; return its folder."""
    more, by = (", Day DATE", "PARTITIONED BY (Day)") if partitioned else ("", "")
    session.sql(
        f"CREATE TABLE {db}.t ({COLUMNS}{more}) USING parquet {by} {tail} TBLPROPERTIES ('a' = 'b')"
    )
    if partitioned:
        for day in ("DATE'2026-01-01'", "NULL"):
            session.sql(f"ALTER TABLE {db}.t ADD PARTITION (Day = {day})")
    set_provider(session, db, "t", "avro")
    table = session_table(session, (db, "t"))
    assert table.provider == "avro"
    return Path(table.location.removeprefix("file:"))


def files(place: Path) -> dict[Path, bytes]:
    return {
        f: f.read_bytes() for f in place.rglob("*") if f.is_file() and "metadata" not in f.parts
    }


def plain(session: SparkSession, table: str) -> list[dict[str, Any]]:
    rows = session.table(table).orderBy("id").collect()
    return [row.asDict(recursive=True) for row in rows]


def expected(*rows: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """Return the rows as Spark returns them; Python shows a timestamp in the process's zone."""
    return [
        {**r, "at": r["at"] and r["at"].astimezone().replace(tzinfo=None), **more} for r in rows
    ]


def call(session: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return [tuple(r) for r in session.sql(f"CALL {text}").collect()]


@pytest.mark.parametrize("procedure", ["migrate", "snapshot"])
def test_every_type_that_spark_writes(session: SparkSession, db: str, procedure: str) -> None:
    place = make(session, db)
    write(place, [FULL, EMPTY])
    write(place, [{**EMPTY, "id": 3}], "_part-hidden.avro")
    before = files(place)
    if procedure == "snapshot":
        table = f"lake.db.{db}"
        assert call(session, f"lake.system.snapshot('{db}.t', 'db.{db}')") == [(1,)]
    else:
        table = f"{db}.t"
        assert call(session, f"spark_catalog.system.migrate('{db}.t')") == [(1,)]
    actual = plain(session, table)
    assert actual == expected(FULL, EMPTY)
    session.sql(f"INSERT INTO {table} (id, name) VALUES (9, 'new')")
    session.sql(f"DELETE FROM {table} WHERE id = 1")
    assert [row["id"] for row in plain(session, table)] == [2, 9]
    assert {f: data for f, data in files(place).items() if f in before} == before
    properties = {r[0]: r[1] for r in session.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    assert properties["a"] == "b"
    mapping = json.loads(properties["schema.name-mapping.default"])
    assert [m["names"] for m in mapping] == [[name] for name in FULL]


@pytest.mark.parametrize("is_managed", [True, False])
def test_partitions_of_a_migrated_table(
    session: SparkSession, db: str, tmp_path: Path, is_managed: bool
) -> None:
    tail = "" if is_managed else f"LOCATION '{tmp_path}/t'"
    place = make(session, db, partitioned=True, tail=tail)
    write(place / "Day=2026-01-01", [FULL])
    write(place / "Day=__HIVE_DEFAULT_PARTITION__", [EMPTY])
    assert call(session, f"lake.system.snapshot('{db}.t', 'db.{db}')") == [(2,)]
    assert call(session, f"spark_catalog.system.migrate('{db}.t', drop_backup => true)") == [(2,)]
    for table in (f"{db}.t", f"lake.db.{db}"):
        rows = [
            *expected(FULL, Day=date(2026, 1, 1)),
            *expected(EMPTY, Day=None),
        ]
        assert plain(session, table) == rows
        assert session.table(table).where("Day = DATE'2026-01-01'").count() == 1
    assert [r.tableName for r in session.sql(f"SHOW TABLES IN {db}").collect()] == ["t"]


def test_a_file_of_another_format_leaves_the_table_as_it_was(
    session: SparkSession, db: str
) -> None:
    place = make(session, db)
    write(place, [FULL])
    (place / "part-1.avro").write_bytes(b"PAR1 no Avro")
    before = files(place)
    for text in (
        f"lake.system.snapshot('{db}.t', 'db.{db}')",
        f"spark_catalog.system.migrate('{db}.t')",
    ):
        with pytest.raises(PySparkException, match=r"part-1\.avro"):
            call(session, text)
    assert files(place) == before
    table = session_table(session, (db, "t"))
    assert (table.provider, table.type) == ("avro", "MANAGED")
    assert not session.catalog.tableExists(f"{db}.t_BACKUP_")
    assert not session.sql(f"SHOW TABLES IN lake.db LIKE '{db}'").collect()
