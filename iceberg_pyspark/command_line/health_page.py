"""Renders a health report as one HTML page without external resources.

Names and values come from metadata of possibly untrusted writers, and are escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from iceberg_pyspark.command_line.health_plots import plots
from iceberg_pyspark.display import printable, utc_text
from iceberg_pyspark.table.health.report_text import Section, number_text, sections, size_text

if TYPE_CHECKING:
    from iceberg_pyspark.table.health.examine import TableHealth

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
