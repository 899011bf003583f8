"""Services of a catalog for one table: new credentials, and signatures for requests to the store.

A storage property of the table describes the service. In the process of the catalog, it is an
object that the catalog registered; in other processes, an endpoint of the server, which is asked
with a token that belongs to the table and is never a secret of the catalog.
"""

from __future__ import annotations

import json
import os
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakValueDictionary

from iceberg_pyspark.errors import InvalidMetadataError, StorageError

if TYPE_CHECKING:
    from iceberg_pyspark.storage.http_answers import Received

_TIMEOUT_S = 30.0
_LARGEST_ANSWER = 16 * 1024 * 1024

Service = TypeVar("Service")
Description = TypeVar("Description")


class RegisteredServices(Generic[Service]):
    """The services that catalogs of this process have registered, by name."""

    def __init__(self) -> None:
        self._services: WeakValueDictionary[tuple[int, str], Service] = WeakValueDictionary()

    def register(self, name: str, service: Service) -> None:
        """Register a service for as long as another object references it."""
        # the process id is in the key because connections do not survive a fork
        self._services[os.getpid(), name] = service

    def get(self, name: str) -> Service | None:
        """Return a service, or None if it was registered in another process."""
        return self._services.get((os.getpid(), name))


def read_description(kind: type[Description], name: str, text: str) -> Description:
    """Return a service's description from the JSON text of the storage property `name`."""
    try:
        return kind(**json.loads(text))
    except (ValueError, TypeError):
        # not chained: the text may contain a token
        raise InvalidMetadataError(
            f"{name} is set by catalogs only, and this value is not one of theirs; leave it out"
        ) from None


def ask_endpoint(endpoint: str, token: str | None, method: str, who: str, **given: Any) -> Received:
    """Ask a server's endpoint with the token of a table; `given` are the arguments of `receive`.

    Raise `StorageError`, which calls the server `who`, if there is no answer.
    """
    try:
        # executors without httpx keep the credentials that they received
        import httpx  # noqa: PLC0415

        from iceberg_pyspark.storage.http_answers import receive  # noqa: PLC0415
    except ImportError:
        raise StorageError(
            "a package is missing to ask the catalog's server for credentials and signatures: "
            "pip install 'iceberg-pyspark[rest]'"
        ) from None
    headers = {**given.pop("headers", {}), "Accept": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    end_s = time.monotonic() + _TIMEOUT_S
    try:
        return receive(
            _client(os.getpid()),
            method,
            endpoint,
            end_s=end_s,
            size=_LARGEST_ANSWER,
            headers=headers,
            **given,
        )
    except httpx.HTTPError as e:
        # not chained: the exception contains the request and with it the token
        raise StorageError(f"{who} gave no answer ({type(e).__name__})") from None


@lru_cache(maxsize=1)
def _client(_process: int) -> Any:
    import httpx  # noqa: PLC0415 - as in `ask_endpoint`

    return httpx.Client(timeout=_TIMEOUT_S, follow_redirects=False)
