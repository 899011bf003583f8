"""Timestamps in nanoseconds: Java's generic writers and readers, and Spark 4.3's own types.

The oracle has Spark 4.1, so the newest Spark runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.releases.environments import EnvironmentUnavailableError, python_of
from tests.releases.releases import RELEASES
from tests.services.server import absent
from tests.support.java_records import append_records, create_java_table, read_records
from tests.support.oracle import Oracle

pytestmark = pytest.mark.nightly

COLUMNS = [
    {"name": "id", "type": "int"},
    {"name": "a", "type": "timestamp_ns"},
    {"name": "b", "type": "timestamptz_ns"},
]
TIMES = ["2026-01-31T23:59:59.999999999", "1969-12-31T23:59:59.999999999", None]
DRIVER = """
import json, sys
from pathlib import Path
import iceberg_pyspark as ice
from tests.support.spark_sessions import start_session

settings = {"spark.sql.timestampNanosTypes.enabled": "true",
    "spark.sql.catalog.h": "iceberg_pyspark", "spark.sql.catalog.h.type": "hadoop",
    "spark.sql.catalog.h.warehouse": sys.argv[1]}
spark = start_session(Path(sys.argv[2]), settings)
ice.install(spark)
spark.sql("insert into h.nanos.javas select id + 10, a + interval 1 day, b from h.nanos.javas")
spark.sql("update h.nanos.javas set b = cast('2000-01-01T00:00:00.000000001Z' as timestamp_ltz(9))"
    " where a = cast('2026-01-31 23:59:59.999999999' as timestamp_ntz(9))")
spark.sql("delete from h.nanos.javas where b < cast('1970-01-01T00:00:00Z' as timestamp_ltz(9))"
    " and id > 9")
rows = spark.sql("select id, cast(a as string), cast(b as string) from h.nanos.javas order by id")
print(json.dumps([list(r) for r in rows.collect()]))
"""


def test_the_newest_spark_and_java_read_and_write_the_same_times(
    oracle: Oracle, tmp_path: Path
) -> None:
    try:
        python = python_of(RELEASES[-1])
    except EnvironmentUnavailableError as e:
        absent(f"Spark {RELEASES[-1]}", str(e))
    name = "java_hadoop.nanos.javas"
    create_java_table(oracle, name, COLUMNS, properties={"format-version": "3"})
    for i, time in enumerate(TIMES):
        row = {"id": i, "a": time, "b": None if time is None else f"{time}Z"}
        append_records(oracle, name, [row])
    script = tmp_path / "driver.py"
    script.write_text(DRIVER, encoding="utf-8")
    done = subprocess.run(
        [str(python), str(script), str(oracle.warehouse), str(tmp_path / "spark")],
        env={**os.environ, "PYTHONPATH": os.getcwd(), "PYSPARK_PYTHON": str(python), "TZ": "UTC"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    shown = json.loads(done.stdout.splitlines()[-1])
    new = "2000-01-01 00:00:00.000000001"
    day, epoch = "2026-01-31 23:59:59.999999999", "1969-12-31 23:59:59.999999999"
    assert shown == [
        [0, day, new],
        [1, epoch, epoch],
        [2, None, None],
        [10, "2026-02-01 23:59:59.999999999", day],
        [12, None, None],
    ]
    expected = sorted([str(v) for v in row] for row in shown)
    assert sorted(map(texts, read_records(oracle, name))) == expected


def texts(record: list[Any]) -> list[str]:
    return [str(v).replace("T", " ").removesuffix("Z").removesuffix("+00:00") for v in record]
