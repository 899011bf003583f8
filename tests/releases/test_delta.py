"""Delta's tables beside ours in one session: each kind changes as if it were alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.find_java import find_java_home
from tests.releases.environments import (
    EnvironmentUnavailableError,
    built_wheel,
    new_environment,
)
from tests.releases.releases import FOLDER
from tests.services.server import absent

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]

ROWS = Path(__file__).parent / "delta_rows.py"
CHANGED = [[1, "A"], [3, "C"], [4, "d"]]
MERGED = [*CHANGED, [5, "ours"], [6, "delta"]]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the Python of an environment with Delta, its newest Spark, and the wheel."""
    folder = tmp_path_factory.mktemp("delta")
    try:
        wheel = built_wheel(folder)
        # Maven has no jars of Delta 4.4.1.
        yield new_environment(folder / "environment", f"{wheel}[spark]", "delta-spark==4.4.0")
    except EnvironmentUnavailableError as e:
        absent("Delta", str(e))
    finally:
        shutil.rmtree(folder)


def run(python: Path, order: str, folder: Path) -> Any:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PY", "SPARK"))}
    folder.mkdir()
    done = subprocess.run(
        [python, ROWS, order, folder, FOLDER / "ivy"],
        cwd=folder,
        env={
            **inherited,
            "JAVA_HOME": str(find_java_home()),
            "PYSPARK_PYTHON": str(python),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "ICEBERG_PYSPARK_AUTO": "1",
        },
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    if "unresolved dependency" in done.stderr:
        absent("Delta", "its jars are not on Maven Central, or that is not reachable")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])


def test_both_kinds_of_tables_change_and_merge_in_each_order(python: Path, tmp_path: Path) -> None:
    alone = run(python, "alone", tmp_path / "alone")
    assert alone["delta"] == CHANGED
    for order in ("delta first", "ours first"):
        assert run(python, order, tmp_path / order) == {
            **alone,
            "ours": CHANGED,
            "merged into ours": MERGED,
            "merged into delta": MERGED,
        }
