"""Start workers, give them cases, and continue when a worker dies or hangs."""

from __future__ import annotations

import json
import os
import select
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from tests.fuzz.targets import Target
from tests.fuzz.worker import SECONDS_PER_CASE

_CASES_PER_TASK = 250
_STUCK_SECONDS = 12 * SECONDS_PER_CASE


@dataclass
class Report:
    """The outcomes of a target's cases."""

    name: str
    tried: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    problems: dict[int, str] = field(default_factory=dict)
    library_ends: int = 0
    slowest: tuple[float, int] = (0.0, 0)

    def add(self, other: Report) -> None:
        """Merge another report of the same target into this one."""
        self.tried += other.tried
        self.outcomes.update(other.outcomes)
        self.problems.update(other.problems)
        self.library_ends += other.library_ends
        self.slowest = max(self.slowest, other.slowest)

    def __str__(self) -> str:
        refused = sum(n for o, n in self.outcomes.items() if o.endswith("Error"))
        seconds, case = self.slowest
        return (
            f"{self.name}: {self.tried:,} cases tried, {self.outcomes['accepted']:,} accepted, "
            f"{refused:,} refused, {len(self.problems):,} problems; "
            + (f"{self.library_ends} ended the process in a library; " if self.library_ends else "")
            + f"slowest {seconds:.1f} s (case {case})"
        )


class Worker:
    """A worker process that is started again whenever it ends."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._ready = False
        self._folder = tempfile.TemporaryDirectory(prefix="iceberg-fuzz-")
        self._progress = tempfile.NamedTemporaryFile(prefix="iceberg-fuzz-")  # noqa: SIM115
        self._errors = tempfile.NamedTemporaryFile(prefix="iceberg-fuzz-")  # noqa: SIM115
        self._progress.write(bytes(8))
        self._progress.flush()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self._end()
        self._progress.close()
        self._folder.cleanup()
        self._errors.close()

    def run(self, target: Target, first: int, last: int) -> Report:
        """Run the cases; a case that ends or hangs the process is recorded as a problem."""
        report = Report(target.name)
        start = first
        while start < last:
            died = self._try(target.name, start, last, report)
            if died is None:
                break
            # The process reports problems at once, but counts of outcomes are lost when it dies.
            case, how = died
            if any(words in how for words in target.library_ends):
                report.library_ends += 1
            else:
                report.problems[case] = how
            start = case + 1
        report.tried = last - first
        return report

    def _try(self, name: str, first: int, last: int, report: Report) -> tuple[int, str] | None:
        process = self._started()
        assert process.stdin is not None
        self._set_case(first)
        process.stdin.write(json.dumps({"target": name, "first": first, "last": last}) + "\n")
        process.stdin.flush()
        for event in self._events(process):
            self._ready = self._ready or "ready" in event
            if "problem" in event:
                report.problems[event["case"]] = event["problem"]
            if "done" in event:
                report.outcomes.update(event["done"]["outcomes"])
                report.slowest = max(report.slowest, tuple(event["done"]["slowest"]))
                return None
        hung = process.poll() is None
        if not self._ready:
            raise RuntimeError(
                "the worker did not start: run python -m tests.fuzz.worker /dev/null"
            )
        self._end()
        how = "the process hung" if hung else f"the process ended ({process.returncode})"
        return self._case(), f"{how} {self._last_error()}".strip()

    def _events(self, process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
        """Yield events until the process ends or no case has finished for too long."""
        assert process.stdout is not None
        waiting = b""
        case, since = self._case(), time.monotonic()
        descriptor = process.stdout.fileno()
        while True:
            ready, _, _ = select.select([descriptor], [], [], 1)
            if ready:
                piece = os.read(descriptor, 65_536)
                if not piece:
                    process.wait()
                    return
                *lines, waiting = (waiting + piece).split(b"\n")
                yield from map(json.loads, lines)
            if self._case() != case:
                case, since = self._case(), time.monotonic()
            elif time.monotonic() - since > _STUCK_SECONDS:
                return

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._ready = False
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz.worker", self._progress.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                # Mutations may invent file names; such files land in this folder.
                cwd=self._folder.name,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _case(self) -> int:
        data = Path(self._progress.name).read_bytes()
        return int(struct.unpack("<q", data)[0])

    def _last_error(self) -> str:
        """Return the last line that the process wrote to stderr, perhaps a library's message."""
        lines = Path(self._errors.name).read_text(errors="replace").splitlines()
        self._errors.truncate(0)
        return next((line[:160] for line in reversed(lines) if line.strip()), "")

    def _set_case(self, case: int) -> None:
        with open(self._progress.name, "r+b") as file:
            file.write(struct.pack("<q", case))


def run_all(targets: Iterable[tuple[Target, int]], workers: int) -> Iterator[Report]:
    """Run each target's cases in `workers` processes; yield each report once complete."""
    tasks: Queue[tuple[Target, int, int]] = Queue()
    reports: dict[str, Report] = {}
    cases_by_target: dict[str, int] = {}
    for target, cases in targets:
        reports[target.name] = Report(target.name)
        cases_by_target[target.name] = cases
        for first in range(0, cases, _CASES_PER_TASK):
            tasks.put((target, first, min(first + _CASES_PER_TASK, cases)))
    done: Queue[Report | None] = Queue()

    def work() -> None:
        with Worker() as worker:
            while True:
                try:
                    target, first, last = tasks.get_nowait()
                except Empty:
                    done.put(None)
                    return
                done.put(worker.run(target, first, last))

    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work) for _ in range(workers)]
        running = workers
        while running:
            part = done.get()
            if part is None:
                running -= 1
                continue
            report = reports[part.name]
            report.add(part)
            if report.tried == cases_by_target[part.name]:
                yield report
        for future in futures:
            future.result()
