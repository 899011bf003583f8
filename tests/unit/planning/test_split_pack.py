"""Splits and tasks: no byte is lost or read twice, and groups have about the target size."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.planning.scan_tasks import DeleteFileRef, ScanTask, ScanTaskGroup
from iceberg_pyspark.planning.split_pack import (
    MAX_CUTS,
    MAX_RANGES_OF_A_FILE,
    SplitOptions,
    Splitter,
    pack_tasks,
    split_file,
    split_options,
)
from iceberg_pyspark.spec.manifests import FileContent


def a_task(path: str = "a", start: int = 0, length: int = 10, deletes: int = 0) -> ScanTask:
    ref = DeleteFileRef(
        content=FileContent.POSITION_DELETES,
        file_path="d",
        file_format="parquet",
        file_size_in_bytes=5,
        record_count=1,
        data_sequence_number=1,
    )
    return ScanTask(
        file_path=path,
        file_format="parquet",
        file_size_in_bytes=1000,
        record_count=1,
        start=start,
        length=length,
        spec_id=0,
        partition=(),
        data_sequence_number=1,
        deletes=(ref,) * deletes,
    )


def ranges(groups: Sequence[ScanTaskGroup]) -> list[list[tuple[str, int, int]]]:
    return [[(t.file_path, t.start, t.length) for t in g.tasks] for g in groups]


OFFSETS = st.none() | st.lists(st.integers(-2, 120), max_size=5)


@given(
    st.integers(0, 100), st.sampled_from(["parquet", "orc", "avro"]), OFFSETS, st.integers(1, 50)
)
def test_the_ranges_of_a_file_are_the_file(
    size: int, file_format: str, offsets: list[int] | None, target: int
) -> None:
    cuts = split_file(size, file_format, 1000, offsets, target)
    assert cuts[0][0] == 0
    assert sum(length for _, length in cuts) == size
    assert all(a + n == b for (a, n), (b, _) in pairwise(cuts))
    assert all(length > 0 for _, length in cuts) or size == 0


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 60)), max_size=20),
    st.integers(1, 100),
    st.integers(1, 5),
    st.integers(0, 20),
)
def test_packing_loses_no_byte_and_repeats_none(
    pieces: list[tuple[str, int]], target: int, lookback: int, cost: int
) -> None:
    ends: dict[str, int] = {}
    tasks = []
    for path, length in pieces:
        start = ends.get(path, 0)
        tasks.append(a_task(path, start, length))
        ends[path] = start + length
    options = SplitOptions(target_size=target, lookback=lookback, open_file_cost=cost)
    groups = pack_tasks(tasks, options)
    read = [
        (t.file_path, at)
        for g in groups
        for t in g.tasks
        for at in range(t.start, t.start + t.length)
    ]
    assert len(read) == len(set(read))
    assert set(read) == {(p, at) for p, end in ends.items() for at in range(end)}
    assert all(g.tasks for g in groups)


@pytest.mark.parametrize("size", [2**62, 2**63 - 1])
@pytest.mark.parametrize("target", [1, 128 << 20])
@pytest.mark.parametrize("offsets", [None, list(range(4, 30_004))])
@pytest.mark.parametrize("rows", [-1, 0, 3, 2**62])
def test_wrong_file_size_makes_few_ranges(
    size: int, target: int, offsets: list[int] | None, rows: int
) -> None:
    cuts = split_file(size, "parquet", rows, offsets, target)
    assert len(cuts) <= (3 if rows == 3 else MAX_RANGES_OF_A_FILE)
    assert (cuts[0][0], sum(length for _, length in cuts)) == (0, size)


def test_a_negative_size_is_one_range() -> None:
    assert split_file(-5, "parquet", 10, None, 90) == [(0, -5)]


def test_a_file_of_few_rows_is_cut_into_no_more_ranges_than_it_has_rows() -> None:
    assert split_file(200, "parquet", 1, None, 10) == [(0, 200)]
    assert split_file(200, "parquet", 3, None, 10) == [(0, 67), (67, 67), (134, 66)]


def test_the_files_of_a_scan_are_cut_only_so_often() -> None:
    splitter = Splitter(1)
    ranges_of_files = [splitter.ranges(2**62, "parquet", 2**40, None) for _ in range(100)]
    assert sum(len(ranges) - 1 for ranges in ranges_of_files) <= MAX_CUTS
    assert ranges_of_files[-1] == [(0, 2**62)]
    assert len(splitter.ranges(3, "parquet", 3, None)) == 3, "what is left is used"


def test_cuts_fall_on_row_groups_as_many_as_fit() -> None:
    offsets = [4, 40, 80, 120, 160]
    assert split_file(200, "parquet", 1000, offsets, 90) == [(0, 80), (80, 80), (160, 40)]
    assert split_file(200, "parquet", 1000, offsets, 10) == [
        (0, 40),
        (40, 40),
        (80, 40),
        (120, 40),
        (160, 40),
    ]


@pytest.mark.parametrize("offsets", [None, [], [4, 300], [50, 20], [4, 4]])
def test_without_usable_offsets_parquet_is_cut_anywhere(offsets: list[int] | None) -> None:
    assert split_file(200, "parquet", 1000, offsets, 90) == [(0, 90), (90, 90), (180, 20)]


@pytest.mark.parametrize("file_format", ["avro", "orc"])
def test_unsplittable_format_is_one_split(file_format: str) -> None:
    assert split_file(200, file_format, 1000, None, 90) == [(0, 200)]
    assert split_file(200, file_format, 1000, [4, 100], 90) == [(0, 200)]


def test_a_file_within_the_target_stays_whole() -> None:
    assert split_file(90, "parquet", 1000, [4, 40], 90) == [(0, 90)]
    assert split_file(0, "parquet", 1000, None, 90) == [(0, 0)]


def test_groups_fill_up_to_the_target() -> None:
    tasks = [a_task(str(i), length=40) for i in range(5)]
    options = SplitOptions(target_size=100, open_file_cost=0)
    assert [len(g.tasks) for g in pack_tasks(tasks, options)] == [2, 2, 1]


def test_a_later_small_task_fills_an_earlier_group_within_the_lookback() -> None:
    # The last task fills a group alone, so rebalancing cannot improve the groups.
    tasks = [a_task(str(n), length=n) for n in (80, 90, 20, 10, 100)]
    options = SplitOptions(target_size=100, open_file_cost=0)
    assert ranges(pack_tasks(tasks, options)) == [
        [("80", 0, 80), ("20", 0, 20)],
        [("90", 0, 90), ("10", 0, 10)],
        [("100", 0, 100)],
    ]
    narrow = SplitOptions(target_size=100, open_file_cost=0, lookback=1)
    assert ranges(pack_tasks(tasks, narrow)) == [
        [("90", 0, 90)],
        [("80", 0, 80), ("20", 0, 20)],
        [("100", 0, 100)],
        [("10", 0, 10)],
    ]


def test_few_groups_are_evened_out() -> None:
    tasks = [a_task(str(i), length=25) for i in range(8)]
    options = SplitOptions(target_size=130, open_file_cost=0)
    assert ranges(pack_tasks(tasks, options)) == [
        [(str(i), 0, 25) for i in (0, 2, 4, 6)],
        [(str(i), 0, 25) for i in (1, 3, 5, 7)],
    ]


@given(st.lists(st.integers(1, 100), min_size=1, max_size=40))
def test_packing_keeps_every_group_within_the_target(lengths: list[int]) -> None:
    tasks = [a_task(str(i), length=length) for i, length in enumerate(lengths)]
    groups = pack_tasks(tasks, SplitOptions(target_size=100, open_file_cost=0))
    assert sorted(t.file_path for g in groups for t in g.tasks) == sorted(
        map(str, range(len(lengths)))
    )
    assert all(sum(t.length for t in g.tasks) <= 100 for g in groups)


def test_opening_a_file_has_a_price() -> None:
    tasks = [a_task(str(i), length=1) for i in range(5)]
    options = SplitOptions(target_size=100, open_file_cost=50)
    assert [len(g.tasks) for g in pack_tasks(tasks, options)] == [2, 2, 1]


def test_delete_files_count_toward_the_size_of_a_task() -> None:
    tasks = [a_task(str(i), length=40, deletes=2) for i in range(3)]
    options = SplitOptions(target_size=100, open_file_cost=0)
    assert [len(g.tasks) for g in pack_tasks(tasks, options)] == [2, 1]
    options = SplitOptions(target_size=100, open_file_cost=30)
    assert [len(g.tasks) for g in pack_tasks(tasks, options)] == [1, 1, 1]


def test_neighbouring_ranges_of_a_file_become_one() -> None:
    tasks = [a_task("a", 0, 10), a_task("a", 10, 10), a_task("b", 0, 10), a_task("a", 20, 10)]
    (group,) = pack_tasks(tasks, SplitOptions(target_size=100, open_file_cost=0))
    assert ranges([group]) == [[("a", 0, 20), ("b", 0, 10), ("a", 20, 10)]]


def test_options_come_from_table_properties() -> None:
    properties = {
        "read.split.target-size": "10",
        "read.split.planning-lookback": "3",
        "read.split.open-file-cost": "0",
    }
    assert split_options(properties) == SplitOptions(target_size=10, lookback=3, open_file_cost=0)
    defaults = SplitOptions(target_size=134217728, lookback=10, open_file_cost=4194304)
    assert split_options({}) == defaults


@pytest.mark.parametrize(
    "properties", [{"read.split.target-size": "0"}, {"read.split.planning-lookback": "many"}]
)
def test_options_that_make_no_sense_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError, match="split"):
        split_options(properties)
