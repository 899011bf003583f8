"""Sixteen writers of one table with default properties: every append succeeds, and no row is lost.

Writers on one machine take turns. Where each is on a machine of its own, they compete at the
catalog, and need more retries than the default.

`make bench ARGS=writers` measures how long the writers wait for each other.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from iceberg_pyspark import Table, TableCatalog
from iceberg_pyspark.catalogs.catalog import Catalog
from tests.amounts import WORK
from tests.services.databases import new_database
from tests.support.catalog_processes import EVENTS, SERVED, open_catalog, run_together
from tests.support.many_writers import (
    PATIENT,
    SCHEMA,
    append_as_machine,
    append_in_threads,
    append_many,
)
from tests.support.parameters import cases
from tests.support.table_integrity import table_problems

WRITERS = 16
APPENDS = 2 * WORK


@cases(
    ("kind", "how"),
    fast=[
        ("sql", "threads"),
        ("sql", "processes"),
        ("hadoop", "processes"),
        ("hadoop", "machines"),
    ],
    nightly=[
        ("postgres", "machines"),
        ("hadoop", "threads"),
        ("postgres", "processes"),
        ("postgres", "threads"),
        ("mariadb", "processes"),
        ("hive", "processes"),
        ("hive", "threads"),
        ("glue", "processes"),
        ("sql", "machines"),
        ("mariadb", "machines"),
        ("hive", "machines"),
        ("glue", "machines"),
    ],
)
def test_no_writer_among_many_gives_up(
    kind: str, how: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = str(tmp_path)
    if kind in ("postgres", "mariadb"):
        server = request.getfixturevalue(f"{kind}_server")
        (tmp_path / SERVED).write_text(new_database(server))
    elif kind == "hive":
        (tmp_path / SERVED).write_text(request.getfixturevalue("hive_uri"))
    elif kind == "glue":
        (tmp_path / SERVED).write_text(request.getfixturevalue("glue").endpoint)
    catalog = append_together(kind, how, folder, PATIENT if how == "machines" else {})
    if kind == "hive":
        # Other tests use the metastore too.
        catalog.drop_table(EVENTS)
        catalog.drop_namespace(EVENTS.namespace)


def test_no_writer_of_root_manifests_gives_up(tmp_path: Path) -> None:
    properties = {"format-version": "4", "write.root.max-data-entries": "20"}
    append_together("sql", "processes", str(tmp_path), properties)


def append_together(kind: str, how: str, folder: str, properties: dict[str, str]) -> Catalog:
    """Let all writers append, check that all rows exist, and return the catalog."""
    catalog = open_catalog(kind, folder)
    catalog.create_namespace(EVENTS.namespace)
    TableCatalog(catalog).create_table(str(EVENTS), SCHEMA, properties=properties)
    arguments = [(kind, folder, worker, APPENDS) for worker in range(WRITERS)]
    if how == "machines":
        counts = run_together(append_as_machine, [(*each, WRITERS) for each in arguments])
        assert [appends for appends, _ in counts] == [APPENDS] * WRITERS
        assert sum(refusals for _, refusals in counts) >= WRITERS - 1
    else:
        done = (
            append_in_threads(kind, folder, WRITERS, APPENDS)
            if how == "threads"
            else run_together(append_many, arguments)
        )
        assert [len(times) for times in done] == [APPENDS] * WRITERS
    table = Table(catalog, catalog.load_table(EVENTS))
    ids = table.scan(columns=["id"]).to_arrow()["id"].to_pylist()
    assert sorted(ids) == [w * 10_000 + n for w in range(WRITERS) for n in range(APPENDS)]
    assert len(table.snapshots) == WRITERS * APPENDS
    assert table_problems(table) == []
    return catalog
