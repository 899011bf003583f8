"""CALL in an application with executors: they read and write the files, without any option."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark import Table, TableCatalog, load_catalog
from tests.support.deleted_rows import delete_keys
from tests.support.native_lake import sqlite_conf
from tests.support.spark_sessions import run_driver

pytestmark = pytest.mark.nightly

MASTER = "local-cluster[2,1,512]"
ROWS = 3000
DELETED = (0, 1, 2, 1000, 2999)

APPLICATION = """
import json, sys
from pyspark.sql import SparkSession
from iceberg_pyspark import install
from iceberg_pyspark.table.maintenance.rewrites import group_writer
from iceberg_pyspark.table.statistics import table_statistics


def refuse(*_, **__):
    raise AssertionError("the driver does the work of an executor")


# tasks import these modules in processes of their own
group_writer.write_data_files = refuse
table_statistics.read_task = refuse
spark = SparkSession.builder.getOrCreate()
assert install(spark).is_native
context = spark.sparkContext
store = context._jsc.sc().statusStore()
answers = {}
for name, call in json.loads(sys.argv[1]).items():
    context.setJobGroup(name, "a night of maintenance")
    [row] = spark.sql(f"CALL lake.system.{call}").collect()
    executors, descriptions = [], set()
    for job_id in context.statusTracker().getJobIdsForGroup(name):
        job = store.job(job_id)
        descriptions.add(job.description().get())
        for i in range(job.stageIds().size()):
            stage = store.lastStageAttempt(job.stageIds().apply(i))
            tasks = store.taskList(stage.stageId(), stage.attemptId(), 100)
            executors += [tasks.apply(k).executorId() for k in range(tasks.size())]
    answers[name] = [row.asDict(), executors, sorted(descriptions)]
print(json.dumps([context.master, answers]))
"""

OPTIONS = "options => map('rewrite-all', 'true', 'target-file-size-bytes', '8000')"
CALLS = {
    "statistics": "compute_table_stats(table => 'db.packed', columns => array('id', 'b'))",
    "binpack": f"rewrite_data_files(table => 'db.packed', {OPTIONS})",
    "sort": f"rewrite_data_files(table => 'db.sorted', sort_order => 'b', {OPTIONS})",
}


def make(catalog: TableCatalog, name: str) -> Table:
    """Create an ORC, an Avro and a Parquet file; equality deletes delete rows of each of them."""
    properties = {"format-version": "2"}
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table(f"db.{name}", "id BIGINT, b BIGINT", properties=properties)
    for number, file_format in enumerate(("orc", "avro", "parquet")):
        table.update_properties().set({"write.format.default": file_format}).commit()
        ids = list(range(1000 * number, 1000 * number + 1000))
        table.append(pa.table({"id": ids, "b": [i * 7919 % ROWS for i in ids]}))
    delete_keys(table, "id", DELETED)
    assert sorted(t.file_format for t in table.scan().plan_files()) == ["avro", "orc", "parquet"]
    return table


def test_executors_do_the_work_of_call(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{tmp_path / 'catalog.db'}", warehouse=str(warehouse)
    )
    catalog.create_namespace("db")
    tables = {name: make(catalog, name) for name in ("packed", "sorted")}
    before = tables["packed"].scan().to_arrow().sort_by("id")
    assert before.num_rows == ROWS - len(DELETED)
    script = tmp_path / "application.py"
    script.write_text(APPLICATION, encoding="utf-8")
    conf = sqlite_conf("lake", tmp_path, warehouse)
    printed = run_driver(tmp_path, script, json.dumps(CALLS), master=MASTER, conf=conf)
    master, answers = json.loads(printed.splitlines()[-1])
    assert master == MASTER
    for name, (_, executors, _) in answers.items():
        assert executors, name
        assert set(executors) <= {"0", "1"}, name
    descriptions = {name: texts for name, (_, _, texts) in answers.items()}
    assert descriptions["statistics"] == ["iceberg-py compute_table_stats db.packed: 3 data files"]
    [described] = descriptions["binpack"]
    assert described.startswith("iceberg-py rewrite_data_files db.packed: group 1 of 1, 3 files, ")
    assert len(answers["binpack"][1]) >= 2

    packed = tables["packed"].refresh()
    [file] = packed.metadata.statistics
    assert answers["statistics"][0] == {"statistics_file": file.statistics_path}
    counts = [blob.properties["ndv"] for blob in file.blob_metadata]
    assert counts == [str(before.num_rows)] * 2
    for name, table in (("binpack", packed), ("sort", tables["sorted"].refresh())):
        files = list(table.scan().plan_files())
        counts = answers[name][0]
        assert counts["rewritten_data_files_count"] == 3
        assert counts["added_data_files_count"] == len(files) > 1
        assert {f.file_format for f in files} == {"parquet"}
        assert table.scan().to_arrow().sort_by("id") == before
        if name == "sort":
            of_files = [pq.read_table(f.file_path)["b"].to_pylist() for f in files]
            assert list(chain(*sorted(of_files))) == sorted(before["b"].to_pylist())
