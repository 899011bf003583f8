"""Choose the cases of `make test`, which together run every line and branch that all cases run.

`python -m tests.selection FOLDER...` reads the output of `make coverage` in the folders, which is
the lines, branches and seconds of each case, and writes `tests/left_out.txt`: the cases that only
`make test-more` runs. A case stays in `make test` if one of these rules holds:

- it takes less than a fifth of a second, nothing of it is measured, or all cases of its file must
  run;
- it covers the most among the cases of its test and read path: every test runs at least once;
- it runs a line or branch of the package that no other remaining case runs.

Lines that run in Java or on Spark's executors are not counted; the second rule keeps a case for
them.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from xml.etree import ElementTree

LEFT_OUT = Path(__file__).parent / "left_out.txt"
ALL_CASES = "ICEBERG_ALL_CASES"
QUICK_SECONDS = 0.2
_HEADER = """\
# Cases that only `make test-more` runs: `make test` runs another case of the same test, and its
# cases together run all of their lines and branches. `make selection` writes this file. A case
# that is not in it runs.
"""
# Documentation tests run every page's code; code in separate processes is not measured. In the
# other files each case is another way to lose a row or a file, whatever lines it runs.
_WHOLE_FILES = re.compile(
    r"tests/(faults/|fuzz/|stores/test_\w*(commits|writers)|"
    r"catalogs/(rest/test_lost_answers|test_(killed_commits|concurrent_\w+|many_writers|"
    r"hive_catalog|\w*unanswered|\w*faults))|"
    r"spark/test_(documentation|dry_runs|faults|one_snapshot|damaged_tables|scan_planning|"
    r"scan_splits)|"
    r"unit/table/test_(purge_table|expire_snapshots|remove_orphan_files|rewrite_deletes|"
    r"rewrite_data_files|branches_of_replaced_tables))"
)
_READ_PATHS = re.compile(r"\b(portable|native)\b")

Arc: TypeAlias = tuple[str, int, int]
"""A file of the package and two consecutively executed lines in it."""


@dataclass
class Case:
    """One test case: its node id, its time and its executed arcs."""

    node_id: str
    seconds: float = 0.0
    arcs: set[Arc] = field(default_factory=set)

    @property
    def test(self) -> tuple[str, str]:
        """The name of the case's test, and the read path if the test has it as a parameter."""
        name, _, parameters = self.node_id.partition("[")
        path = _READ_PATHS.search(parameters)
        return name, path[1] if path else ""


def left_out(cases: Iterable[Case]) -> list[Case]:
    """Return the cases that are not needed for any line, branch or test, sorted by node id."""
    remaining: list[Case] = []
    rest: list[Case] = []
    for case in cases:
        is_quick = case.seconds < QUICK_SECONDS
        stays = is_quick or not case.arcs or _WHOLE_FILES.match(case.node_id)
        (remaining if stays else rest).append(case)
    covered = {arc for case in remaining for arc in case.arcs}
    tests = {case.test for case in remaining}
    groups: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in rest:
        groups[case.test].append(case)
    for test, group in groups.items():
        if test not in tests:
            best = min(group, key=lambda c: (-len(c.arcs - covered), c.seconds, c.node_id))
            covered |= best.arcs
            rest.remove(best)
    new = {case.node_id: case.arcs - covered for case in rest}
    while rest:
        best = max(rest, key=lambda c: (len(new[c.node_id]) / c.seconds, c.node_id))
        if not (gain := new[best.node_id]):
            break
        rest.remove(best)
        new = {case.node_id: new[case.node_id] - gain for case in rest}
    return sorted(rest, key=lambda c: c.node_id)


def cases_to_leave_out(node_ids: Iterable[str], arguments: Sequence[str]) -> set[str]:
    """Return the cases that a pytest run with these arguments leaves to `make test-more`.

    The set is empty if the arguments name files or tests, or if the environment asks for all cases.
    At least one case of every test runs, even if its parameters have changed since the list was
    written.
    """
    if ALL_CASES in os.environ or any("::" in a or a.endswith(".py") for a in arguments):
        return set()
    listed = set(LEFT_OUT.read_text(encoding="utf-8").splitlines())
    by_test: dict[str, list[str]] = defaultdict(list)
    for node_id in node_ids:
        by_test[node_id.partition("[")[0]].append(node_id)
    return {c for cases in by_test.values() if not listed.issuperset(cases) for c in cases} & listed


def read_cases(folders: Sequence[Path]) -> list[Case]:
    """Return the cases of all runs in the folders; a case's seconds are summed over runs."""
    cases: dict[str, Case] = {}
    for folder in folders:
        for file in sorted(folder.glob("*.xml")):
            for node_id, seconds in _seconds(file):
                cases.setdefault(node_id, Case(node_id)).seconds += seconds
        for file in sorted(folder.glob("coverage*")):
            for node_id, arcs in _arcs(file).items():
                if node_id in cases:
                    cases[node_id].arcs |= arcs
    return list(cases.values())


def _seconds(junit_file: Path) -> Iterator[tuple[str, float]]:
    for case in ElementTree.parse(junit_file).getroot().iter("testcase"):
        module, _, test_class = case.get("classname", "").partition(".Test")
        within = f"Test{test_class}::" if test_class else ""
        node_id = f"{module.replace('.', '/')}.py::{within}{case.get('name')}"
        yield node_id, float(case.get("time", "0"))


def _arcs(coverage_file: Path) -> Mapping[str, set[Arc]]:
    arcs: dict[str, set[Arc]] = defaultdict(set)
    with sqlite3.connect(f"file:{coverage_file}?mode=ro", uri=True) as database:
        rows = database.execute(
            "SELECT context.context, file.path, arc.fromno, arc.tono FROM arc "
            "JOIN context ON context.id = arc.context_id JOIN file ON file.id = arc.file_id"
        )
        for context, path, start, end in rows:
            arcs[context].add((path, start, end))
    return arcs


def main(folders: Sequence[Path]) -> None:
    """Write the list and print how much time it saves."""
    cases = read_cases(folders)
    if not any(case.arcs for case in cases):
        sys.exit(f"no measured case in {', '.join(map(str, folders))}: run `make selection`")
    rest = left_out(cases)
    text = _HEADER + "".join(f"{case.node_id}\n" for case in rest)
    LEFT_OUT.write_text(text, encoding="utf-8")
    seconds = sum(case.seconds for case in cases)
    saved = sum(case.seconds for case in rest)
    omitted = {case.node_id for case in rest}
    before, after = _covered(cases), _covered(c for c in cases if c.node_id not in omitted)
    print(  # noqa: T201
        f"{len(rest)} of {len(cases)} cases are left out, {saved:.0f} of {seconds:.0f} seconds; "
        f"lines and branches of all cases {before[0]:,} and {before[1]:,}, of those that stay "
        f"{after[0]:,} and {after[1]:,}"
    )


def _covered(cases: Iterable[Case]) -> tuple[int, int]:
    """Return the numbers of lines and of branches that the cases run."""
    arcs = {arc for case in cases for arc in case.arcs}
    lines = {(path, line) for path, *ends in arcs for line in ends if line > 0}
    return len(lines), len(arcs)


if __name__ == "__main__":
    main([Path(folder) for folder in sys.argv[1:]])
