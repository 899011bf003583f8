"""A Hive metastore; at the end of the run, the number of points that the fault matrix tried."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.matrix import TRIED
from tests.services.hive import hive_metastore, thrift_uri


@pytest.fixture(scope="session")
def hive_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the URI of a metastore that all tests of this folder share."""
    with hive_metastore(tmp_path_factory.mktemp("hive")) as server:
        yield thrift_uri(server)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TRIED:
        terminalreporter.write_line(
            f"fault matrix: {sum(TRIED.values()):,} points tried of {len(TRIED)} operations "
            f"on {len({kind for kind, _ in TRIED})} kinds of catalogs"
        )
