"""The Python API in a Spark session: wrong arguments, and views that SQL reads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import iceberg_pyspark as ice
from tests.support.changed_rows import rows
from tests.support.native_lake import sqlite_lake
from tests.support.wrong_arguments import findings, methods_of


@pytest.fixture(scope="module")
def lake(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ice.IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("lake"), "lake") as session:
        spark.sql("create table lake.db.t (id bigint, g int, s string)")
        session.table("lake.db.t").append(rows(1, 2))
        yield session


def test_a_wrong_type_is_one_sentence(spark: SparkSession, lake: ice.IcebergSession) -> None:
    table = lake.table("lake.db.t")
    merge = table.merge_into(table.to_df(), "t.id = s.id")
    owners = (lake, table, merge, merge.whenMatched(), merge.whenNotMatched())
    functions = [f for owner in owners for f in methods_of(owner)]
    functions = [f for f in functions if f.__name__ not in ("sql", "procedure_run")]
    assert len(functions) > 40
    frame = spark.table("lake.db.t")
    right = {"upsert.source": frame, "upsert.keys": ["id"], "merge_into.source": frame, "df": frame}
    assert findings(functions, right) == []
    assert spark.table("lake.db.t").count() == 2
    with pytest.raises(ice.errors.InvalidRequestError, match="name a column to set"):
        table.update({})
    with pytest.raises(ice.errors.InvalidRequestError, match="are a DataFrame of Spark: write it"):
        table.append(frame)
    with pytest.raises(ice.errors.InvalidRequestError, match="install: spark: expected a Spark"):
        ice.install(None)  # type: ignore[arg-type]


def test_a_view_made_in_python_is_read_by_sql(
    spark: SparkSession, lake: ice.IcebergSession
) -> None:
    catalog = ice.TableCatalog(lake.table("lake.db.t").catalog)
    catalog.create_view("db.ids", "id BIGINT", "SELECT id FROM t WHERE id > 1")
    assert [r.id for r in spark.table("lake.db.ids").collect()] == [2]
    spark.sql("CREATE VIEW lake.db.all_ids AS SELECT id FROM lake.db.t")
    assert catalog.load_view("db.all_ids").sql() == "SELECT id FROM lake.db.t"
    assert sorted(catalog.list_views("db")) == ["db.all_ids", "db.ids"]
    catalog.drop_view("db.ids")
    assert not spark.catalog.tableExists("lake.db.ids")
