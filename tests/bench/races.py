"""Contestants that do the same work in turn in one session, and the ratios of their medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table as TextTable

RUNS = 5


@dataclass(frozen=True, kw_only=True)
class Line:
    """One measured line; `limit` is the ratio the project promises, None where it promises none."""

    name: str
    seconds: Mapping[str, list[float]]
    limit: float | None = None

    def median(self, who: str) -> float:
        """The median time of a contestant, in seconds."""
        return statistics.median(self.seconds[who])

    def ratio(self, other: str) -> float:
        """Our median over another's."""
        return self.median("ours") / self.median(other)


def race(
    name: str,
    contestants: Mapping[str, Callable[[], object]],
    *,
    runs: int = RUNS,
    warm_ups: int = 1,
    limit: float | None = None,
    after: Mapping[str, Callable[[], object]] | None = None,
) -> Line:
    """Run the contestants in turn, `warm_ups` times unmeasured, then `runs` times.

    Who begins changes with each turn: what the first one leaves warm helps the second. `after`
    undoes what a contestant did, unmeasured.
    """
    seconds: dict[str, list[float]] = {who: [] for who in contestants}
    turns = list(contestants.items())
    for run in range(warm_ups + runs):
        turns.reverse()
        for who, action in turns:
            started = time.perf_counter()
            action()
            if run >= warm_ups:
                seconds[who].append(time.perf_counter() - started)
            if after is not None:
                after[who]()
    return Line(name=name, seconds=seconds, limit=limit)


def text_table(
    title: str, lines: Sequence[Line], others: Mapping[str, str], *, digits: int = 2
) -> TextTable:
    """Lines as a table; `others` maps contestants to their names, the limit is on the first.

    Seconds have so many digits.
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
