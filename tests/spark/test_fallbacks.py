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

from iceberg_pyspark.spark.bridge.features import (
    ANNOTATED_COLUMNS,
    CHANGE_FEEDS,
    CHANGE_JOBS,
    FEATURES,
    ORC_ZONES,
    VARIANT_FIELDS,
)
from tests.amounts import FULL_WORK
from tests.releases.first_steps import STEPS
from tests.support.spark_sessions import run_python, spark_environment

pytestmark = pytest.mark.nightly

RELEASE = tuple(int(n) for n in pyspark.__version__.split(".")[:2])
LACKS = [] if RELEASE >= (4, 2) else [ORC_ZONES.name, CHANGE_FEEDS.name]
"""What this release never has."""

DRIVER = """
import json, logging, sys
from pathlib import Path
from iceberg_pyspark.spark.bridge import java_classes

changes, logged = {}, []
source_of = java_classes.source_of

def changed(module):
    source = source_of(module)
    for old, new in changes.get(module, []):
        assert old in source, old
        source = source.replace(old, new)
    return source

java_classes.source_of = changed

class Heard(logging.Handler):
    def emit(self, record):
        logged.append(record.getMessage())

logging.getLogger("iceberg_pyspark").addHandler(Heard(logging.WARNING))
from tests.releases.first_steps import run_steps

results = []
for number, (changes, steps) in enumerate(json.loads(sys.argv[2])):
    folder = Path(sys.argv[1], str(number))
    folder.mkdir(parents=True)
    results.append({**run_steps(folder, steps), "logged": logged[:]})
    logged.clear()
print(json.dumps(results))
"""

NO_WRITER = ("IcebergPyFileInternals.writeFiles", "IcebergPyFileInternals.writeFilesOfTomorrow")
EVERY_STEP = ["catalog", "writes", "reads", "row changes"]
# A portable read or write of each kind; `make nightly` runs every step.
A_STEP_OF_EACH_KIND = [
    "create and show namespaces",
    "create and show tables",
    "insert values",
    "insert what a job makes",
    "select with filters",
    "count and join",
    "write the format by path",
    "merge on read delete update merge",
    "orc files",
    "uninstall",
]


Change = tuple[str, str]
Release = tuple[dict[str, list[Change]], list[str]]
"""Changes of the Java sources of some modules, and the first steps or their parts to run."""


def first_steps(folder: Path, *releases: Release) -> list[dict[str, Any]]:
    """Run first steps with changed Java sources; return the results and the log of each release.

    All run in one JVM, which keeps the classes of the modules that compiled: a module that a
    release lacks must be missing in those before it too.
    """
    script = folder / "driver.py"
    script.write_text(DRIVER, encoding="utf-8")
    printed = run_python(script, str(folder / "scratch"), json.dumps(releases))
    results: list[dict[str, Any]] = json.loads(printed.splitlines()[-1])
    return results


def with_lacks(*names: str) -> list[str]:
    """Return missing features and those that this release never has, in the features' order."""
    return [f.name for f in FEATURES if f.name in {*names, *LACKS}]


def wrong(result: dict[str, Any]) -> dict[str, str]:
    return {name: why for name, why in result["steps"].items() if why is not None}


