"""Print the number of points that the fault matrix tried, at the end of the run."""

from __future__ import annotations

import pytest

from tests.faults.matrix import TRIED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TRIED:
        terminalreporter.write_line(
            f"fault matrix: {sum(TRIED.values()):,} points tried of {len(TRIED)} operations "
            f"on {len({kind for kind, _ in TRIED})} kinds of catalogs"
        )
