"""Subqueries that refer to the changed rows select and compute what they do in Java's catalog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle

LOOKED_UP = "(select max(s.v) from {c}.correlated.s s where s.id = t.id)"
COUNTED = "(select count(*) from {c}.correlated.s s where s.id = t.id)"
VALUES = (
    f"update {{t}} t set v = {LOOKED_UP}",
    # a row without a match counts zero rows, not none
    f"update {{t}} t set v = {COUNTED}, n = concat(n, {COUNTED} * 2) where id is null or g = 1",
    f"update {{t}} t set v = case when g = 1 then {LOOKED_UP} else -{COUNTED} end, "
    "n = case when exists (select 1 from {c}.correlated.s s where s.id = t.id) then 'y' end",
    # the table itself, and a subquery in a subquery
    "update {t} t set v = (select max(u.v) from {t} u where u.g = t.g and "
    "exists (select 1 from {c}.correlated.s s where s.id = u.id))",
    "update {t} t set v = (select max(x) from view_s s, lateral (select s.v + 1 x) "
    "where s.id = t.id)",
    "update {t} t set v = (select s.v from {c}.correlated.s s where s.id = t.id "
    "order by s.v desc limit 1)",
    "update {t} t set v = (select max(s.v) from {c}.correlated.s s where s.id + 1 = t.id "
    "group by s.id + 1)",
    "update {t} t set v = (with w as (select * from view_s) select max(w.v) from w "
    "where w.id = t.id)",
    "with w as (select id, max(v) v from view_s group by id) update {t} t "
    "set v = (select max(w.v) from w where w.id = t.id) "
    "where exists (select 1 from w where w.id = t.id and w.v > 5)",
)
CONDITIONS = (
    f"update {{t}} t set v = -1 where {COUNTED} = 0",
    "update {t} t set v = -1 where t.v > (select min(s.v) from parquet_s s where s.id > t.id)",
    "update {t} t set v = -1 where exists (select max(s.v) from {c}.correlated.s s "
    "where s.id = t.id having max(s.v) > 5)",
    "delete from {t} t where v > (select max(s.v) from {c}.correlated.s s where s.id = t.id)",
    f"delete from {{t}} t where {COUNTED} = 0 and g = 1",
    "delete from {t} t where exists (select 1 from view_s s where s.id = t.id and s.v > 5)",
    "delete from {t} t where not exists (select 1 from parquet_s s where s.id = t.id)",
    "delete from {t} t where v not in (select s.v from view_s s where s.id = t.id)",
    "delete from {t} t where v in (select s.v * 10 from parquet_s s where s.id = t.id)",
)


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as native_oracle:
        values = "values (1L, 10), (1L, 20), (2L, 5), (7L, 70), (null, 3), (4L, null) s(id, v)"
        native_oracle.sql(f"create table java_hadoop.correlated.s as select * from {values}")
        native_oracle.sql(f"create table parquet_s using parquet as select * from {values}")
        native_oracle.sql(f"create temporary view view_s as select * from {values}")
        yield native_oracle
        native_oracle.sql("drop table parquet_s")
        native_oracle.sql("drop view view_s")


@pytest.mark.parametrize(
    ("statements", "javas_mode"),
    # Java refuses some of the first in merge-on-read and some of the second in copy-on-write.
    [(VALUES, "copy-on-write"), (CONDITIONS, "merge-on-read")],
    ids=["values", "conditions"],
)
def test_correlated_changes_see_the_rows_that_java_sees(
    lake: Oracle, statements: Sequence[str], javas_mode: str
) -> None:
    modes = {"java": javas_mode, "copied": "copy-on-write", "merged": "merge-on-read"}
    names = [f"correlated.{whose}_{javas_mode[0]}" for whose in modes]
    for name, mode in zip(names, modes.values(), strict=True):
        properties = ", ".join(f"'write.{of}.mode' = '{mode}'" for of in ("delete", "update"))
        lake.sql(
            f"create table java_hadoop.{name} using iceberg partitioned by (g) "
            f"tblproperties ({properties}) as select id, cast(id * 100 as int) v, "
            "cast(id % 2 as int) g, concat('n', id) n from range(8) union all "
            "values (null, null, 0, null)"
        )
        for number in range(len(statements)):
            lake.sql(f"alter table java_hadoop.{name} create branch b{number}")
    before = lake.table_rows(f"java_hadoop.{names[0]}")
    for number, statement in enumerate(statements):
        rows = []
        for catalog, name in zip(("java_hadoop", "lake", "lake"), names, strict=True):
            branch = f"{name}.branch_b{number}"
            lake.sql(statement.format(t=f"{catalog}.{branch}", c=catalog))
            rows.append(lake.table_rows(f"java_hadoop.{branch}"))
        assert rows[0] != before, statement
        assert rows[1] == rows[0], statement
        assert rows[2] == rows[0], statement
