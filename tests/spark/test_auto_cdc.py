"""AUTO CDC flows of Spark 4.3: the changes of one table kept in others, as rows or as a history."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.spark_sessions import ROOT, run_python

PIPELINE = ROOT / "tests" / "spark" / "auto_cdc_pipeline.py"


@pytest.mark.nightly
def test_flows_follow_a_change_feed(tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    pipelines = pytest.importorskip("pyspark.pipelines")
    if not hasattr(pipelines, "create_auto_cdc_flow"):
        pytest.skip("before Spark 4.3 there are no AUTO CDC flows")
    shown = run_python(PIPELINE, str(tmp_path), str(free_port()))
    first, second, third = json.loads(shown.splitlines()[-1])
    for run in (first, second, third):
        assert run["newest"] == run["events"]
        now = [[key, v] for key, v, _, end in run["history"] if end is None]
        assert now == run["events"]
    assert first["history"] == [[1, "a", 1, None], [2, "b", 1, None], [3, "c", 1, None]]
    second_history = [
        [1, "a", 1, None],
        [2, "b", 1, 2],
        [2, "B", 2, None],
        [3, "c", 1, 3],
        [4, "d", 5, None],
    ]
    assert second["history"] == second_history
    assert third["history"] == [
        [1, "a", 1, 6],
        *second_history[1:4],
        [3, "again", 6, None],
        second_history[4],
    ]
