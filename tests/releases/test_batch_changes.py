"""Changes in functions of `foreachBatch` on releases of Spark other than the newest."""

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
def test_changes_of_batches_are_made_once(release: str, tmp_path: Path) -> None:
    """Natively, and of a client of Spark Connect; the first update of all has no rows."""
    try:
        python = python_of(release)
    except EnvironmentUnavailableError as e:
        absent(f"Spark {release}", str(e))
    done = subprocess.run(
        [str(python), "-m", "tests.releases.batch_changes", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result.pop("release") == release
    changes = [[str(i), change] for i in range(3) for change in ("0 update", "1 merge")]
    expected = {"rows": [[0, 2], [1, 1], [2, 0]], "changes": changes[1:]}
    assert result == {"native": expected, "client": expected}
