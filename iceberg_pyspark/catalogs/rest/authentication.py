"""Authentication of a REST catalog's client: the headers that it adds to each request.

`configured_authentication.py` chooses one by the catalog's properties. An authentication of the
user's own is a Python object, never a class named in properties.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Protocol


class Authentication(Protocol):
    """Authenticates the requests of a catalog."""

    def headers(self, method: str, url: str, body: bytes) -> Mapping[str, str]:
        """Headers to add to one request."""
        ...

    def renew(self) -> bool:
        """Called where the server refused the headers; whether new ones are worth an attempt."""
        ...


class NoAuthentication:
    """Nothing is added."""

    def headers(self, method: str, url: str, body: bytes) -> Mapping[str, str]:
        """None."""
        return {}

    def renew(self) -> bool:
        """There is nothing to renew."""
        return False


class BasicAuthentication:
    """A user name and a password."""

    def __init__(self, user: str, password: str) -> None:
        token = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        self._headers = {"Authorization": f"Basic {token}"}

    def headers(self, method: str, url: str, body: bytes) -> Mapping[str, str]:
        """The header `Authorization`."""
        return self._headers

    def renew(self) -> bool:
        """There is nothing to renew."""
        return False
