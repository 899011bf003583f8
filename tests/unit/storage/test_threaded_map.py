"""Results come in order, from no more threads than help."""

from __future__ import annotations

import threading

import pytest

from iceberg_pyspark.storage import threaded_map as module
from iceberg_pyspark.storage.threaded_map import threaded_map


@pytest.mark.parametrize(("location", "threads"), [("file:/t", 2), ("/t", 2), ("s3://b/t", 8)])
def test_local_files_have_a_thread_for_each_processor(
    location: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PROCESSORS", 2)
    # as many calls as there are threads wait for each other
    together = threading.Barrier(threads, timeout=60)
    names = set()

    def read(number: int) -> int:
        together.wait()
        names.add(threading.current_thread().name)
        return number * 2

    assert list(threaded_map(read, range(24), lambda _: location)) == list(range(0, 48, 2))
    assert len(names) == threads


def test_one_item_needs_no_thread() -> None:
    (thread,) = threaded_map(lambda _: threading.current_thread(), ["a"], str)
    assert thread is threading.current_thread()
