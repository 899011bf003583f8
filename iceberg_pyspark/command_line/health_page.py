"""Renders a health report as one HTML page without external resources.

Names and values come from metadata of possibly untrusted writers, and are escaped. matplotlib draws
the plots; its SVG needs no script, and text stays text in the fonts of the page. Colours come from
the style of the page, so one page suits light and dark themes.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from iceberg_pyspark.display import printable, utc_text
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.table.health.report_text import (
    Section,
    count_range,
    number_text,
    sections,
    size_range,
    size_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from iceberg_pyspark.table.health.health_report import TableHealth


_CSS = """
:root { --ink: #1f2933; --soft: #52606d; --paper: #ffffff;
  --card: #f5f7fa; --grid: #cbd2d9; --bar: #2f6fb5; --warn: #b4541a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --soft: #9aa5b1; --paper: #14181d; --card: #1f252d; --grid: #3e4c59;
    --bar: #6aa9e9; --warn: #f0925a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1rem 4rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 0.75rem; }
p { margin: 0.25rem 0; } .soft { color: var(--soft); overflow-wrap: anywhere; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: 0.75rem;
  list-style: none; margin: 1.5rem 0 0; padding: 0; }
.cards li { background: var(--card); border-radius: 0.5rem; padding: 0.75rem 1rem; }
.cards strong { display: block; font-size: 1.4rem; font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.9rem 0.3rem 0;
  border-bottom: 1px solid var(--grid); overflow-wrap: anywhere; }
th { font-weight: 600; } th[scope=row] { font-weight: 400; color: var(--soft); width: 40%; }
td:first-child { min-width: 9rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 0 0 0.5rem; } figcaption { color: var(--soft); font-size: 0.9rem; }
svg { display: block; width: 100%; min-width: 36rem; height: auto; }
svg text { font-family: system-ui, sans-serif !important; }
code { font: 0.85rem/1.5 ui-monospace, monospace; }
pre { background: var(--card); border-radius: 0.5rem; margin: 0.5rem 0;
  padding: 0.75rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }
details { margin: 0.5rem 0; } summary { cursor: pointer; color: var(--soft); }
""".strip()
_BEHIND_PLOTS = (
    "Data files by size",
    "Data files by deletes",
    "Partitions with most bytes",
    "Growth",
)


def health_page(health: TableHealth) -> str:
    """Return the whole page; raise `InvalidRequestError` if matplotlib is not installed."""
    return "\n".join(_lines(health)) + "\n"


def _lines(health: TableHealth) -> Iterator[str]:
    title = f"Health of {health.table}"
    yield "<!DOCTYPE html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    # the policy makes the browser refuse external resources, whatever the page contains
    yield (
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    )
    yield '<meta name="color-scheme" content="light dark">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{_text(title)}</title>"
    yield f"<style>{_CSS}</style>"
    yield "</head>"
    yield "<body>"
    yield "<header>"
    yield f"<h1>{_text(title)}</h1>"
    yield f'<p class="soft">{_text(health.location)}</p>'
    yield f'<p class="soft">Examined {_text(utc_text(health.examined_at_ms))}</p>'
    yield "</header>"
    yield "<main>"
    yield from _cards(health)
    plot_by_section = {plot.section: plot for plot in plots(health)}
    # the first section mostly repeats the head of the page, so it comes last
    first, *others = sections(health)
    for section in (*others, first):
        if not section.rows:
            continue
        plot = plot_by_section.get(section.title)
        if plot is None and section.title in _BEHIND_PLOTS:
            continue
        yield f"<section><h2>{_text(section.title)}</h2>"
        if plot is not None:
            yield f'<figure><div class="wide">{plot.svg}</div>'
            caption = f"{_text(plot.title)}: {_text(plot.description)}."
            yield f"<figcaption>{caption}</figcaption></figure>"
            yield "<details><summary>The figures as a table</summary>"
        yield from _table(section)
        if plot is not None:
            yield "</details>"
        yield "</section>"
        if section.title == "What maintenance would gain":
            yield from _commands(health)
    yield "</main>"
    yield "</body>"
    yield "</html>"


def _cards(health: TableHealth) -> Iterator[str]:
    """Yield the key figures at the top of the page."""
    sizes, deletes = health.file_sizes, health.deletes
    worthwhile = sum(gain.is_worthwhile for gain in health.procedures)
    yield '<ul class="cards">'
    for figure, label in (
        (number_text(sizes.files), f"data files, {size_text(sizes.bytes)}"),
        (number_text(sizes.records), "rows"),
        (number_text(sizes.small_files), "files that are too small"),
        (number_text(deletes.data_files_with_deletes), "data files with deletes"),
        (number_text(health.snapshots.count), "snapshots"),
        (number_text(worthwhile), "procedures that would gain something"),
    ):
        yield f"<li><strong>{_text(figure)}</strong>{_text(label)}</li>"
    yield "</ul>"


def _table(section: Section) -> Iterator[str]:
    yield f'<div class="wide"><table><caption>{_text(section.title)}</caption>'
    if section.header:
        cells = (
            f'<th scope="col"{_class(i, section)}>{_text(name)}</th>'
            for i, name in enumerate(section.header)
        )
        yield f"<thead><tr>{''.join(cells)}</tr></thead>"
    yield "<tbody>"
    for row in section.rows:
        yield f"<tr>{''.join(_cells(row, section))}</tr>"
    yield "</tbody></table></div>"


def _cells(row: Sequence[str], section: Section) -> Iterator[str]:
    for i, cell in enumerate(row):
        if i == 0 and not section.header:
            yield f'<th scope="row">{_text(cell)}</th>'
        else:
            yield f"<td{_class(i, section)}>{_text(cell)}</td>"


def _class(column: int, section: Section) -> str:
    return ' class="number"' if column in section.numbers else ""


def _commands(health: TableHealth) -> Iterator[str]:
    yield "<section><h2>Commands to run</h2>"
    worthwhile = [gain for gain in health.procedures if gain.is_worthwhile]
    if not worthwhile:
        yield "<p>Nothing: no procedure would gain anything.</p>"
    for gain in worthwhile:
        commands = [gain.command, *([gain.call] if gain.call is not None else [])]
        command_lines = "\n".join(map(_text, commands))
        yield f"<p>{_text(gain.procedure)}</p>"
        yield f"<pre><code>{command_lines}</code></pre>"
    yield "</section>"


def _text(text: str) -> str:
    return escape(printable(text))


_SVG = "http://www.w3.org/2000/svg"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_INK, _BAR, _WARN, _GRID = "#010101", "#020202", "#030303", "#040404"
_COLOURS = {
    _INK: "var(--ink)",
    _BAR: "var(--bar)",
    _WARN: "var(--warn)",
    _GRID: "var(--grid)",
}
"""The placeholder colours that matplotlib uses, and the page's colours that replace them."""
_LABEL = 32
_BARS = 15
_WIDTH = 9.6
_TIMES = 5
_DAY_MS = 86_400_000
_STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 10,
    "text.color": _INK,
    "axes.edgecolor": _GRID,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _GRID,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot; `section` is the title of the table with the same figures."""

    section: str
    title: str
    description: str
    svg: str


def plots(health: TableHealth) -> Iterator[Plot]:
    """Yield the plots that have figures; raise `InvalidRequestError` without matplotlib."""
    try:
        from matplotlib import rc_context  # noqa: PLC0415 - an extra
    except ImportError:
        raise InvalidRequestError(
            "the page of a health report needs matplotlib: "
            "pip install 'iceberg-pyspark[health]', or leave --html out"
        ) from None
    with warnings.catch_warnings(), rc_context(_STYLE):
        # matplotlib warns about letters missing in its font; the page's font draws these letters
        warnings.simplefilter("ignore", UserWarning)
        yield from _plots(health)


def _plots(health: TableHealth) -> Iterator[Plot]:
    sizes = health.file_sizes
    if sizes.files:
        yield _plot(
            "Data files by size",
            "How large data files are",
            f"{sizes.files:,} data files in bars by size; {sizes.small_files:,} are smaller than "
            f"{size_text(sizes.min_file_size)}; bars of these alone have another colour",
            lambda axes: _bars(
                axes,
                [size_range(b) for b in sizes.files_by_size],
                [b.files for b in sizes.files_by_size],
                "data files",
                [
                    b.less_than is not None and b.less_than <= sizes.min_file_size
                    for b in sizes.files_by_size
                ],
            ),
        )
    deletes = health.deletes
    if deletes.data_files_with_deletes:
        yield _plot(
            "Data files by deletes",
            "How many delete files a scan reads beside a data file",
            f"{deletes.data_files_with_deletes:,} of {sizes.files:,} data files have deletes",
            lambda axes: _bars(
                axes,
                [count_range(b) for b in deletes.files_by_deletes],
                [b.files for b in deletes.files_by_deletes],
                "data files",
                [b.at_least > 0 for b in deletes.files_by_deletes],
            ),
        )
    partitions = health.partitions
    if partitions.count > 1:
        bars = partitions.largest[:_BARS]
        yield _plot(
            "Partitions with most bytes",
            "The largest partitions",
            f"{len(bars)} of {partitions.count:,} partitions by their size",
            lambda axes: _bars(
                axes,
                [_short(p.partition) for p in bars],
                [p.bytes for p in bars],
                "size",
                [False] * len(bars),
                size_text,
            ),
            rows=len(bars),
        )
    history = [s for s in health.snapshots.history if s.data_files is not None]
    if len(history) > 1:
        yield _plot(
            "Growth",
            "Data files and size over time",
            f"{len(history)} snapshots; the table has grown from {history[0].data_files:,} to "
            f"{history[-1].data_files:,} data files",
            lambda axes: _labelled_lines(
                axes,
                [s.committed_at_ms for s in history],
                [s.data_files or 0 for s in history],
                [s.bytes for s in history],
            ),
        )


def _plot(
    section: str, title: str, description: str, draw: Callable[[Axes], None], *, rows: int = 9
) -> Plot:
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415 - an extra
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(_WIDTH, 0.6 + 0.24 * max(rows, 4)), layout="constrained")
    FigureCanvasSVG(figure)
    draw(figure.subplots())
    return Plot(
        section=section,
        title=title,
        description=description,
        svg=_svg(figure, section, title, description),
    )


def _bars(
    axes: Axes,
    labels: Sequence[str],
    values: Sequence[int],
    unit: str,
    is_bad: Sequence[bool],
    text: Callable[[int], str] = lambda n: f"{n:,}",
) -> None:
    """Draw horizontal bars, the first at the top, each with its value."""
    places = range(len(values))
    colours = [_WARN if bad else _BAR for bad in is_bad]
    bars = axes.barh(places, values, color=colours, height=0.7)
    axes.bar_label(bars, [text(v) for v in values], padding=4)
    axes.set_yticks(places, labels)
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    axes.set_xticks([])
    axes.set_xlim(0, max(*values, 1) * 1.18)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(length=0)


def _labelled_lines(
    axes: Axes, times_ms: Sequence[int], files: Sequence[int], sizes: Sequence[int | None]
) -> None:
    """Draw files on the left axis and bytes on the right axis, over time."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator  # noqa: PLC0415 - an extra

    axes.plot(times_ms, files, color=_BAR, marker="o", markersize=3)
    axes.set_ylabel("data files")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y")
    # the times are milliseconds, because a wrong time may be outside of Python's range of dates
    axes.xaxis.set_major_locator(MaxNLocator(_TIMES))
    span = max(times_ms) - min(times_ms)
    label_part = slice(0, 10) if span > _TIMES * _DAY_MS else slice(5, 19)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ms, _: utc_text(int(ms))[label_part]))
    known_sizes = [size for size in sizes if size is not None]
    if len(known_sizes) == len(sizes):
        right = axes.twinx()
        right.plot(times_ms, known_sizes, color=_WARN, linestyle="--")
        right.set_ylim(bottom=0)
        right.set_ylabel("size (dashed)")
        right.yaxis.set_major_formatter(FuncFormatter(lambda size, _: size_text(int(size))))


