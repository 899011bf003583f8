"""Whether Spark's Python data sources still lose rows by `pushFilters` (docs/decisions)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.releases.environments import EnvironmentUnavailableError, python_of
from tests.services.server import absent

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("release", ["4.1.4", "4.2.1", "4.3.0"])
def test_a_second_query_still_gets_the_filters_of_the_first(release: str) -> None:
    try:
        python = python_of(release)
    except EnvironmentUnavailableError as e:
        absent(f"Spark {release}", str(e))
    done = subprocess.run(
        [str(python), "-m", "tests.releases.push_filters"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": str(python)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    actual = json.loads(done.stdout.splitlines()[-1])
    assert actual["counts"][0] == 1
    assert actual["counts"][1] == 1, (
        f"Spark {release} has mended pushFilters, the second query has {actual['counts'][1]} rows: "
        "change docs/decisions/no-push-filters.md, and let the format push filters on it"
    )
