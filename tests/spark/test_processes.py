"""Tasks that fail and stall; executors in other processes, to which everything is serialized."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.failing_tasks import FAIL_ONCE, check_retried_table
from tests.support.spark_sessions import run_driver, standalone_cluster

pytestmark = pytest.mark.nightly

ON_A_CLUSTER = '''
import json, sys, time
from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
lake = {"catalog": "lake", "catalog.uri": f"sqlite:///{folder}/catalog.db",
        "catalog.warehouse": f"{folder}/warehouse"}


def save(frame, table, **options):
    frame.write.format("iceberg-py").options(**options).mode("append").save(table)


def ids(table, **options):
    frame = spark.read.format("iceberg-py").options(**options).load(table)
    return sorted(row.id for row in frame.select("id").collect())


def stall_once(batches):
    """Write everything, then stall, the first time: Spark starts a second attempt beside it."""
    yield from batches
    task = TaskContext.get()
    if task.partitionId() == 1 and task.attemptNumber() == 0:
        time.sleep(60)


found = {"master": spark.sparkContext.master, "driver": os.getpid()}
numbers = spark.range(40, numPartitions=4)
save(numbers.mapInArrow(fail_once, "id long"), f"{folder}/retried")
found["retried"] = ids(f"{folder}/retried")
started = time.monotonic()
save(numbers.mapInArrow(stall_once, "id long"), "db.speculated", **lake)
found["nobody waited for the stalled task"] = time.monotonic() - started < 60
found["speculated"] = ids("db.speculated", **lake)
print(json.dumps(found))
'''


def test_tables_are_written_and_read_by_executors_that_fail_and_stall(tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(FAIL_ONCE + ON_A_CLUSTER, encoding="utf-8")
    impatient = {
        "spark.speculation": "true",
        "spark.speculation.interval": "200ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "3s",
    }
    with standalone_cluster(tmp_path / "cluster", workers=2, cores=1) as master:
        printed = run_driver(tmp_path, script, str(tmp_path), master=master, conf=impatient)
    actual = json.loads(printed.splitlines()[-1])
    driver = actual.pop("driver")
    assert actual == {
        "master": master,
        "retried": list(range(40)),
        "nobody waited for the stalled task": True,
        "speculated": list(range(40)),
    }
    check_retried_table(tmp_path, driver)