def test_scans_and_writes_that_cannot_be_native_are_portable(tmp_path: Path) -> None:
    changes = {
        "parquet_scan": [("implements Batch {", "implements BatchOfTomorrow {")],
        "parquet_write": [NO_WRITER],
        "core": [
            ('PythonTable"), "ds"', 'PythonTable"), "dataSource"'),
            ('EventLoggingListener"), "sparkConf"', 'EventLoggingListener"), "conf"'),
            (
                "parameterTypes[i + 1] == scala.Option.class",
                "parameterTypes[i + 1] == String.class",
            ),
        ],
    }
    steps = EVERY_STEP if FULL_WORK else A_STEP_OF_EACH_KIND
    (actual,) = first_steps(tmp_path, (changes, steps))
    assert wrong(actual) == {}
    assert len(actual["steps"]) >= len(A_STEP_OF_EACH_KIND)
    assert list(actual["missing"]) == with_lacks(
        "native scans",
        "batches as small as the Parquet files of a scan",
        "fields of variants read without the variants",
        "native scans of Parquet files with variants and geometries",
        "deletion vectors read by executors",
        "position deletes read by executors",
        "native scans of ORC files",
        "native scans of ORC files that have times with a zone",
        'native scans of format("iceberg-py")',
        "sizes of rows that Python reads",
        "native Parquet writer",
        "native Parquet writer in object stores",
        "DELETE, UPDATE and MERGE whose rows do not go through Python",
        "secrets hidden in the event log",
    )
    release = actual["release"]
    # what few users notice is logged at INFO, which is not shown by default
    minor = (
        ORC_ZONES.name,
        VARIANT_FIELDS.name,
        ANNOTATED_COLUMNS.name,
        CHANGE_JOBS.name,
        CHANGE_FEEDS.name,
    )
    logged = {n: why for n, why in actual["missing"].items() if n not in minor}
    assert f"({actual['missing'][ORC_ZONES.name]})" in actual["described"]
    for line, (name, why) in zip(actual["logged"], logged.items(), strict=True):
        assert line.startswith(f"{name}: not on Spark {release} ({why}); ")
        assert f"({why})" in actual["described"]
    assert "BatchOfTomorrow" in actual["missing"]["native scans"]
    assert "writeFilesOfTomorrow" in actual["missing"]["native Parquet writer"]
    assert actual["missing"]['native scans of format("iceberg-py")'] == (
        "python_source: org.apache.spark.sql.execution.datasources.v2.python.PythonTable "
        "has no field dataSource"
    )


NO_CORE: Release = ({"core": [("class IcebergPyTable", "class IcebergPyTable1")]}, ["portable"])
NO_ROW_CHANGES: Release = (
    {
        "row_level": [("class IcebergPyChangedRows {", "class IcebergPyChangedRows extends A {")],
        "layout": [("new RebalancePartitions(", "new RebalancePartitionsOfTomorrow(")],
    },
    [
        "create and show namespaces",
        # without `layout`, rows are written as they come
        "create table as select",
        "insert overwrite partitions",
        "write to a table by its verbs",
        "row changes",
    ],
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return the results of a release without the core, and of one without row-level changes."""
    return first_steps(tmp_path_factory.mktemp("releases"), NO_CORE, NO_ROW_CHANGES)


def test_without_the_core_reads_are_portable(results: list[dict[str, Any]]) -> None:
    actual = results[0]
    assert not actual["native"]
    assert wrong(actual) == {}
    assert len(actual["steps"]) == sum(part == "portable" for part, _ in STEPS.values())
    assert len(actual["logged"]) == 1
    assert f"Spark {actual['release']}: " in actual["logged"][0]
    assert "portable, by format" in actual["described"]


def test_statements_that_change_rows_are_refused_in_our_words(
    results: list[dict[str, Any]],
) -> None:
    actual = results[1]
    refused = {name for name, (part, _) in STEPS.items() if part == "row changes"}
    assert refused < set(actual["steps"])
    assert set(wrong(actual)) == refused - {"truncate"}
    for why in wrong(actual).values():
        assert f"DELETE, UPDATE and MERGE: not on Spark {actual['release']} (java/row_level" in why
    assert list(actual["missing"]) == with_lacks(
        "distribution of writes",
        "native Parquet writer",
        "native Parquet writer in object stores",
        "DELETE, UPDATE and MERGE whose rows do not go through Python",
        "DELETE, UPDATE and MERGE",
    )
    assert len(actual["logged"]) == 4


def test_doctor_names_the_read_path() -> None:
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
    assert [name for name, status in options.items() if status != "native"] == LACKS
    assert done.returncode == (1 if LACKS else 0)
