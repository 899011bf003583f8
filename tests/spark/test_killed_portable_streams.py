"""Portable streams whose driver or Python process is killed at each point of a batch."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from iceberg_pyspark import load_catalog, load_table
from jobs import ingest
from tests.spark.portable_copy import KNOWS_LIMITS
from tests.support.spark_sessions import spark_environment

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1800)]

SUPPORT = Path(__file__).parents[1] / "support"
OF_SINK = [
    "before IcebergStreamWriter.write",
    "after IcebergStreamWriter.write",
    "before IcebergStreamWriter.commit",
    "after IcebergStreamWriter.commit",
]
READER = "LimitedStreamReader" if KNOWS_LIMITS else "IcebergStreamReader"

OF_SOURCE = [
    f"before {READER}.latestOffset",
    f"after {READER}.latestOffset",
    "before IcebergStreamReader.partitions",
    "after IcebergStreamReader.partitions",
    "within IcebergStreamReader.read",
]


def run(command: list[str], point: str | None, victim: str, marks: Path) -> str:
    """Run a program that is killed at a point, or to its end; return its output."""
    environment = spark_environment()
    # else the program would start Python daemons of the tests, which nothing kills
    environment.pop("PYTEST_VERSION", None)
    marks.mkdir(exist_ok=True)
    mark = marks / f"{victim} {point}"
    if point is not None:
        path = os.pathsep.join([str(SUPPORT / "killed_at"), environment["PYTHONPATH"]])
        kill = marks / "kill"
        kill.write_text(f"{point}\n{victim}\n{mark}\n0", encoding="utf-8")
        environment |= {"PYTHONPATH": path, "ICEBERG_KILL": str(kill)}
    program = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    output, _ = program.communicate(timeout=300)
    if point is None:
        assert program.returncode == 0, output[-3000:]
    else:
        assert mark.exists(), output[-3000:]
        assert (program.returncode == -signal.SIGKILL) == (victim == "driver"), output[-3000:]
        assert program.returncode, output[-3000:]
    return output


@pytest.mark.parametrize("victim", ["driver", "process"])
def test_a_copied_table_has_each_row_once(victim: str, tmp_path: Path) -> None:
    command = [sys.executable, str(Path(__file__).parent / "portable_copy.py"), str(tmp_path)]
    # without limits, Spark only repeats the batch of the run before if that was killed
    last = [None] if KNOWS_LIMITS else [None, None]
    points = [None, *OF_SOURCE, *OF_SINK, *last]
    for point in points:
        run(command, point, victim, tmp_path / "marks")
    catalog = load_catalog("copied", type="hadoop", warehouse=str(tmp_path / "lake"))
    ids = catalog.load_table("db.copy").scan().to_arrow()["id"].to_pylist()
    assert sorted(ids) == list(range(len(points)))


@pytest.mark.parametrize("victim", ["driver", "process"])
def test_an_ingested_folder_has_each_row_once(victim: str, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    options = ["--to", str(tmp_path / "t"), "--stream", str(tmp_path / "checkpoint")]
    command = [sys.executable, ingest.__file__, "--from", "json", str(folder), *options]
    points = (None, *OF_SINK, None)
    for i, point in enumerate(points):
        (folder / f"{i}.json").write_text(json.dumps({"id": i}), encoding="utf-8")
        output = run(command, point, victim, tmp_path / "marks")
    table = load_table(str(tmp_path / "t"))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(len(points)))
    assert re.search(rf"^rows in all +{len(points)}\b", output, re.MULTILINE)
