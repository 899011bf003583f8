"""Reads through Spark's own API: names and paths, catalogs, plans that are used again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

import iceberg_pyspark
from iceberg_pyspark import load_catalog
from tests.spark.conftest import Configured
from tests.support.frames import append_rows, create_path_table, load, refusal, rows_of, save
from tests.support.parameters import cases

# tests/interop/test_native_source.py reads by options and schemas on both paths of 4.1.

# What a name means, and which filters a plan has, are decided before the read path is.
ONE_PATH = cases("read_path", fast=["portable"], nightly=["native"], indirect=True)

ROWS = [{"id": i, "name": f"n{i}"} for i in range(10)]


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a table with ten rows in two data files."""
    path = tmp_path_factory.mktemp("reads") / "ten"
    table = create_path_table(path, "id BIGINT, name STRING", ROWS[:5])
    append_rows(table, ROWS[5:])
    return path


def lake(tmp_path: Path) -> dict[str, str]:
    """Create a catalog with one table, db.t, of three rows; return the catalog's properties."""
    properties = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"{tmp_path}/warehouse"}
    catalog = load_catalog("lake", type="sql", **properties)
    catalog.create_namespace("db", if_not_exists=True)
    append_rows(catalog.create_table("db.t", "id BIGINT"), [{"id": i} for i in range(3)])
    return properties


# A relation that is used twice: Spark would keep pushed filters (SPARK-58551).


@pytest.mark.usefixtures("read_path")
def test_a_frame_used_again_has_all_its_rows(spark: SparkSession, ten: Path) -> None:
    frame = load(spark, ten)
    assert frame.filter("id = 3").count() == 1
    assert frame.count() == 10
    two = frame.filter("id = 1").union(frame.filter("id = 2"))
    assert sorted(row.id for row in two.collect()) == [1, 2]
    assert frame.filter("id = 1").crossJoin(frame.filter("id > 5")).count() == 4
    halves = frame.filter("id < 5").alias("a").join(frame.filter("id > 2").alias("b"), "id")
    assert halves.count() == 2


@ONE_PATH
@pytest.mark.usefixtures("read_path")
def test_a_view_used_again_has_all_its_rows(spark: SparkSession, ten: Path) -> None:
    load(spark, ten).createOrReplaceTempView("ten")
    assert spark.sql("SELECT * FROM ten WHERE id = 3").count() == 1
    actual = spark.sql(
        "SELECT (SELECT count(*) FROM ten), (SELECT count(*) FROM ten WHERE id < 4), "
        "(SELECT max(name) FROM ten WHERE id IN (SELECT id + 1 FROM ten WHERE id > 3))"
    )
    assert actual.collect() == [(10, 4, "n9")]


@pytest.mark.usefixtures("read_path")
def test_filters_that_could_be_pushed_stay_right_when_spark_may_push(
    spark: SparkSession, ten: Path
) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = load(spark, ten)
        assert frame.filter((col("id") >= 8) & col("name").startswith("n")).count() == 2
        assert frame.count() == 10
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


# Ways to name a table.


@pytest.mark.usefixtures("read_path")
def test_tables_are_named_with_the_catalog_in_options(spark: SparkSession, tmp_path: Path) -> None:
    arguments = {f"catalog.{k}": v for k, v in lake(tmp_path).items()}
    assert load(spark, "db.t", {"catalog": "lake", **arguments}).count() == 3
    assert load(spark, "lake.db.t", {"catalog": "lake", **arguments}).count() == 3
    error, text = refusal(lambda: load(spark, "db.u", {"catalog": "lake", **arguments}))
    assert error == "NoSuchTableError"
    assert "db.u" in text


@ONE_PATH
@pytest.mark.usefixtures("read_path")
def test_catalogs_are_found_in_the_environment_and_in_the_file(
    spark: SparkSession, tmp_path: Path, configured: Configured
) -> None:
    save(spark.range(4), "from-env.db.t", mode="overwrite")
    assert load(spark, "db.t", {"catalog": "from-env"}).count() == 4
    assert (configured.warehouse / "db/t/metadata").is_dir()
    file = configured.home / ".pyiceberg.yaml"
    lines = [f"    {key}: {value}\n" for key, value in lake(tmp_path).items()]
    file.write_text("".join(["default-catalog: lake\n", "catalog:\n", "  lake:\n", *lines]))
    try:
        assert load(spark, "lake.db.t").count() == 3
        assert load(spark, "db.t").count() == 3
        # Options of the query take precedence.
        other = {"catalog.uri": f"sqlite:///{tmp_path}/other.db"}
        assert refusal(lambda: load(spark, "db.t", other))[0] == "NoSuchTableError"
    finally:
        file.unlink()


