"""A Spark release for which parts of the bridge do not compile or lack a class or method."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest

from iceberg_pyspark.spark.bridge.features import FEATURES, ORC_ZONES
from tests.releases.first_steps import STEPS
from tests.support.spark_sessions import run_python, spark_environment

DRIVER = """
import json, logging, sys
from pathlib import Path
from iceberg_pyspark.spark.bridge import compiler

changes = json.loads(sys.argv[2])
source_of = compiler.source_of

def changed(lot):
    source = source_of(lot)
    for old, new in changes.get(lot, []):
        assert old in source, old
        source = source.replace(old, new)
    return source

compiler.source_of = changed
logged = []

class Heard(logging.Handler):
    def emit(self, record):
        logged.append(record.getMessage())

logging.getLogger("iceberg_pyspark").addHandler(Heard(logging.WARNING))
from iceberg_pyspark.spark.bridge.features import FEATURES, ORC_ZONES
from tests.releases.first_steps import run_steps

print(json.dumps({**run_steps(Path(sys.argv[1]), sys.argv[3:]), "logged": logged}))
"""

NO_WRITER = ("IcebergPyInternals.writeFiles", "IcebergPyInternals.writeFilesOfTomorrow")


def first_steps(
    folder: Path, changes: dict[str, list[tuple[str, str]]], *parts: str
) -> dict[str, Any]:
    """Run the first steps of some parts with changed Java sources; return results and log."""
    script = folder / "driver.py"
    script.write_text(DRIVER, encoding="utf-8")
    scratch = folder / "scratch"
    scratch.mkdir()
    printed = run_python(script, str(scratch), json.dumps(changes), *parts)
    result: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return result


def wrong(result: dict[str, Any]) -> dict[str, str]:
    return {name: why for name, why in result["steps"].items() if why is not None}


def test_scans_and_writes_that_cannot_be_native_are_portable(tmp_path: Path) -> None:
    actual = first_steps(
        tmp_path,
        {
            "parquet_scan": [("implements Batch {", "implements BatchOfTomorrow {")],
            "parquet_write": [NO_WRITER],
            "core": [
                ('PythonTable"), "ds"', 'PythonTable"), "dataSource"'),
                ('EventLoggingListener"), "sparkConf"', 'EventLoggingListener"), "conf"'),
                ("takes[i + 1] == scala.Option.class", "takes[i + 1] == String.class"),
            ],
        },
        *("catalog", "writes", "reads", "row changes"),
    )
    assert wrong(actual) == {}
    assert list(actual["missing"]) == [
        "native scans",
        "deletion vectors read by executors",
        "position deletes read by executors",
        "native scans of ORC files",
        "native scans of ORC files that have times with a zone",
        'native scans of format("iceberg-py")',
        "sizes of rows that Python reads",
        "native Parquet writer",
        "native Parquet writer in object stores",
        "secrets hidden in the event log",
    ]
    release = actual["release"]
    assert len(actual["logged"]) == 10
    for line, (name, why) in zip(actual["logged"], actual["missing"].items(), strict=True):
        assert line.startswith(f"{name}: not on Spark {release} ({why}); ")
        assert f"({why})" in actual["described"]
    assert "BatchOfTomorrow" in actual["missing"]["native scans"]
    assert "writeFilesOfTomorrow" in actual["missing"]["native Parquet writer"]
    assert actual["missing"]['native scans of format("iceberg-py")'] == (
        "python_source: org.apache.spark.sql.execution.datasources.v2.python.PythonTable "
        "has no field dataSource"
    )


def test_statements_that_change_rows_are_refused_in_our_words(tmp_path: Path) -> None:
    actual = first_steps(
        tmp_path,
        {
            "row_level": [("class IcebergPyFrames {", "class IcebergPyFrames extends Tomorrow {")],
            "layout": [("new RebalancePartitions(", "new RebalancePartitionsOfTomorrow(")],
        },
        *("catalog", "writes", "reads", "row changes"),
    )
    refused = {name for name, (part, _) in STEPS.items() if part == "row changes"}
    assert set(wrong(actual)) == refused - {"truncate"}
    for why in wrong(actual).values():
        assert f"DELETE, UPDATE and MERGE: not on Spark {actual['release']} (java/row_level" in why
    assert list(actual["missing"]) == [
        "distribution of writes",
        "native Parquet writer",
        "native Parquet writer in object stores",
        "DELETE, UPDATE and MERGE",
    ]
    assert len(actual["logged"]) == 4


def test_without_the_core_format_iceberg_py_serves(tmp_path: Path) -> None:
    broken = [("class IcebergPyTable", "class IcebergPyTable1")]
    actual = first_steps(tmp_path, {"core": broken}, "portable")
    assert not actual["native"]
    assert wrong(actual) == {}
    assert len(actual["logged"]) == 1
    assert f"Spark {actual['release']}: " in actual["logged"][0]
    assert "portable, by format" in actual["described"]


@pytest.mark.release("what a release lacks")
def test_the_doctor_says_what_serves() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "iceberg_pyspark.doctor"],
        env=spark_environment(),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line]
    assert lines[1].startswith(f"Spark {pyspark.__version__}, Java "), done.stderr
    options = dict(re.split(r" {2,}", line, maxsplit=1) for line in lines[3:])
    assert list(options) == [feature.name for feature in FEATURES]
    release = tuple(int(n) for n in pyspark.__version__.split(".")[:2])
    lacks = [] if release >= (4, 2) else [ORC_ZONES.name]
    assert [name for name, status in options.items() if status != "native"] == lacks
    assert done.returncode == (1 if lacks else 0)
