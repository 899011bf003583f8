"""Run the tests of commits on tables with manifest lists and on tables with root manifests."""

from __future__ import annotations

import pytest

from tests.support import commit_tables


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "with_lists(why): the test is about manifest lists alone")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "each_version" in metafunc.fixturenames:
        about_lists = metafunc.definition.get_closest_marker("with_lists") is not None
        versions = [2] if about_lists else [2, 4]
        metafunc.parametrize(
            "each_version", versions, indirect=True, ids=[f"version {v}" for v in versions]
        )


@pytest.fixture
def each_version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Set the format version that `commit_table` uses by default: 2, then 4."""
    version: int = request.param
    monkeypatch.setattr(commit_tables, "default_version", version)
    return version
