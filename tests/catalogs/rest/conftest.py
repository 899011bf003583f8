"""One server for the tests of this folder; each test uses new names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services.rest_fixture import rest_server
from tests.services.server import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with rest_server(tmp_path_factory.mktemp("rest")) as running:
        yield running
