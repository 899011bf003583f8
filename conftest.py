"""Markers, flags and settings of the test suite; each folder has its fixtures in its conftest."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

from tests.amounts import RUNS_MORE
from tests.selection import cases_to_leave_out

# Else each process that tests start compiles the package anew, which takes a second.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

pytest_plugins = ("tests.absent_packages",)

# pytest shows the compared values of a failed assertion only in modules that it rewrites
pytest.register_assert_rewrite("tests.support", "tests.faults.matrix")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-oracle",
        action="store_true",
        default=os.environ.get("ICEBERG_REQUIRE_ORACLE", "") not in ("", "0"),
        help="fail instead of skip where Iceberg's Java runtime cannot be had "
        "(also ICEBERG_REQUIRE_ORACLE=1; CI sets it)",
    )


def pytest_configure(config: pytest.Config) -> None:
    # No deadline: timing means nothing on a busy machine. Where CI is set, the examples are always
    # the same. ICEBERG_EXAMPLES replaces the number of examples of a test: tests that need more or
    # fewer take multiples of it.
    base = settings.get_profile("ci" if os.environ.get("CI") else "default")
    settings.register_profile(
        "tests",
        base,
        max_examples=int(os.environ.get("ICEBERG_EXAMPLES", 100 if RUNS_MORE else 10)),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("tests")
    config.addinivalue_line(
        "markers", "program: starts programs of Spark, each with a JVM of its own (some 20 seconds)"
    )
    config.addinivalue_line(
        "markers",
        "release(reason): in tests/spark, hangs on what releases of Spark do differently: runs on "
        "the newest (`make spark`) and on 4.1 (`make spark-oldest`)",
    )
    config.addinivalue_line(
        "markers",
        "once(reason): one of the cases of tests marked `release` that need not run on 4.1 too",
    )
    config.addinivalue_line(
        "markers",
        "more(reason): one more case of what the tests beside it show; runs where ICEBERG_MORE=1, "
        "as in `make test-more`",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if RUNS_MORE:
        return
    left_out = cases_to_leave_out([i.nodeid for i in items], config.invocation_params.args)
    more = [i for i in items if i.get_closest_marker("more") or i.nodeid in left_out]
    if more:
        config.hook.pytest_deselected(items=more)
        selection = set(items).difference(more)
        items[:] = [item for item in items if item in selection]
