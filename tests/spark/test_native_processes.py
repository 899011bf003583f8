"""Native scans on executors in other processes, and sessions that cannot have native scans.

One application runs all queries. Its executors have only Spark on the class path, so a task may use
only Spark's own classes.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark import Table, TableCatalog, install, load_catalog
from iceberg_pyspark.spark.bridge import jvm
from iceberg_pyspark.spark.bridge.java_classes import BridgeUnavailableError
from iceberg_pyspark.spec.encryption import file_key
from tests.support.deleted_rows import delete_keys, delete_positions, list_positions
from tests.support.encrypted_tables import files_with, key_properties
from tests.support.failing_tasks import FAIL_ONCE, check_retried_table
from tests.support.native_lake import sqlite_conf
from tests.support.spark_sessions import run_driver

V3 = {"format-version": "3"}
MASTER = "local-cluster[1,1,512]"

APPLICATION = """
import json, sys
from pyspark.sql import Column, SparkSession
from iceberg_pyspark import install
from iceberg_pyspark.spark.native_read import deleted_rows

spark = SparkSession.builder.getOrCreate()
assert install(spark).is_native
jvm = spark._jvm
folder = sys.argv[3]


def answers(queries, max_driver_bytes, settings):
    deleted_rows.MAX_VECTOR_BYTES = max_driver_bytes
    deleted_rows.MAX_POSITION_BYTES = max_driver_bytes
    for key, value in settings.items():
        spark.conf.set(key, value)
    found = {}
    for query in queries:
        frame = spark.sql(query)
        plan = frame._jdf.queryExecution().executedPlan().toString()
        rows = sorted([list(row) for row in frame.collect()])
        found[query] = ["IcebergPyParquetScan" in plan, "MapInArrow" in plan, rows]
    for key in settings:
        spark.conf.unset(key)
    return found


def invoked(node, name):
    if node.nodeName() == "Invoke" and node.functionName() == name:
        return node
    children = node.children().iterator()
    while children.hasNext():
        one = invoked(children.next(), name)
        if one is not None:
            return one


def decoded_by(query):
    # the identity of the bitmaps, in each of eight tasks
    filters = [spark.sql(query)._jdf.queryExecution().optimizedPlan()]
    while filters[-1].nodeName() != "Filter":
        filters.append(filters[-1].children().head())
    bitmaps = invoked(filters[-1].condition(), "value")
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
    return [list(row) for row in rows.distinct().collect()]


def retried():
    rows, table = spark.range(40, numPartitions=4), f"{folder}/retried"
    writer = rows.mapInArrow(fail_once, "id long").write.format("iceberg-py")
    writer.option("native-writer-enabled", "false").save(table)
    read = spark.read.format("iceberg-py").option("native", "false").load(table)
    return [os.getpid(), sorted(row.id for row in read.collect())]


def sealed():
    # written and read by the executor, by Spark's own writer and reader and by Python
    spark.sql("insert into lake.db.sealed select id from range(0, 3000, 1, 3)")
    modes = [f"'write.{change}.mode' = 'merge-on-read'" for change in ("delete", "update")]
    spark.sql(f"alter table lake.db.sealed set tblproperties ({', '.join(modes)})")
    spark.sql("delete from lake.db.sealed where id = 1007")
    spark.sql("update lake.db.sealed set id = id + 1000 where id in (6, 2007)")
    spark.sql("merge into lake.db.sealed t using (select explode(array(2007L, 6007L)) id) s "
              "on t.id = s.id + 1000 "
              "when matched then update set id = 3007 when not matched then insert *")
    query = "select id from lake.db.sealed where id % 1000 = 7"
    plan = spark.sql(query)._jdf.queryExecution().executedPlan().toString()
    options = json.loads(sys.argv[4])
    path = options.pop("path")
    reader = spark.read.format("iceberg-py").option("native", "false").options(**options)
    frames = [spark.sql(query), reader.load(path).where("id % 1000 = 7")]
    rows = [sorted(row.id for row in frame.collect()) for frame in frames]
    writer = frames[1].writeTo("lake.db.sealed")
    writer.option("native-writer-enabled", "false").append()
    rows.append(sorted(row.id for row in spark.sql(query).collect()))
    return ["IcebergPyParquetScan" in plan, "MapInArrow" in plan, rows]


