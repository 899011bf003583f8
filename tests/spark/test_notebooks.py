"""A session as notebooks start it: Jupyter is the driver's Python, and Spark runs no Jupyter."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.spark_sessions import run_process

pytestmark = pytest.mark.nightly

NOTEBOOK = """
import json, sys
from pyspark.sql import SparkSession
import iceberg_pyspark as ice

spark = SparkSession.builder.master("local[2]").getOrCreate()
session = ice.install(spark)
folder = sys.argv[1]
spark.range(5).write.format("iceberg-py").mode("append").save(folder)
read = spark.read.format("iceberg-py").option("filter", "id > 2").load(folder)
found = {"native": sorted(row.id for row in read.collect())}
again = ice.install(spark.newSession())
found["in a new session"] = again.spark.read.format("iceberg-py").load(folder).count()
session.uninstall()
read = spark.read.format("iceberg-py").option("filter", "id > 2").load(folder)
found["portable"] = sorted(row.id for row in read.collect())
print(json.dumps(found))
"""


def test_tables_are_read_where_jupyter_is_the_driver(tmp_path: Path) -> None:
    jupyter = tmp_path / "jupyter"
    jupyter.write_text('#!/bin/sh\necho "jupyter: no such command" >&2\nexit 2\n')
    jupyter.chmod(0o755)
    script = tmp_path / "notebook.py"
    script.write_text(NOTEBOOK, encoding="utf-8")
    command = [sys.executable, str(script), str(tmp_path / "table")]
    printed = run_process(command, 240, environment={"PYSPARK_DRIVER_PYTHON": str(jupyter)})
    assert json.loads(printed.splitlines()[-1]) == {
        "native": [3, 4],
        "in a new session": 5,
        "portable": [3, 4],
    }
