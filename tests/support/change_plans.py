"""Record the physical plans of the jobs that row-level changes run."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame

from iceberg_pyspark.spark.bridge.spark_writes import Writes
from iceberg_pyspark.spark.row_level.execution import _files_of
from iceberg_pyspark.spark.write.file_job import run_writing_job
from iceberg_pyspark.spark.write.native_writer import write_natively
from tests.support.native_lake import plan_of

_ROW_LEVEL = "iceberg_pyspark.spark.row_level"


def noted_plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that collects, as text, the plans of later changes: searches and writes."""
    result: list[str] = []
    touched_by_rows, write_parquet = Writes.touched_by_rows, Writes.write_parquet

    def written(frame: DataFrame, *args: Any) -> Any:
        result.append(plan_of(frame))
        return run_writing_job(frame, *args)

    def written_natively(*args: Any, **options: Any) -> Any:
        with monkeypatch.context() as during_the_write:
            during_the_write.setattr(Writes, "write_parquet", written_by_spark)
            return write_natively(*args, **options)

    def written_by_spark(writes: Writes, frame: DataFrame, *args: Any, **options: Any) -> Any:
        result.append(plan_of(frame))
        return write_parquet(writes, frame, *args, **options)

    def removed(writes: Writes, frame: DataFrame) -> Any:
        result.append(plan_of(frame))
        return touched_by_rows(writes, frame)

    def touched(frame: DataFrame) -> frozenset[str]:
        result.append(plan_of(frame))
        return _files_of(frame)

    monkeypatch.setattr(f"{_ROW_LEVEL}.row_level_job.run_writing_job", written)
    monkeypatch.setattr(f"{_ROW_LEVEL}.row_level_job.write_natively", written_natively)
    monkeypatch.setattr(Writes, "touched_by_rows", removed)
    monkeypatch.setattr(f"{_ROW_LEVEL}.execution._files_of", touched)
    return result
