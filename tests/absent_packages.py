"""A skip because a package is missing is a failure where services or the oracle are required.

CI requires them, and a test under `pytest.importorskip("obstore")` would otherwise never run there
without anybody noticing. This holds for tests and for files whose import skips.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TypeVar

import pytest

_Report = TypeVar("_Report", pytest.CollectReport, pytest.TestReport)

_VARIABLES = ("ICEBERG_REQUIRE_SERVICES", "ICEBERG_REQUIRE_ORACLE", "CI")
_REASON = "could not import "
"""How the reason of `pytest.importorskip` begins."""


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn the skip of a file into an error."""
    return _failed((yield))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the skip of a test or its fixtures into a failure."""
    return _failed((yield))


def _failed(report: _Report) -> _Report:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    if report.skipped and _REASON in reason and _are_required():
        report.outcome = "failed"
        report.longrepr = f"{reason}: install it, as {', '.join(_VARIABLES)} forbid this skip"
    return report


def _are_required() -> bool:
    return any(os.environ.get(name, "") not in ("", "0", "false") for name in _VARIABLES)
