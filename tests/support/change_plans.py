"""Record the physical plans of the jobs that row-level changes run."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame

from iceberg_pyspark.spark.row_level.execution import _rows_by_file
from iceberg_pyspark.spark.write.file_job import run_writing_job
from iceberg_pyspark.spark.write.native_writer import write_natively
from tests.support.native_lake import plan_of

_ROW_LEVEL = "iceberg_pyspark.spark.row_level"


def noted_plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that collects, as text, the plans of later changes: searches and writes."""
    result: list[str] = []

    def written(frame: DataFrame, *args: Any) -> Any:
        result.append(plan_of(frame))
        return run_writing_job(frame, *args)

    def written_natively(bridge: Any, frame: DataFrame, *args: Any) -> Any:
        files = write_natively(bridge, frame, *args)
        if files is not None:
            result.append(plan_of(frame))
        return files

    def touched(frame: DataFrame) -> dict[str, int]:
        result.append(plan_of(frame))
        return _rows_by_file(frame)

    monkeypatch.setattr(f"{_ROW_LEVEL}.row_level_job.run_writing_job", written)
    monkeypatch.setattr(f"{_ROW_LEVEL}.row_level_job.write_natively", written_natively)
    monkeypatch.setattr(f"{_ROW_LEVEL}.execution._rows_by_file", touched)
    return result
