"""Which masters of Spark have executors apart from the driver, and how tasks divide rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from iceberg_pyspark.arrow.write.range_sort import SortMemory
from iceberg_pyspark.arrow.write.row_order import SortedBy
from iceberg_pyspark.spark.write.executors import FileRanges, has_executors
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import LongType, NestedField
from tests.support.sort_orders import ascending


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", False),
        ("local[2]", False),
        ("local[*]", False),
        ("local-cluster[2,1,768]", True),
        ("spark://host:7077", True),
        ("yarn", True),
    ],
)
def test_masters_with_executors(master: str, expected: bool) -> None:
    context: Any = SimpleNamespace(master=master)
    assert has_executors(context) is expected


ORDER = SortedBy(
    schema=Schema(fields=(NestedField(field_id=1, name="a", type=LongType(), required=False),)),
    fields=(ascending(1),),
)


def batch(values: Any) -> pa.RecordBatch:
    return pa.record_batch({"a": pa.array(values, pa.int64())})


@pytest.mark.parametrize("files", [1, 3, 7])
def test_the_ranges_of_a_file_fit_into_memory(files: int) -> None:
    """A range that did not fit would be written to disk a second time."""
    rows = batch(np.random.default_rng(0).permutation(42_000))
    memory = SortMemory(in_memory=rows.nbytes // 10, buffered=1)
    group: Any = SimpleNamespace(output_file_count=files, size=rows.nbytes // 8)
    ranges = FileRanges.of_group(group, ORDER, batch(range(0, 42_000, 5)), memory)
    numbers, counts = np.unique(ranges.ranges.of(rows), return_counts=True)
    assert counts.max() * 8 < memory.in_memory / 4
    in_files = ranges.of(rows)
    assert (np.diff(in_files[np.argsort(rows["a"].to_numpy())]) >= 0).all()
    sizes = np.bincount(in_files)
    assert len(sizes) == files
    assert sizes.max() < 1.05 * sizes.min()
    assert len(numbers) >= files


@pytest.mark.parametrize("sample", [[5], [5] * 9, [1, 5, 5, 5, 5, 5, 9], [None]])
@pytest.mark.parametrize("files", [1, 2, 5])
def test_every_row_is_of_a_file_whatever_the_sample(sample: list[Any], files: int) -> None:
    rows = batch([None, *range(12)])
    group: Any = SimpleNamespace(output_file_count=files, size=0)
    ranges = FileRanges.of_group(group, ORDER, batch(sample), SortMemory())
    in_files = ranges.of(rows).tolist()
    assert in_files == sorted(in_files)
    assert set(in_files) <= set(range(files))
