"""Invalid values: an error names the option or setting and the allowed values.

Tables in a catalog are read natively, tables by path portably. A table property from another writer
is an error only if Java raises one too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.changes.changes import SetProperties
from iceberg_pyspark.spark.session import IcebergSession
from tests.support.frames import append_rows
from tests.support.native_lake import plan_of, sqlite_lake
from tests.support.parameters import pairs
from tests.support.spark_settings import configured

TABLE = "wrong.db.t"
ROWS = [(1,), (2,)]
FLAGS = ("locality", "preserve-data-grouping", "preserve-data-ordering")
PASSED_OVER = {
    # Java's reader takes the value for false, or never reads the property.
    "read.split.adaptive-size.enabled": "yes",
    "read.parquet.verify-checksum": "yes",
    "read.parquet.vectorization.enabled": "yes",
    "read.split.metadata-target-size": "x",
    # Java's writers accept these: they roll files at any size, use default metrics, write no
    # filter.
    "write.target-file-size-bytes": "0",
    "write.metadata.metrics.default": "nope",
    "write.metadata.metrics.column.id": "none at all",
    "write.parquet.bloom-filter-enabled.column.id": "yes",
    "write.parquet.bloom-filter-fpp.column.id": "x",
    "write.parquet.bloom-filter-ndv.column.id": "x",
    "write.spark.fanout.enabled": "yes",
    "write.wap.enabled": "yes",
    "write.delete.granularity": "nope",
    # Properties of other statements.
    "write.merge.mode": "nope",
    "write.merge.isolation-level": "nope",
}


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("wrong"), "wrong") as created:
        spark.sql(f"create table {TABLE} using iceberg as select 1L id")
        spark.sql(f"alter table {TABLE} create branch b")
        spark.sql(f"alter table {TABLE} create tag g")
        spark.sql(f"insert into {TABLE} values (2)")
        yield created


def by_name(session: IcebergSession, options: Mapping[str, str]) -> DataFrame:
    return session.spark.read.options(**options).table(TABLE)


def by_path(session: IcebergSession, options: Mapping[str, str]) -> DataFrame:
    reader = session.spark.read.format("iceberg-py").options(native="false", **options)
    return reader.load(session.table(TABLE).location)


def refusal(frame_of: object) -> str:
    """Return the first line of the error that a read raises."""
    assert callable(frame_of)
    with pytest.raises(PySparkException) as e:
        frame_of().collect()
    return str(e.value).splitlines()[0]


@pytest.mark.nightly
@pytest.mark.parametrize("value", ["x", "", "1.5", "99999999999999999999", "least"])
@pytest.mark.parametrize(("name", "least"), [("split-size", 1), ("lookback", 1)])
def test_option_that_is_not_a_whole_number_is_refused(
    session: IcebergSession, name: str, least: int, value: str
) -> None:
    options = {name: str(least - 1) if value == "least" else value}
    for read in (by_name, by_path):
        message = refusal(lambda read=read: read(session, options))
        assert f"option {name} is" in message
        assert f"'{options[name]}'" in message
        assert re.search(f"whole number.* at least {least}", message)


@pytest.mark.parametrize(("name", "value"), pairs(FLAGS, ["yes", "1", ""]))
def test_option_that_is_not_a_boolean_is_refused(
    session: IcebergSession, name: str, value: str
) -> None:
    for read in (by_name, by_path):
        properties_sql = refusal(lambda read=read: read(session, {name: value}))
        assert f"option {name} is" in properties_sql
        assert f"'{value}'" in properties_sql
        assert "true or false" in properties_sql


def test_values_that_are_right(session: IcebergSession) -> None:
    options = dict.fromkeys(FLAGS, "TRUE") | {"split-size": " 7 ", "file-open-cost": "0"}
    for read in (by_name, by_path):
        assert sorted(read(session, options).collect()) == ROWS


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("tag", "g", "versionAsOf"),
        ("Snapshot-Id", "1", "versionAsOf"),
        ("as-of-timestamp", "1", "timestampAsOf"),
        ("columns", "id", "select(...)"),
        ("filter", "id = 1", "where(...)"),
    ],
)
def test_options_that_would_be_without_effect_on_the_rows(
    session: IcebergSession, name: str, value: str, instead: str
) -> None:
    properties_sql = refusal(lambda: by_name(session, {name: value}))
    assert f"option {name.lower()} does not choose rows of" in properties_sql
    assert properties_sql.endswith(instead)
    text = f"select * from {TABLE} with (`{name}` = '{value}')"
    assert refusal(lambda: session.spark.sql(text)) == properties_sql


def test_rows_are_chosen_by_what_is_named_instead(session: IcebergSession) -> None:
    for version in ("b", "g"):
        assert by_name(session, {"versionAsOf": version}).collect() == [(1,)]
        assert by_path(session, {"versionAsOf": version}).collect() == [(1,)]


def test_an_empty_name_of_a_branch_is_not_main(session: IcebergSession) -> None:
    before = session.table(TABLE).metadata.current_snapshot_id
    with pytest.raises(PySparkException, match="no branch or tag ''; there are: b, g, main"):
        session.spark.range(1).writeTo(TABLE).option("branch", "").append()
    assert session.table(TABLE).metadata.current_snapshot_id == before


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("read.split-size", "0", "a whole number, at least 1"),
        ("read.adaptive-split-size.enabled", "yes", "true or false"),
        ("read.adaptive-split-size.parallelism", "all", "a whole number, at least 1"),
        ("locality.enabled", "yes", "true or false"),
        ("planning.preserve-data-grouping", "yes", "true or false"),
        ("planning.preserve-data-ordering", "", "true or false"),
        ("aggregate-push-down.enabled", "yes", "true or false"),
        ("report-column-stats", "yes", "true or false"),
    ],
)
def test_a_setting_of_the_session(
    session: IcebergSession, name: str, value: str, allowed: str
) -> None:
    key = f"spark.sql.iceberg.{name}"
    query = "select * from {}" if "aggregate" not in name else "select count(*) from {}"
    with configured(session.spark, {key: value, "spark.sql.cbo.enabled": "true"}):
        message = refusal(lambda: session.spark.sql(query.format(TABLE)))
        assert message.endswith(f"{key} is '{value}': give {allowed}")
        # The setting does not affect tables that are not Iceberg tables.
        assert session.spark.sql(query.format("range(3)")).collect()


def table_says(session: IcebergSession, name: str, properties: Mapping[str, str]) -> str:
    """Create a table with properties that this package would refuse to set."""
    session.spark.sql(f"create or replace table wrong.db.{name} using iceberg as select 1L id")
    table = session.table(f"wrong.db.{name}")
    table.catalog.commit_table(table.loaded.identifier, [], [SetProperties(properties)]).result()
    return f"wrong.db.{name}"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("read.split.target-size", "x", "is not an integer up to 9223372036854775807"),
        ("read.split.target-size", "0", "is less than 1"),
        ("read.split.planning-lookback", "0", "is less than 1"),
        ("read.split.open-file-cost", "-1", "is less than 0"),
    ],
)
def test_a_tables_property_that_java_cannot_read_with(
    session: IcebergSession, key: str, value: str, problem: str
) -> None:
    table = table_says(session, "unreadable", {key: value})
    location = session.table(table).location
    for read in (
        lambda: session.spark.table(table),
        lambda: session.spark.read.format("iceberg-py").load(location),
    ):
        assert refusal(read).endswith(f"property '{key}': '{value}' {problem}")
    session.spark.sql(f"alter table {table} unset tblproperties ('{key}')")
    assert session.spark.table(table).collect() == [(1,)]


def test_property_that_java_ignores_is_ignored(session: IcebergSession) -> None:
    table = table_says(session, "passed_over", PASSED_OVER)
    session.spark.sql(f"insert into {table} values (2), (3)")
    session.spark.sql(f"delete from {table} where id = 3")
    portable = {"native": "false", "catalog": "wrong"}
    for name in ("type", "uri", "warehouse"):
        portable[f"catalog.{name}"] = str(session.spark.conf.get(f"spark.sql.catalog.wrong.{name}"))
    write = session.spark.range(4, 5).write.format("iceberg-py").options(**portable)
    write.mode("append").save("db.passed_over")
    rows = [(1,), (2,), (4,)]
    assert sorted(session.spark.table(table).collect()) == rows
    read = session.spark.read.format("iceberg-py").options(**portable)
    assert sorted(read.load("db.passed_over").collect()) == rows
    for key, value in PASSED_OVER.items():
        with pytest.raises(PySparkException, match=re.escape(f"property '{key}': '{value}'")):
            session.spark.sql(f"alter table {table} set tblproperties ('{key}'='{value}')")


def test_a_tables_adaptive_size_that_is_not_true_is_false(session: IcebergSession) -> None:
    table = table_says(session, "fixed", {"read.split.adaptive-size.enabled": "yes"})
    spark = session.spark
    spark.sql(f"alter table {table} set tblproperties ('read.split.open-file-cost'='0')")
    table_of_four = session.table(table)
    for n in range(3):
        append_rows(table_of_four, [{"id": n}])
    with configured(spark, {"spark.sql.files.maxPartitionBytes": "1"}):
        actual = spark.table(table)
        assert "IcebergPyParquetScan" in plan_of(actual)
        assert actual.rdd.getNumPartitions() == 1
        spark.sql(f"alter table {table} unset tblproperties ('read.split.adaptive-size.enabled')")
        assert spark.table(table).rdd.getNumPartitions() > 1