found = {"decoded": decoded_by(sys.argv[2]), "retried": retried(), "sealed": sealed()}
for name, asked in json.loads(sys.argv[1]).items():
    found[name] = answers(*asked)
print(json.dumps([spark.sparkContext.master, found]))
"""

DELETES: dict[str, list[Any]] = {
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
READ_BY_EXECUTORS = {
    query: answer
    for query, answer in DELETES.items()
    if not any(name in query for name in ("plain", "mapped", "_row_id", "join"))
}
GROUPS: dict[str, list[Any]] = {
    "select id from lake.db.a join lake.db.b using (id)": [True, False, [[3], [4]]],
    "select id, lake.system.bucket(4, id) from lake.db.a where id > 2": [
        True,
        False,
        [[3, 3], [4, 2]],
    ],
}
JOINED_BY_GROUPS = {
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
CASES: dict[str, tuple[Mapping[str, list[Any]], int, Mapping[str, str]]] = {
    "driver": (DELETES, 2**20, {}),
    "executors": (READ_BY_EXECUTORS, -1, {}),
    "executors, row by row": (READ_BY_EXECUTORS, -1, {"spark.sql.codegen.wholeStage": "false"}),
    "groups": (GROUPS, 2**20, JOINED_BY_GROUPS),
}
"""Each case: a query, the maximum bytes of deletes that the driver reads itself, and settings."""


OF_CLUSTERS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.io.encryption.enabled": "true",
    "spark.memory.offHeap.enabled": "true",
    "spark.memory.offHeap.size": "128m",
    "spark.sql.columnVector.offheap.enabled": "true",
}
"""Settings that clusters have and sessions of tests lack."""


def settings_of(folder: Path) -> dict[str, str]:
    keys = {f"spark.sql.catalog.lake.{k}": v for k, v in key_properties(folder).items()}
    events = folder / "events"
    events.mkdir(exist_ok=True)
    logged = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
    }
    return {**sqlite_conf("lake", folder, folder / "warehouse"), **keys, **OF_CLUSTERS, **logged}


def open_catalog(folder: Path) -> TableCatalog:
    catalog = load_catalog(
        "lake",
        type="sql",
        uri=f"sqlite:///{folder / 'catalog.db'}",
        warehouse=str(folder / "warehouse"),
        **key_properties(folder),
    )
    if not catalog.namespace_exists("db"):
        catalog.create_namespace("db")
    return catalog


def ids(first: int, end: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, end), pa.int64())})


def files_of(table: Table) -> list[str]:
    return [task.file_path for task in table.refresh().scan().plan_files()]


def make_tables(catalog: TableCatalog) -> None:
    catalog.create_namespace("db", if_not_exists=True)
    plain = catalog.create_table("db.plain", "id BIGINT", properties=V3)
    plain.append(ids(0, 4))
    vectors = catalog.create_table("db.vectors", "id BIGINT", properties=V3)
    vectors.append(ids(0, 6))
    delete_positions(vectors, {files_of(vectors)[0]: [1, 2]})
    vectors.refresh().append(ids(6, 8))
    decoded = catalog.create_table("db.decoded", "id BIGINT", properties=V3)
    decoded.append(ids(0, 6))
    delete_positions(decoded, {files_of(decoded)[0]: [1, 2]})
    keys = catalog.create_table("db.keys", "id BIGINT", properties=V3)
    keys.append(ids(0, 6))
    delete_keys(keys, "id", [1, 2])
    delete_positions(keys, {files_of(keys)[0]: [4]})
    listed = catalog.create_table("db.listed", "id BIGINT")
    listed.append(ids(0, 6))
    (path,) = files_of(listed)
    list_positions(listed, pa.table({"file_path": [path] * 2, "pos": [0, 5]}), {})
    catalog.create_table("db.sealed", "id BIGINT", properties={**V3, "encryption.key-id": "keyB"})
    mapped = catalog.create_table("db.mapped", "id BIGINT", properties=V3)
    mapped.append(ids(0, 4))
    mapping = {"schema.name-mapping.default": '[{"field-id": 1, "names": ["id"]}]'}
    mapped.update_properties().set(mapping).commit()
    for name, first in (("db.a", 0), ("db.b", 3)):
        table = catalog.create_table(name, "id BIGINT", partitioned_by=["bucket(4, id)"])
        table.append(ids(first, first + 5))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("executors")


@pytest.fixture(scope="module")
def answered(folder: Path) -> dict[str, Any]:
    """Return the application's results by the keys of `CASES`, and those of other functions."""
    catalog = open_catalog(folder)
    make_tables(catalog)
    options = {**key_properties(folder), "path": catalog.load_table("db.sealed").location}
    script = folder / "application.py"
    script.write_text(FAIL_ONCE + APPLICATION, encoding="utf-8")
    printed = run_driver(
        folder,
        script,
        json.dumps(CASES),
        "select id from lake.db.decoded",
        str(folder),
        json.dumps(options),
        master=MASTER,
        conf=settings_of(folder),
    )
    master, result = json.loads(printed.splitlines()[-1])
    assert master == MASTER
    return dict(result)


