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
from tests.support.documentation import DOCS, blocks_of

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


def run(python: Path, folder: Path, program: Path, *arguments: str | Path) -> Any:
    """Run a program in a new folder, and return what its last line says."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PY", "SPARK"))}
    folder.mkdir()
    done = subprocess.run(
        [python, program, *arguments],
        cwd=folder,
        env={
            **inherited,
            "JAVA_HOME": str(find_java_home()),
            "PYSPARK_PYTHON": str(python),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "ICEBERG_PYSPARK_AUTO": "1",
            "PYSPARK_SUBMIT_ARGS": f"--conf spark.jars.ivy={FOLDER / 'ivy'} pyspark-shell",
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
    def rows(order: str) -> Any:
        return run(python, tmp_path / order, ROWS, order, tmp_path / order)

    alone = rows("alone")
    assert alone["delta"] == CHANGED
    for order in ("delta first", "ours first"):
        assert rows(order) == {
            **alone,
            "ours": CHANGED,
            "merged into ours": MERGED,
            "merged into delta": MERGED,
        }


def test_the_session_of_the_guide_has_both(python: Path, tmp_path: Path) -> None:
    blocks = blocks_of(DOCS / "guide" / "notebooks.md")
    [code] = [b.code for b in blocks if "import configure_spark_with_delta_pip" in b.code]
    program = tmp_path / "guide.py"
    program.write_text(
        code.replace("/warehouse", str(tmp_path))
        + "spark.sql('CREATE TABLE d USING delta AS SELECT 1 AS id')\n"
        "spark.sql('CREATE NAMESPACE lake.db')\n"
        "spark.sql('CREATE TABLE lake.db.t AS SELECT id + 1 AS id FROM d')\n"
        "print([row.id for row in spark.sql('TABLE d UNION TABLE lake.db.t').collect()])\n",
        encoding="utf-8",
    )
    assert sorted(run(python, tmp_path / "guide", program)) == [1, 2]
