from __future__ import annotations

import pytest

from tests.support.java_tables import JavaTables, java_tables
from tests.support.oracle import Oracle


@pytest.fixture(scope="session")
def java(oracle: Oracle) -> JavaTables:
    """Return Iceberg's Java library on the oracle's catalogs; it starts no Spark jobs."""
    return java_tables(oracle)
