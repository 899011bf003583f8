"""A process that runs cases and reports their outcomes; a case may kill it.

It reads one task `{"target": ..., "first": ..., "last": ...}` per line of standard input, and
writes events as lines of JSON. The current case number is in a memory-mapped file, so that the
supervisor knows the case even if the process ends or hangs.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import resource
import signal
import struct
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from iceberg_pyspark.errors import IcebergError
from tests.fuzz.all_targets import target_named
from tests.fuzz.targets import Target

SECONDS_PER_CASE = 10
"""In processor time, so that a busy machine does not count as a hang.

The supervisor detects endless waiting.
"""
_ADDRESS_SPACE = 6 << 30
_PACKAGE = f"{os.sep}iceberg_pyspark{os.sep}"


class HangError(BaseException):
    """A case took too long."""


def main() -> None:
    """Run tasks until the input ends."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    # Output of libraries must not mix with the events.
    events = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    sys.stdout = sys.stderr
    signal.signal(signal.SIGPROF, _too_long)
    with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 8) as progress:
        print(json.dumps({"ready": True}), file=events)
        for line in sys.stdin:
            task = json.loads(line)
            _run(target_named(task["target"]), task["first"], task["last"], progress, events)


def _too_long(number: int, frame: FrameType | None) -> None:
    raise HangError(f"more than {SECONDS_PER_CASE} s")


def _run(target: Target, first: int, last: int, progress: mmap.mmap, events: TextIO) -> None:
    outcomes: dict[str, int] = {}
    slowest = (0.0, first)
    target.input_of(first)  # Create the seeds before any case is timed.
    for case in range(first, last):
        progress[:8] = struct.pack("<q", case)
        try:
            value = target.input_of(case)
        except Exception as e:
            raise RuntimeError(f"{target.name}:{case}: no input, {problem_of(e)}") from e
        started = time.perf_counter()
        outcome, problem = _outcome(target, value)
        slowest = max(slowest, (time.perf_counter() - started, case))
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if problem is not None:
            print(json.dumps({"case": case, "problem": problem}), file=events)
    done = {"outcomes": outcomes, "slowest": slowest}
    print(json.dumps({"done": done}), file=events)


def _outcome(target: Target, value: Any) -> tuple[str, str | None]:
    """Return the kind of outcome, and a description if the outcome is a problem."""
    try:
        with _alarm():
            target.parse(value)
    except IcebergError as e:
        return type(e).__name__, None
    except BaseException as e:
        if isinstance(e, KeyboardInterrupt | SystemExit):
            raise
        return "RAW", problem_of(e)
    return "accepted", None


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_CASE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def problem_of(error: BaseException) -> str:
    """Return one line with the place in our code, the error's class and its message."""
    ours = [f for f in traceback.extract_tb(error.__traceback__) if _PACKAGE in f.filename]
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "nowhere of ours"
    text = str(error).splitlines()
    return f"{place}: {type(error).__name__}: {text[0][:160] if text else ''}"


if __name__ == "__main__":
    main()
