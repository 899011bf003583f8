"""Scans that Java's REST server plans, in Spark: rows on both read paths, and refused scans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import iceberg_pyspark as ice
from iceberg_pyspark.catalogs.rest.scan_planning import ScanPlanning
from tests.amounts import FULL_WORK
from tests.support.deleted_rows import delete_rows
from tests.support.frames import append_rows
from tests.support.read_paths import Read
from tests.support.rows import spark_rows

pytestmark = pytest.mark.nightly

TABLES = ("planned.two", "planned.three", "planned.keys")
FILTERS = ("", "g = 1 AND v IS NOT NULL", *(["id > 12"] if FULL_WORK else []))


@pytest.fixture(scope="module")
def session(spark: SparkSession, rest_uri: str) -> Iterator[SparkSession]:
    """Yield a session in which the catalog `here` plans itself and `there` lets the server plan."""
    new_session = spark.newSession()
    for name, mode in (("here", "client"), ("there", "server")):
        new_session.conf.set(f"spark.sql.catalog.{name}", "iceberg_pyspark")
        new_session.conf.set(f"spark.sql.catalog.{name}.type", "rest")
        new_session.conf.set(f"spark.sql.catalog.{name}.uri", rest_uri)
        new_session.conf.set(f"spark.sql.catalog.{name}.scan-planning-mode", mode)
    installed = ice.install(new_session)
    new_session.sql("CREATE NAMESPACE here.planned")
    lake = catalog_here(rest_uri)
    for name, version in zip(TABLES, (2, 3, 2), strict=True):
        table = lake.create_table(
            name,
            "id BIGINT, g INT, v STRING",
            partitioned_by=["g"],
            properties={"format-version": str(version), "write.delete.mode": "merge-on-read"},
        )
        for first in (0, 10):
            append_rows(table, [row(n) for n in range(first, first + 10)])
        # Delete one row per commit: Java's server 1.11 confuses the vectors of one Puffin file.
        for row_id in (2, 5, 15):
            delete_rows(table, "id", [row_id])
    keys = new_session.sql("SELECT * FROM VALUES (11L, 1), (4L, 0) AS v(id, g)")
    installed.table(f"here.{TABLES[2]}").write_equality_deletes(keys, ["id", "g"])
    append_rows(table.refresh(), [{"id": 11, "g": 1, "v": "again"}])
    yield new_session
    installed.uninstall()


def catalog_here(rest_uri: str) -> ice.TableCatalog:
    """Return the catalog `here` without Spark."""
    mode = {"scan-planning-mode": "client"}
    return ice.load_catalog("here", type="rest", uri=rest_uri, **mode)


def row(number: int) -> dict[str, Any]:
    return {"id": number, "g": number % 2, "v": None if number == 3 else str(number)}


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that records the scans that the server was asked to plan."""
    scans: list[Any] = []
    plan = ScanPlanning.__call__

    def counted(self: ScanPlanning, scan: Any) -> Any:
        scans.append(scan)
        return plan(self, scan)

    monkeypatch.setattr(ScanPlanning, "__call__", counted)
    return scans


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("read_path", ["portable", "native"], indirect=True)
def test_rows_of_the_data_source(read: Read, rest_uri: str, planned: list[Any]) -> None:
    # The third table has equality deletes. A server does not return their sequence numbers, so
    # Python workers read the table even where the other tables are read natively.
    for name in TABLES[: 2 if FULL_WORK else 1]:
        for text in FILTERS:
            options = {"catalog": "lake", "catalog.type": "rest", "catalog.uri": rest_uri}
            options |= {"filter": text} if text else {}
            here = read(name, options).rows
            assert not planned
            there = read(name, {**options, "catalog.scan-planning-mode": "server"}).rows
            assert there == here
            assert planned
            planned.clear()


def test_sql(session: SparkSession, rest_uri: str, planned: list[Any]) -> None:
    lake = catalog_here(rest_uri)
    for name in TABLES:
        snapshot_id = lake.load_table(name).snapshots[0].snapshot_id
        # What comes from the planner only once does not depend on the kind of deletes.
        others = (
            "{} WHERE v IN ('1', '13')",
            f"{{}} VERSION AS OF {snapshot_id}",
            "{} a JOIN (SELECT max(id) id FROM {}) USING (id)",
        )
        for text in ("{}", "{} WHERE g = 1 AND id > 3", *(others if name == TABLES[1] else ())):
            here, there = (
                spark_rows(
                    session.sql(f"SELECT * FROM {text.replace('{}', f'{c}.{name}')}").collect()
                )
                for c in ("here", "there")
            )
            assert there == here, text
            assert planned
            planned.clear()
        counts = [session.table(f"{c}.{name}").where("id > 5").count() for c in ("here", "there")]
        assert counts[0] == counts[1]
        assert session.table(f"there.{name}.files").count() > 1


def test_rows_are_not_changed_and_may_be_added(session: SparkSession) -> None:
    before = session.table("here.planned.two").count()
    session.sql("INSERT INTO there.planned.two VALUES (100, 0, 'new')")
    assert session.table("there.planned.two").count() == before + 1
    for statement in (
        "DELETE FROM there.planned.two WHERE id = 100",
        "UPDATE there.planned.two SET v = 'x' WHERE id = 100",
        "MERGE INTO there.planned.two t USING (SELECT 100L id) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(Exception, match="planned by its catalog's server"):
            session.sql(statement)
    assert session.table("there.planned.two").count() == before + 1
