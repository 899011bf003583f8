"""Markdown of generated pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def pipe_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |\n" for row in lines
    )
