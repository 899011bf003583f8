"""dbt with the package's wheel and the profile of docs/guide/dbt.md, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.releases.tool_projects import Project, tool_programs

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]

# dbt-core 1.12 depends on a package whose build downloads a program from outside of PyPI.
DBT = ("dbt-core==1.11.*", "dbt-spark[session]==1.11.*")

# The microbatch model has two batches.
BUILD = ("build", "--event-time-start", "2026-01-01", "--event-time-end", "2026-03-01")
CHANGED = ("--vars", "{changed: true}")
BROKEN = ("run", "--select", "customers", "order_amounts", "--vars", "{broken: true}")
PASSED = "PASS=14 WARN=0 ERROR=0"

CHANGED_ORDERS = """id,customer,amount,changed_at
1,ann,15,2026-02-01
3,ann,30,2026-01-03
4,cid,40,2026-02-02
"""
ANN = ["1", "ann", "10", "2026-01-01"]
BOB = ["2", "bob", "20", "2026-01-02"]
ORDERS = [line.split(",") for line in CHANGED_ORDERS.splitlines()[1:]]
HISTORY = [
    ["1", "10", "2026-01-01", "2026-02-01"],
    ["1", "15", "2026-02-01", "None"],
    ["2", "20", "2026-01-02", "None"],
    ["3", "30", "2026-01-03", "None"],
    ["4", "40", "2026-02-02", "None"],
]
# whether each amount is the current one
AMOUNTS = [
    ["1", "10", "false"],
    ["1", "15", "true"],
    ["2", "20", "false"],
    ["3", "30", "true"],
    ["4", "40", "true"],
]
LARGE = [order[:3] for order in ORDERS[1:]]
CUSTOMERS = [["40", "1", "cid"], ["45", "2", "ann"]]
# the first of each month
MONTHS = [[*order, f"{order[3][:7]}-01"] for order in ORDERS]

AFTER_TWO_BUILDS = {
    "orders": ORDERS,
    "customers": CUSTOMERS,
    "large_orders": LARGE,
    "latest_orders": sorted([*ORDERS, BOB]),
    "order_days": sorted([*ORDERS, ANN, BOB]),
    "order_months": MONTHS,
    "order_log": sorted(
        [[id_, amount, "None"] for id_, _, amount, _ in (ANN, BOB, ORDERS[1])]
        + [[id_, amount, customer] for id_, customer, amount, _ in ORDERS]
    ),
    "order_amounts": sorted(
        [["2", "20", "None"]] + [[id_, amount, customer] for id_, customer, amount, _ in ORDERS]
    ),
    "orders_history": HISTORY,
    "amounts_history": AMOUNTS,
    "commits of latest_orders": [["overwrite"], ["overwrite"]],
}
AFTER_FULL_REFRESH = {
    "orders": ORDERS,
    "customers": CUSTOMERS,
    "large_orders": LARGE,
    "latest_orders": ORDERS,
    "order_days": ORDERS,
    "order_months": MONTHS,
    "order_log": [[id_, amount] for id_, _, amount, _ in ORDERS],
    "order_amounts": [[id_, amount] for id_, _, amount, _ in ORDERS],
    "orders_history": HISTORY,
    "amounts_history": AMOUNTS,
    "commits of latest_orders": [["overwrite"]],
}
QUERIES = {name: f"SELECT * FROM shop.{name}" for name in AFTER_TWO_BUILDS} | {
    "orders_history": "SELECT id, amount, dbt_valid_from, dbt_valid_to FROM shop.orders_history",
    "amounts_history": "SELECT id, amount, string(dbt_valid_to IS NULL) FROM shop.amounts_history",
    "commits of latest_orders": "SELECT operation FROM shop.latest_orders.snapshots",
}

ORDER = {"id": "long", "customer": "string", "amount": "long", "changed_at": "date"}
COLUMNS = {
    "orders": ORDER,
    "customers": {"total": "long", "orders": "long", "customer": "string"},
    "large_orders": {name: ORDER[name] for name in ("id", "customer", "amount")},
    "latest_orders": ORDER,
    "order_days": ORDER,
    "order_months": {**ORDER, "month": "date"},
    "order_log": {"id": "long", "amount": "long"},
    "order_amounts": {"id": "long", "amount": "integer"},
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with tool_programs(tmp_path_factory.mktemp("dbt"), *DBT) as programs:
        yield programs


@pytest.mark.parametrize("target", ["lake", "spark_catalog"])
def test_a_project_has_the_rows_that_follow_from_its_seeds(
    target: str, programs: Path, tmp_path: Path
) -> None:
    project = Project.copied("dbt_project/profiles.yml", "dbt.md", target, programs, tmp_path)
    settings = project.settings["shop"]["outputs"][target]["server_side_parameters"]
    at = ("--target", target)
    assert PASSED in project.run("dbt", *BUILD, *at)
    (project.folder / "seeds" / "orders.csv").write_text(CHANGED_ORDERS, encoding="utf-8")
    assert PASSED in project.run("dbt", *BUILD, *at, *CHANGED)
    assert project.rows(settings, QUERIES) == AFTER_TWO_BUILDS

    refused = project.run("dbt", *BROKEN, *at, status=1)
    assert "data type mismatch" in refused
    assert "Iceberg does not support dropping columns from tables" in refused
    assert project.rows(settings, QUERIES) == AFTER_TWO_BUILDS

    assert PASSED in project.run("dbt", *BUILD, *at, "--full-refresh")
    assert project.rows(settings, QUERIES) == AFTER_FULL_REFRESH
    project.run("dbt", "docs", "generate", *at)
    relations = _documented(project.folder / "target" / "catalog.json")
    assert {name: relations[name][1] for name in COLUMNS} == COLUMNS
    assert {name for name, (kind, _) in relations.items() if kind == "view"} == {"large_orders"}


def _documented(catalog: Path) -> Mapping[str, tuple[str, dict[str, str]]]:
    """Return whether each relation is a table or a view, and the types of its columns."""
    return {
        node["metadata"]["name"]: (
            node["metadata"]["type"],
            {column["name"]: column["type"] for column in node["columns"].values()},
        )
        for node in json.loads(catalog.read_text(encoding="utf-8"))["nodes"].values()
    }
