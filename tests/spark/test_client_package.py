"""A client with `pyspark-client` alone, which has neither a JVM nor py4j, uses tables fully."""

from __future__ import annotations

import json
from pathlib import Path

import pyspark
import pytest

from tests.releases.environments import EnvironmentUnavailableError, client_environment
from tests.support.spark_sessions import ROOT, connect_server, run_process

pytestmark = pytest.mark.nightly

CLIENT = """
import importlib.util, json, sys
import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
import iceberg_pyspark as ice

url, options = sys.argv[1], json.loads(sys.argv[2])
assert importlib.util.find_spec("py4j") is None
assert not hasattr(pyspark, "SparkContext")
spark = SparkSession.builder.remote(url).getOrCreate()
session = ice.install(spark)
of_format = {"catalog": "lake", **options}
new = {"partitioned-by": "bucket(2, id)", "format-version": "3", "table-property.owner": "me"}
nothing = spark.createDataFrame([], "id long, v string")
nothing.write.format("iceberg-py").options(**of_format, **new).mode("append").save("db.t")
table = session.table("db.t", catalog="lake", **options)
rows = spark.range(10).selectExpr("id", "concat('v', id) v")
rows.write.format("iceberg-py").options(**of_format).mode("append").save("db.t")
table.refresh().update_schema().add_column("n", "int").rename_column("v", "w").commit()
changes = spark.range(8, 12).selectExpr("id", "'new' w", "1 n")
merge = table.merge_into(changes, "t.id = s.id").whenMatched(F.col("s.id") == 8).delete()
merged = merge.whenMatched().updateAll().whenNotMatched().insertAll().merge()
found = {
    "merged": [merged.inserted, merged.updated, merged.deleted],
    "updated": table.update({"n": "n + 1"}, "id = 9").updated,
    "deleted": table.delete(F.col("id") < 5).deleted,
    "upserted": table.upsert(spark.sql("select 5L id, 'five' w, 5 n"), ["id"]).updated,
}
table.manage_snapshots().create_branch("b").create_tag("kept").commit()
found["on a branch"] = table.delete("id = 5", branch="b").deleted
table.update_properties().set({"owner": "you"}).commit()
rewritten = table.maintenance().rewrite_data_files(options={"rewrite-all": True})
found["rewritten"] = rewritten.rewritten_data_files_count > 0
found["rows"] = sorted([list(r) for r in table.to_df().collect()])
found["filtered"] = [list(r) for r in table.to_df(columns=["w"], filter="id = 5").collect()]
found["partitions"] = [f.name for f in table.spec.fields]
found["owner"] = table.properties["owner"]
found["refs"] = sorted(table.refs)
found["py4j"] = any(name.partition(".")[0] == "py4j" for name in sys.modules)
print(json.dumps(found))
"""


def test_the_client_package_reads_writes_changes_and_defines_tables(tmp_path: Path) -> None:
    try:
        python = client_environment(tmp_path / "client", pyspark.__version__)
    except EnvironmentUnavailableError as e:
        pytest.skip(str(e))
    script = tmp_path / "client.py"
    script.write_text(CLIENT, encoding="utf-8")
    lake = {
        "catalog.type": "sql",
        "catalog.uri": f"sqlite:///{tmp_path / 'catalog.db'}",
        "catalog.warehouse": str(tmp_path / "warehouse"),
    }
    with connect_server(tmp_path / "server") as url:
        printed = run_process(
            [str(python), str(script), url, json.dumps(lake)],
            500,
            environment={"PYTHONPATH": str(ROOT)},
        )
    assert json.loads(printed.splitlines()[-1]) == {
        "merged": [2, 1, 1],
        "updated": 1,
        "deleted": 5,
        "upserted": 1,
        "on a branch": 1,
        "rewritten": True,
        "rows": [
            [5, "five", 5],
            [6, "v6", None],
            [7, "v7", None],
            [9, "new", 2],
            [10, "new", 1],
            [11, "new", 1],
        ],
        "filtered": [["five"]],
        "partitions": ["id_bucket"],
        "owner": "you",
        "refs": ["b", "kept", "main"],
        "py4j": False,
    }
