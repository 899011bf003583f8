"""Two ways to read a table: portably, by the steps of the data source, or by Spark's own reader."""

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
    """The result of a read."""

    @property
    def schema(self) -> StructType:
        """The schema that Spark sees."""
        ...

    @property
    def rows(self) -> list[PlainRow]:
        """The rows in the form of tests.support.rows, sorted."""
        ...


Read: TypeAlias = Callable[..., Rows]
"""A function `read(table, options, schema)` with the arguments of `read_by_steps`."""


@dataclass(frozen=True)
class NativeRead:
    """The result of a read by Spark's own reader."""

    schema: StructType
    rows: list[PlainRow]


def read_natively(
    spark: SparkSession,
    table: Path | str,
    options: Mapping[str, Any] | None = None,
    schema: StructType | None = None,
) -> NativeRead:
    """Read a table by `format("iceberg-py")` in a session with Iceberg; the plan must be native.

    The exceptions are reads that have no native plan, which depends on the options alone.
    """
    reader = spark.read.format("iceberg-py").options(**(options or {}))
    if schema is not None:
        reader = reader.schema(schema)
    frame = reader.load(str(table))
    assert is_native(frame) is not _has_no_native_plan(options or {}), "the plan is not as expected"
    return NativeRead(frame.schema, spark_rows(frame.collect()))


def is_native(frame: DataFrame) -> bool:
    """Return whether Spark's own Parquet or ORC reader reads, without a Python worker."""
    plan = str(frame._jdf.queryExecution().executedPlan().toString())
    scans = "IcebergPyParquetScan" in plan or "IcebergPyOrcScan" in plan
    return scans and "MapInArrow" not in plan


def _has_no_native_plan(options: Mapping[str, Any]) -> bool:
    return (
        # A file's partition is a struct, and no native relation has struct metadata columns.
        "_partition" in options.get("columns", "")
        # A condition on a field of a struct is exact in Spark only when evaluated above the scan.
        or "place.x" in options.get("filter", "")
    )
