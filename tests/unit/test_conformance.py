"""The list of rules whose numbers comments and tests cite."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CITED = re.compile(r"docs/conformance\.md ((?:\d+(?:-\d+)?(?:,\s+| and )?)+)")


def lines() -> list[int]:
    text = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    return [int(n) for n in re.findall(r"^(\d+)\. ", text.partition("\n## B.")[0], re.MULTILINE)]


def cited(folder: str) -> set[int]:
    lines = set()
    for file in (ROOT / folder).rglob("*.py"):
        for numbers in CITED.findall(file.read_text(encoding="utf-8")):
            for first, last in re.findall(r"(\d+)(?:-(\d+))?", numbers):
                lines |= set(range(int(first), int(last or first) + 1))
    return lines


def test_the_list_has_each_number_once() -> None:
    assert lines() == list(range(1, 99))


def test_cited_numbers_are_in_the_list() -> None:
    numbers = set(lines())
    assert cited("iceberg_pyspark") <= numbers
    assert cited("tests") <= numbers
    assert len(cited("tests")) > 60
