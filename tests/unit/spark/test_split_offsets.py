"""The offsets at which Spark's tasks begin: those of the manifests, if they can be row groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.planning.split_pack import MAX_RANGES_OF_A_FILE
from iceberg_pyspark.spark.native_read.relations import SplitOffsets
from iceberg_pyspark.spec.manifests import FileFormat

SIZE = 100


def entries(offsets: Sequence[Sequence[int | None] | None], first: int, element: str) -> pa.Table:
    type_ = pa.list_(pa.field(element, pa.int64()))
    paths = [f"f{first + number}" for number in range(len(offsets))]
    return pa.table({"split_offsets": pa.array(offsets, type_), "file_path": paths})


def usable_offsets(
    tables: Sequence[pa.Table],
    numbers: Sequence[int],
    sizes: Sequence[int],
    file_format: FileFormat = "parquet",
) -> pa.Array:
    paths = [f"f{number}" for number in numbers]
    return SplitOffsets(tables).of(paths, pa.array(sizes, pa.int64()), file_format)


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
    result = usable_offsets(tables, numbers, [SIZE] * len(numbers))
    assert result.type == pa.list_(pa.int64())
    expected = [everything[n] if usable(everything[n]) else None for n in numbers]
    assert result.to_pylist() == expected


def test_only_parquet_files_of_a_known_size_are_cut_at_offsets() -> None:
    tables = [entries([[4, 50], [4, 50]], 0, "item")]
    assert usable_offsets(tables, [0, 1], [SIZE, 50]).to_pylist() == [[4, 50], None]
    assert usable_offsets(tables, [0], [SIZE], "orc").to_pylist() == [None]


def test_too_many_offsets_are_not_used() -> None:
    many = list(range(MAX_RANGES_OF_A_FILE + 1))
    result = usable_offsets([entries([many, many[:-1]], 0, "item")], [0, 1], [2 * len(many)] * 2)
    assert [o is None for o in result.to_pylist()] == [True, False]


def test_a_scan_without_files() -> None:
    assert usable_offsets([], [], []).to_pylist() == []
