"""The list of rules whose numbers comments and tests cite, and the tests that show each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.generate import specification_lines
from tests.generate.specification_lines import (
    CONFORMANCE,
    CitingTest,
    cited_lines,
    citing_tests,
    lines_of_the_list,
    with_tests,
)
from tests.support.foreign_metadata import FOREIGN_METADATA

ROOT = Path(__file__).parents[2]
PAGE = CONFORMANCE.read_text(encoding="utf-8")


def cited(folder: str) -> set[int]:
    files = (ROOT / folder).rglob("*.py")
    return {n for file in files for n in cited_lines(file.read_text(encoding="utf-8"))}


def test_the_list_has_each_number_once() -> None:
    assert lines_of_the_list(PAGE) == list(range(1, 99))


def test_cited_numbers_are_in_the_list() -> None:
    numbers = set(lines_of_the_list(PAGE))
    assert cited("iceberg_pyspark") <= numbers
    assert cited("tests") <= numbers
    assert len(cited("tests")) > 60


def test_there_is_one_form_of_a_citation() -> None:
    other = [
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for folder in ("iceberg_pyspark", "jobs", "tests")
        for file in (ROOT / folder).rglob("*.py")
        if file not in (Path(__file__).resolve(), Path(specification_lines.__file__).resolve())
        if file.name != "reference_pages.py"
        for line in file.read_text(encoding="utf-8").splitlines()
        if re.search(r"conformance(?!\.md \d)|(?<!docs/)conformance", line)
    ]
    assert other == []


def test_the_list_of_foreign_metadata_is_that_of_the_tests() -> None:
    text = PAGE.partition("\n## D.")[2]
    verdicts = {True: "read", False: "refused"}
    for case in FOREIGN_METADATA:
        assert f"| {case.name} | {verdicts[case.is_read]} | {verdicts[case.java_reads]} |" in text


MODULE = """'''About docs/conformance.md 7-9.'''

# docs/conformance.md 1.
@decorated(by="x")
def test_a() -> None:
    pass


def test_line_4_b() -> None:
    # as in docs/conformance.md 2 and 3
    pass


def test_c() -> None:
    pass
"""


def test_a_test_shows_the_lines_that_it_cites() -> None:
    assert list(citing_tests(MODULE, "m")) == [
        CitingTest("m", "test_a", frozenset({1})),
        CitingTest("m", "test_line_4_b", frozenset({2, 3, 4})),
        CitingTest("m", "", frozenset({7, 8, 9})),
    ]


def test_a_line_without_a_test_is_an_error() -> None:
    page = PAGE.replace("\n## B.", "\n99. A new line.\n\n## B.", 1)
    with pytest.raises(ValueError, match=r"no test shows the lines \[99\]"):
        with_tests(page)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("S: {lines: [120]}", "'S' names the unknown lines {120}"),
        ("S: {tests: [tests/unit/test_doctor.py::test_gone]}", "test_doctor.py::test_gone"),
        ("S: {tests: [tests/unit/test_gone.py]}", "names no test: tests/unit/test_gone.py"),
        ("S: {}", "'S' has neither lines nor tests"),
        ("S: later", "'S' has neither lines nor tests"),
    ],
)
def test_a_section_names_lines_and_tests_that_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, section: str, message: str
) -> None:
    sections = tmp_path / "sections.yaml"
    sections.write_text(section)
    monkeypatch.setattr(specification_lines, "SECTIONS", sections)
    with pytest.raises(ValueError, match=re.escape(message)):
        with_tests(PAGE)
