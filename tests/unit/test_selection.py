"""The cases that `make test` runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import selection
from tests.selection import Case, cases_to_leave_out, left_out


def case(name: str, seconds: float, *lines: int) -> Case:
    return Case(f"tests/spark/test_x.py::{name}", seconds, {("x.py", n, n + 1) for n in lines})


def test_what_is_left_out_is_slow_and_shows_no_line_of_its_own() -> None:
    cases = [
        case("test_a[1]", 2, 1, 2),
        case("test_a[2]", 2, 1, 2, 3),
        case("test_a[3]", 2, 1, 2),
        case("test_a[4]", 2, 1, 4),
        case("test_quick[1]", 0.1, 1),
        case("test_quick[2]", 0.1, 1),
        case("test_alone", 9, 1),
        case("test_unmeasured[1]", 9),
        case("test_unmeasured[2]", 9),
    ]
    assert [c.node_id[-9:] for c in left_out(cases)] == ["test_a[1]", "test_a[3]"]


def test_a_test_keeps_a_case_on_each_read_path() -> None:
    cases = [case(f"test_a[{p}-{n}]", 2, 1) for p in ("native", "portable") for n in (1, 2)]
    cases.append(case("test_b", 1, 1, 2))
    rest = left_out(cases)
    assert len(rest) == 2
    assert {"native" in c.node_id for c in rest} == {True, False}


def test_of_every_test_a_case_runs_and_named_files_run_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "LEFT_OUT", tmp_path / "left_out.txt")
    (tmp_path / "left_out.txt").write_text("# why\nt.py::a[1]\nt.py::b[1]\nt.py::b[2]\n")
    cases = ["t.py::a[1]", "t.py::a[2]", "t.py::b[1]", "t.py::b[2]", "t.py::c"]
    assert cases_to_leave_out(cases, ["-q", "tests/spark"]) == {"t.py::a[1]"}
    assert cases_to_leave_out(cases, ["tests/spark/test_x.py"]) == set()
    assert cases_to_leave_out(cases, ["tests/spark/test_x.py::a[1]"]) == set()


def test_the_list_is_of_cases_in_order() -> None:
    lines = selection.LEFT_OUT.read_text(encoding="utf-8").splitlines()
    listed = [line for line in lines if not line.startswith("#")]
    assert listed == sorted(set(listed))
    assert all("[" in line for line in listed), "a test without parameters has one case, which runs"
