"""The first steps of a new user, each with a check of its rows, for any release of Spark.

`python -m tests.releases.first_steps FOLDER`, run by that release's Python, prints one line of
JSON: the release, the features that are not native and why, and for each step its error, or null.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from iceberg_pyspark import install
from iceberg_pyspark.spark.bridge.features import SCHEMA_EVOLUTION
from iceberg_pyspark.spark.session import IcebergSession
from tests.support.spark_sessions import start_session

PREFIX = "spark.sql.catalog.lake"


@dataclass(frozen=True)
class Lake:
    """A session with a catalog `lake`, and a new folder for this run."""

    spark: SparkSession
    session: IcebergSession
    folder: Path

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, sorted."""
        return sorted(tuple(row) for row in self.spark.sql(query).collect())

    def sql(self, statement: str) -> None:
        """Run a statement."""
        self.spark.sql(statement).collect()


Step = Callable[[Lake], None]
STEPS: dict[str, tuple[str, Step]] = {}
"""By name: the part that a step belongs to, and its function."""


def step(part: str) -> Callable[[Step], Step]:
    """Register a function as a step of a part; the function's name is the step's name."""

    def counted(function: Step) -> Step:
        STEPS[function.__name__.replace("_", " ")] = (part, function)
        return function

    return counted


def equal(result: object, expected: object) -> None:
    """Raise `AssertionError` with both values if they differ."""
    if result != expected:
        raise AssertionError(f"found {result}, expected {expected}")


# ---- without install(): the Python data source


@step("portable")
def write_a_path(lake: Lake) -> None:
    rows = lake.spark.createDataFrame([(1, "a"), (2, "b")], "id bigint, s string")
    writer = rows.write.format("iceberg-py").option("native-writer-enabled", "false")
    writer.mode("append").save(str(lake.folder / "by-path"))
    writer.mode("append").save(str(lake.folder / "by-path"))


@step("portable")
def read_a_path_with_columns_and_filter(lake: Lake) -> None:
    reader = lake.spark.read.format("iceberg-py").option("native", "false")
    frame = reader.option("columns", "s").option("filter", "id > 1")
    equal([r.s for r in frame.load(str(lake.folder / "by-path")).collect()], ["b", "b"])


@step("portable")
def read_snapshots_of_a_path(lake: Lake) -> None:
    reader = lake.spark.read.format("iceberg-py").option("native", "false")
    frame = reader.load(f"{lake.folder / 'by-path'}#snapshots")
    equal([r.operation for r in frame.collect()], ["append", "append"])


@step("portable")
def overwrite_a_path_and_read_what_was(lake: Lake) -> None:
    path = str(lake.folder / "by-path")
    reader = lake.spark.read.format("iceberg-py").option("native", "false")
    before = reader.load(f"{path}#snapshots").orderBy("committed_at").collect()[-1].snapshot_id
    rows = lake.spark.createDataFrame([(9, "z")], "id bigint, s string")
    rows.write.format("iceberg-py").mode("overwrite").save(path)
    equal([tuple(r) for r in reader.load(path).collect()], [(9, "z")])
    equal(reader.option("snapshot-id", before).load(path).count(), 4)


# ---- the catalog


@step("catalog")
def create_and_show_namespaces(lake: Lake) -> None:
    lake.sql("CREATE NAMESPACE lake.db")
    equal(lake.rows("SHOW NAMESPACES IN lake"), [("db",)])


@step("catalog")
def create_and_show_tables(lake: Lake) -> None:
    lake.sql(
        "CREATE TABLE lake.db.t (id BIGINT, g INT, s STRING) PARTITIONED BY (g) "
        "TBLPROPERTIES ('format-version' = '3')"
    )
    equal([r[1] for r in lake.rows("SHOW TABLES IN lake.db")], ["t"])


@step("writes")
def insert_values(lake: Lake) -> None:
    lake.sql("INSERT INTO lake.db.t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 1, 'c')")
    equal(lake.rows("SELECT * FROM lake.db.t"), [(1, 1, "a"), (2, 2, "b"), (3, 1, "c")])


