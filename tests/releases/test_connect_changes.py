"""Changes of tables by clients of Spark Connect, on old and new releases."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.releases.connect_changes import OF_THE_CLIENT_ALONE
from tests.releases.environments import EnvironmentUnavailableError, python_of
from tests.services.server import absent

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]


def expected_rows() -> list[list[Any]]:
    """Return the rows by the rules of the statements, one after the other."""
    rows = {i: (i % 4, f"v{i}") for i in range(10, 100)}
    rows |= {i: (i % 4, f"u{i}") for i in range(10, 20)}
    rows |= {i: (i % 4, "n") for i in range(95, 105)}
    matched = [i for i in range(95, 105) if i % 4 < 3]
    for i in [*rows]:
        if i in matched and i % 2 == 0:
            del rows[i]
        elif i < 20:
            rows[i] = (rows[i][0], "alone")
    # 103 was not matched, because of its p, so it is there twice
    return sorted([[i, v] for i, (_, v) in rows.items()] + [[103, "n"]])


@pytest.mark.parametrize(
    ("release", "package"),
    [
        ("4.0.5", "pyspark"),
        ("4.1.4", "pyspark"),
        ("4.3.0", "pyspark"),
        ("4.3.0", "pyspark-client"),
    ],
)
def test_a_client_changes_and_maintains_tables(release: str, package: str, tmp_path: Path) -> None:
    try:
        python: str | Path = python_of(release)
    except EnvironmentUnavailableError as e:
        absent(f"Spark {release}", str(e))
    own = {OF_THE_CLIENT_ALONE: "1"} if package == "pyspark-client" else {}
    done = subprocess.run(
        [str(python), "-m", "tests.releases.connect_changes", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **own},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, f"{sys.executable}\n{done.stderr}"
    actual = json.loads(done.stdout.splitlines()[-1])
    rows = expected_rows()
    assert actual.pop("release").startswith(release)
    assert actual.pop("rows") == rows
    assert "several rows of the source match one row" in actual.pop("ambiguous")
    assert actual == {
        "session": "pyspark.sql.connect.session",
        "deleted": [0, 0, 10],
        "updated": [0, 10, 0],
        "upserted": [5, 5, 0],
        "again": [0, 0, 0],
        "merged": [1, 10, 5],
        "of branch": [0, 0, 40],
        "columns": ["id", "p", "v", "extra", "more"],
        "refs": ["b", "main", "x"],
        "property": "told",
        "rewritten": True,
        "expired": True,
        "orphans": 0,
        "filtered": [i for i, v in rows if v == "n"],
    }
