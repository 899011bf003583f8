"""`Table.delete` and `Table.update`: the files that they read and write, the values they take."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.arrow.formats.parquet_reader import ParquetFileReader
from iceberg_pyspark.errors import ConcurrentChangeError, InvalidRequestError, NoSuchSnapshotError
from iceberg_pyspark.table.commits import commit_files
from iceberg_pyspark.table.row_level import row_operation
from iceberg_pyspark.table.row_level.touched_rows import RowChanges
from tests.support.parameters import cases

Make = Callable[..., ice.Table]
MODES = ("copy-on-write", "merge-on-read")


@pytest.fixture
def make(tmp_path: Path) -> Make:
    catalog = ice.load_catalog("lake", type="memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")

    def table(mode: str, version: int = 3, **properties: str) -> ice.Table:
        modes = {f"write.{o}.mode": mode for o in ("delete", "update", "merge")}
        table = catalog.create_table(
            "db.t",
            "id BIGINT, v INT, s STRING, d DECIMAL(9,2), ts TIMESTAMP, p STRING",
            partitioned_by=["p"],
            properties={"format-version": str(version), **modes, **properties},
        )
        for part in "ab":
            rows = {"id": [1, 2, 3, 4], "v": pa.array([1, 2, 3, 4], pa.int32()), "s": list("wxyz")}
            table.append(pa.table({**rows, "p": [part] * 4}))
        return table

    return table


def ids(table: ice.Table, **scan: Any) -> list[tuple[int, str]]:
    rows = table.scan(columns=["id", "p"], **scan).to_arrow().to_pylist()
    return sorted((r["id"], r["p"]) for r in rows)


def counts(changes: RowChanges) -> tuple[int, int, int, int]:
    return changes.inserted, changes.updated, changes.deleted, changes.copied


@cases("version", fast=[1, 3], nightly=[2])
@pytest.mark.parametrize("mode", MODES)
def test_rows_are_deleted_in_each_mode(make: Make, mode: str, version: int) -> None:
    table = make(mode, version)
    rewrites = mode == "copy-on-write" or version == 1
    deleted = table.delete("id IN (2, 3) AND p = 'a'")
    assert counts(deleted) == (0, 0, 2, 2 if rewrites else 0)
    assert table.current_snapshot is not None
    assert deleted.snapshot_id == table.current_snapshot.snapshot_id
    assert ids(table) == [(1, "a"), (1, "b"), (2, "b"), (3, "b"), (4, "a"), (4, "b")]
    formats = table.inspect.delete_files()["file_format"].to_pylist()
    assert formats == ([] if rewrites else ["PUFFIN" if version == 3 else "PARQUET"])
    assert counts(table.delete("p = 'a'")) == (0, 0, 2, 0)
    assert counts(table.delete("id > 9")) == (0, 0, 0, 0)
    assert table.inspect.files().num_rows == 1
    assert table.verify(check_files=True).findings == ()


@pytest.mark.parametrize("mode", MODES)
def test_an_update_keeps_row_ids(make: Make, mode: str) -> None:
    table = make(mode)
    columns = ["_row_id", "_last_updated_sequence_number", "id", "v", "s", "d", "ts", "p"]
    before = {r["_row_id"]: r for r in table.scan(columns=columns).to_arrow().to_pylist()}
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    values = {"v": "v * 10", "s": "concat(s, t.p, '!')", "d": Decimal("1.5"), "ts": moment}
    updated = table.update({**values, "p": "'c'"}, "id = 2")
    assert counts(updated)[1] == 2
    after = {r["_row_id"]: r for r in table.scan(columns=columns).to_arrow().to_pylist()}
    assert after.keys() == before.keys()
    for row_id, row in after.items():
        old = before[row_id]
        if row["id"] != 2:
            assert row == old
            continue
        new = {"v": 20, "s": f"x{old['p']}!", "d": Decimal("1.50"), "ts": moment, "p": "c"}
        assert row == {**old, **new, "_last_updated_sequence_number": 3}
    assert counts(table.update({"s": None}))[1] == 8
    assert table.scan("s IS NULL").count() == 8


@pytest.mark.parametrize("mode", MODES)
def test_a_delete_reads_the_columns_that_it_needs(
    make: Make, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    table = make(mode)
    read: list[set[int]] = []
    batches = ParquetFileReader.batches

    def recorded(self: ParquetFileReader, leaves: Any, *rest: Any) -> Any:
        read.append(set(leaves))
        return batches(self, leaves, *rest)

    monkeypatch.setattr(ParquetFileReader, "batches", recorded)
    table.delete("p = 'a'")
    assert read == []
    table.append(pa.table({"id": [1, 2], "p": ["a", "a"]}))
    table.append(pa.table({"id": [2, 3], "p": ["c", "c"]}))
    table.delete("id = 1 AND p <> 'b'")
    # of the first file, which copy-on-write copies; the bounds of the others exclude the key
    assert read[0] == {0}
    assert len(read) == (1 if mode == "merge-on-read" else 2)
    assert all(leaves >= {0, 1, 2, 3, 4} for leaves in read[1:])


def test_a_branch_changes_alone(make: Make) -> None:
    table = make("merge-on-read")
    table.manage_snapshots().create_branch("audit").commit()
    table.delete("id < 4", branch="audit")
    table.update({"id": "id + 1"}, branch="audit")
    assert ids(table, branch="audit") == [(5, "a"), (5, "b")]
    assert len(ids(table)) == 8
    with pytest.raises(NoSuchSnapshotError):
        table.delete("id = 1", branch="absent")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "name a column to set"),
        ({"x": "1"}, "no column 'x' to set; its columns are id, v"),
        ({"ID": "1"}, "no column 'ID'"),
        ({"s.x": "1"}, "no column 's.x' to set; 's' is no struct: set the whole column 's'"),
        ({"v": "missing + 1"}, "'missing [+] 1' cannot be evaluated"),
        ({"v": "1, 2"}, "'1, 2' cannot be evaluated"),
        ({"v": "id / 0"}, "cannot be evaluated: .*[Dd]ivide by zero"),
        ({"v": "3000000000"}, "'3000000000' does not fit column 'v'"),
        ({"v": "s"}, "column 'v' is .*string"),
        ({"v": 1.5}, "1.5 is no value of column 'v'"),
        ({"v": True}, "column 'v' is bool"),
        ({"d": Decimal("1.005")}, "'1.005'. is no value of column 'd'"),
        ({"s": 1}, "column 's' is int64"),
        ({"ts": "'x'"}, "column 'ts' is string"),
        ({"p": [1]}, r"\[1\] is no value of column 'p'"),
    ],
)
def test_wrong_values_are_refused(make: Make, values: dict[str, Any], message: str) -> None:
    table = make("merge-on-read")
    with pytest.raises(InvalidRequestError, match=message):
        table.update(values)
    assert len(table.snapshots) == 2


NESTED = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.int64()), ("d", pa.string())]))])


def nested(tmp_path: Path, values: list[Any]) -> ice.Table:
    catalog = ice.load_catalog("nested", type="memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    structs = "s STRUCT<a: INT, b: STRUCT<c: BIGINT, d: STRING>>, l ARRAY<STRUCT<x: INT>>"
    table = catalog.create_table("db.n", f"id INT, {structs}")
    ids = pa.array(range(len(values)), pa.int32())
    table.append(pa.table({"id": ids, "s": pa.array(values, NESTED)}))
    return table


def structs_of(table: ice.Table) -> list[Any]:
    rows = sorted(table.to_arrow().to_pylist(), key=lambda r: r["id"])
    return [r["s"] for r in rows]


def test_fields_of_structs_are_set_as_spark_sets_them(tmp_path: Path) -> None:
    """A null struct becomes one of null fields; Spark 4.3 gave these rows for these statements."""
    table = nested(tmp_path, [None, {"a": 1, "b": None}])
    table.update({"s.a": 7})
    assert structs_of(table) == [{"a": 7, "b": None}] * 2
    table.update({"s.b.c": "t.id + 8", "s.b.d": "'x'"}, "id = 1")
    assert structs_of(table) == [{"a": 7, "b": None}, {"a": 7, "b": {"c": 9, "d": "x"}}]
    source = pa.table({"id": pa.array([0, 1], pa.int32()), "v": pa.array([5, 6], pa.int32())})
    merge = table.merge(source, "id").when_matched_update({"s.b.c": "s.v", "s.a": None})
    assert merge.execute().updated == 2
    expected = [{"a": None, "b": {"c": 5, "d": None}}, {"a": None, "b": {"c": 6, "d": "x"}}]
    assert structs_of(table) == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"s.x": 1}, "no column 's.x' to set; 's' has no field 'x'; its fields are a, b"),
        ({"s.b.x": 1}, "'s.b' has no field 'x'; its fields are c, d"),
        ({"s.A": 1}, "'s' has no field 'A'"),
        ({"x.y": 1}, "no column 'x' to set; its columns are id, s, l"),
        ({"l.element.x": 1}, "'l' is no struct: set the whole column 'l'"),
        ({"s.a.x": 1}, "'s.a' is no struct: set the whole column 's.a'"),
        ({"s.a": 1, "s": None}, "column 's' is set twice"),
        ({"s.b": None, "s.b.c": 1}, "column 's.b.c' is set twice"),
        ({"s.a": "3000000000"}, "does not fit column 's.a'"),
        ({"s.a": "'x'"}, "column 's.a' is .*string"),
        ({"s.a": 1.5}, "1.5 is no value of column 'a'"),
    ],
)
def test_wrong_fields_of_structs_are_refused(
    tmp_path: Path, values: dict[str, Any], message: str
) -> None:
    table = nested(tmp_path, [{"a": 1, "b": None}])
    with pytest.raises(InvalidRequestError, match=message):
        table.update(values)
    row = pa.table({"id": pa.array([5], pa.int32())})
    merge = table.merge(row, "id").when_not_matched_insert({"id": "s.id", "s.a": 1})
    with pytest.raises(InvalidRequestError, match="set the whole column 's'"):
        merge.execute()
    assert len(table.snapshots) == 1


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_rows_of_others_make_a_change_run_again(
    make: Make, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    table = make("merge-on-read", **{"write.delete.isolation-level": isolation})
    other = ice.Table(table.catalog, table.loaded)
    new = pa.table({"id": [2], "p": ["a"]})
    between(monkeypatch, lambda: other.append(new))
    deleted = table.delete("id = 2")
    assert deleted.deleted == (3 if isolation == "serializable" else 2)
    between(monkeypatch, lambda: other.delete("id = 3"))
    assert table.update({"v": 0}, "id IN (3, 4)").updated == 2
    assert [i for i, _ in ids(table) if i == 3] == []
    never = make_properties(table, {"commit.retry.num-retries": "0"})
    between(monkeypatch, lambda: other.delete("id = 4"))
    with pytest.raises(ConcurrentChangeError):
        never.update({"v": 0}, "id = 4")


@pytest.mark.parametrize("mode", MODES)
def test_an_overwrite_by_filter_deletes_rows_of_files_and_adds_rows(
    make: Make, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    table = make(mode)
    other = ice.Table(table.catalog, table.loaded)
    new = pa.table({"id": [2], "p": ["a"]})
    between(monkeypatch, lambda: other.append(new))
    rows = pa.table({"id": [20, 21], "p": ["a", "c"]})
    snapshot = table.overwrite(iter(rows.to_batches()), "id = 2")
    assert snapshot == table.current_snapshot
    left = [(i, p) for p in "ab" for i in (1, 3, 4)]
    assert ids(table) == sorted([*left, (20, "a"), (21, "c")])
    assert (table.inspect.delete_files().num_rows > 0) == (mode == "merge-on-read")
    # the files of the first try are gone
    stored = {f.location for f in table.io.list_files(f"{table.location}/data")}
    assert stored == set(table.inspect.all_files()["file_path"].to_pylist())
    assert table.verify(check_files=True).ok
    other.refresh().append(pa.table({"id": [4, 1], "p": ["c", "c"]}))
    table.overwrite(rows, "p = 'b' OR id < 4", branch="main")
    assert ids(table) == [(4, "a"), (4, "c"), (20, "a"), (20, "a"), (21, "c"), (21, "c")]


def make_properties(table: ice.Table, properties: dict[str, str]) -> ice.Table:
    table.update_properties().set(properties).commit()
    return table


def between(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let another writer act once, before the next operation commits."""
    commit = commit_files.commit_action
    acts = [act]

    def commit_after(*args: Any, **kwargs: Any) -> Any:
        if acts:
            acts.pop()()
        return commit(*args, **kwargs)

    monkeypatch.setattr(row_operation, "commit_action", commit_after)


