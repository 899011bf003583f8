"""The steps of a read as Spark runs them, without Spark: only pickles pass between steps."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from iceberg_pyspark.spark.data_source.source import IcebergDataSource
from tests.support.rows import PlainRow, arrow_rows

T = TypeVar("T")


@dataclass(frozen=True)
class StepRead:
    """The result of a read: the schema that Spark sees, the number of tasks, and the rows."""

    schema: StructType
    tasks: int
    table: pa.Table

    @property
    def rows(self) -> list[PlainRow]:
        """The rows in the form of tests.support.rows, sorted."""
        return arrow_rows(self.table)


def read_by_steps(
    table: Path | str, options: Mapping[str, Any] | None = None, schema: StructType | None = None
) -> StepRead:
    """Load and read a table; every batch must have exactly the Arrow schema that Spark expects."""
    arguments = {name: str(value) for name, value in (options or {}).items()}
    source = IcebergDataSource(CaseInsensitiveDict({**arguments, "path": str(table)}))
    shown = source.schema() if schema is None else schema
    # Spark's type hints do not allow read() to get None or to yield batches.
    reader: Any = _moved(source).reader(shown)
    partitions = reader.partitions()
    expected = spark_arrow_schema(shown)
    batches = []
    for partition in partitions or [None]:
        for batch in _moved(reader).read(_moved(partition)):
            assert batch.schema.equals(expected), f"{batch.schema}\n\nexpected: {expected}"
            batch.validate(full=True)
            batches.append(batch)
    return StepRead(shown, len(partitions), pa.Table.from_batches(batches, expected))


def spark_arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark 4.3 compares with the first batch of every task."""
    # Spark 4.1 has no such argument and always uses UTC.
    utc: dict[str, Any] = {}
    if "timezone" in inspect.signature(to_arrow_schema).parameters:
        utc["timezone"] = "UTC"
    return to_arrow_schema(schema, **utc)


def _moved(value: T) -> T:
    """Return the value as another process would receive it."""
    moved: T = cloudpickle.loads(cloudpickle.dumps(value))  # type: ignore[no-untyped-call]
    return moved
