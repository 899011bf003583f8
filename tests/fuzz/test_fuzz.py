"""Some cases of `python -m tests.fuzz`: each ends in our own error or in a right answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.amounts import WORK
from tests.fuzz.all_targets import TARGETS
from tests.fuzz.supervisor import Worker
from tests.fuzz.targets import Target


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as started:
        yield started


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_no_raw_error_and_no_hang(
    target: Target, worker: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = target.in_tests * WORK
    report = worker.run(target, 0, cases)
    with capsys.disabled():
        print(f"\n{report}", end=" ")  # noqa: T201 - how many cases were tried must be seen
    problems = [
        f"{problem}  (python -m tests.fuzz --case {target.name}:{case})"
        for case, problem in sorted(report.problems.items())
    ]
    assert not problems, "\n".join(problems[:20])
    # A parser that refuses every input would pass the check above.
    assert report.outcomes["accepted"] > 0
