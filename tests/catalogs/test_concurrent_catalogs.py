"""Several processes on one catalog: races, and killed processes."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from iceberg_pyspark.catalogs.catalog import Catalog
from tests.amounts import FULL_WORK
from tests.services.databases import new_database
from tests.support.catalog_contract import create, set_property
from tests.support.catalog_processes import (
    EVENTS,
    SERVED,
    commit_properties,
    create_events,
    die_at,
    initialise,
    open_catalog,
    run_together,
)
from tests.support.parameters import cases

IS_LONG = FULL_WORK
KINDS = cases("kind", fast=["sql", "hadoop"], nightly=["postgres", "mariadb"])


@pytest.fixture(autouse=True)
def served_database(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> None:
    """For a served kind, create a database and write its address to the test's folder."""
    if kind in ("postgres", "mariadb"):
        server = request.getfixturevalue(f"{kind}_server")
        (tmp_path / SERVED).write_text(new_database(server))


def catalog_with_namespace(kind: str, folder: Path) -> Catalog:
    catalog = open_catalog(kind, str(folder))
    catalog.create_namespace(EVENTS.namespace)
    return catalog


@KINDS
def test_every_acknowledged_commit_is_there_once(kind: str, tmp_path: Path) -> None:
    catalog = catalog_with_namespace(kind, tmp_path)
    create(catalog, EVENTS, {"write.metadata.previous-versions-max": "1000"})
    before = catalog.load_table(EVENTS).metadata.properties.keys()
    commits = 10 if IS_LONG else 5
    workers = [(kind, str(tmp_path), worker, commits) for worker in range(8)]
    acknowledged = [key for keys in run_together(commit_properties, workers) for key in keys]
    after = catalog.load_table(EVENTS).metadata
    assert len(acknowledged) == 8 * commits
    assert after.properties.keys() - before == set(acknowledged)
    # Each acknowledged commit has one metadata file, and no refused commit left one.
    assert len(after.metadata_log) == 8 * commits
    files = list((tmp_path / "warehouse").rglob("*.metadata.json"))
    assert len(files) == 8 * commits + 1


@KINDS
def test_of_racing_creators_one_wins(kind: str, tmp_path: Path) -> None:
    catalog = catalog_with_namespace(kind, tmp_path)
    outcomes = run_together(create_events, [(kind, str(tmp_path))] * 8)
    winners = [uuid for uuid in outcomes if uuid is not None]
    assert winners == [catalog.load_table(EVENTS).metadata.table_uuid]
    assert len(list((tmp_path / "warehouse").rglob("*.metadata.json"))) == 1


@cases("kind", fast=["sql"], nightly=["postgres", "mariadb"])
def test_sixteen_clients_initialise_an_empty_database_together(kind: str, tmp_path: Path) -> None:
    assert all(run_together(initialise, [(kind, str(tmp_path))] * 16))


@cases("kind", fast=["sql", "hadoop"], nightly=["postgres"])
def test_a_process_killed_at_any_step_leaves_the_old_state_or_the_new(
    kind: str, tmp_path: Path
) -> None:
    catalog = catalog_with_namespace(kind, tmp_path)
    create(catalog, EVENTS)
    outcomes = set()
    # An odd number, because there is a step before each write and one after it.
    every = 1 if IS_LONG or kind == "hadoop" else 3
    for step in range(1, 100, every):
        before = set_property(catalog, EVENTS, "n", "before")
        code = die_at(kind, str(tmp_path), step)
        after = catalog.load_table(EVENTS)
        if after == before:
            outcomes.add("old")
        else:
            assert after.metadata.properties["n"] == str(step)
            assert after.metadata.metadata_log[-1].metadata_file == before.metadata_location
            outcomes.add("new")
        if code == 0:
            break
        assert code == -signal.SIGKILL
    else:
        pytest.fail("the commit did not come to its end in 100 steps")
    # The process was killed both before and after the commit became visible.
    assert step > 5
    assert outcomes == {"old", "new"}