@step("writes")
def insert_what_a_job_makes(lake: Lake) -> None:
    lake.sql("INSERT INTO lake.db.t SELECT id, id % 2, concat('s', id) FROM range(10, 20)")
    equal(lake.rows("SELECT count(*), sum(id), count(DISTINCT s) FROM lake.db.t"), [(13, 151, 13)])


@step("reads")
def select_with_filters(lake: Lake) -> None:
    equal(lake.rows("SELECT id FROM lake.db.t WHERE g = 1 AND id < 12"), [(1,), (3,), (11,)])
    equal(lake.rows("SELECT s FROM lake.db.t WHERE s LIKE 's1%' AND g = 0 AND id > 16"), [("s18",)])


@step("reads")
def count_and_join(lake: Lake) -> None:
    equal(lake.rows("SELECT count(*) FROM lake.db.t"), [(13,)])
    joined = "SELECT a.id FROM lake.db.t a JOIN lake.db.t b ON a.id = b.id + 1 WHERE a.g = 1"
    equal(lake.rows(joined), [(3,), (11,), (13,), (15,), (17,), (19,)])


@step("reads")
def hidden_columns(lake: Lake) -> None:
    result = lake.rows("SELECT id, _file LIKE '%.parquet', _pos >= 0 FROM lake.db.t WHERE id < 3")
    equal(result, [(1, True, True), (2, True, True)])


@step("writes")
def create_table_as_select(lake: Lake) -> None:
    lake.sql(
        "CREATE TABLE lake.db.made PARTITIONED BY (bucket(4, id), days(at)) AS "
        "SELECT id, timestamp'2026-01-01 00:00:00' + make_dt_interval(CAST(id AS INT)) AS at "
        "FROM range(8)"
    )
    equal(
        lake.rows("SELECT count(*), max(at) - min(at) = interval 7 days FROM lake.db.made"),
        [(8, True)],
    )


@step("writes")
def replace_table_as_select(lake: Lake) -> None:
    lake.sql("CREATE OR REPLACE TABLE lake.db.made AS SELECT id, id * 2 AS d FROM range(3)")
    equal(lake.rows("SELECT * FROM lake.db.made"), [(0, 0), (1, 2), (2, 4)])
    equal(lake.rows("SELECT count(*) FROM lake.db.made.snapshots"), [(2,)])


