"""An archive of the JVM's classes, as docs/guide/connect-and-clusters.md advises for short jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.spark_sessions import run_driver

pytestmark = pytest.mark.nightly

JOB = """
import sys
from pyspark.sql import SparkSession
import iceberg_pyspark as ice

lake = "spark.sql.catalog.lake"
conf = {lake: "iceberg_pyspark", f"{lake}.type": "hadoop", f"{lake}.warehouse": sys.argv[1]}
spark = SparkSession.builder.config(map=conf).getOrCreate()
ice.install(spark)
spark.sql("CREATE TABLE lake.db.t (id BIGINT) USING iceberg")
spark.sql("INSERT INTO lake.db.t SELECT id FROM range(10)")
spark.sql("UPDATE lake.db.t SET id = id + 100 WHERE id < 3")
print(spark.sql("SELECT sum(id) FROM lake.db.t").first()[0])
"""


def test_a_job_starts_with_the_classes_that_an_earlier_one_has_archived(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(JOB, encoding="utf-8")
    archive, loaded = tmp_path / "spark.jsa", tmp_path / "loaded.txt"

    def run(name: str, options: str) -> str:
        conf = {"spark.driver.extraJavaOptions": options}
        printed = run_driver(tmp_path, script, str(tmp_path / name), master="local[1]", conf=conf)
        return printed.splitlines()[0]

    assert run("first", f"-XX:ArchiveClassesAtExit={archive}") == "345"
    # The JVM does not start where it cannot use the archive.
    use = f"-XX:SharedArchiveFile={archive} -Xshare:on -Xlog:class+load:file={loaded}"
    assert run("again", use) == "345"
    classes = loaded.read_text(encoding="utf-8").splitlines()
    shared = [line for line in classes if "shared objects file (top)" in line]
    assert any(" org.apache.spark.sql.classic.SparkSession " in line for line in shared)
