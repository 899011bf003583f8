"""One read of a table: portably, by the steps of the data source, or by Spark's own reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tests.support.rows import PlainRow, spark_rows

ReadPath: TypeAlias = Literal["portable", "native"]


class Rows(Protocol):
    """What a read returned."""

    @property
    def schema(self) -> StructType:
        """The schema that Spark sees."""
        ...

    @property
    def rows(self) -> list[PlainRow]:
        """The rows in the form of tests.support.rows, sorted."""
        ...


Read: TypeAlias = Callable[..., Rows]
"""`read(table, options, schema)`, as `read_by_steps` takes them."""


@dataclass(frozen=True)
class NativeRead:
    """What Spark's own reader returned."""

    schema: StructType
    rows: list[PlainRow]


def read_natively(
    spark: SparkSession,
    table: Path | str,
    options: Mapping[str, Any] | None = None,
    schema: StructType | None = None,
) -> NativeRead:
    """Read a table by `format("iceberg-py")` in a session with Iceberg; its plan must be native.

    But for what Spark's reader has no plan for, which is told by the options alone.
    """
    reader = spark.read.format("iceberg-py").options(**(options or {}))
    if schema is not None:
        reader = reader.schema(schema)
    frame = reader.load(str(table))
    assert is_native(frame) is not _has_no_native_plan(options or {}), "the plan is not as expected"
    return NativeRead(frame.schema, spark_rows(frame.collect()))


def is_native(frame: DataFrame) -> bool:
    """Whether Spark's own Parquet or ORC reader reads, and no Python worker."""
    plan = str(frame._jdf.queryExecution().executedPlan().toString())
    scans = "IcebergPyParquetScan" in plan or "IcebergPyOrcScan" in plan
    return scans and "MapInArrow" not in plan


def _has_no_native_plan(options: Mapping[str, Any]) -> bool:
    return (
        # a file's partition is a struct, which no relation has as a fact about a file
        "_partition" in options.get("columns", "")
        # a condition on a field of a struct is exact in Spark only where it is above the scan
        or "place.x" in options.get("filter", "")
    )
