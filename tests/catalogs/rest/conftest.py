"""One server for the tests of this folder; each test uses new names."""

from __future__ import annotations

import functools
import os
import ssl
from collections.abc import Iterator
from typing import Any

import pytest
from httpx import create_ssl_context

from tests.services.rest_fixture import rest_server
from tests.services.server import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with rest_server(tmp_path_factory.mktemp("rest")) as running:
        yield running


@pytest.fixture(scope="session", autouse=True)
def certificates_are_loaded_once() -> Iterator[None]:
    """Let clients share httpx's own certificates, which take each of them 30 milliseconds."""

    @functools.cache
    def usual(_file: str | None, _folder: str | None) -> ssl.SSLContext:
        return create_ssl_context()

    def shared(*, verify: Any, cert: Any, trust_env: bool) -> ssl.SSLContext:
        if verify is not True or cert is not None or not trust_env:
            return create_ssl_context(verify=verify, cert=cert, trust_env=trust_env)
        return usual(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx._transports.default.create_ssl_context", shared)
        yield
