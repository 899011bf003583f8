"""Metrics and partition of another writer's file, derived from the file alone."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark.arrow.column_metrics import FileMetrics
from iceberg_pyspark.arrow.write.imported_files import written_metrics, written_partition
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.transforms import parse_transform
from iceberg_pyspark.spec.types import DateType, DoubleType, NestedField, StructType
from iceberg_pyspark.spec.values import value_from_bytes

SCHEMA = Schema(
    fields=(
        NestedField(field_id=1, name="d", type=DoubleType()),
        NestedField(field_id=2, name="a.b", type=DateType()),
        NestedField(
            field_id=3,
            name="a",
            type=StructType((NestedField(field_id=4, name="b", type=DateType()),)),
        ),
    )
)


def context(*fields: tuple[int, str]) -> WriteContext:
    spec = PartitionSpec(
        spec_id=0,
        fields=tuple(
            PartitionField(
                source_ids=(source,), field_id=1000 + i, name=f"p{i}", transform=parse_transform(t)
            )
            for i, (source, t) in enumerate(fields)
        ),
    )
    return WriteContext(table="t", table_location="/t", schema=SCHEMA, spec=spec, write_id="w")


def file_of(folder: Path, *groups: list[float | None], statistics: bool = True) -> str:
    path = str(folder / "f.parquet")
    day, other = dt.date(2024, 2, 29), dt.date(1969, 12, 31)
    tables = [
        pa.table(
            {
                "d": pa.array(g, pa.float64()),
                "a.b": pa.array([day] * len(g), pa.date32()),
                "a": pa.array([{"b": other}] * len(g), pa.struct([("b", pa.date32())])),
            }
        )
        for g in groups
    ]
    with pq.ParquetWriter(path, tables[0].schema, write_statistics=statistics) as writer:
        for table in tables:
            writer.write_table(table)
    return path


def metrics_of(path: str) -> FileMetrics:
    return written_metrics(context(), pq.read_metadata(path))


def bounds(metrics: FileMetrics) -> tuple[object, object]:
    kinds = metrics["lower_bounds"], metrics["upper_bounds"]
    low, high = (value_from_bytes(DoubleType(), k[1]) for k in kinds)
    return low, high


def test_zeros_bound_zeros_of_either_sign(tmp_path: Path) -> None:
    metrics = written_metrics(
        context(), pq.read_metadata(file_of(tmp_path, [0.0, 1.0], [-0.0, None]))
    )
    low, high = bounds(metrics)
    assert (math.copysign(1, low), low, high) == (-1, 0, 1)  # type: ignore[arg-type]
    assert metrics["nan_value_counts"] == {1: 0}
    assert metrics["null_value_counts"] == {1: 1, 2: 0, 4: 0}


@pytest.mark.parametrize("statistics", [True, False])
def test_nan_counts_are_unknown_if_nan_is_possible(tmp_path: Path, statistics: bool) -> None:
    # pyarrow writes no bounds for a column chunk of NaNs.
    second: list[float | None] = [math.nan, math.nan] if statistics else [2.0]
    groups: tuple[list[float | None], ...] = ([1.0], second)
    metrics = written_metrics(
        context(), pq.read_metadata(file_of(tmp_path, *groups, statistics=statistics))
    )
    assert metrics["nan_value_counts"] == {}
    assert 1 not in metrics["lower_bounds"]
    assert 1 not in metrics["upper_bounds"]
    assert metrics["value_counts"][1] == sum(map(len, groups))


def test_nulls_do_not_count_as_nan(tmp_path: Path) -> None:
    metrics = metrics_of(file_of(tmp_path, [None], [2.0]))
    assert metrics["nan_value_counts"] == {1: 0}
    assert bounds(metrics) == (2.0, 2.0)


def test_the_tuple_is_that_of_the_first_row(tmp_path: Path) -> None:
    file = pq.ParquetFile(file_of(tmp_path, [-0.0]))
    spec = context((1, "identity"), (2, "month"), (4, "day"), (4, "void"))
    zero, *others = written_partition(spec, file)
    assert math.copysign(1, zero) == -1
    assert others == [54 * 12 + 1, -1, None]
    assert written_partition(context((99, "void")), file) == (None,)
