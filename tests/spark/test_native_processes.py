"""Native scans on executors in other processes, and sessions in which there can be none."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark import Table, TableCatalog, install, load_catalog
from iceberg_pyspark.spark.bridge import jvm
from iceberg_pyspark.spark.bridge.compiler import BridgeUnavailableError
from tests.support.deleted_rows import delete_keys, delete_positions, list_positions
from tests.support.spark_sessions import run_driver

V3 = {"format-version": "3"}

ON_EXECUTORS = """
import json, sys
from pyspark.sql import SparkSession
from iceberg_pyspark import install
from iceberg_pyspark.spark.native_read import position_delete_files
from iceberg_pyspark.spark.native_read import deletion_vectors

deletion_vectors.MAX_DRIVER_BYTES = position_delete_files.MAX_DRIVER_BYTES = int(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
assert install(spark).is_native
found = {}
for query in sys.argv[2:]:
    frame = spark.sql(query)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    rows = sorted([list(row) for row in frame.collect()])
    found[query] = ["IcebergPyParquetScan" in plan, "MapInArrow" in plan, rows]
print(json.dumps([spark.sparkContext.master, found]))
"""

DECODED_BY = """
import json, sys
from pyspark.sql import Column, SparkSession
from iceberg_pyspark import install

spark = SparkSession.builder.getOrCreate()
install(spark)
frame = spark.sql(sys.argv[1])
jvm = spark._jvm

def found(node, name):
    if node.nodeName() == "Invoke" and node.functionName() == name:
        return node
    children = node.children().iterator()
    while children.hasNext():
        one = found(children.next(), name)
        if one is not None:
            return one

filters = [frame._jdf.queryExecution().optimizedPlan()]
while filters[-1].nodeName() != "Filter":
    filters.append(filters[-1].children().head())
bitmaps = found(filters[-1].condition(), "value")
no, empty = getattr(jvm.scala, "None$").__getattr__("MODULE$"), jvm.java.util.ArrayList()
seq = jvm.org.apache.spark.api.python.PythonUtils.toSeq
which = jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke(
    jvm.java.lang.Class.forName("java.lang.System"),
    getattr(jvm.org.apache.spark.sql.types, "IntegerType$").__getattr__("MODULE$"),
    "identityHashCode",
    seq(jvm.java.util.List.of(bitmaps)),
    seq(empty),
    True,
    True,
    True,
    no,
)
column = Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(which))
tasks = spark.range(0, 64, 1, 8)
rows = tasks.selectExpr("spark_partition_id() as task").select("task", column.alias("which"))
print(json.dumps([list(r) for r in rows.distinct().collect()]))
"""


def settings_of(folder: Path) -> dict[str, str]:
    prefix = "spark.sql.catalog.lake"
    return {
        prefix: "iceberg_pyspark",
        f"{prefix}.type": "sql",
        f"{prefix}.uri": f"sqlite:///{folder / 'catalog.db'}",
        f"{prefix}.warehouse": str(folder / "warehouse"),
    }


def open_catalog(folder: Path) -> TableCatalog:
    catalog = load_catalog(
        "lake",
        type="sql",
        uri=f"sqlite:///{folder / 'catalog.db'}",
        warehouse=str(folder / "warehouse"),
    )
    catalog.create_namespace("db")
    return catalog


def ids(first: int, end: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, end), pa.int64())})


def files_of(table: Table) -> list[str]:
    return [task.file_path for task in table.refresh().scan().plan_files()]


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("read_by", "whole_stage"), [("driver", True), ("executors", True), ("executors", False)]
)
def test_executors_need_nothing_of_the_bridge(
    tmp_path: Path, read_by: str, whole_stage: bool
) -> None:
    """Their class path has Spark alone: whatever a task holds is Spark's own."""
    catalog = open_catalog(tmp_path)
    plain = catalog.create_table("db.plain", "id BIGINT", properties=V3)
    plain.append(ids(0, 4))
    vectors = catalog.create_table("db.vectors", "id BIGINT", properties=V3)
    vectors.append(ids(0, 6))
    delete_positions(vectors, {files_of(vectors)[0]: [1, 2]})
    vectors.refresh().append(ids(6, 8))
    keys = catalog.create_table("db.keys", "id BIGINT", properties=V3)
    keys.append(ids(0, 6))
    delete_keys(keys, "id", [1, 2])
    delete_positions(keys, {files_of(keys)[0]: [4]})
    listed = catalog.create_table("db.listed", "id BIGINT")
    listed.append(ids(0, 6))
    (path,) = files_of(listed)
    list_positions(listed, pa.table({"file_path": [path] * 2, "pos": [0, 5]}), {})
    mapped = catalog.create_table("db.mapped", "id BIGINT", properties=V3)
    mapped.append(ids(0, 4))
    mapping = {"schema.name-mapping.default": '[{"field-id": 1, "names": ["id"]}]'}
    mapped.update_properties().set(mapping).commit()
    expected = {
        "select id from lake.db.plain where id > 1": [True, False, [[2], [3]]],
        "select id from lake.db.vectors": [True, False, [[0], [3], [4], [5], [6], [7]]],
        "select id, _row_id, _last_updated_sequence_number from lake.db.vectors where id > 4": [
            True,
            False,
            [[5, 5, 1], [6, 6, 3], [7, 7, 3]],
        ],
        "select id from lake.db.listed": [True, False, [[1], [2], [3], [4]]],
        "select id from lake.db.keys": [True, False, [[0], [3], [5]]],
        "select a.id from lake.db.keys a join lake.db.vectors b on a.id = b.id + 2": [
            True,
            False,
            [[5]],
        ],
        "select id from lake.db.mapped": [False, True, [[0], [1], [2], [3]]],
    }
    script = tmp_path / "driver.py"
    script.write_text(ON_EXECUTORS, encoding="utf-8")
    master = "local-cluster[1,1,512]"
    settings = settings_of(tmp_path) | {"spark.sql.codegen.wholeStage": str(whole_stage).lower()}
    most = "-1" if read_by == "executors" else str(2**20)
    printed = run_driver(tmp_path, script, most, *expected, master=master, conf=settings)
    assert json.loads(printed.splitlines()[-1]) == [master, expected]


