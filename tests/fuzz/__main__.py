"""Mutated inputs for every parser: `python -m tests.fuzz`, as in `make nightly`.

python -m tests.fuzz --only filter,schema --cases 500
python -m tests.fuzz --case filter:123          run one case again, in this process
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter

from tests.fuzz.all_targets import TARGETS, target_named
from tests.fuzz.supervisor import run_all

_SHOWN = 3000


def main() -> int:
    """Run what the arguments ask for; return 1 if a case failed, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="names of targets, comma-separated")
    parser.add_argument("--cases", type=int, help="cases per target instead of its own number")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--case", help="<target>:<number>: show this case's input and parse it")
    arguments = parser.parse_args()
    if arguments.case:
        return _one(arguments.case)
    names = arguments.only.split(",") if arguments.only else [t.name for t in TARGETS]
    workload = [(t, arguments.cases or t.cases) for t in map(target_named, names)]
    failed = False
    for report in run_all(workload, arguments.workers):
        print(report, flush=True)
        first = {_kind(p): (c, p) for c, p in sorted(report.problems.items(), reverse=True)}
        for kind, count in Counter(map(_kind, report.problems.values())).most_common():
            case, problem = first[kind]
            print(f"    {count:5} x {problem}   (--case {report.name}:{case})")
        failed = failed or bool(report.problems)
    return int(failed)


def _kind(problem: str) -> str:
    """Return a problem without numbers and quoted texts, so that equal problems are counted."""
    return re.sub(r"\W?\d+\W?|'[^']*'", "", problem)[:70]


def _one(name: str) -> int:
    target_name, _, number = name.partition(":")
    target = target_named(target_name)
    value = target.input_of(int(number))
    print(repr(value)[:_SHOWN])
    target.parse(value)
    print("accepted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
