"""Libraries and notebooks that use a session: ibis, the pandas API on Spark, pandera, Jupyter, and
clients of Spark Connect, each with its real packages and the package's wheel.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.find_java import find_java_home
from tests.releases.environments import (
    EnvironmentUnavailableError,
    built_wheel,
    new_environment,
)
from tests.services.server import absent
from tests.support.documentation import DOCS, README, blocks_of
from tests.support.ports import free_port

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]

HERE = Path(__file__).parent
# The extra `pyspark` of ibis has pyspark below 4.1; pyarrow-hotfix is what else it has.
NEWEST = ("ibis-framework", "pyarrow-hotfix", "pandera[pyspark]", "nbconvert", "ipykernel")
# From sqlglot 30.18 on, ibis 12 drops nothing.
PINNED = ("ibis-framework[pyspark]", "sqlglot==30.8.*")

RUN = Callable[..., str]


@pytest.fixture(scope="module", params=[NEWEST, PINNED], ids=["newest", "pinned"])
def programs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Yield the folder of the programs of an environment with libraries and the wheel."""
    folder = tmp_path_factory.mktemp("libraries")
    try:
        wheel = built_wheel(folder)
        yield new_environment(folder / "environment", f"{wheel}[spark]", *request.param).parent
    except EnvironmentUnavailableError as e:
        absent("the libraries", str(e))
    finally:
        shutil.rmtree(folder)


only_newest = pytest.mark.parametrize("programs", [NEWEST], ids=["newest"], indirect=True)


