"""Markers and flags of the test suite; fixtures live in the conftest.py of each folder."""

from __future__ import annotations

import os

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-oracle",
        action="store_true",
        default=os.environ.get("ICEBERG_REQUIRE_ORACLE", "") not in ("", "0"),
        help="fail instead of skip where Iceberg's Java runtime cannot be had "
        "(also ICEBERG_REQUIRE_ORACLE=1; CI sets it)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "cluster: starts Spark daemons in processes of their own (some 20 seconds each)"
    )
