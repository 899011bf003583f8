"""dbt with the package's wheel and the profile of docs/guide/tools.md, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.find_java import find_java_home
from tests.releases.environments import (
    EnvironmentUnavailableError,
    built_wheel,
    new_environment,
)
from tests.services.server import absent
from tests.support.documentation import DOCS, blocks_of

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]

# dbt-core 1.12 depends on a package whose build downloads a program from outside of PyPI.
DBT = ("dbt-core==1.11.*", "dbt-spark[session]==1.11.*")
PROJECT = Path(__file__).parent / "dbt_project"
ROWS = Path(__file__).parent / "dbt_rows.py"

CHANGED_ORDERS = """id,customer,amount,changed_at
1,ann,15,2026-02-01
2,bob,20,2026-01-02
3,ann,30,2026-01-03
4,cid,40,2026-02-02
"""
ORDERS = [line.split(",") for line in CHANGED_ORDERS.splitlines()[1:]]
EXPECTED = {
    "orders": ORDERS,
    "customers": [["20", "1", "bob"], ["40", "1", "cid"], ["45", "2", "ann"]],
    "large_orders": [order[:3] for order in ORDERS[1:]],
    "latest_orders": ORDERS,
    "orders_history": [
        ["1", "10", "2026-01-01", "2026-02-01"],
        ["1", "15", "2026-02-01", "None"],
        ["2", "20", "2026-01-02", "None"],
        ["3", "30", "2026-01-03", "None"],
        ["4", "40", "2026-02-02", "None"],
    ],
    "commits of latest_orders": [["overwrite"], ["overwrite"]],
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the folder of the programs of an environment with dbt and the wheel."""
    folder = tmp_path_factory.mktemp("dbt")
    try:
        wheel = built_wheel(folder)
        yield new_environment(folder / "environment", f"{wheel}[spark]", *DBT).parent
    except EnvironmentUnavailableError as e:
        absent("dbt", str(e))
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("target", ["lake", "spark_catalog"])
def test_a_project_built_twice_has_the_rows_of_its_changed_seed(
    target: str, programs: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    shutil.copytree(PROJECT, project)
    [profile] = [b for b in blocks_of(DOCS / "guide" / "tools.md") if b.language == "yml"]
    settings = profile.code.replace("/warehouse", f"{tmp_path}/warehouse")
    (project / "profiles.yml").write_text(settings, encoding="utf-8")
    (tmp_path / "warehouse").mkdir()

    def run(*command: str | Path) -> str:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PY", "SPARK"))}
        done = subprocess.run(
            command,
            cwd=project,
            env={
                **inherited,
                "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
                "JAVA_HOME": str(find_java_home()),
                "PYSPARK_PYTHON": str(programs / "python"),
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    build = (programs / "dbt", "build", "--target", target)
    assert "PASS=8 WARN=0 ERROR=0" in run(*build)
    (project / "seeds" / "orders.csv").write_text(CHANGED_ORDERS, encoding="utf-8")
    assert "PASS=8 WARN=0 ERROR=0" in run(*build)
    shown = run(programs / "python", "-m", "iceberg_pyspark.run", ROWS, target)
    assert json.loads(shown.splitlines()[-1]) == EXPECTED