def test_a_column_may_have_the_name_of_a_side_or_any_other(tmp_path: Path) -> None:
    """An expression in which `t` would be the row, and never null, is refused."""
    catalog = ice.load_catalog("lake", type="memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    columns = "id BIGINT, t INT, s INT, `a``b` INT, `c.d` INT"
    table = catalog.create_table("db.t", columns, properties={"format-version": "3"})
    names = ["id", "t", "s", "a`b", "c.d"]
    numbers = [pa.array([n], pa.int32()) for n in (None, 2, 3, 4)]
    table.append(pa.table([pa.array([1]), *numbers], names))
    table.update({"t": "`s`", "s": "t", "c.d": "`a``b` + 1"}, "t IS NULL")
    (row,) = table.scan().to_arrow().to_pylist()
    assert [row[n] for n in names] == [1, 2, None, 3, 4]
    table.update({"a`b": "t.`c.d`", "c.d": "t.t + t.`a``b`"})
    for text in ("CASE WHEN t IS NULL THEN 1 ELSE 2 END", "`t` + 1", "coalesce(t, 1)"):
        with pytest.raises(InvalidRequestError, match=r"the name of a side too; write t\.t"):
            table.update({"s": text})
    table.update({"id": "length('t')"})
    (row,) = table.scan().to_arrow().to_pylist()
    assert [row[n] for n in names] == [1, 2, None, 4, 5]
