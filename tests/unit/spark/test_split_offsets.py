"""The offsets at which Spark's tasks begin: those of the manifests, if they can be row groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.planning.split_pack import MAX_RANGES_OF_A_FILE
from iceberg_pyspark.spark.native_read.split_offsets import SplitOffsets
from iceberg_pyspark.spec.manifests import FileFormat

SIZE = 100


def entries(offsets: Sequence[Sequence[int | None] | None], first: int, element: str) -> pa.Table:
    type_ = pa.list_(pa.field(element, pa.int64()))
    paths = [f"f{first + number}" for number in range(len(offsets))]
    return pa.table({"split_offsets": pa.array(offsets, type_), "file_path": paths})


def a_task(number: int, file_format: FileFormat = "parquet", size: int = SIZE) -> ScanTask:
    return ScanTask(
        file_path=f"f{number}",
        file_format=file_format,
        file_size_in_bytes=size,
        record_count=1,
        start=0,
        length=size,
        spec_id=0,
        partition=(),
        data_sequence_number=1,
    )


def usable(offsets: Sequence[int | None] | None) -> bool:
    if not offsets:
        return False
    known = [o for o in offsets if o is not None]
    return len(known) == len(offsets) and (
        known[0] >= 0 and known[-1] < SIZE and all(a < b for a, b in pairwise(known))
    )


LISTS = st.none() | st.lists(st.none() | st.integers(-2, SIZE + 2), max_size=4)
ASCENDING = st.lists(st.integers(0, SIZE - 1), unique=True, min_size=1, max_size=4).map(sorted)


@given(st.lists(st.lists(LISTS | ASCENDING, max_size=4), max_size=3), st.randoms())
def test_only_offsets_that_ascend_within_the_file_are_used(
    manifests: list[list[list[int | None] | None]], random: object
) -> None:
    tables, first = [], 0
    for number, offsets in enumerate(manifests):
        tables.append(entries(offsets, first, "element" if number % 2 else "item"))
        first += len(offsets)
    everything = [offsets for of_manifest in manifests for offsets in of_manifest]
    numbers = list(range(len(everything)))
    random.shuffle(numbers)  # type: ignore[attr-defined]
    result = SplitOffsets(tables).of([a_task(number) for number in numbers])
    assert result.type == pa.list_(pa.int64())
    expected = [everything[n] if usable(everything[n]) else None for n in numbers]
    assert result.to_pylist() == expected


def test_only_parquet_files_of_a_known_size_are_cut_at_offsets() -> None:
    offsets = SplitOffsets([entries([[4, 50], [4, 50], [4, 50]], 0, "item")])
    tasks = [a_task(0), a_task(1, "orc"), a_task(2, size=50)]
    assert offsets.of(tasks).to_pylist() == [[4, 50], None, None]


def test_too_many_offsets_are_not_used() -> None:
    many = list(range(MAX_RANGES_OF_A_FILE + 1))
    offsets = SplitOffsets([entries([many, many[:-1]], 0, "item")])
    tasks = [a_task(number, size=2 * len(many)) for number in range(2)]
    assert [o is None for o in offsets.of(tasks).to_pylist()] == [True, False]


def test_a_scan_without_files() -> None:
    assert SplitOffsets([]).of([]).to_pylist() == []
