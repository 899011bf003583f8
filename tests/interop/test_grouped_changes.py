"""A MERGE of tables with the same partitioning: our plans compared with Java's plan."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.support.both_writers import JAVAS, OURS, by_java, writers_lake
from tests.support.change_plans import noted_plans
from tests.support.oracle import Oracle
from tests.support.spark_settings import JOINS_OF_GROUPS, configured

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with writers_lake(oracle) as lake, configured(lake.spark, JOINS_OF_GROUPS):
        yield lake


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return noted_plans(monkeypatch)


def shuffles(plan: str) -> int:
    return len(re.findall("Exchange hashpartitioning", plan))


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_no_more_shuffles_than_javas(lake: Oracle, plans: list[str], mode: str) -> None:
    merge = (
        "merge into {t} t using {t}_source u on t.id = u.id "
        "when matched then update set v = -u.v when not matched then insert *"
    )
    javas = 0
    for writer in (JAVAS, OURS):
        table = f"{writer}.writes.grouped_{mode[0]}_by_{writer}"
        for side, rows in (("", "0, 300"), ("_source", "100, 500")):
            lake.sql(
                f"create table {table}{side} using iceberg partitioned by (bucket(4, id)) "
                f"tblproperties ('write.merge.mode'='{mode}') as select id, id v from range({rows})"
            )
        if writer == JAVAS:
            javas = shuffles(lake.sql("explain " + merge.format(t=table)).collect()[0][0])
        lake.sql(merge.format(t=table))
    ours = sum(shuffles(p) for p in plans)
    # The remaining shuffle distributes rows to the tasks that write them.
    assert ours == 1
    assert ours <= javas
    actual = [
        lake.table_rows(by_java(f"{w}.writes.grouped_{mode[0]}_by_{w}")) for w in (OURS, JAVAS)
    ]
    assert actual[0] == actual[1]
