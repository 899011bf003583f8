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
from tests.support.deleted_rows import delete_keys, delete_positions
from tests.support.spark_sessions import run_driver

V3 = {"format-version": "3"}

ON_EXECUTORS = """
import json, sys
from pyspark.sql import SparkSession
from iceberg_pyspark import install

spark = SparkSession.builder.getOrCreate()
assert install(spark).is_native
found = {}
for query in sys.argv[1:]:
    frame = spark.sql(query)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    rows = sorted([list(row) for row in frame.collect()])
    found[query] = ["IcebergPyParquetScan" in plan, "MapInArrow" in plan, rows]
print(json.dumps([spark.sparkContext.master, found]))
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
def test_executors_need_nothing_of_the_bridge(tmp_path: Path) -> None:
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
    printed = run_driver(tmp_path, script, *expected, master=master, conf=settings_of(tmp_path))
    assert json.loads(printed.splitlines()[-1]) == [master, expected]


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
    printed = run_driver(tmp_path, script, *expected, master=master, conf=settings)
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
