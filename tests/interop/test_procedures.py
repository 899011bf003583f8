"""CALL of our catalogs beside Java's: the same result columns, rows and effects."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as found:
        oracle.sql("CREATE NAMESPACE IF NOT EXISTS java_hadoop.called")
        yield found


def make(oracle: Oracle, name: str) -> None:
    oracle.sql(f"CREATE TABLE java_hadoop.called.{name} (id BIGINT) USING iceberg")
    for number in range(4):
        oracle.sql(f"INSERT OVERWRITE java_hadoop.called.{name} VALUES ({number})")


def test_expiry(lake: Oracle) -> None:
    for name in ("theirs", "ours"):
        make(lake, name)
    now = int(time.time() * 1000)
    results = [
        lake.sql(
            f"CALL {catalog}.system.expire_snapshots(table => 'called.{name}', retain_last => 2, "
            f"older_than => timestamp_millis({now}), max_concurrent_deletes => 2)"
        )
        for catalog, name in (("java_hadoop", "theirs"), ("lake", "ours"))
    ]
    assert results[0].schema == results[1].schema
    assert results[0].collect() == results[1].collect()
    left = [
        lake.sql(f"SELECT * FROM java_hadoop.called.{name}.snapshots").count()
        for name in ("theirs", "ours")
    ]
    assert left == [2, 2]


def test_orphan_files(lake: Oracle) -> None:
    make(lake, "strays")
    folder = lake.warehouse / "called" / "strays" / "data"
    past = time.time() - 4 * 86_400
    for name in ("a", "b", ".hidden", "_hidden"):
        (folder / name).touch()
        os.utime(folder / name, (past, past))
    results = [
        lake.sql(
            f"CALL {catalog}.system.remove_orphan_files('called.strays', dry_run => {dry_run})"
        )
        for catalog, dry_run in (("java_hadoop", "true"), ("lake", "false"))
    ]
    assert results[0].schema == results[1].schema
    theirs, ours = ({row[0].removeprefix("file:") for row in r.collect()} for r in results)
    assert theirs == ours == {str(folder / "a"), str(folder / "b")}
    call = "CALL java_hadoop.system.remove_orphan_files('called.strays')"
    assert lake.sql(call).collect() == []
