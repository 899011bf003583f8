"""Run contestants in turn on the same work in one session, and compare their median times."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rich.table import Table as TextTable

from tests.bench.cold_steps import cpu_seconds

RUNS = 5


@dataclass(frozen=True, kw_only=True)
class Line:
    """One measured line; `limit` is the ratio that the project promises, or None.

    `cpu` are the processor's seconds in this process and all that it has started.
    """

    name: str
    seconds: Mapping[str, list[float]]
    limit: float | None = None
    cpu: Mapping[str, list[float]] = field(default_factory=dict)

    def median(self, contestant: str) -> float:
        """Return the median time of a contestant in seconds."""
        return statistics.median(self.seconds[contestant])

    def ratio(self, other: str) -> float:
        """Return our median time divided by another contestant's."""
        return self.median("ours") / self.median(other)

    def of_the_processor(self) -> Line:
        """Return the line with the processor's seconds as its times."""
        return replace(self, seconds=self.cpu)


def race(
    name: str,
    contestants: Mapping[str, Callable[[], object]],
    *,
    runs: int = RUNS,
    warm_ups: int = 1,
    limit: float | None = None,
    after: Mapping[str, Callable[[], object]] | None = None,
    are_seconds: bool = False,
) -> Line:
    """Run the contestants in turn, `warm_ups` times unmeasured, then `runs` times.

    The order is reversed each time, because the second contestant profits from warm caches of the
    first. `after` undoes a contestant's work and is not measured. With `are_seconds`, contestants
    return the seconds that count.
    """
    seconds: dict[str, list[float]] = {contestant: [] for contestant in contestants}
    cpu: dict[str, list[float]] = {contestant: [] for contestant in contestants}
    turns = list(contestants.items())
    for run in range(warm_ups + runs):
        turns.reverse()
        for contestant, action in turns:
            cpu_started, started = cpu_seconds(), time.perf_counter()
            result = action()
            if run >= warm_ups:
                taken = time.perf_counter() - started
                seconds[contestant].append(float(result) if are_seconds else taken)  # type: ignore[arg-type]
                cpu[contestant].append(cpu_seconds() - cpu_started)
            if after is not None:
                after[contestant]()
    return Line(name=name, seconds=seconds, limit=limit, cpu=cpu)


def text_table(
    title: str, lines: Sequence[Line], others: Mapping[str, str], *, digits: int = 2
) -> TextTable:
    """Return lines as a table; `others` maps contestants to names, `limit` is for the first.

    Seconds are printed with this many digits.
    """
    text = TextTable("line", title=title)
    for column in ("ours s", *(f"{name} s" for name in others.values())):
        text.add_column(column, justify="right")
    for name in others.values():
        text.add_column(f"ours/{name}", justify="right")
    text.add_column("at most", justify="right")
    for line in lines:
        text.add_row(
            line.name,
            f"{line.median('ours'):.{digits}f}",
            *(f"{line.median(o):.{digits}f}" if o in line.seconds else "" for o in others),
            *(f"{line.ratio(o):.2f}" if o in line.seconds else "" for o in others),
            "" if line.limit is None else f"{line.limit}",
        )
    return text
