"""SQLMesh with the package's wheel and the configuration of docs/guide/sqlmesh.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.releases.tool_projects import Project, tool_programs

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]

PLAN = ("plan", "--auto-apply", "--no-prompts")
SOURCE = (
    "CREATE NAMESPACE raw",
    "CREATE TABLE raw.orders (id BIGINT, customer STRING, amount BIGINT, changed_at TIMESTAMP) "
    "USING iceberg",
    "INSERT INTO raw.orders VALUES (1, 'ann', 10, TIMESTAMP'2026-01-01 01:00:00'), "
    "(2, 'bob', 20, TIMESTAMP'2026-01-02 02:00:00'), "
    "(3, 'ann', 30, TIMESTAMP'2026-01-03 03:00:00')",
)
CHANGES = (
    "DELETE FROM raw.orders WHERE id = 2",
    "UPDATE raw.orders SET amount = 15, changed_at = TIMESTAMP'2026-02-01 01:00:00' WHERE id = 1",
    "INSERT INTO raw.orders VALUES (4, 'cid', 40, TIMESTAMP'2026-02-02 04:00:00')",
)

ANN, ANN_CHANGED = ["1", "ann", "10", "2026-01-01"], ["1", "ann", "15", "2026-02-01"]
BOB = ["2", "bob", "20", "2026-01-02"]
REST = ["3", "ann", "30", "2026-01-03"]
CID = ["4", "cid", "40", "2026-02-02"]
CITIES = [["ann", "Bonn"], ["bob", "Rome"]]
# SQLMesh's start of what was valid before it looked, and the time of the second plan.
START, SECOND = "1970-01-01 00:00:00", "2026-02-10 00:00:00"
AT_FIRST_TIME = ("--execution-time", "2026-01-05")
AT_SECOND_TIME = ("--execution-time", "2026-02-10")

FIRST_ROWS = {
    "cities": CITIES,
    "orders": [ANN, BOB, REST],
    "customers": [["ann", "40", "2", "Bonn"], ["bob", "20", "1", "Rome"]],
    "order_days": [["1", "10", "2026-01-01"], ["2", "20", "2026-01-02"], ["3", "30", "2026-01-03"]],
    "latest_orders": [ANN, BOB, REST],
    "orders_by_time": [[id_, amount, START, "None"] for id_, _, amount, _ in (ANN, BOB, REST)],
    "orders_by_column": [[id_, amount, START, "None"] for id_, _, amount, _ in (ANN, BOB, REST)],
}
SECOND_ROWS = {
    "cities": CITIES,
    "orders": [ANN_CHANGED, REST, CID],
    "customers": [["ann", "45", "2", "Bonn"], ["cid", "40", "1", "None"]],
    "order_days": [
        [id_, amount, day] for id_, _, amount, day in (ANN, ANN_CHANGED, BOB, REST, CID)
    ],
    "latest_orders": [ANN_CHANGED, BOB, REST, CID],
    "orders_by_time": [
        ["1", "10", START, "2026-02-01 01:00:00"],
        ["1", "15", "2026-02-01 01:00:00", "None"],
        ["2", "20", START, SECOND],
        ["3", "30", START, "None"],
        ["4", "40", START, "None"],
    ],
    "orders_by_column": [
        ["1", "10", START, SECOND],
        ["1", "15", SECOND, "None"],
        ["2", "20", START, SECOND],
        ["3", "30", START, "None"],
        ["4", "40", SECOND, "None"],
    ],
}
# `dev` has the new city in its full model, and the new column in the rows that it previews; `prod`
# has both in rows that are written from then on.
PREVIEW = {
    "cities": [*CITIES, ["cid", "Oslo"]],
    "customers": [["ann", "45", "2", "Bonn"], ["cid", "40", "1", "Oslo"]],
    "order_days": [["1", "15", "2026-02-01", "ann"], ["4", "40", "2026-02-02", "cid"]],
}
THIRD_ROWS = SECOND_ROWS | {
    "cities": PREVIEW["cities"],
    "order_days": [[*row, "None"] for row in SECOND_ROWS["order_days"]],
}
COLUMNS = {
    "orders": "id, customer, amount, day",
    "orders_by_time": "id, amount, valid_from, valid_to",
    "orders_by_column": "id, amount, valid_from, valid_to",
}


def queries(schema: str) -> Mapping[str, str]:
    return {name: f"SELECT {COLUMNS.get(name, '*')} FROM {schema}.{name}" for name in SECOND_ROWS}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with tool_programs(tmp_path_factory.mktemp("sqlmesh"), "sqlmesh>=0.236") as programs:
        yield programs


@pytest.mark.parametrize("target", ["lake", "spark_catalog"])
def test_environments_have_the_rows_that_follow_from_the_source(
    target: str, programs: Path, tmp_path: Path
) -> None:
    files = "sqlmesh_project/config.yaml"
    project = Project.copied(files, "sqlmesh.md", target, programs, tmp_path)
    settings = project.settings["gateways"][target]["connection"]["config"]

    def sqlmesh(*arguments: str) -> str:
        return project.run("python", "-m", "iceberg_pyspark.run", "sqlmesh", *arguments)

    project.rows(settings, {}, SOURCE)
    sqlmesh(*PLAN, "dev", "--start", "2026-01-01", *AT_FIRST_TIME)
    sqlmesh(*PLAN, *AT_FIRST_TIME)
    assert project.rows(settings, queries("shop__dev")) == FIRST_ROWS
    assert project.rows(settings, queries("shop")) == FIRST_ROWS

    project.rows(settings, {}, CHANGES)
    sqlmesh(*PLAN, "--run", *AT_SECOND_TIME)
    assert project.rows(settings, queries("shop")) == SECOND_ROWS

    with (project.folder / "seeds" / "cities.csv").open("a", encoding="utf-8") as seed:
        seed.write("cid,Oslo\n")
    model = project.folder / "models" / "order_days.sql"
    sql = model.read_text(encoding="utf-8").replace("id, amount, day", "id, amount, day, customer")
    model.write_text(sql, encoding="utf-8")
    sqlmesh(*PLAN, "dev", "--forward-only", *AT_SECOND_TIME)
    assert project.rows(settings, queries("shop")) == SECOND_ROWS
    previews = {name: f"SELECT * FROM shop__dev.{name}" for name in PREVIEW}
    assert project.rows(settings, previews) == PREVIEW
    sqlmesh(*PLAN, "--forward-only", *AT_SECOND_TIME)
    assert project.rows(settings, queries("shop")) == THIRD_ROWS

    sqlmesh("invalidate", "dev")
    sqlmesh("janitor")
    shown = project.rows(
        settings,
        {
            "dev": "SHOW NAMESPACES LIKE 'shop__dev'",
            "physical": "SHOW TABLE EXTENDED IN sqlmesh__shop LIKE 'shop__*'",
        },
    )
    assert shown["dev"] == []
    kinds = ["Provider: iceberg" in row[3] or "Type: VIEW" in row[3] for row in shown["physical"]]
    assert all(kinds)
    assert len(kinds) >= len(THIRD_ROWS)
