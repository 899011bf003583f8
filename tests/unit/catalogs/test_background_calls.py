"""Calls for which nobody waits, such as reports of scans, at the end of a program."""

from __future__ import annotations

import subprocess
import sys
import time

PROGRAM = """
import time
from iceberg_pyspark.catalogs.background_calls import BackgroundCalls

calls = BackgroundCalls(10)
calls.put("a report", lambda: (time.sleep(0.3), print("made", flush=True)))
calls.put("a report to a server that hangs", lambda: time.sleep(60))
"""


def test_ending_program_waits_a_second_for_background_calls() -> None:
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "made\n"
    assert time.monotonic() - start < 30
