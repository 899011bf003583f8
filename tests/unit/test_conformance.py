"""The list of rules whose numbers comments and tests cite."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.foreign_metadata import FOREIGN_METADATA

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


def test_there_is_one_form_of_a_citation() -> None:
    other = [
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for folder in ("iceberg_pyspark", "jobs", "tests")
        for file in (ROOT / folder).rglob("*.py")
        if file != Path(__file__).resolve()
        for line in file.read_text(encoding="utf-8").splitlines()
        if re.search(r"conformance(?!\.md \d)|(?<!docs/)conformance", line)
    ]
    assert other == []


def test_the_list_of_foreign_metadata_is_that_of_the_tests() -> None:
    text = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8").partition("\n## D.")[2]
    verdicts = {True: "read", False: "refused"}
    for case in FOREIGN_METADATA:
        assert f"| {case.name} | {verdicts[case.is_read]} | {verdicts[case.java_reads]} |" in text
