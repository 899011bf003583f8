"""A pytest plugin: coverage records for each line which test cases run it."""

from __future__ import annotations

from collections.abc import Generator

import coverage
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, None, None]:
    """Set the coverage context to the case's node id while the case and its fixtures run."""
    measured = coverage.Coverage.current()
    if measured is None:
        yield
        return
    measured.switch_context(item.nodeid)
    yield
    measured.switch_context("")