@pytest.fixture
def run(programs: Path, tmp_path: Path) -> RUN:
    """Return what runs a program of the environment in a folder, and returns its output."""

    def run_program(program: str, *arguments: str | Path, auto: str = "1") -> str:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PY", "SPARK"))}
        done = subprocess.run(
            [programs / program, *arguments],
            cwd=tmp_path,
            env={
                **inherited,
                "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
                "JAVA_HOME": str(find_java_home()),
                "PYSPARK_PYTHON": str(programs / "python"),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "ICEBERG_PYSPARK_AUTO": auto,
            },
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    return run_program


def result(printed: str) -> Any:
    return json.loads(printed.splitlines()[-1])


UPSERTED = [[1, "a"], [2, "b"], [3, "c"], [4, "D"], [5, "e"]]
BY_IBIS = {
    "inserted": [[1, "a"], [2, "b"], [3, "c"], [4, "d"]],
    "upserted": UPSERTED,
    "operations": ["append", "append", "append", "overwrite"],
    "first": [[1, "a"], [2, "b"]],
    "view": [[4, "D"], [5, "e"]],
    "stored view": [[5, "e"]],
    "replaced": [[6, "f"]],
    "of another table": UPSERTED,
    "truncated": [],
    "databases": True,
}
DROPPED = {"dropped": [], "databases left": False}
NOT_DROPPED = {"dropped": "ParseException"}


@pytest.mark.parametrize("catalog", ["lake", "spark_catalog"])
def test_ibis_makes_changes_and_drops_tables(
    catalog: str, programs: Path, run: RUN, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    found = result(run("python", HERE / "ibis_rows.py", catalog, tmp_path))
    # Spark lists views of its own catalog as tables.
    views = ["late", "stored"] if catalog == "spark_catalog" else []
    end = DROPPED if "pinned" in request.node.name else NOT_DROPPED
    assert found == {
        **BY_IBIS,
        **end,
        "current": [catalog, "shop"],
        "tables": sorted(["orders", "other", *views]),
    }


TABLE = [[1, "a"], [2, "b"], [3, None]]


@only_newest
def test_the_pandas_api_and_pandera(run: RUN, tmp_path: Path) -> None:
    assert result(run("python", HERE / "frame_rows.py", tmp_path)) == {
        "read_table": TABLE,
        "appended": [row for row in TABLE for _ in range(2)],
        "of itself": TABLE,
        "sql": TABLE[:2],
        "read_spark_io": TABLE,
        "filter": TABLE[1:],
        "pandera": ["greater_than(1)", "not_nullable"],
        "pandera of files": ["greater_than(1)", "not_nullable"],
        "pandera of right rows": [],
    }


@only_newest
def test_the_code_of_the_guide_runs(run: RUN, tmp_path: Path) -> None:
    blocks = [b.code for b in blocks_of(DOCS / "guide" / "notebooks.md") if b.language == "py"]
    program = tmp_path / "guide.py"
    lake = {"spark.sql.catalog.lake": "iceberg_pyspark"}
    lake["spark.sql.catalog.lake.warehouse"] = f"{tmp_path}/lake"
    program.write_text(
        "import json\n"
        "from pyspark.sql import SparkSession\n"
        f"spark = SparkSession.builder.master('local[2]').config(map={lake}).getOrCreate()\n"
        + "\n".join(code for code in blocks if "delta" not in code).replace(
            "/warehouse", f"{tmp_path}/warehouse"
        )
        + "\nrows = spark.table('lake.shop.copy').sort('id').collect()\n"
        "print(json.dumps([list(row) for row in rows]))\n",
        encoding="utf-8",
    )
    assert result(run("python", program)) == [[1, "a"], [2, "B"], [3, "c"]]


def notebook(path: Path, *cells: str) -> Path:
    code: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
    }
    content = {
        "cells": [{**code, "source": source} for source in cells],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def shown(path: Path) -> list[dict[str, str]]:
    """Return what each cell shows as its value, by type."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    values = [
        {kind: "".join(text) for kind, text in output["data"].items()}
        for cell in cells
        for output in cell["outputs"]
        if output["output_type"] == "execute_result"
    ]
    assert all(output["output_type"] != "error" for cell in cells for output in cell["outputs"])
    return values


@only_newest
def test_a_notebook_runs_the_quick_start_and_shows_tables(run: RUN, tmp_path: Path) -> None:
    quick_start = next(b for b in blocks_of(README) if b.language == "python")
    eager = "spark.conf.set('spark.sql.repl.eagerEval.enabled', True)"
    path = notebook(
        tmp_path / "quick_start.ipynb",
        quick_start.code,
        f"{eager}\nspark.table('lake.db.events').sort('id')",
        "events",
    )
    run("jupyter", "nbconvert", "--to", "notebook", "--execute", "--inplace", path, auto="0")
    rows, table = shown(path)
    cells = re.findall(r"<td>(.*?)</td>", rows["text/html"])
    assert cells == ["1", "2026-01-31", "a", "2", "NULL", "new"]
    assert "<caption>Table db.events</caption>" in table["text/html"]


@only_newest
def test_a_notebook_with_a_session_gets_iceberg(run: RUN, tmp_path: Path) -> None:
    blocks = blocks_of(DOCS / "guide" / "tools.md")
    [code] = [b.code for b in blocks if b.code.startswith("import iceberg_pyspark.auto")]
    (tmp_path / "warehouse").mkdir()
    path = notebook(
        tmp_path / "session.ipynb",
        "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()",
        code.replace("/warehouse", f"{tmp_path}/warehouse"),
        "spark.sql('CREATE NAMESPACE lake.db')\n"
        "spark.sql('CREATE TABLE lake.db.t AS SELECT 1 AS id')\n"
        "spark.table('lake.db.t').collect()",
    )
    run("jupyter", "nbconvert", "--to", "notebook", "--execute", "--inplace", path, auto="0")
    assert shown(path) == [{"text/plain": "[Row(id=1)]"}]


@only_newest
def test_clients_of_a_connect_server_in_a_session_with_iceberg(run: RUN, tmp_path: Path) -> None:
    port = free_port()
    assert result(run("python", HERE / "connect_rows.py", tmp_path, str(port))) == {
        "rows": [[2, "B"], [3, "c"]],
        "listens": True,
        "installs": False,
    }
