"""Expressions that Spark's optimizer would move out of a DELETE, UPDATE or MERGE."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.spark.row_level import execution
from tests.support.native_lake import sqlite_lake

COUNT = "(select count(*) from looked.db.s s where s.id = t.id)"
EXPECTED = {1: 2, 2: 1, 3: 0, 4: 0}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("looked"), "looked"):
        spark.sql("create table looked.db.s (id int, v int)")
        spark.sql("insert into looked.db.s values (1, 10), (1, 20), (2, 5), (7, 70)")
        yield spark


@pytest.fixture(params=["copy-on-write", "merge-on-read"])
def table(lake: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield a table with the ids 1 to 4, and null in the columns `n` and `at`."""
    modes = ", ".join(
        f"'write.{of}.mode' = '{request.param}'" for of in ("delete", "update", "merge")
    )
    lake.sql(
        "create table looked.db.t (id int, n int, at timestamp, also_at timestamp) "
        f"partitioned by (bucket(2, id)) tblproperties ({modes})"
    )
    lake.sql("insert into looked.db.t select id, null, null, null from range(1, 5)")
    yield "looked.db.t"
    lake.sql("drop table looked.db.t")


def counts(lake: SparkSession, table: str) -> dict[int, int | None]:
    return {row.id: row.n for row in lake.table(table).collect()}


def test_an_update_sets_and_selects_by_rows_of_another_table(
    lake: SparkSession, table: str
) -> None:
    update = f"update {table} t set n = {COUNT} where {COUNT} < 2"
    (explained,) = lake.sql(f"explain {update}").first() or ("",)
    assert "IcebergPyUpdateTable" in explained
    assert "db.s[" in explained
    lake.sql(update)
    assert counts(lake, table) == {**EXPECTED, 1: None}


def test_an_update_draws_a_value_for_each_row(lake: SparkSession, table: str) -> None:
    lake.sql(f"update {table} set n = 1 + cast(rand() * 1e9 as int) where id <> 2")
    drawn = counts(lake, table)
    assert drawn[2] is None
    assert len(set(drawn.values())) == 4
    assert counts(lake, table) == drawn
    with pytest.raises(AnalysisException, match="NON_DETERMINISTIC"):
        lake.sql(f"update {table} set n = 1 where rand() < 2")


def test_every_clause_of_a_merge_looks_up_rows_of_another_table(
    lake: SparkSession, table: str
) -> None:
    lake.sql(f"insert into {table} values (7, null, null, null)")
    lake.sql(
        f"merge into {table} t using (select explode(array(1, 2, 3, 8, 9)) id) u on t.id = u.id "
        f"when matched and {COUNT} + u.id between 3 and 3 and t.id > 2 then delete "
        f"when matched then update set n = nullif({COUNT}, u.id + t.id) + "
        "(select max(s.v) from looked.db.s s where s.id = u.id) "
        "when not matched and (select count(*) from looked.db.s s where s.id = u.id - 7) = 2 "
        "then insert (id, n) values (u.id, (select count(*) from looked.db.s s where s.id < u.id)) "
        f"when not matched by source and {COUNT} = 1 then update set n = -{COUNT} "
        f"when not matched by source and {COUNT} = 0 then delete"
    )
    assert counts(lake, table) == {1: None, 2: 6, 7: -1, 8: 4}


def test_a_statement_has_one_time(lake: SparkSession, table: str) -> None:
    lake.sql(
        f"update {table} t set at = current_timestamp(), also_at = "
        "(select max(current_timestamp()) from looked.db.s s where s.id = t.id) where id = 1"
    )
    ((row,),) = [lake.table(table).where("id = 1").collect()]
    assert row.at is not None
    assert row.at == row.also_at


def test_all_jobs_of_a_statement_see_one_state_of_the_other_table(
    lake: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files_of = execution._files_of

    def then_insert(touched_files: DataFrame) -> frozenset[str]:
        paths = files_of(touched_files)
        lake.sql("insert into looked.db.s values (1, -1), (2, -1), (3, -1), (4, -1)")
        return paths

    monkeypatch.setattr(execution, "_files_of", then_insert)
    lake.sql(
        f"update {table} t set n = {COUNT} where exists (select 1 from looked.db.s s "
        "where s.id = t.id)"
    )
    lake.sql("delete from looked.db.s where v = -1")
    assert counts(lake, table) == {**EXPECTED, 3: None, 4: None}


def test_a_common_table_expression_is_looked_up_in(lake: SparkSession, table: str) -> None:
    lake.sql(
        f"with w as (select id, count(*) n from looked.db.s group by id) update {table} t "
        "set n = (select max(n) from w where w.id = t.id) "
        "where t.id not in (select id from w where w.n > t.id)"
    )
    assert counts(lake, table) == {1: None, 2: 1, 3: None, 4: None}


def test_between_and_nullif_compute_what_they_use_twice(lake: SparkSession, table: str) -> None:
    lake.sql(f"update {table} set n = nullif(id + 10, 13) where abs(id) between 2 and 4")
    assert counts(lake, table) == {1: None, 2: 12, 3: None, 4: 14}
    lake.sql(
        f"merge into {table} t using (select 1 id union all select 5) u on t.id = u.id "
        "when matched and t.id + u.id between 2 and 2 then update set n = nullif(u.id * 7, t.id) "
        "when not matched and u.id + 1 between 6 and 7 then insert (id, n) "
        "values (u.id, nullif(u.id + 1, 6)) "
        f"when not matched by source and {COUNT} + 1 between 2 and 2 then update set n = -1"
    )
    assert counts(lake, table) == {1: 7, 2: -1, 3: None, 4: 14, 5: None}
    lake.sql(f"delete from {table} t where {COUNT} between 1 and 2 or id + 1 between 5 and 5")
    assert counts(lake, table) == {3: None, 5: None}
