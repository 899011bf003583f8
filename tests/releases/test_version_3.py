"""The tests of types that only version 3 has, on releases of Spark other than the newest."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.releases.environments import EnvironmentUnavailableError, python_of
from tests.services.server import absent

ROOT = Path(__file__).parents[2]
TESTS = ("test_variants.py", "test_geometries.py")
PASSING = "not shredded_variants_have_bounds and not fields_of_variants"
"""Spark 4.0's writer does not shred variants, which the others expect."""


@pytest.mark.nightly
@pytest.mark.parametrize("release", ["4.0.5"])
def test_types_of_version_3(release: str, tmp_path: Path) -> None:
    """They skip nothing: what a release cannot do natively, Python does."""
    try:
        python = python_of(release)
    except EnvironmentUnavailableError as e:
        absent(f"Spark {release}", str(e))
    done = subprocess.run(
        [
            *(str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            f"--basetemp={tmp_path / 'tests'}",
            *(f"tests/spark/{name}" for name in TESTS),
            *("-k", PASSING),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": str(python)},
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    summary = done.stdout.splitlines()[-1]
    assert (done.returncode, "skipped" in summary) == (0, False), done.stdout[-5000:]
