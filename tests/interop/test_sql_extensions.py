"""Iceberg's ALTER TABLE statements: the same statements on our table and on Java's table."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle

OURS, JAVAS = "lake.extended", "java_hadoop.extended_too"
COLUMNS = (
    "id bigint not null, part string not null, ts timestamp, d date, "
    "n struct<x: int, y: timestamp>, `a b` string, v int"
)


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    """Yield both catalogs over one warehouse."""
    with native_lake(oracle) as installed:
        for namespace in ("extended", "extended_too"):
            oracle.sql(f"create namespace java_hadoop.{namespace}")
        yield installed


class Pair:
    """A table in each catalog, created by the same statements."""

    def __init__(self, lake: Oracle, version: int = 2, partitioned_by: str = "") -> None:
        self.lake = lake
        self.name = f"t{uuid.uuid4().hex}"
        self.run(
            f"create table {{t}} ({COLUMNS}) using iceberg "
            + (f"partitioned by ({partitioned_by}) " if partitioned_by else "")
            + f"tblproperties ('format-version'='{version}')"
        )

    def run(self, statement: str) -> None:
        """Run a statement on both tables."""
        for namespace in (OURS, JAVAS):
            self.lake.sql(self._with(statement, namespace))

    def errors(self, statement: str) -> tuple[str, str]:
        """Return the messages of both errors for a statement that both refuse."""
        text = []
        for namespace in (OURS, JAVAS):
            with pytest.raises((PySparkException, Py4JJavaError)) as e:
                self.lake.sql(self._with(statement, namespace))
            text.append(str(e.value))
        return text[0], text[1]

    def _with(self, statement: str, namespace: str) -> str:
        table = f"{namespace}.{self.name}"
        snapshots = self._snapshots(namespace)
        return statement.format(t=table, **{f"s{i}": s for i, s in enumerate(snapshots)})

    def _metadata(self, namespace: str) -> dict[str, Any]:
        folder = self.lake.warehouse / namespace.partition(".")[2] / self.name / "metadata"
        files = list(folder.glob("v*.metadata.json"))
        last = max(files, key=lambda f: int(f.name[1:].partition(".")[0]), default=None)
        return {} if last is None else dict(json.loads(last.read_text(encoding="utf-8")))

    def _snapshots(self, namespace: str) -> list[int]:
        return [s["snapshot-id"] for s in self._metadata(namespace).get("snapshots", [])]

    def comparable_metadata(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the metadata of both tables, with snapshots as their number in the history."""
        result = []
        for namespace in (OURS, JAVAS):
            metadata = self._metadata(namespace)
            remaining = {
                k: metadata[k]
                for k in (
                    *("partition-specs", "default-spec-id", "last-partition-id", "sort-orders"),
                    *("default-sort-order-id", "schemas", "current-schema-id", "properties"),
                )
            }
            snapshots = self._snapshots(namespace)
            refs = {
                name: {**ref, "snapshot-id": snapshots.index(ref["snapshot-id"])}
                for name, ref in metadata.get("refs", {}).items()
            }
            commits = len(metadata["metadata-log"])
            result.append({**remaining, "refs": refs, "commits": commits})
        return result[0], result[1]


@pytest.mark.nightly
@pytest.mark.parametrize("version", [1, 2, 3])
def test_partition_fields(lake: Oracle, version: int) -> None:
    pair = Pair(lake, version, "days(ts)")
    for statement in (
        "add partition field bucket(16, id)",
        "ADD PARTITION FIELD truncate(`a b`, 4) AS short",
        "add partition field n.x",
        "add partition field truncate(3, part)",
        "add partition field years(d)",
        "add partition field month(n.y) as in_month",
        "add partition field identity(part)",
        "drop partition field n.x",
        "drop partition field short",
        "drop partition field bucket(16, id)",
        "add partition field bucket(16, id)",
        "replace partition field ts_day with hours(ts)",
        "replace partition field hours(ts) with days(ts) as the_day",
        "replace partition field the_day with days(ts) as `a day`",
        "drop partition field in_month",
        "drop partition field identity(part)",
    ):
        try:
            pair.run(f"alter table {{t}} {statement}")
        except PySparkException as e:
            raise AssertionError(statement) from e
        ours, java = pair.comparable_metadata()
        assert ours == java, statement
    assert len(ours["partition-specs"]) > 10


@pytest.mark.nightly
def test_write_layouts(lake: Oracle) -> None:
    pair = Pair(lake, 2, "part")
    for statement in (
        "ordered by days(ts) desc, bucket(4, id), truncate(`a b`, 2) asc nulls last, n.x",
        "locally ordered by id",
        "distributed by partition",
        "distributed by partition locally ordered by part desc nulls first, id",
        "distributed by partition ordered by id",
        "ordered by (id, v)",
        "unordered",
        "distributed by partition unordered",
        "locally ordered by v",
        "unordered distributed by partition",
    ):
        pair.run(f"alter table {{t}} write {statement}")
        ours, java = pair.comparable_metadata()
        assert ours == java, statement
    assert len(ours["sort-orders"]) > 5