def test_executors_need_nothing_of_the_bridge(answered: dict[str, Any]) -> None:
    assert answered["driver"] == DELETES
    assert len(READ_BY_EXECUTORS) == 3
    for deletes_read_by in ("executors", "executors, row by row"):
        assert answered[deletes_read_by] == READ_BY_EXECUTORS, deletes_read_by


def test_executors_read_and_write_encrypted_files(answered: dict[str, Any], folder: Path) -> None:
    ids = [7, 3007, 6007]
    assert answered["sealed"] == [True, False, [ids, ids, sorted(2 * ids)]]
    files = folder / "warehouse" / "db" / "sealed"
    assert files_with(files, ["PAR1", "PFA1", "Obj\x01", "iceberg.schema"]) == []


def test_no_key_of_a_file_is_in_the_events_of_spark(answered: dict[str, Any], folder: Path) -> None:
    """Events have plans, settings of jobs, and accumulators."""
    files = open_catalog(folder).load_table("db.sealed").metadata_table("all_files").to_arrow()
    keys = [file_key(k, "f").key for k in files["key_metadata"].to_pylist()]
    assert len(keys) >= 2
    logs = [f.read_bytes() for f in (folder / "events").rglob("*") if f.is_file()]
    assert any(b"db.sealed" in log for log in logs)
    for key in keys:
        listed = str(list(key)).encode(), str([b - 256 * (b > 127) for b in key]).encode()
        for form in (key, key.hex().encode(), base64.b64encode(key)[:20], *listed):
            assert not any(form in log for log in logs)


@pytest.mark.nightly
def test_an_executor_decodes_bitmaps_once_for_all_tasks(answered: dict[str, Any]) -> None:
    assert {task for task, _ in answered["decoded"]} == set(range(8))
    assert len({which for _, which in answered["decoded"]}) == 1


def test_executors_join_groups_and_call_functions(answered: dict[str, Any]) -> None:
    """A sort sends its plan to executors, including the functions that group the files."""
    assert answered["groups"] == GROUPS


def test_rows_of_a_task_that_fails_are_written_by_its_next_attempt(
    answered: dict[str, Any], folder: Path
) -> None:
    driver, rows = answered["retried"]
    assert rows == list(range(40))
    check_retried_table(folder, driver)


@pytest.mark.nightly
def test_without_janino_reads_are_portable(
    spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_compiler(_gateway: object) -> None:
        raise BridgeUnavailableError("there is no Janino")

    monkeypatch.setattr(jvm, "load_modules", no_compiler)
    catalog = open_catalog(tmp_path)
    table = catalog.create_table("db.t", "id BIGINT")
    with caplog.at_level(logging.WARNING):
        session = install(spark.newSession())
    assert not session.is_native
    assert "newSession" not in vars(session.spark)
    assert [r.getMessage() for r in caplog.records] == [
        "no native scans in this session; Python reads and writes: there is no Janino"
    ]
    assert session.table(table.location).to_df().columns == ["id"]
    session.uninstall()
