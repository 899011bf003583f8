from __future__ import annotations

import pytest

from tests.support.java_tables import JavaTables, java_tables
from tests.support.oracle import Oracle


@pytest.fixture(scope="session")
def java(oracle: Oracle) -> JavaTables:
    """Iceberg's Java library without Spark jobs, on the oracle's catalogs."""
    return java_tables(oracle)
