"""Streams of an installed session on releases of Spark other than the newest."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.releases.environments import EnvironmentUnavailableError, python_of
from tests.services.server import absent

ROOT = Path(__file__).parents[2]


@pytest.mark.nightly
@pytest.mark.parametrize("release", ["4.0.5", "4.1.4", "4.2.1"])
def test_native_streams(release: str, tmp_path: Path) -> None:
    try:
        python = python_of(release)
    except EnvironmentUnavailableError as e:
        absent(f"Spark {release}", str(e))
    done = subprocess.run(
        [str(python), "-m", "tests.releases.native_streams", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["release"] == release
    assert result["copy"] == [[i, i % 2] for i in range(6)]
    assert result["counts"] == result["all"] == [[0, 3], [1, 3]]
    assert "output mode" in result["refused"]
    assert result["tables"] == ["all", "copy", "counts", "source"]
    assert result["rows in"] == 3
