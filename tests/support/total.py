"""Add up the JUnit files of several pytest runs: `python -m tests.support.total FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree


def total(folder: Path) -> str:
    """Return "N passed, N failed, N skipped", summed over all `*.xml` files of a folder."""
    counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for file in folder.glob("*.xml"):
        for suite in ElementTree.parse(file).getroot().iter("testsuite"):
            for name in counts:
                counts[name] += int(suite.get(name, "0"))
    failed = counts["failures"] + counts["errors"]
    passed = counts["tests"] - failed - counts["skipped"]
    return f"{passed} passed, {failed} failed, {counts['skipped']} skipped"


if __name__ == "__main__":
    print(total(Path(sys.argv[1])))  # noqa: T201
