from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.oracle import Oracle, OracleUnavailableError, start_oracle


@pytest.fixture(scope="session")
def oracle(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Oracle]:
    """Yield a Spark session with Iceberg's Java runtime; without the jar, skip or (in CI) fail."""
    try:
        started = start_oracle(tmp_path_factory.mktemp("oracle"))
    except OracleUnavailableError as error:
        if request.config.getoption("--require-oracle"):
            pytest.fail(f"the oracle is required here: {error}")
        pytest.skip(str(error))
    yield started
    started.spark.stop()