@pytest.mark.nightly
def test_identifier_fields(lake: Oracle) -> None:
    pair = Pair(lake)
    for statement in (
        "set identifier fields id, part",
        "drop identifier fields id",
        "set identifier fields id",
        "DROP IDENTIFIER FIELDS `id`",
    ):
        pair.run(f"alter table {{t}} {statement}")
        ours, java = pair.comparable_metadata()
        assert ours == java, statement
    assert len(ours["schemas"]) > 2


def test_branches_and_tags(lake: Oracle) -> None:
    pair = Pair(lake)
    pair.run("alter table {t} create branch before")
    for i in range(2):
        pair.run(f"insert into {{t}} (id, part) values ({i}, 'a')")
    for statement in (
        "create branch b",
        "create branch if not exists b as of version {s0}",
        "create branch old as of version {s1} retain 7 days "
        "with snapshot retention 2 snapshots 3 hours",
        "create or replace branch b as of version {s1} retain 5 minutes",
        "replace branch b as of version {s2}",
        "replace branch b",
        "create or replace branch `a-new.one` with snapshot retention 3 days",
        "create branch few with snapshot retention 5 snapshots",
        "create tag g",
        "create tag if not exists g as of version {s1}",
        "create tag h as of version {s1} retain 365 days",
        "replace tag h as of version {s2}",
        "create or replace tag h as of version {s1} retain 1 days",
        "create or replace tag k",
        "drop branch old",
        "drop branch if exists old",
        "drop tag g",
        "drop tag if exists g",
    ):
        pair.run(f"alter table {{t}} {statement}")
        ours, java = pair.comparable_metadata()
        assert ours == java, statement
    assert set(ours["refs"]) == {"main", "before", "b", "a-new.one", "few", "h", "k"}
    assert {r["type"] for r in ours["refs"].values()} == {"branch", "tag"}


@pytest.fixture(scope="module")
def unchanged(lake: Oracle) -> Pair:
    """Return tables for statements that change nothing, with one row and the branch b."""
    pair = Pair(lake, 2, "part")
    pair.run("insert into {t} (id, part) values (1, 'a')")
    pair.run("alter table {t} create branch b")
    return pair


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("statement", "ours"),
    [
        ("add partition field nothing(id)", "transform nothing is not known"),
        ("add partition field days(nowhere)", "nowhere"),
        ("add partition field part", "'part' already exists"),
        ("drop partition field nothing", "no partition field 'nothing'"),
        ("drop partition field days(ts)", "not partitioned by day of 'ts'"),
        ("set identifier fields v", "cannot be an identifier field"),
        ("set identifier fields nowhere", "nowhere"),
        ("drop identifier fields v", "'v' of extended."),
        ("write ordered by nowhere", "nowhere"),
        ("create branch b", "already"),
        ("create tag b", "already"),
        ("create branch c as of version 17", "17"),
        ("replace branch nothing", "nothing"),
        ("replace tag b", "'b' is a branch"),
        ("drop tag b", "'b' is a branch"),
        ("drop branch nothing", "nothing"),
        ("drop branch main", "'main' cannot be removed"),
        ("write", "expected [LOCALLY] ORDERED BY"),
        ("create branch", "expected the branch's name"),
        ("add partition field days(ts) bucket", "expected the end of the statement"),
        ("create tag t retain 5 weeks", "expected DAYS, HOURS or MINUTES"),
    ],
)
def test_statement_that_java_refuses_changes_nothing(
    unchanged: Pair, statement: str, ours: str
) -> None:
    before = unchanged.comparable_metadata()
    message, _ = unchanged.errors(f"alter table {{t}} {statement}")
    assert ours in message
    assert unchanged.comparable_metadata() == before


@pytest.mark.nightly
def test_tables_of_other_catalogs_are_left_to_their_own_parser(lake: Oracle) -> None:
    pair = Pair(lake)
    name = f"extended_too.{pair.name}"
    with pytest.raises(PySparkException) as e:
        lake.sql(f"alter table java_hadoop.{name} create branch")
    assert "expected" not in str(e.value)
    lake.sql("use java_hadoop")
    try:
        lake.sql(f"alter table {name} write ordered by id")
    finally:
        lake.sql("use spark_catalog")
    assert [len(metadata["sort-orders"]) for metadata in pair.comparable_metadata()] == [1, 2]


@pytest.mark.nightly
def test_a_table_of_the_current_catalog(lake: Oracle) -> None:
    pair = Pair(lake)
    lake.sql("use lake.extended")
    try:
        lake.sql(f"alter table {pair.name} write ordered by id")
    finally:
        lake.sql("use spark_catalog.default")
    assert [len(metadata["sort-orders"]) for metadata in pair.comparable_metadata()] == [2, 1]
