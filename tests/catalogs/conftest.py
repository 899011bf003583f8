"""Servers of databases, one for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services.databases import DatabaseServer, new_database
from tests.services.mysql import mariadb
from tests.services.postgres import postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[DatabaseServer]:
    with postgres() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[DatabaseServer]:
    with mariadb() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_uri(postgres_server: DatabaseServer) -> str:
    """A database that many tests use."""
    return new_database(postgres_server)


@pytest.fixture(scope="session")
def mariadb_uri(mariadb_server: DatabaseServer) -> str:
    """The same."""
    return new_database(mariadb_server)
