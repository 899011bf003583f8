"""The headline figures of tests/bench/RESULTS.md: README's table, and the chart of the docs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape


def pipe_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |\n" for row in lines
    )


_HEADLINES = (
    # section, name of the line in its table, name in README
    ("queries", "geometric mean", "22 TPC-H queries, geometric mean"),
    ("native", "full scan: no deletes", "full scan of `lineitem`"),
    ("native", "full scan: deletion vectors 5 %", "the same, 5 % of the rows deleted"),
    ("changes", "MERGE: 1 % of lineitem updated, 1 % inserted", "`MERGE` of 2 % of `lineitem`"),
    ("changes", "append of lineitem by month", "append of `lineitem` by month"),
    ("portable", "full scan", "full scan without `install`"),
)
_NAMES_PX, _BARS_PX, _ROW_PX = 260, 400, 30
_UPSERT = "upsert of 1,000,000 rows into 1,000,000"
_PLAIN_UPSERT = "upsert of 100,000 rows into 1,000,000 in 10 files, copy-on-write"


def figures(results: str) -> str:
    """Return the headline figures of RESULTS.md as README text."""
    sections = _sections(results)
    rows = [
        (name, _seconds(of["ours s"]), _seconds(of["JVM s"]), f"{of['ours/JVM']}x")
        for name, of in _headlines(sections)
    ]
    _, (_, ours, other, _) = line_of(sections["changes"], _UPSERT, "other")
    pyiceberg = re.fullmatch(r"(.+ s) \(PyIceberg\)", other)
    assert pyiceberg is not None, other
    header, cells = line_of(sections["row_changes"], _PLAIN_UPSERT, "PyIceberg")
    plain = dict(zip(header, cells, strict=True))
    machine = sections["queries"].strip().splitlines()[0]
    return "\n".join(
        [
            pipe_table(("", "here", "JVM connector", "ratio"), rows),
            f"An upsert of 1,000,000 rows into as many: {ours} here, {pyiceberg[1]} in PyIceberg.",
            f"Without Spark, of 100,000 into 1,000,000: {plain['ours']} here, "
            f"{plain['PyIceberg']} in PyIceberg.",
            f"TPC-H at scale factor 1 on `local[2]`, {machine.split(', Linux')[0]}; all figures:",
            "[tests/bench/RESULTS.md](tests/bench/RESULTS.md), made by `make bench`.",
            "",
        ]
    )


def chart(results: str) -> str:
    """Return the same figures as an SVG: bars of the time here, over the JVM connector's time."""
    lines = [
        (name.replace("`", ""), float(of["ours/JVM"]))
        for name, of in _headlines(_sections(results))
    ]
    scale = _BARS_PX / max(1.0, *(ratio for _, ratio in lines))
    width, height = _NAMES_PX + _BARS_PX + 60, _ROW_PX * (len(lines) + 2)
    bars = "".join(
        f'<text x="{_NAMES_PX - 10}" y="{y + 16}" text-anchor="end">{escape(name)}</text>'
        f'<rect x="{_NAMES_PX}" y="{y}" width="{ratio * scale:.0f}" height="{_ROW_PX - 8}"/>'
        f'<text x="{_NAMES_PX + ratio * scale + 8:.0f}" y="{y + 16}">{ratio:.2f}</text>\n'
        for y, (name, ratio) in zip(range(0, height, _ROW_PX), lines, strict=False)
    )
    x = f"{_NAMES_PX + scale:.0f}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="14" fill="#5c6bc0">\n'
        "<title>Time here over the time of the JVM connector; shorter is faster</title>\n"
        f'{bars}<line x1="{x}" x2="{x}" y1="0" y2="{height - _ROW_PX}" stroke="#9e9e9e"/>\n'
        f'<text x="{x}" y="{height - 8}" text-anchor="middle">JVM connector = 1</text>\n</svg>\n'
    )


def _sections(results: str) -> dict[str, str]:
    parts = re.split(r"^## (\w+)\n", results, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _headlines(sections: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    for section, line, name in _HEADLINES:
        header, cells = line_of(sections[section], line, "ours/JVM")
        yield name, dict(zip(header, cells, strict=True))


def _seconds(text: str) -> str:
    return f"{text} s" if text else ""


def line_of(section: str, line: str, column: str) -> tuple[list[str], list[str]]:
    """Return header and cells of the only line of this name, in a table with the column."""
    result = [
        (header, cells)
        for header, cells in _text_lines(section)
        if cells[0] == line and column in header
    ]
    if len(result) != 1:
        raise ValueError(f"RESULTS.md: {len(result)} lines '{line}' with a column '{column}'")
    return result[0]


def _text_lines(section: str) -> list[tuple[list[str], list[str]]]:
    """Return the lines of a section's tables with their headers; a long name spans lines."""
    result: list[tuple[list[str], list[str]]] = []
    header: list[str] = []
    for text in section.splitlines():
        if text.startswith("┃"):
            header = [cell.strip() for cell in text.strip("┃").split("┃")]
        elif text.startswith("│"):
            cells = [cell.strip() for cell in text.strip("│").split("│")]
            if any(cells[1:]):
                result.append((header, cells))
            else:
                result[-1][1][0] += f" {cells[0]}"
    return result
