"""Structs are stored by the names of their fields, as Java stores them, at every depth."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as sql

from tests.support.native_lake import native_lake
from tests.support.nested_changes import BY_NAME, COLUMNS, PAIRS, ROWS, source, statements
from tests.support.oracle import Oracle
from tests.support.readings import INTERPRETED
from tests.support.rows import spark_rows
from tests.support.spark_settings import configured

pytestmark = pytest.mark.nightly

CATALOGS = ("lake", "java_hadoop")
COERCED = "spark.sql.mergeNestedTypeCoercion.enabled"


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as native_oracle, configured(oracle.spark, INTERPRETED):
        native_oracle.sql("create namespace if not exists java_hadoop.nested")
        yield native_oracle


class _Tables:
    """Tables of equal rows in both catalogs, whose files a statement replaces or does not."""

    def __init__(self, lake: Oracle, mode: str, columns: str = COLUMNS, rows: str = ROWS) -> None:
        self._lake = lake
        self._properties = ", ".join(
            [f"'write.{op}.mode' = '{mode}'" for op in ("update", "merge")]
            + ["'format-version' = '2'"]
        )
        self._columns, self._rows = columns, rows

    def outcome(self, catalog: str, statement: str) -> object:
        """Run a statement on a new table; return the rows, or the condition of the error."""
        name = f"{catalog}.nested.t"
        spark = self._lake.spark
        spark.sql(
            f"create or replace table {name} ({self._columns}) using iceberg "
            f"tblproperties ({self._properties})"
        )
        spark.sql(f"insert into {name} values {self._rows}")
        try:
            if statement.startswith("merge_into "):
                rows = spark.sql(statement.removeprefix("merge_into ")).alias("u")
                merge = rows.mergeInto(name, sql.expr("t.id = u.id"))
                merge.whenMatched().updateAll().whenNotMatched().insertAll().merge()
            else:
                spark.sql(statement.replace("{t}", name))
        except PySparkException as e:
            return e.getCondition() if "__ice" not in str(e) else str(e)
        return spark_rows(spark.table(name).collect())

    def outcomes(self, statements_: dict[str, str]) -> dict[str, object]:
        """Run each statement in both catalogs; return the equal outcomes."""
        both = [{k: self.outcome(c, s) for k, s in statements_.items()} for c in CATALOGS]
        assert both[0] == both[1]
        return both[0]


def _of(pair: str, *names: str) -> dict[str, str]:
    """Return the statements that assign a pair, or those of the names alone."""
    all_ = {**statements(pair), "merge_into": f"merge_into {source(pair)}"}
    return {name: all_[name] for name in names} if names else all_


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_fields_are_stored_by_name(lake: Oracle, mode: str) -> None:
    tables = _Tables(lake, mode)
    for kind in BY_NAME if mode == "copy-on-write" else ["turned"]:
        names = () if kind == "turned" else ("update", "update set *, insert *")
        for what, outcome in tables.outcomes(_of(PAIRS[kind], *names)).items():
            assert isinstance(outcome, list), (kind, what, outcome)


@pytest.mark.parametrize("coerced", ["true", "false"])
def test_missing_and_unknown_fields_have_javas_outcome(lake: Oracle, coerced: str) -> None:
    """A missing field is refused unless Spark is told to fill it in, an unknown one unless the
    table may evolve.
    """
    tables = _Tables(lake, "copy-on-write")
    with configured(lake.spark, {COERCED: coerced}):
        missing, unknown, other = (
            tables.outcomes(_of(PAIRS[kind]))
            for kind in ("missing a field", "with an unknown field", "of another type")
        )
    del other["evolving"]
    stored = {k for k, outcome in missing.items() if isinstance(outcome, list)}
    assert stored == ({"evolving"} if coerced == "true" else set())
    assert {k for k, outcome in unknown.items() if isinstance(outcome, list)} == {"evolving"}
    assert not [k for k, outcome in other.items() if isinstance(outcome, list)]
    for outcomes in (missing, unknown, other):
        refusals = [str(o) for o in outcomes.values() if not isinstance(o, list)]
        assert all(o.startswith("INCOMPATIBLE_DATA_FOR_TABLE.") for o in refusals)


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_required_fields(lake: Oracle, mode: str) -> None:
    """A null in a required field is an error of the rows that would have it."""
    columns = "id int not null, c struct<a: int not null, b: string>, v int"
    rows = "(1, named_struct('a', 1, 'b', 'x'), null), (2, null, 2)"
    merge = "merge into {t} t using (select 1 id union all select null) u on t.id = u.id when"
    outcomes = _Tables(lake, mode, columns, rows).outcomes(
        {
            "beside": "update {t} set c.b = 'y' where id = 1",
            "below null": "update {t} set c.b = 'y'",
            "a null": "update {t} set c.a = null where id = 1",
            "of a column": "update {t} set c.a = v where id = 1",
            "whole": "update {t} set c = named_struct('b', 'y', 'a', id) where id = 1",
            "whole with null": "update {t} set c = named_struct('b', 'y', 'a', v) where id = 1",
            "column": "update {t} set id = v",
            "merged": f"{merge} matched then update set c.b = 'y'",
            "inserted": f"{merge} not matched then insert (id, v) values (u.id, 1)",
            "left out": f"{merge} not matched then insert (v) values (1)",
            "twice": "update {t} set v = 1, v = 2",
            "a field and its column": "update {t} set c.b = 'y', c = null",
            "no struct": "update {t} set v.a = 1",
            "unsafe": "update {t} set v = 'x'",
            "too large": "update {t} set v = 3000000000L",
        }
    )
    stored = {k for k, outcome in outcomes.items() if isinstance(outcome, list)}
    assert stored == {"beside", "whole", "merged"}
    asserted = {k for k, outcome in outcomes.items() if outcome == "NOT_NULL_ASSERT_VIOLATION"}
    assert asserted == {
        *("below null", "a null", "of a column", "whole with null", "column", "inserted")
    }
