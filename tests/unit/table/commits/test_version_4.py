"""Version 4 tables: Parquet manifests and relative paths are read, and nothing is changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from iceberg_pyspark import Table, TableCatalog, load_catalog, load_table
from iceberg_pyspark.errors import (
    InvalidMetadataError,
    InvalidRequestError,
    StorageError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.storage.files.local import LocalFileIO
from iceberg_pyspark.table.metadata_tables.lookup import METADATA_TABLES
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from tests.support.deleted_rows import delete_keys, delete_positions, list_positions
from tests.support.frames import append_rows, create_path_table
from tests.support.table_histories import a_history
from tests.support.version_4 import version_4

LINEAGE = ("_row_id", "_last_updated_sequence_number")


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> TableCatalog:
    folder = tmp_path_factory.mktemp("version_4")
    return load_catalog("version_4", type="hadoop", warehouse=str(folder))


def a_table(folder: Path, **options: Any) -> Table:
    table = create_path_table(
        folder,
        "id BIGINT, p STRING, d DATE",
        partitioned_by=["p", "months(d)"],
        properties={"format-version": "3"},
        **options,
    )
    for number in range(4):
        append_rows(table, [{"id": 3 * number + i, "p": f"p{i}", "d": None} for i in range(3)])
    return table


def copy_of(table: Table, **how: Any) -> Table:
    io = LocalFileIO()
    return load_table(version_4(io, table.loaded.metadata_location, **how))


def rows(table: Table, snapshot_id: int | None = None) -> list[str]:
    """Return rows as text, with the lineage of the current snapshot's rows if it has lineage."""
    if snapshot_id is not None:
        table_rows = table.scan(selector=SnapshotSelector(snapshot_id=snapshot_id)).to_arrow()
    else:
        snapshot = table.current_snapshot
        has_ids = snapshot is not None and snapshot.first_row_id is not None
        names = [f.name for f in table.schema.fields]
        table_rows = table.scan(columns=[*names, *(LINEAGE if has_ids else ())]).to_arrow()
    # as text, because NaN does not equal itself
    return sorted(map(str, table_rows.to_pylist()))


@settings(max_examples=settings().max_examples // 4, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_tables_have_the_rows_of_the_version_3_table_that_they_were(
    catalog: TableCatalog, data: st.DataObject
) -> None:
    history = a_history(data.draw, catalog, newest=3)
    table = history.table.refresh()
    snapshots = table.metadata.snapshots
    assume(table.metadata.format_version == 3 and snapshots)
    copy = copy_of(
        table,
        is_relative=data.draw(st.booleans()),
        has_location=data.draw(st.booleans()),
        upgraded_at=data.draw(st.integers(0, len(snapshots))),
    )
    assert copy.metadata.format_version == 4
    # Position delete files of version 2 name files of this folder by paths without a scheme.
    has_position_deletes = any(
        row["content"] == 1 and row["file_format"] != "PUFFIN"
        for row in table.metadata_table("all_delete_files").to_arrow().to_pylist()
    )
    event(f"position deletes: {has_position_deletes}")
    if has_position_deletes:
        with pytest.raises(UnsupportedFeatureError, match="position deletes"):
            assert [rows(copy, s.snapshot_id) for s in snapshots]
        return
    assert rows(copy) == rows(table)
    for snapshot in snapshots:
        assert rows(copy, snapshot.snapshot_id) == rows(table, snapshot.snapshot_id)


