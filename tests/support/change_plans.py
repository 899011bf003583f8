"""Record the physical plans of the jobs that row-level changes run."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame

from iceberg_pyspark.spark.row_level.execution import _files_of
from iceberg_pyspark.spark.write.file_job import run_writing_job
from tests.support.native_lake import plan_of

_ROW_LEVEL = "iceberg_pyspark.spark.row_level"


def noted_plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that collects, as text, the plans of later changes: searches and writes."""
    result: list[str] = []

    def written(frame: DataFrame, *args: Any) -> Any:
        result.append(plan_of(frame))
        return run_writing_job(frame, *args)

    def touched(frame: DataFrame) -> frozenset[str]:
        result.append(plan_of(frame))
        return _files_of(frame)

    monkeypatch.setattr(f"{_ROW_LEVEL}.row_level_job.run_writing_job", written)
    monkeypatch.setattr(f"{_ROW_LEVEL}.execution._files_of", touched)
    return result
