"""Commits of one table within a process run one after another, in the order of requests."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from iceberg_pyspark.table.commits import commit_turn as module
from iceberg_pyspark.table.commits.commit_turn import commit_turn, machine_lock


def test_turns_are_given_in_order() -> None:
    order: list[int] = []
    inside = 0

    def commit(number: int) -> None:
        nonlocal inside
        with commit_turn("t"):
            inside += 1
            assert inside == 1, "two have the turn"
            order.append(number)
            inside -= 1

    threads = []
    with commit_turn("t"):
        for number in range(8):
            thread = threading.Thread(target=commit, args=(number,))
            thread.start()
            threads.append(thread)
            while len(module._waiting["t"]) <= number:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert order == list(range(8))
    assert "t" not in module._waiting, "nothing is kept of a table at rest"


def test_tables_do_not_wait_for_each_other_and_a_commit_within_a_commit_not_for_itself() -> None:
    with commit_turn("a"), commit_turn("b"), commit_turn("a"):
        assert set(module._waiting) == {"a", "b"}
    assert not module._waiting


def test_turn_is_skipped_after_waiting_for_a_commit_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_PATIENCE_S", 0.01)
    went_on = threading.Event()

    def commit() -> None:
        with commit_turn("t"):
            went_on.set()

    with commit_turn("t"):
        thread = threading.Thread(target=commit)
        thread.start()
        thread.join()
    assert went_on.is_set()
    assert not module._waiting


def test_an_error_gives_the_turn_up() -> None:
    with pytest.raises(KeyboardInterrupt), commit_turn("t"):
        raise KeyboardInterrupt
    assert not module._waiting


def test_interrupted_waiter_passes_the_turn_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            module._give_up("t")
            raise KeyboardInterrupt

    monkeypatch.setattr(threading, "Event", Interrupted)
    # Another thread has the turn and gives it up while this thread waits.
    assert module._take("t")
    with pytest.raises(KeyboardInterrupt), commit_turn("t"):
        pass
    assert not module._waiting


def test_a_lock_of_the_machine_is_held_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with machine_lock("t", timeout_s=0) as first, machine_lock("t", timeout_s=0.01) as second:
        assert (first, second) == (True, False)
    with machine_lock("t", timeout_s=0) as again:
        assert again


def test_without_a_user_folder_no_lock_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iceberg_pyspark.table.commits.commit_turn.user_folder", lambda name: None)
    with machine_lock("t", timeout_s=0) as is_held:
        assert not is_held
