"""The number of files that filters read for each row order: `python -m tests.bench.curve_bench`.

Nothing is timed: rows of lineitem are sorted and cut into files of equal size, and the bench counts
the files whose value ranges overlap a filter's range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as TextTable

from iceberg_pyspark.arrow.write.row_order import CURVES, AlongCurve, RowOrder, SortedBy
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import LongType, NestedField
from tests.support.sort_orders import ascending
from tests.support.tpch import tpch

_COLUMNS = ("l_shipdate", "l_partkey", "l_suppkey")
_FILES = (16, 50, 200)
_FILTERS = 500
_PART = 0.05
"""The share of each column's value range that a filter selects."""

_SCHEMA = Schema(
    fields=tuple(
        NestedField(field_id=i, name=name, type=LongType()) for i, name in enumerate(_COLUMNS, 1)
    )
)


def compare(scale: float = 0.1) -> list[TextTable]:
    """Return the table to print."""
    whole = pq.read_table(tpch(scale)["lineitem"], columns=list(_COLUMNS))
    days = whole["l_shipdate"].cast(pa.int32()).cast(pa.int64())
    rows = pa.table(
        [days, *(whole[c].cast(pa.int64()) for c in _COLUMNS[1:])], names=list(_COLUMNS)
    )
    table = TextTable(
        "order",
        title=f"files read by filters on {_PART:.0%} of each column's values: lineitem SF{scale:g}",
    )
    for count in _FILES:
        table.add_column(f"of {count}", justify="right")
        table.add_column("by one column", justify="right")
    for name, order in _orders().items():
        cells = []
        batch = rows.combine_chunks().to_batches()[0]
        in_order = order.fit(batch).sort(rows)
        for count in _FILES:
            both, one = _files_read(in_order, count)
            cells += [f"{both:.1f}", f"{one:.1f}"]
        table.add_row(name, *cells)
    return [table]


def _orders() -> Mapping[str, RowOrder]:
    ids = tuple(f.field_id for f in _SCHEMA.fields)
    fields = tuple(ascending(i) for i in ids)
    orders: dict[str, RowOrder] = {", ".join(_COLUMNS): SortedBy(schema=_SCHEMA, fields=fields)}
    for number in (2, 3):
        for curve in CURVES:
            orders[f"{curve}({', '.join(_COLUMNS[:number])})"] = AlongCurve(
                schema=_SCHEMA, source_ids=ids[:number], curve=curve
            )
    return orders


def _files_read(rows: pa.Table, count: int) -> tuple[float, float]:
    """Return the mean numbers of files for filters on both of two columns, and on one of them."""
    ends = [rows.num_rows * i // count for i in range(count + 1)]
    columns = [rows[name].to_numpy() for name in _COLUMNS[:2]]
    ranges = [[(c[a:b].min(), c[a:b].max()) for a, b in pairwise(ends)] for c in columns]
    random = Random(1)
    both = one = 0
    for _ in range(_FILTERS):
        met = [_met(c, r, random) for c, r in zip(columns, ranges, strict=True)]
        both += int(np.logical_and(*met).sum())
        one += int(met[random.randrange(2)].sum())
    return both / _FILTERS, one / _FILTERS


def _met(
    column: NDArray[np.int64], ranges: Sequence[tuple[int, int]], random: Random
) -> NDArray[np.bool_]:
    """Return which files overlap a random filter on a column."""
    least, greatest = int(column.min()), int(column.max())
    width = (greatest - least) * _PART
    start = least + random.random() * (greatest - least - width)
    return np.array([low <= start + width and high >= start for low, high in ranges])


def main() -> None:
    """Print the table."""
    for table in compare():
        Console(width=132).print(table)


if __name__ == "__main__":
    main()
