"""Rewritten data files whose rows are in an order: sorted, or along a space-filling curve."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.arrow.write.range_sort import SortMemory
from iceberg_pyspark.errors import InvalidRequestError, StorageError
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.sql_text.extensions import parse_clause
from iceberg_pyspark.table.maintenance.rewrites import group_writer, rewrite_data_files
from iceberg_pyspark.table.maintenance.rewrites.group_writer import GroupWriter
from iceberg_pyspark.table.run_sql_extensions import run_clause
from tests.support.frames import append_empty_file, append_rows, create_path_table


def set_memory(monkeypatch: pytest.MonkeyPatch, memory: SortMemory) -> None:
    writer = partial(GroupWriter, memory=memory)
    monkeypatch.setattr(rewrite_data_files, "GroupWriter", writer)


def files(table: Table) -> list[ScanTask]:
    return list(table.scan().plan_files())


def sorted_table(folder: Path, count: int = 400, **options: Any) -> Table:
    """Create a table of ten files, each with numbers from the whole range."""
    table = create_path_table(folder, "a BIGINT, b BIGINT, c STRING", **options)
    for start in range(10):
        append_rows(
            table,
            [
                {"a": n, "b": n * 7919 % count, "c": None if n % 7 == 0 else f"c{n % 3}"}
                for n in range(start, count, 10)
            ],
        )
    return table.refresh()


def in_files(table: Table, column: str) -> list[list[Any]]:
    """Return the values of a column in each file, in row order."""
    result: dict[str, list[Any]] = {}
    for row in table.scan(columns=[column, "_file", "_pos"]).to_arrow().to_pylist():
        result.setdefault(row["_file"], []).append((row["_pos"], row[column]))
    return [[v for _, v in sorted(values, key=lambda v: v[0])] for values in result.values()]


SMALL = SortMemory(in_memory=3000, buffered=1000)


@pytest.mark.parametrize("memory", [SortMemory(), SMALL])
def test_rows_are_sorted_across_files(
    tmp_path: Path, memory: SortMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = sorted_table(tmp_path / "t")
    before = table.scan(columns=["a", "b", "c"]).to_arrow().sort_by("a")
    if memory is SMALL:
        monkeypatch.setattr(group_writer, "_SMALL_GROUP", 0)
        set_memory(monkeypatch, memory)
    done = table.maintenance().rewrite_data_files(
        strategy="sort",
        sort_order="c DESC NULLS LAST, b",
        options={"rewrite-all": True, "target-file-size-bytes": 4000},
    )
    assert done.added_data_files_count > 1
    assert table.refresh().scan().to_arrow().sort_by("a").equals(before)
    files = in_files(table, "c")
    files.sort(key=lambda values: [v or "" for v in values], reverse=True)
    texts = [v for values in files for v in values]
    assert texts == sorted(texts, key=lambda v: v or "", reverse=True)
    assert {f["sort_order_id"] for f in table.metadata_table("files").to_arrow().to_pylist()} == {0}
    again = table.maintenance().rewrite_data_files(sort_order="c DESC NULLS LAST, b")
    assert again.rewritten_data_files_count in (0, len(files))


def test_the_table_s_own_order_is_that_of_the_files(tmp_path: Path) -> None:
    table = sorted_table(tmp_path / "t")
    run_clause(table, parse_clause("WRITE ORDERED BY b DESC"))
    table.maintenance().rewrite_data_files(strategy="sort")
    [values] = in_files(table.refresh(), "b")
    assert values == sorted(values, reverse=True)
    [file] = table.metadata_table("files").to_arrow().to_pylist()
    assert file["sort_order_id"] == table.metadata.default_sort_order_id != 0
    # the same order, given as text
    table.maintenance().rewrite_data_files(
        sort_order="b DESC NULLS LAST", options={"rewrite-all": True}
    )
    [file] = table.metadata_table("files").to_arrow().to_pylist()
    assert file["sort_order_id"] == table.metadata.default_sort_order_id


@pytest.mark.parametrize("curve", ["zorder", "Hilbert"])
def test_files_along_a_curve_are_narrow_in_both_columns(tmp_path: Path, curve: str) -> None:
    table = sorted_table(tmp_path / "t", 4000)
    options = {"rewrite-all": True, "target-file-size-bytes": 4000}
    table.maintenance().rewrite_data_files(sort_order=f"{curve}(a, b)", options=options)
    table.refresh()
    parts = in_files(table, "a")
    assert len(parts) >= 4
    for column in ("a", "b"):
        widths = [max(v) - min(v) for v in in_files(table, column)]
        assert sum(widths) / len(widths) < 3200
    assert sorted(v for part in parts for v in part) == list(range(4000))


def test_sorted_within_each_partition(tmp_path: Path) -> None:
    table = sorted_table(tmp_path / "t", partitioned_by=["c"])
    table.maintenance().rewrite_data_files(sort_order="b")
    values = in_files(table.refresh(), "b")
    assert len(values) == 4
    assert all(v == sorted(v) for v in values)
    # Rows of files of another spec are written partition by partition.
    with table.update_spec() as spec:
        spec.add_field("a", "bucket[2]")
    table.maintenance().rewrite_data_files(sort_order="b", options={"rewrite-all": True})
    values = in_files(table.refresh(), "b")
    assert len(values) == 8
    assert all(v == sorted(v) for v in values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategy": "shuffle"}, "no strategy 'shuffle'"),
        ({"strategy": "sort"}, "has no sort order; give one with sort_order"),
        ({"strategy": "binpack", "sort_order": "a"}, "sort_order requires strategy sort"),
        ({"sort_order": "nothing"}, "nothing"),
        ({"sort_order": "zorder(a), b"}, "a curve must be the only term"),
        ({"sort_order": "zorder(a DESC)"}, "takes columns, not 'a DESC'"),
        ({"sort_order": "zorder(bucket(2, a))"}, "takes columns, not 'bucket"),
        ({"sort_order": "hilbert(c)"}, "needs 1 to 16 columns that are not identity"),
        ({"sort_order": "zorder(a) DESC"}, "after zorder"),
        ({"options": {"compression-factor": 2}}, "has no option 'compression-factor'"),
        ({"sort_order": "a", "options": {"max-output-size": 2}}, "has no option 'max-output-size'"),
    ],
)
def test_wrong_orders_are_refused(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    table = sorted_table(tmp_path / "t", 10, partitioned_by=["c"])
    with pytest.raises(InvalidRequestError, match=re.escape(message)):
        table.maintenance().rewrite_data_files(**arguments)


def test_a_group_that_cannot_be_read_is_left_with_partial_progress(tmp_path: Path) -> None:
    table = sorted_table(tmp_path / "t", partitioned_by=["c"])
    lost = next(t for t in files(table) if t.partition == ("c1",))
    Path(lost.file_path.removeprefix("file:")).unlink()
    before = set(Path(tmp_path / "t" / "data").rglob("*.parquet"))
    with pytest.raises(StorageError):
        table.maintenance().rewrite_data_files()
    assert set(Path(tmp_path / "t" / "data").rglob("*.parquet")) == before
    done = table.maintenance().rewrite_data_files(options={"partial-progress.enabled": True})
    assert (done.failed_data_files_count, done.added_data_files_count) == (10, 3)
    assert sum(t.partition == ("c1",) for t in files(table.refresh())) == 10
    assert len(files(table)) == 13


def test_at_most_so_many_files_are_rewritten(tmp_path: Path) -> None:
    table = sorted_table(tmp_path / "t")
    done = table.maintenance().rewrite_data_files(options={"max-files-to-rewrite": 6})
    assert done.rewritten_data_files_count == 6
    assert len(files(table.refresh())) == 5


def test_files_are_as_many_as_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ranges that fit into memory are as many in each file, so no file is a bit too large."""
    table = create_path_table(tmp_path / "t", "a BIGINT")
    numbers = [n * 7919 % 30_000 for n in range(30_000)]
    table.append(pa.table({"a": pa.array(numbers, pa.int64())}))
    [old] = files(table.refresh())
    size = old.file_size_in_bytes
    monkeypatch.setattr(group_writer, "_SMALL_GROUP", 0)
    # 16 ranges are wanted for 3 files
    set_memory(monkeypatch, SortMemory(in_memory=4 * size, buffered=10_000))
    done = table.maintenance().rewrite_data_files(
        sort_order="a", options={"rewrite-all": True, "target-file-size-bytes": size // 3}
    )
    assert done.added_data_files_count == 3
    counts = [len(values) for values in in_files(table.refresh(), "a")]
    assert sum(counts) == 30_000
    assert max(counts) < 1.1 * min(counts)


def test_sampled_files_without_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create_path_table(tmp_path / "t", "a BIGINT")
    append_rows(table, [{"a": n} for n in (3, 1, 2)])
    append_empty_file(table.refresh())
    tasks = files(table)
    monkeypatch.setattr(group_writer, "_SMALL_GROUP", 0)
    # only the first file of the group is sampled
    monkeypatch.setattr(group_writer, "_MAX_SAMPLED_FILES", 1)
    assert [t.record_count for t in tasks] == [0, 3], "the test needs the empty file first"
    table.maintenance().rewrite_data_files(sort_order="a", options={"rewrite-all": True})
    assert in_files(table.refresh(), "a") == [[1, 2, 3]]
