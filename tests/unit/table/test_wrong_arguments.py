"""Arguments of a wrong type, and arguments that contradict each other, are one typed sentence.

The cases are found by introspection: every parameter of every public function and method, with
every value whose type the annotation does not name.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.hadoop.catalog import FilesystemCatalog
from iceberg_pyspark.catalogs.hadoop.path_tables import PathCatalog
from iceberg_pyspark.catalogs.sql.catalog import open_sql_catalog
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.predicates import AlwaysTrue
from iceberg_pyspark.spec.schema import Schema

ROWS = pa.table({"id": [1, 2], "s": ["a", "b"]})
TEXT = r"\bstr\b|Filter|Given|Moment"

# values, and what an annotation that takes them has in its text
WRONG: tuple[tuple[Any, str], ...] = (
    (None, "None"),
    (True, "bool"),
    (5, r"\bint\b|Moment"),
    (1.5, "float"),
    ("x", f"{TEXT}|Type"),
    (b"x", "bytes"),
    (("db", 1), "tuple$"),
    ([1], r"(Sequence|Collection)\[int\]"),
    (["x"], r"(Sequence|Collection|Iterable)\[str\]"),
    ([{"a": 1}], r"\[Mapping\[str, (int|object)"),
    ({"a": 1}, r"Mapping\[str, (int|object)"),
    (ROWS, "Rows"),
    (pd.DataFrame({"id": [1]}), "DataFrame"),
    (Path("x"), "Path"),
    (object(), "object$"),
)

# an argument for each parameter that is required
RIGHT: dict[str, Any] = {
    "name": "db.t",
    "new_name": "z",
    "schema": "id INT",
    "metadata_location": "x",
    "sql": "SELECT 1",
    "rows": ROWS,
    "filter": "s = 'a'",
    "source": "s",
    "source_prefix": "a",
    "target_prefix": "b",
    "type_": "int",
    "doc": "d",
    "default": 1,
    "reference": "id",
    "location": "x",
    "snapshot_id": 1,
    "to": "main",
    "branch": "main",
    "wap_id": "w",
    "timestamp_ms": 1,
    "updates": {},
    "removals": [],
    "predicate": AlwaysTrue(),
    "paths": frozenset(["x"]),
    "transform": "identity",
    "table_name": "t",
    "identifier": TableIdentifier(namespace=("db",), name="t"),
    "target": TableIdentifier(namespace=("db",), name="u"),
    "namespace": ("db",),
    "requirements": [],
    "rename_table.source": TableIdentifier(namespace=("db",), name="t"),
    "rename_view.source": TableIdentifier(namespace=("db",), name="t"),
    "commit_table.updates": [],
    "commit_view.updates": [],
    "action": AppendFiles(data_files=()),
    "projection": Schema(fields=()),
    "other": Schema(fields=()),
    "folder": "x",
}


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


def functions_of(owner: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    if owner is ice:
        yield from (("load_table", ice.load_table), ("load_catalog", ice.load_catalog))
        return
    for name, function in inspect.getmembers(type(owner), inspect.isfunction):
        if not name.startswith("_"):
            yield name, function.__get__(owner)


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters that do not take everything; a plan is a value of the same scan."""
    return [
        p
        for p in inspect.signature(function).parameters.values()
        if p.kind is not p.VAR_KEYWORD and p.annotation not in ("Any", "object", "Plan | None")
    ]


def call(function: Callable[..., Any], parameter: inspect.Parameter, value: Any) -> object:
    """Call the function with one wrong argument."""
    args, kwargs = [], {}
    for p in inspect.signature(function).parameters.values():
        wrong = p.name == parameter.name
        if p.kind is p.VAR_POSITIONAL:
            args += [value] if wrong else []
        elif wrong:
            kwargs[p.name] = value
        elif p.default is p.empty and p.kind is not p.VAR_KEYWORD:
            kwargs[p.name] = RIGHT.get(f"{function.__name__}.{p.name}", RIGHT.get(p.name))
    return function(*args, **kwargs)


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
    accepted = []
    for name, function in functions_of(everything[owner]):
        for parameter in parameters_of(function):
            for value, takes in WRONG:
                if re.search(takes, parameter.annotation):
                    continue
                case = f"{name}({parameter.name}={type(value).__name__})"
                try:
                    call(function, parameter, value)
                    accepted.append(f"{case} was accepted")
                except InvalidRequestError as e:
                    if "\n" in str(e) or f"{name}: {parameter.name}: expected" not in str(e):
                        accepted.append(f"{case}: {e}")
                except Exception as e:  # noqa: BLE001 - each is a finding
                    accepted.append(f"{case} raised {type(e).__name__}: {str(e)[:80]}")
    assert accepted == []
    # nothing was written, and the table can still be read
    assert sorted(tmp_path.rglob("*")) == files
    assert everything["catalog"].load_table("db.t").scan().count() == 2


@pytest.mark.parametrize("name", ["snapshot_id", "as_of_timestamp_ms", "branch", "tag", "version"])
def test_a_selector_refuses_wrong_types(name: str) -> None:
    for value in (True, ("db", 1), {"a": 1}, ROWS, b"x", [1], object()):
        with pytest.raises(InvalidRequestError, match=f"{name}: expected"):
            ice.SnapshotSelector(**{name: value})


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ice.TableCatalog:
    monkeypatch.chdir(tmp_path)
    return ice.load_catalog("lake", type="memory", warehouse=str(tmp_path))


@pytest.fixture
def table(catalog: ice.TableCatalog) -> ice.Table:
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
