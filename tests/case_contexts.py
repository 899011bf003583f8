"""A plugin of pytest: coverage records for each line which cases of tests run it."""

from __future__ import annotations

from collections.abc import Generator

import coverage
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, None, None]:
    """Name the case for as long as it runs, its fixtures included."""
    measured = coverage.Coverage.current()
    if measured is None:
        yield
        return
    measured.switch_context(item.nodeid)
    yield
    measured.switch_context("")
