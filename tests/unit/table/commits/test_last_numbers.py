"""Metadata with the largest possible numbers, or with counters that lag: no commit, no new file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark.catalogs.memory_catalog import MemoryCatalog
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.table.table import Table
from tests.support.commit_tables import IDENTIFIER, CommitTable, commit_table

ROWS = pa.table({"id": pa.array([1], pa.int64()), "part": ["a"]})
_INT32, _INT64 = 2**31 - 1, 2**63 - 1


def _append(table: Table) -> None:
    table.append(ROWS)


def _add_column(table: Table) -> None:
    table.update_schema().add_column("new", "int").commit()


def _add_partition(table: Table) -> None:
    table.update_spec().add_field("id", "bucket[3]").commit()


def _last_schema(data: dict[str, Any]) -> None:
    data["schemas"][0]["schema-id"] = data["current-schema-id"] = _INT32


def _last_spec(data: dict[str, Any]) -> None:
    data["partition-specs"][0]["spec-id"] = data["default-spec-id"] = _INT32


@pytest.mark.parametrize(
    ("damage", "change", "message"),
    [
        (lambda data: data.update({"last-sequence-number": _INT64}), _append, "no sequence number"),
        (
            lambda data: data.update({"next-row-id": _INT64}),
            _append,
            "would reach 9223372036854775808",
        ),
        (lambda data: data.update({"last-column-id": _INT32}), _add_column, "field id 2147483648"),
        (
            lambda data: data.update({"last-partition-id": _INT32}),
            _add_partition,
            "last-partition-id would be",
        ),
        (_last_schema, _add_column, "schema-id would be 2147483648"),
        (_last_spec, _add_partition, "spec-id would be 2147483648"),
    ],
)
def test_a_commit_that_no_reader_could_load_is_refused(
    damage: Callable[[dict[str, Any]], object], change: Callable[[Table], None], message: str
) -> None:
    table = _with_metadata(commit_table(format_version=3), damage)
    _check_refused(table, change, message)


def _with_metadata(source: CommitTable, damage: Callable[[dict[str, Any]], object]) -> Table:
    """Return the table in a new catalog, with its metadata changed as another writer may."""
    data = json.loads(source.io.read_bytes(source.loaded.metadata_location))
    damage(data)
    source.io.write_bytes("mem://t/metadata/damaged.json", json.dumps(data).encode())
    catalog = MemoryCatalog("test", io=source.io)
    catalog.create_namespace(("db",))
    loaded = catalog.register_table(IDENTIFIER, "mem://t/metadata/damaged.json")
    return Table(catalog, loaded, io=source.io)


def _check_refused(table: Table, change: Callable[[Table], object], message: str) -> None:
    before, files = table.metadata, set(table.io._files)  # type: ignore[attr-defined]
    with pytest.raises(IcebergError, match=message):
        change(table)
    assert table.refresh().metadata == before
    assert set(table.io._files) == files  # type: ignore[attr-defined]


_CHANGES: list[Callable[[Table], object]] = [
    _append,
    _add_column,
    _add_partition,
    lambda t: t.overwrite(ROWS),
    lambda t: t.delete("id = 1"),
    lambda t: t.update_properties().set({"a": "b"}).commit(),
    lambda t: t.update_properties().set({"format-version": "3"}).commit(),
    lambda t: t.manage_snapshots().create_branch("b").commit(),
    lambda t: t.maintenance().expire_snapshots(retain_last=1),
    lambda t: t.maintenance().rewrite_data_files(options={"rewrite-all": True}),
]


def _with_rows(format_version: int) -> CommitTable:
    source = commit_table(format_version=format_version)
    table = Table(source.catalog, source.loaded, io=source.io)
    table.append(ROWS)
    table.append(ROWS)
    return source


def _numbered(data: dict[str, Any]) -> None:
    data["snapshots"][0]["sequence-number"] = 1


@pytest.mark.parametrize(
    ("format_version", "damage", "message"),
    [
        (2, lambda data: data.update({"last-sequence-number": 1}), "last-sequence-number is 1"),
        (3, lambda data: data.update({"last-sequence-number": 0}), "last-sequence-number is 0"),
        (3, lambda data: data.update({"next-row-id": 1}), "next-row-id is 1"),
        # a version 1 table has no sequence numbers, and an upgrade would begin with 1
        (1, _numbered, "last-sequence-number is 0"),
    ],
)
@pytest.mark.parametrize("change", _CHANGES)
def test_a_table_whose_counters_lag_can_only_be_read(
    format_version: int,
    damage: Callable[[dict[str, Any]], object],
    message: str,
    change: Callable[[Table], object],
) -> None:
    table = _with_metadata(_with_rows(format_version), damage)
    assert table.scan().to_arrow()["id"].to_pylist() == [1, 1]
    _check_refused(table, change, f"it cannot be changed, because its {message}, but snapshot ")


def _only_last_snapshot(data: dict[str, Any], **changes: Any) -> None:
    """Leave one snapshot that says nothing about the numbers of its manifests."""
    (last,) = [s for s in data["snapshots"] if s["snapshot-id"] == data["current-snapshot-id"]]
    for key in ("sequence-number", "first-row-id", "added-rows"):
        last.pop(key, None)
    data.update({"snapshots": [last], "snapshot-log": [], **changes})


@pytest.mark.parametrize(("name", "number"), [("last-sequence-number", 1), ("next-row-id", 1)])
def test_a_counter_that_lags_behind_the_manifests_is_found_too(name: str, number: int) -> None:
    table = _with_metadata(_with_rows(3), lambda d: _only_last_snapshot(d, **{name: number}))
    with pytest.raises(IcebergError, match=f"its {name} is {number}, but manifest mem://t/"):
        table.append(ROWS)


def test_upgraded_table_with_used_row_ids_is_refused() -> None:
    def as_version_2(data: dict[str, Any]) -> None:
        data["format-version"] = 2

    table = _with_metadata(_with_rows(3), as_version_2)
    table.update_properties().set({"format-version": "3"}).commit()
    with pytest.raises(IcebergError, match="its next-row-id is 0, but manifest mem://t/"):
        table.append(ROWS)


def test_a_missing_last_sequence_number_is_the_highest_of_the_snapshots() -> None:
    table = _with_metadata(_with_rows(2), lambda data: data.pop("last-sequence-number"))
    assert table.metadata.last_sequence_number == 2
    table.append(ROWS)
    assert [s.sequence_number for s in table.snapshots] == [1, 2, 3]
    empty = _with_metadata(commit_table(), lambda data: data.pop("last-sequence-number"))
    assert empty.metadata.last_sequence_number == 0


def test_metadata_is_not_written_with_a_time_before_its_own_log() -> None:
    def log_of_a_fast_clock(data: dict[str, Any]) -> None:
        data["snapshot-log"][-1]["timestamp-ms"] = 9_000_000_000_000

    table = _with_metadata(_with_rows(2), log_of_a_fast_clock)
    table.update_properties().set({"a": "b"}).commit()
    assert table.metadata.last_updated_ms == 9_000_000_000_000