@pytest.mark.cluster
def test_an_executor_decodes_bitmaps_once_for_all_tasks(tmp_path: Path) -> None:
    table = open_catalog(tmp_path).create_table("db.t", "id BIGINT", properties=V3)
    table.append(ids(0, 6))
    delete_positions(table, {files_of(table)[0]: [1, 2]})
    script = tmp_path / "driver.py"
    script.write_text(DECODED_BY, encoding="utf-8")
    master, query = "local-cluster[1,1,512]", "select id from lake.db.t"
    printed = run_driver(tmp_path, script, query, master=master, conf=settings_of(tmp_path))
    found = json.loads(printed.splitlines()[-1])
    assert {task for task, _ in found} == set(range(8))
    assert len({which for _, which in found}) == 1


@pytest.mark.cluster
def test_executors_join_groups_and_call_functions(tmp_path: Path) -> None:
    """Sorts take their plan to executors, and with it the functions that files are grouped by."""
    catalog = open_catalog(tmp_path)
    for name, first in (("db.a", 0), ("db.b", 3)):
        table = catalog.create_table(name, "id BIGINT", partitioned_by=["bucket(4, id)"])
        table.append(ids(first, first + 5))
    expected = {
        "select id from lake.db.a join lake.db.b using (id)": [True, False, [[3], [4]]],
        "select id, lake.system.bucket(4, id) from lake.db.a where id > 2": [
            True,
            False,
            [[3, 3], [4, 2]],
        ],
    }
    settings = settings_of(tmp_path) | {
        "spark.sql.iceberg.planning.preserve-data-grouping": "true",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.shuffle.partitions": "2",
    }
    script = tmp_path / "driver.py"
    script.write_text(ON_EXECUTORS, encoding="utf-8")
    master = "local-cluster[1,1,512]"
    printed = run_driver(tmp_path, script, str(2**20), *expected, master=master, conf=settings)
    assert json.loads(printed.splitlines()[-1]) == [master, expected]


def test_without_janino_the_portable_path_serves(
    spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_compiler(_gateway: object) -> None:
        raise BridgeUnavailableError("there is no Janino")

    monkeypatch.setattr(jvm, "load_lots", no_compiler)
    table = open_catalog(tmp_path).create_table("db.t", "id BIGINT")
    with caplog.at_level(logging.WARNING):
        session = install(spark.newSession())
    assert not session.is_native
    assert "newSession" not in vars(session.spark)
    assert [r.getMessage() for r in caplog.records] == [
        "no native scans in this session, the portable path serves: there is no Janino"
    ]
    assert session.table(table.location).to_df().columns == ["id"]
    session.uninstall()
