"""The Spark processes that the other tests stand on do start, work and end."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.spark_sessions import connect_server, run_driver, run_python, standalone_cluster


def test_a_local_session_counts_and_speaks_utc(spark: SparkSession) -> None:
    assert spark.range(100).count() == 100
    noon = spark.sql("SELECT TIMESTAMP '2026-01-01 12:00:00 UTC' AS ts").collect()[0].ts
    assert noon == dt.datetime(2026, 1, 1, 12)


@pytest.mark.cluster
def test_a_standalone_cluster_runs_python_in_executors_of_their_own(tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(
        "import os\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "pids = spark.sparkContext.parallelize(range(8), 4).map(lambda _: os.getppid()).collect()\n"
        "print('master', spark.sparkContext.master)\n"
        "print('sum', spark.range(101).selectExpr('sum(id)').first()[0])\n"
        "print('apart', os.getpid() not in pids)\n",
        encoding="utf-8",
    )
    with standalone_cluster(tmp_path, workers=2, cores=1) as url:
        printed = run_driver(tmp_path, script, master=url).splitlines()
    assert printed == [f"master {url}", "sum 5050", "apart True"]


@pytest.mark.cluster
def test_a_connect_server_answers_a_client(tmp_path: Path) -> None:
    script = tmp_path / "client.py"
    script.write_text(
        "import sys\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()\n"
        "print(type(spark).__module__, spark.range(101).selectExpr('sum(id)').first()[0])\n",
        encoding="utf-8",
    )
    with connect_server(tmp_path / "server") as url:
        assert run_python(script, url).split() == ["pyspark.sql.connect.session", "5050"]
