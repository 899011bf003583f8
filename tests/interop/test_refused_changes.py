"""Wrong requests for changed rows: both connectors refuse them with the same class of error.

Each case is refused by the metadata table `changes` and by `create_changelog_view`, unless the
request is an argument of the procedure. The messages differ in wording, not in what they name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException
from pyspark.sql import Row

from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.readings import our_table

pytestmark = pytest.mark.nightly

START, END = "start-snapshot-id", "end-snapshot-id"
SINCE, UNTIL = "start-timestamp", "end-timestamp"
CATALOGS = ("lake", "java_hadoop")
NAME = "refused_changes.t"

Moments = Mapping[str, int]
"""Snapshot ids and times of the table by the names that the cases use."""


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as lake:
        lake.sql("create namespace java_hadoop.refused_changes")
        lake.sql(
            f"create table java_hadoop.{NAME} (id bigint, v string) using iceberg "
            "tblproperties ('format-version'='2')"
        )
        for number in range(3):
            lake.sql(f"insert into java_hadoop.{NAME} values ({number}, 'a')")
        lake.sql(f"alter table java_hadoop.{NAME} create branch other")
        lake.sql(f"insert into java_hadoop.{NAME}.branch_other values (9, 'b')")
        yield lake


@pytest.fixture(scope="module")
def moments(lake: Oracle) -> Moments:
    """Return `ID0` to `ID2` of main and `BRANCH`, the snapshot that is in no history of main."""
    snapshots = our_table(lake, f"java_hadoop.{NAME}").snapshots
    assert len(snapshots) == 4
    named = {"BRANCH": snapshots[3].snapshot_id}
    for number, snapshot in enumerate(snapshots[:3]):
        named |= {f"ID{number}": snapshot.snapshot_id, f"AT{number}": snapshot.timestamp_ms}
    return named


def view(lake: Oracle, catalog: str, arguments: str) -> list[Row]:
    [(name,)] = lake.sql(
        f"call {catalog}.system.create_changelog_view(table => '{NAME}'{arguments})"
    ).collect()
    return lake.sql(f"select * from {name}").collect()


def changes(lake: Oracle, catalog: str, place: str, options: Mapping[str, Any]) -> list[Row]:
    if place == "view":
        return view(lake, catalog, as_map(options))
    return lake.spark.read.options(**options).table(f"{catalog}.{NAME}.changes").collect()


def as_map(options: Mapping[str, object]) -> str:
    texts = ", ".join(f"'{name}', '{value}'" for name, value in options.items())
    return f", options => map({texts})"


NO_ANCESTOR = (
    r"snapshot ID2, the start .* is not an ancestor",
    "ID2 is not a parent ancestor of end",
)


@pytest.mark.parametrize(
    ("options", "ours", "javas"),
    [
        ({START: "ID2", END: "ID0"}, *NO_ANCESTOR),
        ({START: "BRANCH"}, "snapshot BRANCH, the start .* is not an ancestor of snapshot ID2",
         "BRANCH is not a parent ancestor of end snapshot ID2"),
        ({START: "ID2", END: "BRANCH", SINCE: "AT0"}, f"{START} and {SINCE} are both given",
         f"both {START} and {SINCE}"),
        ({START: "7"}, "snapshot 7, the start .* is not an ancestor", "7 is not a parent ancestor"),
        ({END: "7"}, "has no snapshot 7", "Cannot find the end snapshot: 7"),
        ({START: "8", END: "7"}, "has no snapshot 7", "Cannot find the end snapshot: 7"),
        ({SINCE: "AT2", UNTIL: "AT0"}, f"{SINCE} AT2 is after {UNTIL} AT0",
         f"{SINCE} to be greater than {UNTIL}"),
        ({END: "ID2", UNTIL: "AT2"}, f"{END} and {UNTIL} are both given",
         f"both {END} and {UNTIL}"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["changes", "view"])
def test_changelog_range_that_java_refuses_is_refused(
    lake: Oracle, moments: Moments, place: str, options: dict[str, str], ours: str, javas: str
) -> None:
    values = {name: moments.get(value, value) for name, value in options.items()}
    for catalog, message in zip(CATALOGS, (ours, javas), strict=True):
        for name, value in moments.items():
            message = message.replace(name, str(value))
        with pytest.raises(IllegalArgumentException, match=message):
            changes(lake, catalog, place, values)


@pytest.mark.parametrize(
    ("arguments", "error", "ours", "javas"),
    [
        (", compute_updates => true", IllegalArgumentException, "has no identifier columns",
         "identifier columns are not set"),
        (", identifier_columns => array()", IllegalArgumentException,
         "has no identifier columns", "identifier columns are not set"),
        (", net_changes => true, compute_updates => true", IllegalArgumentException,
         "net_changes .* updates are those of one snapshot", "net changes with update images"),
        (", net_changes => true, identifier_columns => array('id')", IllegalArgumentException,
         "net_changes .* updates are those of one snapshot", "net changes with update images"),
        (", no_such => 1", AnalysisException, "no_such", "no_such"),
        # Java leaves these two to Spark, which has another class for them.
        (", identifier_columns => array('no')", PySparkException, "no column 'no'",
         "name `no` cannot be resolved"),
        (", changelog_view => 'a.b'", PySparkException, "a.b is a temporary view",
         "single-part view names"),
    ],
)  # fmt: skip
def test_changelog_argument_that_java_refuses_is_refused(
    lake: Oracle, arguments: str, error: type[Exception], ours: str, javas: str
) -> None:
    for catalog, message in zip(CATALOGS, (ours, javas), strict=True):
        with pytest.raises(error, match=message):
            view(lake, catalog, arguments)


@pytest.mark.parametrize("table", ["refused_changes.none", "nowhere.none"])
def test_a_missing_table_is_the_error_of_a_read(lake: Oracle, table: str) -> None:
    for catalog in CATALOGS:
        with pytest.raises(AnalysisException, match=f"{table.partition('.')[0]}.*none") as refused:
            lake.sql(f"call {catalog}.system.create_changelog_view(table => '{table}')")
        assert refused.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"


def test_bound_that_is_not_a_number_is_refused(lake: Oracle) -> None:
    """Java's class is that of its number parser, a subclass of ours."""
    for name in (START, END, SINCE, UNTIL):
        for catalog, message in zip(CATALOGS, (f"{name} is a whole number", '"x"'), strict=True):
            with pytest.raises(IllegalArgumentException, match=message):
                view(lake, catalog, as_map({name: "x"}))