def test_a_missing_path_and_an_unknown_catalog_are_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    error, text = refusal(lambda: load(spark, tmp_path / "nothing"))
    assert error == "NoSuchTableError"
    assert f"{tmp_path}/nothing holds no Iceberg table" in text
    _, text = refusal(lambda: load(spark, "db.t", {"catalog": "nowhere"}))
    assert "catalog 'nowhere' is not configured" in text
    assert "PYICEBERG_CATALOG__NOWHERE__URI" in text
    error, text = refusal(lambda: load(spark, "db.t", {"catalog.type": "dynamo"}))
    assert error == "UnsupportedFeatureError"
    assert "type 'dynamo' is not known; there are sql" in text


def test_a_filter_is_refused_as_the_user_wrote_it(spark: SparkSession, ten: Path) -> None:
    _, text = refusal(lambda: load(spark, ten, {"filter": "id = = 1"}))
    assert text.startswith("the filter 'id = = 1' cannot be parsed")
    assert "SQLSTATE" not in text


@pytest.mark.usefixtures("read_path")
def test_reads_by_option_and_schema(spark: SparkSession, ten: Path) -> None:
    options = {"filter": "id > 6", "columns": "name, _pos"}
    assert rows_of(spark, ten, options) == [("n7", 2), ("n8", 3), ("n9", 4)]
    reader = spark.read.format("iceberg-py").schema("name STRING, id BIGINT")
    assert reader.load(str(ten)).filter("id = 9").collect() == [("n9", 9)]
    _, text = refusal(spark.read.format("iceberg-py").schema("id INT").load(str(ten)).collect)
    assert "column 'id' as int, the table has bigint" in text


@pytest.mark.usefixtures("read_path")
def test_an_empty_table_has_its_columns_and_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    create_path_table(tmp_path / "t", "id BIGINT, name STRING")
    frame = load(spark, tmp_path / "t")
    assert frame.columns == ["id", "name"]
    assert frame.collect() == []
    assert load(spark, tmp_path / "t", {"columns": "id"}).count() == 0


@pytest.mark.usefixtures("read_path")
def test_a_frame_keeps_the_snapshot_it_was_loaded_with(spark: SparkSession, tmp_path: Path) -> None:
    table = create_path_table(tmp_path / "t", "id BIGINT", [{"id": 1}])
    frame = load(spark, tmp_path / "t")
    table.update_schema().add_column("more", "string").commit()
    append_rows(table, [{"id": 2, "more": "m"}])
    assert frame.collect() == [(1,)]
    assert sorted(load(spark, tmp_path / "t").collect()) == [(1, None), (2, "m")]


def test_splits_become_partitions(spark: SparkSession, ten: Path) -> None:
    frame = load(spark, ten, {"split-size": 1, "file-open-cost": 0})
    assert frame.rdd.getNumPartitions() == 2
    assert frame.selectExpr("sum(id)").collect() == [(45,)]


def test_error_of_load_without_a_table_names_the_syntax(spark: SparkSession, ten: Path) -> None:
    reader = spark.read.format("iceberg-py")
    assert "no table is named" in refusal(reader.load)[1]
    with pytest.raises(PySparkException, match="UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"):
        spark.sql(f"SELECT * FROM `iceberg-py`.`{ten}`")


# Ways to register the data source.


def test_the_data_source_may_be_registered_too(spark: SparkSession, ten: Path) -> None:
    # Spark itself warns that a data source of the same name is replaced.
    spark.dataSource.register(iceberg_pyspark.IcebergDataSource)
    assert load(spark, ten).count() == 10


def test_the_data_source_is_an_attribute_of_a_package_that_needs_no_pyspark() -> None:
    program = (
        "import sys, iceberg_pyspark\n"
        "assert 'pyspark' not in sys.modules\n"
        "assert 'IcebergDataSource' in dir(iceberg_pyspark)\n"
        "print(iceberg_pyspark.IcebergDataSource.name(), 'pyspark' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["iceberg-py", "True"]


def test_tasks_need_neither_a_database_nor_a_parser_of_sql() -> None:
    """Classes that Spark pickles for executors import only what `read` and `write` need."""
    program = (
        "import sys\n"
        "from iceberg_pyspark.spark.data_source import reader, source, writer\n"
        "print({'sqlalchemy', 'sqlglot', 'datafusion', 'rich', 'yaml'} & set(sys.modules))\n"
        "print({m for m in sys.modules if m.startswith('iceberg_pyspark.catalogs.')})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["set()", "set()"]
