"""Arguments of a wrong type, and arguments that contradict each other, are one typed sentence.

The cases are found by introspection: every parameter of every public function and method, with
every value whose type the annotation does not name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.catalogs.hadoop.path_tables import PathCatalog
from iceberg_pyspark.catalogs.sql.database_catalog import open_sql_catalog
from iceberg_pyspark.errors import InvalidRequestError
from tests.support.wrong_arguments import ROWS, findings, methods_of


def objects(folder: Path) -> dict[str, Any]:
    """Return an object of each public class, by a name for the test's id."""
    catalog = ice.load_catalog("lake", type="memory", warehouse=str(folder / "w"))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id BIGINT, s STRING", partitioned_by=["s"])
    table.append(ROWS)
    uri = f"sqlite:///{folder}/catalog.db"
    sql = open_sql_catalog("sql", {"uri": uri, "warehouse": str(folder / "v")})
    return {
        "ice": ice,
        "catalog": catalog,
        "table": table,
        "table.transaction()": table.transaction(),
        "table.scan()": table.scan(),
        "table.metadata_table()": table.metadata_table("files"),
        "table.inspect": table.inspect,
        "table.maintenance()": table.maintenance(),
        "table.update_schema()": table.update_schema(),
        "table.update_spec()": table.update_spec(),
        "table.replace_sort_order()": table.replace_sort_order(),
        "table.update_properties()": table.update_properties(),
        "table.update_location()": table.update_location(),
        "table.manage_snapshots()": table.manage_snapshots(),
        "catalog.load_view()": catalog.create_view("db.v", "id BIGINT", "SELECT 1"),
        "MemoryCatalog": catalog.catalog,
        "SqlCatalog": sql,
        "FilesystemCatalog": FilesystemCatalog("fs", {"warehouse": str(folder / "u")}),
        "PathCatalog": PathCatalog({}),
    }


OWNERS = [
    "ice",
    "catalog",
    "table",
    "table.transaction()",
    "table.scan()",
    "table.metadata_table()",
    "table.inspect",
    "table.maintenance()",
    "table.update_schema()",
    "table.update_spec()",
    "table.replace_sort_order()",
    "table.update_properties()",
    "table.update_location()",
    "table.manage_snapshots()",
    "catalog.load_view()",
    "MemoryCatalog",
    "SqlCatalog",
    "FilesystemCatalog",
    "PathCatalog",
]


@pytest.mark.parametrize("owner", OWNERS)
def test_a_wrong_type_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str
) -> None:
    monkeypatch.chdir(tmp_path)
    everything = objects(tmp_path)
    assert list(everything) == OWNERS
    files = sorted(tmp_path.rglob("*"))
    functions: list[Callable[..., Any]] = [ice.load_table, ice.load_catalog]
    if owner != "ice":
        functions = list(methods_of(everything[owner]))
    assert functions
    assert findings(functions) == []
    # nothing was written, and the table can still be read
    assert sorted(tmp_path.rglob("*")) == files
    assert everything["catalog"].load_table("db.t").scan().count() == 2


@pytest.mark.parametrize("name", ["snapshot_id", "as_of_timestamp_ms", "branch", "tag", "version"])
def test_a_selector_refuses_wrong_types(name: str) -> None:
    for value in (True, ("db", 1), {"a": 1}, ROWS, b"x", [1], object()):
        with pytest.raises(InvalidRequestError, match=f"{name}: expected"):
            ice.SnapshotSelector(**{name: value})  # type: ignore[arg-type]


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ice.TableCatalog:
    monkeypatch.chdir(tmp_path)
    return ice.load_catalog("lake", type="memory", warehouse=str(tmp_path))


@pytest.fixture
def table(catalog: ice.TableCatalog) -> ice.Table:
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id BIGINT, s STRING", partitioned_by=["s"])
    table.append(ROWS)
    return table


def test_the_sentence_names_the_wrong_element(table: ice.Table) -> None:
    with pytest.raises(InvalidRequestError) as refusal:
        table.add_files("x", partitions=[{"s": "a"}, {"s": 1}])  # type: ignore[dict-item]
    assert str(refusal.value) == (
        "add_files: partitions: expected a list of dicts, not a list with a dict with int under 's'"
    )
    with pytest.raises(InvalidRequestError) as refusal:
        table.scan(columns=["id", 1])  # type: ignore[list-item]
    assert str(refusal.value) == "scan: columns: expected a list of texts, not a list with int"


def test_arguments_that_contradict_each_other_are_refused(
    catalog: ice.TableCatalog, table: ice.Table
) -> None:
    with pytest.raises(InvalidRequestError, match="keep one"):
        table.overwrite(ROWS, "s = 'a'", dynamic=True)
    with pytest.raises(InvalidRequestError, match="keep one"):
        catalog.update_namespace_properties("db", removals=["a"], updates={"a": "b"})
    with pytest.raises(InvalidRequestError, match="belongs to no catalog"):
        ice.load_table(table.location, catalog="lake")
    with pytest.raises(InvalidRequestError, match="keep one"):
        ice.SnapshotSelector(snapshot_id=1, branch="main")
    assert len(catalog.load_table("db.t").snapshots) == 1


CHOICES = {
    "snapshot_id": 1,
    "branch": "main",
    "tag": "t",
    "as_of": 1,
    "selector": ice.SnapshotSelector(),
}


@pytest.mark.parametrize("first", CHOICES)
@pytest.mark.parametrize("second", CHOICES)
def test_a_scan_refuses_two_snapshots_by_name(table: ice.Table, first: str, second: str) -> None:
    if first == second:
        return
    with pytest.raises(InvalidRequestError, match=r"keep one") as refusal:
        table.scan(**{name: CHOICES[name] for name in (first, second)})  # type: ignore[arg-type]
    assert first in str(refusal.value)
    assert second in str(refusal.value)