def test_arguments_that_both_accept(lake: Oracle, moments: Moments) -> None:
    """An end outside of main has its own history; updates can be turned off beside net changes."""
    of_branch = as_map({START: moments["ID0"], END: moments["BRANCH"]})
    without = ", net_changes => true, compute_updates => false, identifier_columns => array('id')"
    for arguments in (of_branch, without, as_map({SINCE: 4_000_000_000_000}), as_map({UNTIL: 1})):
        ours, javas = (view(lake, catalog, arguments) for catalog in CATALOGS)
        assert sorted(map(str, ours)) == sorted(map(str, javas))
        assert len(ours) == (0 if "timestamp" in arguments else 3)


def test_empty_range_is_empty_and_unknown_option_is_refused(lake: Oracle, moments: Moments) -> None:
    """A range that ends where it starts is empty for us; options that Java ignores are refused."""
    empty = as_map({START: moments["ID1"], END: moments["ID1"]})
    assert view(lake, "lake", empty) == []
    with pytest.raises(IllegalArgumentException, match="is not a parent ancestor"):
        view(lake, "java_hadoop", empty)
    for options in ({"no-such": 1}, {"tag": "other"}, {"snapshot-id": moments["ID0"]}):
        assert len(view(lake, "java_hadoop", as_map(options))) == 3
        with pytest.raises(
            IllegalArgumentException, match=f"unknown option '{next(iter(options))}"
        ):
            view(lake, "lake", as_map(options))
