"""Writers that change the same rows at the same time leave what some order of them would leave."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.table.commits import commit
from iceberg_pyspark.table.commits.commit_turn import commit_turn
from tests.amounts import WORK
from tests.support.many_writers import without_turns

WRITERS = 3
TURNS = 3 * WORK


@pytest.fixture(autouse=True)
def competing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the threads compete, as writers on several machines do."""
    monkeypatch.setattr(commit, "commit_turn", commit_turn)
    without_turns()


@pytest.fixture(params=["copy-on-write", "merge-on-read"])
def open_table(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], ice.Table]:
    def opened() -> ice.Table:
        uri = f"sqlite:///{tmp_path}/catalog.db"
        catalog = ice.load_catalog("lake", type="sql", uri=uri, warehouse=str(tmp_path))
        if not catalog.namespace_exists("db"):
            catalog.create_namespace("db")
            catalog.create_table(
                "db.t",
                "id BIGINT, n BIGINT, w STRING",
                properties={
                    "format-version": "3",
                    "commit.retry.num-retries": "200",
                    "commit.retry.min-wait-ms": "1",
                    "commit.retry.max-wait-ms": "20",
                    **{f"write.{o}.mode": request.param for o in ("delete", "update", "merge")},
                },
            )
        return catalog.load_table("db.t")

    return opened


def race(act: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(WRITERS) as pool:
        return list(pool.map(act, range(WRITERS)))


def test_no_increment_is_lost(open_table: Callable[[], ice.Table]) -> None:
    table = open_table()
    table.append(pa.table({"id": [1, 2, 3], "n": [0, 0, 0]}))

    def add(writer: int) -> None:
        mine = open_table()
        for _ in range(TURNS):
            assert mine.update({"n": "n + 1"}, f"id IN (1, {2 + writer % 2})").updated == 2

    race(add)
    rows = {r["id"]: r["n"] for r in table.refresh().to_arrow().to_pylist()}
    assert rows == {1: WRITERS * TURNS, 2: (WRITERS + 1) // 2 * TURNS, 3: WRITERS // 2 * TURNS}
    assert table.verify(check_files=True).ok


def test_a_key_is_inserted_once(open_table: Callable[[], ice.Table]) -> None:
    open_table()

    def upsert(writer: int) -> int:
        mine, inserted = open_table(), 0
        for turn in range(TURNS):
            ids = [*range(turn, turn + 4), None][:4]
            rows = pa.table({"id": ids, "n": [turn] * 4, "w": [f"writer {writer}"] * 4})
            inserted += mine.upsert(rows, "id").inserted
        return inserted

    inserted = race(upsert)
    table = open_table()
    ids = table.to_arrow()["id"].to_pylist()
    assert sorted(ids) == list(range(TURNS + 3))
    assert sum(inserted) == TURNS + 3
    assert table.verify(check_files=True).ok


def test_each_row_is_deleted_once(open_table: Callable[[], ice.Table]) -> None:
    table = open_table()
    table.append(pa.table({"id": list(range(40)), "n": [0] * 40}))

    def delete(writer: int) -> int:
        mine = open_table()
        return sum(
            mine.delete(f"id >= {3 * turn + writer} AND id < {3 * turn + 10}").deleted
            for turn in range(TURNS)
        )

    deleted = race(delete)
    left = table.refresh().to_arrow()["id"].to_pylist()
    assert sum(deleted) + len(left) == 40
    assert len(set(left)) == len(left)


def test_rows_replaced_by_filter_are_replaced_once(open_table: Callable[[], ice.Table]) -> None:
    table = open_table()
    table.append(pa.table({"id": list(range(8)), "n": [0] * 8}))

    def replace(writer: int) -> None:
        mine = open_table()
        for turn in range(TURNS):
            rows = pa.table({"id": [writer, 10 * writer + 10], "n": [turn + 1] * 2})
            mine.overwrite(rows, f"id = {writer} OR id = {10 * writer + 10}")

    race(replace)
    rows = sorted((r["id"], r["n"]) for r in table.refresh().to_arrow().to_pylist())
    replaced = [i for writer in range(WRITERS) for i in (writer, 10 * writer + 10)]
    others = [(i, 0) for i in range(WRITERS, 8)]
    assert rows == sorted([*((i, TURNS) for i in replaced), *others])
    assert table.verify(check_files=True).ok
