"""Authentication of a REST catalog's client: the headers that it adds to each request.

`authentication_settings.py` chooses a class by the catalog's properties. A user may pass an
object of their own class, or name the class in their own properties
(`authentication_settings.py`).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Protocol


class Authentication(Protocol):
    """The interface of objects that authenticate the requests of a catalog."""

    def headers(self, method: str, url: str, body: bytes) -> Mapping[str, str]:
        """Return the headers to add to one request."""
        ...

    def renew(self) -> bool:
        """Renew the headers after the server refused them; return whether a retry is worthwhile."""
        ...


class NoAuthentication:
    """An authentication that adds no headers."""

    def headers(self, method: str, url: str, body: bytes) -> Mapping[str, str]:
        """Return no headers."""
        return {}

    def renew(self) -> bool:
        """Return False: there is nothing to renew."""
        return False


class BasicAuthentication:
    """An authentication with a user name and a password."""

    def __init__(self, user: str, password: str) -> None:
        token = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        self._headers = {"Authorization": f"Basic {token}"}

    def headers(self, method: str, url: str, body: bytes) -> Mapping[str, str]:
        """Return the header `Authorization`."""
        return self._headers

    def renew(self) -> bool:
        """Return False: there is nothing to renew."""
        return False