@pytest.fixture(scope="module")
def with_deletes(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Create a table with a deleted row, once for all tests that only read it."""
    table = a_table(tmp_path_factory.mktemp("with_deletes") / "t")
    (first, *_) = table.scan(filter="id = 4").plan_files()
    delete_positions(table, {first.file_path: [0]}, partition=first.partition)
    return table.refresh()


@pytest.fixture(scope="module")
def copies(with_deletes: Table) -> Mapping[bool, Table]:
    """Return copies with absolute paths, by `False`, and with relative paths, by `True`."""
    return {r: copy_of(with_deletes, is_relative=r) for r in (False, True)}


@pytest.mark.parametrize("is_relative", [False, True])
@pytest.mark.parametrize("name", [n for n in METADATA_TABLES if n != "metadata_log_entries"])
def test_metadata_tables_are_those_of_version_3(
    with_deletes: Table, copies: Mapping[bool, Table], name: str, is_relative: bool
) -> None:
    def shown(of: Table) -> list[str]:
        rows = of.metadata_table(name).to_arrow().to_pylist()
        return sorted(str(row).replace("file:/", "/") for row in rows)

    expected, actual = shown(with_deletes), shown(copies[is_relative])
    assert expected
    if "manifests" in name or name == "snapshots":
        # The copy's own metadata files have other names and sizes.
        assert len(actual) == len(expected)
    else:
        assert actual == expected


def test_a_table_with_relative_paths_is_read_where_it_was_moved(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    expected = rows(table)
    file = version_4(
        LocalFileIO(), table.loaded.metadata_location, is_relative=True, has_location=False
    )
    (tmp_path / "elsewhere").mkdir()
    shutil.move(tmp_path / "t", tmp_path / "elsewhere/moved")
    moved = load_table(f"file:{tmp_path}/elsewhere/moved/metadata/{Path(file).name}")
    assert moved.metadata.location == f"file:{tmp_path}/elsewhere/moved"
    assert rows(moved) == expected


def test_metadata_without_a_known_location_is_refused(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    file = version_4(LocalFileIO(), table.loaded.metadata_location, has_location=False)
    elsewhere = tmp_path / "x.metadata.json"
    shutil.move(file.removeprefix("file:"), elsewhere)
    with pytest.raises(UnsupportedFeatureError, match="the metadata has none"):
        load_table(str(elsewhere))


def test_manifest_list_as_root_manifest_is_refused(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    file = Path(version_4(LocalFileIO(), table.loaded.metadata_location).removeprefix("file:"))
    content = json.loads(file.read_text())
    content["snapshots"][-1]["root-manifest"] = content["snapshots"][-1].pop("manifest-list")
    file.write_text(json.dumps(content))
    with pytest.raises(InvalidMetadataError, match="referenced as a root manifest"):
        load_table(str(file)).scan().to_arrow()


@pytest.mark.parametrize("path", ["data/../../secret.parquet", "../secret.parquet"])
def test_a_relative_path_leads_nowhere_that_an_absolute_one_may_not(
    tmp_path: Path, path: str
) -> None:
    table = create_path_table(tmp_path / "t", "id BIGINT", properties={"format-version": "3"})
    append_rows(table, [{"id": 1}])
    (task,) = table.scan().plan_files()
    shutil.copy(task.file_path, tmp_path / "secret.parquet")
    file = version_4(LocalFileIO(), table.loaded.metadata_location, rename_file=lambda _: path)
    restricted = load_catalog("none", type="memory", **{"read.restrict-locations": "true"})
    with pytest.raises(StorageError, match=r"secret\.parquet"):
        restricted.load_table(file).scan().to_arrow()
    # Without the restriction, any file in the table's store may be read.
    assert load_table(file).scan().to_arrow().num_rows == 1


CHANGES: dict[str, Callable[[Table], object]] = {
    "append": lambda t: t.append(pa.table({"id": [1]})),
    "overwrite": lambda t: t.overwrite(pa.table({"id": [1]})),
    "delete": lambda t: t.delete("id = 1"),
    "add a column": lambda t: t.update_schema().add_column("x", "int").commit(),
    "properties": lambda t: t.update_properties().set({"a": "b"}).commit(),
    "a tag": lambda t: t.manage_snapshots().create_tag("x", 1).commit(),
    "expire_snapshots": lambda t: t.maintenance().expire_snapshots(retain_last=1),
    "remove_orphan_files": lambda t: t.maintenance().remove_orphan_files(),
    "rewrite_data_files": lambda t: t.maintenance().rewrite_data_files(
        options={"rewrite-all": True}
    ),
    "rewrite_manifests": lambda t: t.maintenance().rewrite_manifests(),
    "compute_table_stats": lambda t: t.maintenance().compute_table_stats(),
    "compute_partition_stats": lambda t: t.maintenance().compute_partition_stats(),
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_every_change_is_refused_before_a_file_is_written_or_deleted(
    tmp_path: Path, change: str
) -> None:
    folder = tmp_path / "t"
    table = create_path_table(
        folder, "id BIGINT, p INT", partitioned_by=["p"], properties={"format-version": "3"}
    )
    for i in range(3):
        append_rows(table, [{"id": i}])
    file = version_4(LocalFileIO(), table.loaded.metadata_location).removeprefix("file:")
    # as the only version of a table in a folder, which could be changed otherwise
    (folder / "metadata/v9.metadata.json").write_bytes(Path(file).read_bytes())
    (folder / "metadata/version-hint.text").write_text("9")
    copy = load_table(str(folder))
    assert copy.metadata.format_version == 4
    before = sorted(folder.rglob("*"))
    with pytest.raises(UnsupportedFeatureError, match="format version 4"):
        CHANGES[change](copy)
    assert sorted(folder.rglob("*")) == before


def test_an_upgrade_deletes_no_metadata_file_of_before(tmp_path: Path) -> None:
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", str(tmp_path / "warehouse")
    catalog = load_catalog("upgraded", type="sql", uri=uri, warehouse=warehouse)
    catalog.create_namespace("db")
    trimmed = {"write.metadata.delete-after-commit.enabled": "true", "format-version": "3"}
    table = catalog.create_table("db.t", "id BIGINT", properties=trimmed)
    append_rows(table, [{"id": 1}])
    table.update_properties().set({"format-version": "4"}).commit()
    append_rows(table, [{"id": 2}])
    log = table.refresh().metadata.metadata_log
    assert len(log) == 3
    assert all(Path(e.metadata_file.removeprefix("file:")).exists() for e in log)


def test_an_upgrade_waits_for_position_deletes_whose_paths_would_be_relative(
    tmp_path: Path,
) -> None:
    table = create_path_table(tmp_path / "t", "id BIGINT", properties={"format-version": "2"})
    append_rows(table, [{"id": i} for i in range(4)])
    (task,) = table.scan().plan_files()
    list_positions(table, pa.table({"file_path": [task.file_path], "pos": [1]}), {})
    version_4 = {"format-version": "4", "write.root.file-system-tables.enabled": "true"}
    for version in ("2", "3"):
        table.update_properties().set({"format-version": version}).commit()
        with pytest.raises(InvalidRequestError, match="rewrite_position_delete_files"):
            table.update_properties().set(version_4).commit()
    table.maintenance().rewrite_position_delete_files(options={"rewrite-all": True})
    table.refresh().update_properties().set(version_4).commit()
    append_rows(table, [{"id": 9}])
    rows = load_table(str(tmp_path / "t")).scan(columns=["id", "_row_id"]).to_arrow().to_pylist()
    assert sorted((r["id"], r["_row_id"]) for r in rows) == [(0, 0), (2, 2), (3, 3), (9, 4)]


def test_position_deletes_whose_paths_have_schemes_apply_after_an_upgrade(tmp_path: Path) -> None:
    folder = f"file:{tmp_path}/t"
    properties = {"format-version": "2", "write.root.file-system-tables.enabled": "true"}
    catalog = load_catalog("none", type="memory")
    table = catalog.create_table(folder, "id BIGINT", properties=properties)
    append_rows(table, [{"id": i} for i in range(4)])
    append_rows(table, [{"id": i} for i in range(4, 6)])
    first, second = sorted(table.scan().plan_files(), key=lambda t: -t.record_count)
    for path, pos in ((first.file_path, 1), (second.file_path, 0)):
        bound = {2147483546: path.encode()}
        rows = pa.table({"file_path": [path], "pos": [pos]})
        list_positions(table, rows, {}, lower_bounds=bound, upper_bounds=bound)
    delete_keys(table, "id", [3])
    table.update_properties().set({"format-version": "4"}).commit()
    for i in (3, 9):
        append_rows(table, [{"id": i}])
    expected = [0, 2, 3, 5, 9]

    def ids() -> list[int]:
        id_column = load_table(folder).scan().to_arrow()["id"].to_pylist()
        return sorted(id_column)

    assert ids() == expected
    table.maintenance().rewrite_manifests()
    assert ids() == expected
    assert load_table(folder).verify(check_files=True).findings == ()
    table.refresh().delete("id = 9")
    assert ids() == [0, 2, 3, 5]
    append_rows(table.refresh(), [{"id": 9}])
    table.maintenance().rewrite_position_delete_files(options={"rewrite-all": True})
    assert ids() == expected
    table.refresh().maintenance().rewrite_data_files(options={"rewrite-all": True})
    assert ids() == expected
    assert load_table(folder).verify(check_files=True).findings == ()


def test_a_table_of_a_folder_gets_it_only_where_that_is_asked_for(tmp_path: Path) -> None:
    properties = {"format-version": "4", "write.root.file-system-tables.enabled": "true"}
    refused = r"write\.root\.file-system-tables\.enabled"
    with pytest.raises(UnsupportedFeatureError, match=refused):
        create_path_table(tmp_path / "new", "id BIGINT", properties={"format-version": "4"})
    table = create_path_table(tmp_path / "t", "id BIGINT", properties={"format-version": "3"})
    append_rows(table, [{"id": 1}])
    with pytest.raises(UnsupportedFeatureError, match=refused):
        table.update_properties().set({"format-version": "4"}).commit()
    table.update_properties().set(properties).commit()
    append_rows(table, [{"id": 2}])
    snapshot = load_table(str(tmp_path / "t")).metadata.current_snapshot
    assert snapshot is not None
    assert snapshot.root_manifest is not None
    rows = load_table(str(tmp_path / "t")).scan().to_arrow()
    assert sorted(rows["id"].to_pylist()) == [1, 2]