@step("writes")
def insert_overwrite_partitions(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.db.parts (id BIGINT, p INT) PARTITIONED BY (p)")
    lake.sql("INSERT INTO lake.db.parts VALUES (1, 1), (2, 2), (3, 3)")
    lake.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    lake.sql("INSERT OVERWRITE lake.db.parts VALUES (20, 2)")
    lake.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    equal(lake.rows("SELECT * FROM lake.db.parts"), [(1, 1), (3, 3), (20, 2)])
    lake.sql("INSERT OVERWRITE lake.db.parts PARTITION (p = 3) SELECT 30L")
    equal(lake.rows("SELECT * FROM lake.db.parts"), [(1, 1), (20, 2), (30, 3)])


@step("writes")
def write_to_a_table_by_its_verbs(lake: Lake) -> None:
    one = lake.spark.createDataFrame([(5, 1)], "id bigint, p int")
    one.writeTo("lake.db.parts").append()
    equal(lake.rows("SELECT id FROM lake.db.parts WHERE p = 1"), [(1,), (5,)])
    one.writeTo("lake.db.parts").overwritePartitions()
    equal(lake.rows("SELECT id FROM lake.db.parts"), [(5,), (20,), (30,)])
    one.write.insertInto("lake.db.parts")
    one.write.mode("overwrite").saveAsTable("lake.db.saved")
    equal(lake.rows("SELECT * FROM lake.db.saved"), [(5, 1)])
    equal(lake.rows("SELECT count(*) FROM lake.db.parts"), [(4,)])


@step("writes")
def write_the_format_by_path(lake: Lake) -> None:
    path = str(lake.folder / "native-path")
    frame = lake.spark.range(100).selectExpr("id", "id % 3 AS g")
    writer = frame.write.format("iceberg-py").option("partitioned-by", "g")
    writer.mode("append").save(path)
    result = lake.spark.read.format("iceberg-py").load(path)
    equal(result.groupBy("g").count().orderBy("g").collect(), [(0, 34), (1, 33), (2, 33)])
    part = lake.spark.range(2).selectExpr("id", "0L AS g")
    dynamic = part.write.format("iceberg-py").option("overwrite-mode", "dynamic")
    dynamic.mode("overwrite").save(path)
    equal(lake.spark.read.format("iceberg-py").load(path).count(), 68)


@step("writes")
def write_the_format_by_name(lake: Lake) -> None:
    options = {
        "catalog": "lake",
        **{f"catalog.{key}": value for key, value in catalog_of(lake.folder).items()},
    }
    one = lake.spark.createDataFrame([(1, 1)], "id bigint, p int")
    one.write.format("iceberg-py").options(**options).mode("append").save("db.named")
    equal(lake.rows("SELECT * FROM lake.db.named"), [(1, 1)])
    result = lake.spark.read.format("iceberg-py").options(**options).load("db.named")
    equal([tuple(r) for r in result.collect()], [(1, 1)])


@step("reads")
def read_the_format_without_native_scans(lake: Lake) -> None:
    reader = lake.spark.read.format("iceberg-py").option("native", "false")
    total = reader.load(str(lake.folder / "native-path")).selectExpr("sum(id)")
    equal([tuple(r) for r in total.collect()], [(3268,)])


@step("reads")
def travel_in_time(lake: Lake) -> None:
    first = lake.rows(
        "SELECT committed_at, snapshot_id FROM lake.db.t.snapshots ORDER BY committed_at"
    )[0]
    equal(lake.rows(f"SELECT count(*) FROM lake.db.t VERSION AS OF {first[1]}"), [(3,)])
    at = f"SELECT count(*) FROM lake.db.t TIMESTAMP AS OF '{first[0]}'"
    equal(lake.rows(at), [(3,)])


@step("reads")
def metadata_tables(lake: Lake) -> None:
    equal(lake.rows("SELECT sum(record_count) FROM lake.db.t.files"), [(13,)])
    equal(lake.rows("SELECT count(*) FROM lake.db.t.history"), [(2,)])
    equal(
        lake.rows("SELECT partition.g, record_count FROM lake.db.t.partitions"),
        [(0, 5), (1, 7), (2, 1)],
    )
    equal(lake.rows("SELECT count(*) > 0 FROM lake.db.t.manifests"), [(True,)])


# ---- changing existing rows


def changed(lake: Lake, mode: str) -> str:
    """Create a table whose row-level changes use this mode; return its name."""
    name = f"lake.db.changed_{mode.replace('-', '_')}"
    modes = ", ".join(f"'write.{op}.mode' = '{mode}'" for op in ("delete", "update", "merge"))
    lake.sql(f"CREATE TABLE {name} (id BIGINT, v BIGINT) TBLPROPERTIES ({modes})")
    lake.sql(f"INSERT INTO {name} SELECT id, id FROM range(10)")
    return name


def merged(lake: Lake, name: str) -> None:
    lake.sql(
        f"MERGE INTO {name} t USING (SELECT id, -id AS v FROM range(8, 12)) s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 9 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT *"
    )


def delete_update_merge(lake: Lake, mode: str) -> None:
    name = changed(lake, mode)
    lake.sql(f"DELETE FROM {name} WHERE id < 5")
    equal(lake.rows(f"SELECT id FROM {name}"), [(5,), (6,), (7,), (8,), (9,)])
    lake.sql(f"UPDATE {name} SET v = v + 100 WHERE id = 6")
    equal(lake.rows(f"SELECT v FROM {name} WHERE id < 8"), [(5,), (7,), (106,)])
    merged(lake, name)
    equal(
        lake.rows(f"SELECT * FROM {name}"),
        [(5, 5), (6, 106), (7, 7), (8, -8), (10, -10), (11, -11)],
    )


@step("row changes")
def copy_on_write_delete_update_merge(lake: Lake) -> None:
    delete_update_merge(lake, "copy-on-write")


@step("row changes")
def merge_on_read_delete_update_merge(lake: Lake) -> None:
    delete_update_merge(lake, "merge-on-read")


@step("row changes")
def delete_a_partition(lake: Lake) -> None:
    lake.sql("DELETE FROM lake.db.parts WHERE p = 2")
    equal(lake.rows("SELECT DISTINCT p FROM lake.db.parts"), [(1,), (3,)])


@step("row changes")
def change_rows_from_python(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.db.api (id BIGINT, v BIGINT)")
    lake.sql("INSERT INTO lake.db.api SELECT id, id FROM range(6)")
    table = lake.session.table("lake.db.api")
    equal(table.delete("id < 2").deleted, 2)
    equal(table.update({"v": "v * 10"}, "id = 3").updated, 1)
    source = lake.spark.createDataFrame([(4, 44), (7, 77)], "id bigint, v bigint")
    merge = table.merge_into(source, "t.id = s.id").whenMatched().updateAll()
    merge.whenNotMatched().insertAll().merge()
    equal(lake.rows("SELECT * FROM lake.db.api"), [(2, 2), (3, 30), (4, 44), (5, 5), (7, 77)])


@step("row changes")
def change_rows_by_python_functions(lake: Lake) -> None:
    lake.spark.udf.register("next_one", lambda v: v + 1, "bigint")
    lake.spark.udf.register("added", lambda one, other: one + other, "bigint")
    lake.sql("CREATE TABLE lake.db.called AS SELECT id, id AS v FROM range(4)")
    lake.sql("UPDATE lake.db.called SET v = next_one(v) WHERE next_one(id) = 3")
    lake.sql("DELETE FROM lake.db.called WHERE next_one(id) = 1")
    lake.sql(
        "MERGE INTO lake.db.called t USING lake.db.called s ON t.id = s.id "
        "WHEN MATCHED AND added(t.id, s.id) = 6 THEN UPDATE SET v = added(t.v, s.v)"
    )
    equal(lake.rows("SELECT * FROM lake.db.called"), [(1, 1), (2, 3), (3, 6)])


@step("row changes")
def merge_a_data_frame(lake: Lake) -> None:
    source = lake.spark.createDataFrame([(2, 20), (8, 80)], "id bigint, v bigint").alias("s")
    merge = source.mergeInto("lake.db.api", sql.expr("lake.db.api.id = s.id"))
    merge.whenMatched().updateAll().whenNotMatched().insertAll().merge()
    equal(lake.rows("SELECT v FROM lake.db.api WHERE id IN (2, 8)"), [(20,), (80,)])


@step("writes")
def cached_tables_follow_writes(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.db.cached AS SELECT id FROM range(3)")
    lake.sql("CACHE TABLE lake.db.cached")
    equal(lake.rows("SELECT sum(id) FROM lake.db.cached"), [(3,)])
    lake.sql("INSERT INTO lake.db.cached VALUES (10)")
    equal(lake.rows("SELECT sum(id) FROM lake.db.cached"), [(13,)])
    lake.sql("UNCACHE TABLE lake.db.cached")


@step("row changes")
def merge_with_schema_evolution(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.db.wider AS SELECT 1L AS id")
    refusal = None
    try:
        lake.sql(
            "MERGE WITH SCHEMA EVOLUTION INTO lake.db.wider t USING (SELECT 2L AS id, 'x' AS s) s "
            "ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
        )
    except Exception as e:  # noqa: BLE001 - where a release lacks it, its text is looked at
        refusal = str(e)
    if lake.session.bridge is not None and lake.session.bridge.has(SCHEMA_EVOLUTION):
        equal((refusal, lake.rows("SELECT s FROM lake.db.wider WHERE id = 2")), (None, [("x",)]))
    else:
        equal("MERGE WITH SCHEMA EVOLUTION: not on Spark" in (refusal or ""), True)
        equal(lake.rows("SELECT * FROM lake.db.wider"), [(1,)])
    source = lake.spark.createDataFrame([(3, "y", 1.5)], "id bigint, s string, d double")
    merge = lake.session.table("lake.db.wider").merge_into(source, "t.id = s.id")
    merge.withSchemaEvolution().whenNotMatched().insertAll().merge()
    equal(lake.rows("SELECT id, s, d FROM lake.db.wider WHERE id = 3"), [(3, "y", 1.5)])


@step("row changes")
def truncate(lake: Lake) -> None:
    lake.sql("TRUNCATE TABLE lake.db.saved")
    equal(lake.rows("SELECT count(*) FROM lake.db.saved"), [(0,)])


# ---- the table itself


@step("alter")
def add_columns(lake: Lake) -> None:
    lake.sql("ALTER TABLE lake.db.t ADD COLUMN d DOUBLE")
    lake.sql("ALTER TABLE lake.db.t ADD COLUMN n INT DEFAULT 7")
    equal(lake.rows("SELECT id, d, n FROM lake.db.t WHERE id < 3"), [(1, None, 7), (2, None, 7)])


@step("alter")
def rename_widen_and_drop_columns(lake: Lake) -> None:
    lake.sql("ALTER TABLE lake.db.t RENAME COLUMN s TO text")
    lake.sql("ALTER TABLE lake.db.t ALTER COLUMN n TYPE BIGINT")
    lake.sql("ALTER TABLE lake.db.t DROP COLUMN d")
    equal(
        lake.spark.table("lake.db.t").dtypes,
        [("id", "bigint"), ("g", "int"), ("text", "string"), ("n", "bigint")],
    )
    equal(lake.rows("SELECT text, n FROM lake.db.t WHERE id = 1"), [("a", 7)])


@step("alter")
def properties_and_comments(lake: Lake) -> None:
    lake.sql("ALTER TABLE lake.db.t SET TBLPROPERTIES ('a.b' = 'c')")
    lake.sql("ALTER TABLE lake.db.t ALTER COLUMN id COMMENT 'the key'")
    equal(lake.rows("SHOW TBLPROPERTIES lake.db.t ('a.b')"), [("a.b", "c")])
    equal([r[2] for r in lake.rows("DESCRIBE TABLE lake.db.t") if r[0] == "id"], ["the key"])
    lake.sql("ALTER TABLE lake.db.t UNSET TBLPROPERTIES ('a.b')")
    equal("a.b" in lake.session.table("lake.db.t").properties, False)


@step("alter")
def defaults_of_new_tables(lake: Lake) -> None:
    lake.sql(
        "CREATE TABLE lake.db.defaults (id BIGINT, s STRING DEFAULT 'none') "
        "TBLPROPERTIES ('format-version' = '3')"
    )
    fields = lake.session.table("lake.db.defaults").schema.fields
    equal([f.write_default for f in fields], [None, "none"])


@step("branches")
def write_and_read_a_branch(lake: Lake) -> None:
    table = lake.session.table("lake.db.api")
    refs = table.manage_snapshots()
    refs.create_branch("side").create_tag("before").commit()
    lake.sql("INSERT INTO lake.db.api.branch_side VALUES (100, 100)")
    equal(lake.rows("SELECT count(*) FROM lake.db.api WHERE id = 100"), [(0,)])
    equal(lake.rows("SELECT id FROM lake.db.api.branch_side WHERE id >= 100"), [(100,)])
    equal(lake.rows("SELECT id FROM lake.db.api VERSION AS OF 'side' WHERE id >= 100"), [(100,)])
    equal(lake.rows("SELECT max(id) FROM lake.db.api.tag_before"), [(8,)])


@step("branches")
def change_rows_of_a_branch(lake: Lake) -> None:
    lake.sql("DELETE FROM lake.db.api.branch_side WHERE id < 100")
    equal(lake.rows("SELECT id FROM lake.db.api.branch_side"), [(100,)])
    equal(lake.rows("SELECT count(*) FROM lake.db.api"), [(6,)])


@step("reads")
def orc_files(lake: Lake) -> None:
    lake.sql(
        "CREATE TABLE lake.db.orc TBLPROPERTIES ('write.format.default' = 'orc') AS "
        "SELECT id, CAST(id AS STRING) s, named_struct('a', id) st FROM range(9)"
    )
    lake.sql("ALTER TABLE lake.db.orc ADD COLUMN later INT")
    equal(
        lake.rows("SELECT s, st.a, later FROM lake.db.orc WHERE id > 6"),
        [("7", 7, None), ("8", 8, None)],
    )


@step("reads")
def rows_appended_by_python(lake: Lake) -> None:
    table = lake.session.table("lake.db.named")
    table.append(pa.table({"id": pa.array([2], pa.int64()), "p": pa.array([2], pa.int32())}))
    equal(lake.rows("SELECT * FROM lake.db.named"), [(1, 1), (2, 2)])


@step("catalog")
def new_sessions(lake: Lake) -> None:
    new_session = lake.spark.newSession()
    for key, value in catalog_settings(lake.folder).items():
        new_session.conf.set(key, value)
    equal(new_session.table("lake.db.named").count(), 2)


@step("catalog")
def rename_and_drop_tables(lake: Lake) -> None:
    lake.sql("ALTER TABLE lake.db.named RENAME TO db.renamed")
    equal(lake.rows("SELECT count(*) FROM lake.db.renamed"), [(2,)])
    files = [r[0] for r in lake.rows("SELECT file_path FROM lake.db.renamed.files")]
    lake.sql("DROP TABLE lake.db.renamed PURGE")
    equal([f for f in files if Path(f.removeprefix("file:")).exists()], [])
    lake.sql("DROP TABLE lake.db.saved")
    names = [r[1] for r in lake.rows("SHOW TABLES IN lake.db")]
    equal("renamed" in names or "saved" in names, False)


@step("catalog")
def errors_as_spark_users_know_them(lake: Lake) -> None:
    try:
        lake.sql("SELECT * FROM lake.db.nothing")
    except Exception as e:  # noqa: BLE001 - its text is what is looked at
        equal("TABLE_OR_VIEW_NOT_FOUND" in str(e), True)
    else:
        raise AssertionError("a table that is not there was read")


@step("catalog")
def uninstall(lake: Lake) -> None:
    lake.session.uninstall()
    reader = lake.spark.read.format("iceberg-py")
    equal(reader.load(str(lake.folder / "native-path")).count(), 68)


PARTS = tuple(dict.fromkeys(part for part, _ in STEPS.values()))


def catalog_of(folder: Path) -> dict[str, str]:
    """Return the properties of a catalog with a SQLite database in a folder."""
    return {
        "type": "sql",
        "uri": f"sqlite:///{folder / 'catalog.db'}",
        "warehouse": str(folder / "warehouse"),
    }


def catalog_settings(folder: Path) -> dict[str, str]:
    """Return the catalog's properties as session settings."""
    properties = {f"{PREFIX}.{key}": value for key, value in catalog_of(folder).items()}
    return {PREFIX: "iceberg_pyspark", **properties}


def run_steps(folder: Path, names: Collection[str]) -> dict[str, Any]:
    """Run the steps and the parts with these names; return the release, missing features and
    outcomes.
    """
    spark = start_session(folder, catalog_settings(folder))
    failures: dict[str, str | None] = {}
    try:
        steps = {name: of for name, of in STEPS.items() if name in names or of[0] in names}
        lake = Lake(spark, IcebergSession(spark, None), folder)
        for name, (part, function) in steps.items():
            if part == "portable":
                failures[name] = failure_of(function, lake)
        session = install(spark)
        lake = Lake(spark, session, folder)
        missing_features = {} if session.bridge is None else session.bridge.missing_features
        for name, (part, function) in steps.items():
            if part != "portable":
                failures[name] = failure_of(function, lake)
        return {
            "release": spark.version,
            "described": session.describe(),
            "native": session.is_native,
            "missing": {feature.name: why for feature, why in missing_features.items()},
            "steps": failures,
        }
    finally:
        spark.stop()


def failure_of(function: Step, lake: Lake) -> str | None:
    """Return the first line of a step's error, or None; the full traceback goes to stderr."""
    try:
        function(lake)
    except Exception as e:  # noqa: BLE001 - any failure is the step's result
        traceback.print_exc()
        return f"{type(e).__name__}: {str(e).partition(chr(10))[0]}"[:300]
    return None


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run_steps(Path(sys.argv[1]), PARTS)) + "\n")