def _short(text: str) -> str:
    label = printable(text)
    return label if len(label) <= _LABEL else f"{label[: _LABEL - 1]}…"


def _svg(figure: Figure, section: str, title: str, description: str) -> str:
    """Return a figure as an HTML element with unique ids, the page's colours, and no fixed size."""
    svg = StringIO()
    nothing: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(svg, format="svg", metadata=nothing, transparent=True)
    root = ElementTree.fromstring(svg.getvalue())
    for parent in root.iter():
        # matplotlib's style element would apply to the whole page
        for element in parent.findall(f"{{{_SVG}}}style"):
            parent.remove(element)
    prefix = re.sub(r"\W+", "-", section.lower())
    used_ids = set(re.findall(r"(?:url\(|=\")#([\w-]+)", svg.getvalue()))
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{_SVG}}}")
        _adapt(element, prefix, used_ids)
    for name in ("width", "height"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    root.set("aria-labelledby", f"{prefix}-title {prefix}-what")
    for place, (name, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(name, id=f"{prefix}-{'what' if place else 'title'}")
        element.text = text
        root.insert(place, element)
    return ElementTree.tostring(root, encoding="unicode")


def _adapt(element: ElementTree.Element, prefix: str, used_ids: set[str]) -> None:
    link = element.attrib.pop(_XLINK, None)
    if link is not None:
        element.set("href", link)
    for name, value in list(element.attrib.items()):
        if name == "id":
            if value in used_ids:
                element.set(name, f"{prefix}-{value}")
            else:
                del element.attrib[name]
            continue
        new_value = re.sub(r"(^|url\()#(?=[\w-]+\)?$|[\w-]+\))", rf"\1#{prefix}-", value)
        for colour, variable in _COLOURS.items():
            new_value = new_value.replace(colour, variable)
        element.set(name, new_value)
