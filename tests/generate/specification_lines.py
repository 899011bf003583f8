"""The lines and sections of the specification in docs/conformance.md, and the tests that show each.

A test shows a line if its name begins with `test_line_<number>_`, or if it cites the line in its
docstring, in a comment, or in a comment above it. A module that cites a line outside its tests is
about the line. `tests/spec/sections.yaml` says which lines and which other tests are about a
section of the specification.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from tests.generate.figures import pipe_table

ROOT = Path(__file__).parents[2]
CONFORMANCE = ROOT / "docs" / "conformance.md"
SECTIONS = ROOT / "tests" / "spec" / "sections.yaml"
CITED = re.compile(r"docs/conformance\.md ((?:\d+(?:-\d+)?(?:,\s+| and )?)+)")
_NAMED = re.compile(r"test_line_(\d+)_")
_WITHOUT_RULES = "none"


class CitingTest(NamedTuple):
    """A test that cites lines, or with the name "" a module."""

    file: str
    name: str
    lines: frozenset[int]


def cited_lines(text: str) -> set[int]:
    """Return the numbers of all lines that a text cites."""
    return {
        line
        for numbers in CITED.findall(text)
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", numbers)
        for line in range(int(first), int(last or first) + 1)
    }


def lines_of_the_list(page: str) -> list[int]:
    """Return the numbers of the lines of section A, in order."""
    return [int(n) for n in re.findall(r"^(\d+)\. ", page.partition("\n## B.")[0], re.MULTILINE)]


def citing_tests(text: str, file: str) -> Iterator[CitingTest]:
    """Yield the tests of a module that show lines, then the module if it cites any elsewhere."""
    if "docs/conformance.md" not in text and "def test_line_" not in text:
        return
    rest = text.splitlines()
    for node in _tests_of(text):
        begin = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
        while begin and rest[begin - 1].startswith("#"):
            begin -= 1
        part = rest[begin : node.end_lineno]
        rest[begin : node.end_lineno] = [""] * len(part)
        named = (int(n) for n in _NAMED.findall(node.name))
        if shown := frozenset({*cited_lines("\n".join(part)), *named}):
            yield CitingTest(file, node.name, shown)
    if about := cited_lines("\n".join(rest)):
        yield CitingTest(file, "", frozenset(about))


@cache
def _tests_of(text: str) -> tuple[ast.FunctionDef, ...]:
    return tuple(
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def with_tests(page: str) -> tuple[str, str]:
    """Return the table of lines and that of sections, of this page and of all tests.

    Raise `ValueError` for a line without a test, a section without either, or a name of neither.
    """
    texts = {
        str(f.relative_to(ROOT)): f.read_text(encoding="utf-8")
        for f in sorted((ROOT / "tests").rglob("test_*.py"))
    }
    lines = lines_of_the_list(page)
    citing = [
        test
        for file, text in texts.items()
        if file != "tests/unit/test_conformance.py"  # its citations are examples
        for test in citing_tests(text, file)
    ]
    shown = {line: [t for t in citing if line in t.lines] for line in lines}
    untested = [line for line, tests in shown.items() if not any(t.name for t in tests)]
    if untested:
        raise ValueError(f"docs/conformance.md: no test shows the lines {untested}")
    rows = ((str(line), _listed((t.file, t.name) for t in tests)) for line, tests in shown.items())
    return pipe_table(("line", "tests"), rows), _table_of_sections(set(lines), texts)


def _table_of_sections(lines: set[int], texts: Mapping[str, str]) -> str:
    def row(section: str, shown_by: object) -> tuple[str, str, str]:
        if shown_by == _WITHOUT_RULES:
            return section, "", "the section has no rules"
        if not isinstance(shown_by, dict) or not shown_by or set(shown_by) - {"lines", "tests"}:
            raise ValueError(f"{SECTIONS.name}: {section!r} has neither lines nor tests")
        numbers, tests = shown_by.get("lines", []), shown_by.get("tests", [])
        if unknown := set(numbers) - lines:
            raise ValueError(f"{SECTIONS.name}: {section!r} names the unknown lines {unknown}")
        names = [(file, name) for file, _, name in (test.partition("::") for test in tests)]
        for file, name in names:
            existing = {t.name for t in _tests_of(texts[file])} if file in texts else set()
            if file not in texts or (name and name not in existing):
                raise ValueError(f"{SECTIONS.name}: {section!r} names no test: {file}::{name}")
        return section, ", ".join(map(str, numbers)), _listed(names)

    sections = yaml.safe_load(SECTIONS.read_text(encoding="utf-8"))
    return pipe_table(("section", "lines", "tests"), (row(*item) for item in sections.items()))


def _listed(tests: Iterable[tuple[str, str]]) -> str:
    """Return tests as text, each module once."""
    names_by_file: dict[str, list[str]] = {}
    for file, name in tests:
        names_by_file.setdefault(file, []).append(name)
    return "; ".join(
        f"`{file}`" + "".join(f" `{name}`" for name in names if name)
        for file, names in names_by_file.items()
    )
