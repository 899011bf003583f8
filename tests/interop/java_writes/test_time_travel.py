"""Branches, tags, snapshot ids and timestamps select the same snapshots as in Java."""

from __future__ import annotations

import datetime as dt

import pytest

from iceberg_pyspark.errors import IcebergError, NoSuchSnapshotError
from tests.support.oracle import Oracle
from tests.support.readings import (
    EVERY_READ,
    assert_read_alike,
    our_frame,
    our_rows,
    our_table,
    rows_alike,
)
from tests.support.rows import spark_rows

pytestmark = pytest.mark.nightly

NAME = "java_sql.travel.events"


@pytest.fixture(scope="module")
def snapshots(oracle: Oracle) -> list[tuple[int, dt.datetime]]:
    """Create a table and return id and time of its snapshots on main, oldest first."""
    oracle.sql(f"CREATE TABLE {NAME} (id INT) USING iceberg TBLPROPERTIES ('format-version' = '2')")
    oracle.sql(f"INSERT INTO {NAME} VALUES (1), (2)")
    oracle.sql(f"ALTER TABLE {NAME} CREATE TAG first RETAIN 365 DAYS")
    oracle.sql(f"ALTER TABLE {NAME} CREATE TAG `2026-01-01 mark`")
    oracle.sql(f"INSERT INTO {NAME} VALUES (3)")
    oracle.sql(f"ALTER TABLE {NAME} CREATE BRANCH side")
    oracle.sql(f"INSERT INTO {NAME}.branch_side VALUES (100)")
    oracle.sql(f"DELETE FROM {NAME}.branch_side WHERE id = 1")
    oracle.sql(f"DELETE FROM {NAME} WHERE id = 2")
    oracle.sql(f"INSERT OVERWRITE {NAME} VALUES (7)")
    rows = oracle.sql(
        f"SELECT h.snapshot_id, s.committed_at FROM {NAME}.history h JOIN {NAME}.snapshots s "
        "USING (snapshot_id) WHERE h.is_current_ancestor ORDER BY 2"
    ).collect()
    return [(row[0], row[1]) for row in rows]


def epoch_ms(at: dt.datetime) -> int:
    """Return the epoch milliseconds of a UTC time without zone, as Spark collects it."""
    return (at - dt.datetime(1970, 1, 1)) // dt.timedelta(milliseconds=1)


def assert_times_read_alike(
    oracle: Oracle, snapshots: list[tuple[int, dt.datetime]], number: int
) -> None:
    """Compare the table as of the commit of this number, and as of one millisecond earlier.

    In `make nightly`, do the same for all commits.
    """
    moments = [at - dt.timedelta(milliseconds=back) for _, at in snapshots for back in (0, 1)]
    some = slice(1, None) if EVERY_READ else slice(2 * number, 2 * number + 2)
    for at in sorted(moments)[some]:
        text = at.isoformat(sep=" ")
        java = oracle.sql(f"SELECT * FROM {NAME} TIMESTAMP AS OF '{text}'")
        rows = assert_read_alike(oracle, NAME, java, timestampAsOf=text)
        assert rows_alike(oracle, NAME, as_of_timestamp=str(epoch_ms(at))) == rows


def test_every_snapshot_by_id_and_by_time(
    oracle: Oracle, snapshots: list[tuple[int, dt.datetime]]
) -> None:
    assert len(snapshots) == 4
    for snapshot_id, _ in snapshots[:: 1 if EVERY_READ else 2]:
        java = oracle.sql(f"SELECT * FROM {NAME} VERSION AS OF {snapshot_id}")
        rows = assert_read_alike(oracle, NAME, java, snapshot_id=str(snapshot_id))
        assert rows_alike(oracle, NAME, versionAsOf=str(snapshot_id)) == rows
    assert_times_read_alike(oracle, snapshots, 1)
    [_, (second_id, at), *_] = snapshots
    java = oracle.sql(f"SELECT * FROM {NAME} VERSION AS OF {second_id}")
    text = at.isoformat(sep=" ")
    rows = assert_read_alike(oracle, NAME, java, through_spark=EVERY_READ, timestampAsOf=text)
    assert spark_rows(our_frame(oracle, NAME, snapshot_id=str(second_id)).collect()) == rows


def test_branches_and_tags(oracle: Oracle, snapshots: list[tuple[int, dt.datetime]]) -> None:
    assert snapshots
    for ref, kind in {"first": "tag", "2026-01-01 mark": "tag", "side": "branch"}.items():
        java = oracle.sql(f"SELECT * FROM {NAME} VERSION AS OF '{ref}'")
        rows = assert_read_alike(oracle, NAME, java, versionAsOf=ref)
        assert rows_alike(oracle, NAME, **{kind: ref}) == rows
    java = oracle.sql(f"SELECT * FROM {NAME}.branch_side")
    assert_read_alike(oracle, NAME, java, through_spark=True, branch="side")
    assert {name: ref.type for name, ref in our_table(oracle, NAME).refs.items()} == {
        "main": "branch",
        "side": "branch",
        "first": "tag",
        "2026-01-01 mark": "tag",
    }


def test_missing_snapshot_tag_or_branch_is_refused(
    oracle: Oracle, snapshots: list[tuple[int, dt.datetime]]
) -> None:
    before = snapshots[0][1] - dt.timedelta(milliseconds=1)
    for options, java in (
        ({"snapshot_id": "5"}, "VERSION AS OF 5"),
        ({"as_of_timestamp": str(epoch_ms(before))}, f"TIMESTAMP AS OF '{before}'"),
        ({"tag": "none"}, "VERSION AS OF 'none'"),
        ({"branch": "none"}, "VERSION AS OF 'none'"),
    ):
        with pytest.raises(NoSuchSnapshotError):
            our_rows(oracle, NAME, **options)
        with pytest.raises(Exception, match=r"(?i)cannot find|not find|no snap"):
            oracle.sql(f"SELECT * FROM {NAME} {java}").collect()
    with pytest.raises(IcebergError, match="is a branch"):
        our_rows(oracle, NAME, tag="side")
    with pytest.raises(IcebergError, match="is a tag"):
        our_rows(oracle, NAME, branch="first")


def test_a_rollback_is_followed(oracle: Oracle, snapshots: list[tuple[int, dt.datetime]]) -> None:
    """This must be the module's last test: it moves main and so changes the table's history."""
    table = NAME.partition(".")[2]
    oracle.sql(f"CALL java_sql.system.rollback_to_snapshot('{table}', {snapshots[1][0]})")
    assert [row[0] for row in assert_read_alike(oracle, NAME)] == [1, 2, 3]
    assert_times_read_alike(oracle, snapshots, 3)
