"""Arguments of a wrong type, and arguments that contradict each other, are one typed sentence."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.errors import InvalidRequestError

ROWS = pa.table({"id": [1, 2], "s": ["a", "b"]})

Call = Callable[[ice.TableCatalog, ice.Table, Any], object]


def given(value: Any) -> Any:
    """Return another wrong value in the place of None, where None stands for the default."""
    return object() if value is None else value


def maintained(
    method: str, name: str, catalog: ice.TableCatalog, table: ice.Table, value: Any
) -> object:
    """Call a method of the maintenance with one wrong argument."""
    more = {}
    if method == "rewrite_table_path":
        more = {"source_prefix": table.location, "target_prefix": "/elsewhere"}
    return getattr(table.maintenance(), method)(**{**more, name: given(value)})


# calls with an argument of each kind, which must refuse values of all other kinds
NAMES: dict[str, Call] = {
    "load_table": lambda c, t, v: ice.load_table(v),
    "load_table(catalog)": lambda c, t, v: ice.load_table("db.t", catalog=given(v)),
    "load_catalog": lambda c, t, v: ice.load_catalog(given(v)),
    "catalog.create_table": lambda c, t, v: c.create_table(v, "id INT"),
    "catalog.create_table(schema)": lambda c, t, v: c.create_table("db.u", v),
    "catalog.create_table(location)": lambda c, t, v: c.create_table(
        "db.u", "id INT", location=given(v)
    ),
    "catalog.load_table": lambda c, t, v: c.load_table(v),
    "catalog.table_exists": lambda c, t, v: c.table_exists(v),
    "catalog.list_tables": lambda c, t, v: c.list_tables(v),
    "catalog.drop_table": lambda c, t, v: c.drop_table(v),
    "catalog.rename_table(name)": lambda c, t, v: c.rename_table(v, "db.z"),
    "catalog.rename_table(new_name)": lambda c, t, v: c.rename_table("db.t", v),
    "catalog.register_table": lambda c, t, v: c.register_table(v, "x"),
    "catalog.register_table(file)": lambda c, t, v: c.register_table("db.u", v),
    "catalog.register_view": lambda c, t, v: c.register_view(v, "x"),
    "catalog.register_view(file)": lambda c, t, v: c.register_view("db.u", v),
    "catalog.create_namespace": lambda c, t, v: c.create_namespace(v),
    "catalog.drop_namespace": lambda c, t, v: c.drop_namespace(v),
    "catalog.namespace_exists": lambda c, t, v: c.namespace_exists(v),
    "catalog.list_namespaces": lambda c, t, v: c.list_namespaces(v),
    "catalog.load_namespace_properties": lambda c, t, v: c.load_namespace_properties(v),
    "catalog.update_namespace_properties": lambda c, t, v: c.update_namespace_properties(v),
    "table.append(branch)": lambda c, t, v: t.append(ROWS, branch=v),
    "table.overwrite(branch)": lambda c, t, v: t.overwrite(ROWS, branch=v),
    "table.delete(branch)": lambda c, t, v: t.delete("s = 'a'", branch=v),
    "transaction.append(branch)": lambda c, t, v: t.transaction().append(ROWS, branch=v),
    "selector(branch)": lambda c, t, v: ice.SnapshotSelector(branch=given(v)),
    "selector(version)": lambda c, t, v: ice.SnapshotSelector(version=given(v)),
}
FILTERS: dict[str, Call] = {
    "table.delete": lambda c, t, v: t.delete(v),
    "table.scan(filter)": lambda c, t, v: t.scan(filter=given(v)),
    "table.overwrite(filter)": lambda c, t, v: t.overwrite(ROWS, given(v)),
    "maintenance.rewrite_data_files(where)": lambda c, t, v: t.maintenance().rewrite_data_files(
        where=given(v)
    ),
    "maintenance.rewrite_position_delete_files(where)": lambda c, t, v: (
        t.maintenance().rewrite_position_delete_files(where=given(v))
    ),
}
TEXTS: dict[str, Call] = {
    "table.scan(columns)": lambda c, t, v: t.scan(columns=given(v)),
    "catalog.create_table(partitioned_by)": lambda c, t, v: c.create_table(
        "db.u", "id INT", partitioned_by=v
    ),
    "catalog.create_table(sorted_by)": lambda c, t, v: c.create_table(
        "db.u", "id INT", sorted_by=v
    ),
    "catalog.update_namespace_properties(removals)": lambda c, t, v: c.update_namespace_properties(
        "db", removals=v
    ),
}
PROPERTIES: dict[str, Call] = {
    "catalog.create_table(properties)": lambda c, t, v: c.create_table(
        "db.u", "id INT", properties=given(v)
    ),
    "catalog.create_namespace(properties)": lambda c, t, v: c.create_namespace("u", given(v)),
    "catalog.update_namespace_properties(updates)": lambda c, t, v: c.update_namespace_properties(
        "db", updates=given(v)
    ),
    "table.append(snapshot_properties)": lambda c, t, v: t.append(
        ROWS, snapshot_properties=given(v)
    ),
    "table.overwrite(snapshot_properties)": lambda c, t, v: t.overwrite(
        ROWS, snapshot_properties=given(v)
    ),
    "table.delete(snapshot_properties)": lambda c, t, v: t.delete(
        "s = 'a'", snapshot_properties=given(v)
    ),
    "transaction.append(snapshot_properties)": lambda c, t, v: t.transaction().append(
        ROWS, snapshot_properties=given(v)
    ),
}
ROW_CALLS: dict[str, Call] = {
    "table.append": lambda c, t, v: t.append(v),
    "table.overwrite": lambda c, t, v: t.overwrite(v),
    "transaction.append": lambda c, t, v: t.transaction().append(v),
}
SELECTORS: dict[str, Call] = {
    "table.scan(selector)": lambda c, t, v: t.scan(selector=given(v)),
    "selector(snapshot_id)": lambda c, t, v: ice.SnapshotSelector(snapshot_id=given(v)),
    "selector(as_of)": lambda c, t, v: ice.SnapshotSelector(as_of_timestamp_ms=given(v)),
}
MAINTENANCE: dict[str, Call] = {
    "table.metadata_table": lambda c, t, v: t.metadata_table(v),
    "table.metadata_table(selector)": lambda c, t, v: t.metadata_table("files", selector=given(v)),
    "table.partition_statistics": lambda c, t, v: t.partition_statistics(snapshot_id=given(v)),
    "table.add_files": lambda c, t, v: t.add_files(v),
    "table.health": lambda c, t, v: t.health(top=v),
    "table.maintenance": lambda c, t, v: t.maintenance(progress=v),
    "scan.pruned_by": lambda c, t, v: t.scan().pruned_by(v),
    **{
        f"maintenance.{method}({name})": partial(maintained, method, name)
        for method, names in {
            "expire_snapshots": "older_than retain_last max_concurrent_deletes",
            "rewrite_data_files": "strategy sort_order branch",
            "remove_orphan_files": "older_than location max_concurrent_deletes inventory",
            "rewrite_manifests": "spec_id",
            "rewrite_table_path": "source_prefix target_prefix start_version staging_location",
            "compute_table_stats": "snapshot_id columns",
            "compute_partition_stats": "snapshot_id",
        }.items()
        for name in names.split()
    },
}
ALL = {**MAINTENANCE, **NAMES, **FILTERS, **TEXTS, **PROPERTIES, **ROW_CALLS, **SELECTORS}
WRONG = (None, True, ("db", 1), {"a": 1}, ROWS, b"x", [1], object())
RIGHT: dict[str, tuple[type, ...]] = dict.fromkeys(ROW_CALLS, (pa.Table,))


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ice.TableCatalog:
    monkeypatch.chdir(tmp_path)
    return ice.load_catalog("lake", type="memory", warehouse=str(tmp_path))


@pytest.fixture
def table(catalog: ice.TableCatalog) -> ice.Table:
    table = catalog.create_table("db.t", "id BIGINT, s STRING", partitioned_by=["s"])
    table.append(ROWS)
    return table


@pytest.mark.parametrize("call", ALL)
def test_a_wrong_type_is_one_sentence(
    catalog: ice.TableCatalog, table: ice.Table, call: str
) -> None:
    files = sorted(Path.cwd().rglob("*"))
    for value in WRONG:
        if isinstance(value, RIGHT.get(call, ())):
            continue
        with pytest.raises(InvalidRequestError) as refusal:
            ALL[call](catalog, table, value)
        assert "\n" not in str(refusal.value)
    # nothing was written, and the table can still be read
    assert sorted(Path.cwd().rglob("*")) == files
    assert catalog.load_table("db.t").scan().count() == 2


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
