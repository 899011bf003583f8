"""The clock of Hive's locks, and the module on a platform without POSIX."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from iceberg_pyspark.catalogs.hive import locks


def test_the_clock_of_a_lock_counts_the_time_asleep_where_there_is_such_a_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "CLOCK_BOOTTIME", "boot time", raising=False)
    monkeypatch.setattr(time, "clock_gettime", {"boot time": 7.0}.__getitem__, raising=False)
    assert locks._now() == 7.0
    monkeypatch.delattr(time, "clock_gettime")
    monkeypatch.setattr(time, "monotonic", lambda: 8.0)
    assert locks._now() == 8.0


def test_the_module_needs_no_posix() -> None:
    without_posix = (
        "import os, time\n"
        "for module, names in ((os, ['register_at_fork']),"
        " (time, ['clock_gettime', 'CLOCK_BOOTTIME', 'CLOCK_MONOTONIC'])):\n"
        "    for name in names:\n"
        "        if hasattr(module, name):\n"
        "            delattr(module, name)\n"
        "from iceberg_pyspark.catalogs.hive import locks\n"
        "assert locks._now() > 0\n"
    )
    subprocess.run([sys.executable, "-c", without_posix], check=True)
