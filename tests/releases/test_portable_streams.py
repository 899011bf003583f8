"""Streams of the data source alone, on releases of Spark with and without limits of batches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.releases.environments import EnvironmentUnavailableError, python_of
from tests.services.server import absent
from tests.support.spark_sessions import connect_server

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]


def run(python: Path | str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [str(python), "-m", "tests.releases.portable_streams", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def check(actual: dict[str, Any]) -> None:
    has_limits = actual["release"] >= "4.2"
    assert actual["copied"] == {"ids": list(range(7)), "epochs": ["0", "1"]}
    if has_limits:
        assert actual["limited"]["ids"] == [list(range(7))] * 2
        assert actual["limited"]["epochs"] == ["0", "1", "2", "3"]
    else:
        # Spark's own substitute for AvailableNow runs one batch
        assert actual["limited"]["ids"] == [[0, 1], [0, 1, 2, 3]]
    assert actual["counted"] == [[0, 4], [1, 4]]
    assert actual["followed"] == list(range(9))
    refused = actual["refused"]
    assert "does not exist, and a stream does not create it" in refused["missing"]
    assert "does not support Update mode" in refused["update"]
    assert "filter has no meaning for a stream: use where(...)" in refused["option"]
    assert not has_limits or "set streaming-overwrite-mode to skip" in refused["overwrite"]


@pytest.mark.parametrize("release", ["4.0.5", "4.1.4", "4.2.1"])
def test_portable_streams(release: str, tmp_path: Path) -> None:
    try:
        actual = run(python_of(release), str(tmp_path))
    except EnvironmentUnavailableError as e:
        absent(f"Spark {release}", str(e))
    assert actual["release"] == release
    check(actual)


def test_portable_streams_of_a_connect_client(tmp_path: Path) -> None:
    with connect_server(tmp_path / "server") as url:
        actual = run(sys.executable, str(tmp_path), url)
    assert actual["session"] == "pyspark.sql.connect.session"
    check(actual)
