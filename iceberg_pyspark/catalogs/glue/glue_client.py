"""Calls of AWS Glue through botocore: settings and errors.

A change has three outcomes. If Glue answers that nothing was done, and botocore has sent the
request only once, the change is refused. After a server error, a lost connection, or a refusal of a
repeated request, it is unknown whether the first request took effect. A deletion is sent only once,
unless Glue refuses it because of its rate limit: a repeated deletion could hit what another client
has created under the name.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Mapping
from typing import Any

from iceberg_pyspark.catalogs.limited_sockets import (
    LimitedSocket,
    LimitReached,
    request_limits,
)
from iceberg_pyspark.errors import (
    CatalogError,
    CatalogUnavailableError,
    CommitStateUnknownError,
    InvalidRequestError,
    NotAuthorizedError,
)
from iceberg_pyspark.redaction import harmless_cause, secret_values, without_secrets
from iceberg_pyspark.spec.property_types import IntProperty

_MAX_RETRIES = IntProperty("glue.max-retries", 10, 0)
_AUTHORIZATION_CODES = (
    "AccessDeniedException",
    "ExpiredTokenException",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "UnrecognizedClientException",
)
_DELETIONS = ("delete_table", "delete_database")
_THROTTLING_CODES = ("ThrottlingException", "Throttling", "TooManyRequestsException")
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.1, 20.0
_SERVER_ERROR = 500
# for a request with its whole answer and all of botocore's retries
_REQUEST_S = 600.0
_LARGEST_ANSWER = 256 * 1024 * 1024
_TIMEOUT_CODES = ("OperationTimeoutException",)
"""Error codes with the HTTP status of a refusal that do not prove that nothing was done."""


_LOADERS: dict[str | None, Any] = {}
"""Botocore's loaders of AWS's descriptions of services, by the folders that they search."""


def _loader_like(session: Any) -> Any:
    """Return the first loader of a session with the same folders; it caches parsed descriptions.

    Parsing Glue's description takes a third of a second of processor time. Each catalog has a
    session of its own, and so has each unpickled copy of a catalog.
    """
    return _LOADERS.setdefault(
        session.get_config_variable("data_path"), session.get_component("data_loader")
    )


class GlueAnswerError(CatalogError):
    """An error answer of Glue.

    `code` is Glue's error code; `is_certain` means that nothing was done.
    """

    def __init__(self, message: str, code: str, is_certain: bool) -> None:
        super().__init__(message)
        self.code = code
        self.is_certain = is_certain

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.code, self.is_certain)


class GlueUnreachableError(CatalogUnavailableError):
    """The last attempt of a request did not reach Glue."""


class GlueClient:
    """A client of Glue, made from a catalog's properties; the first call connects."""

    def __init__(self, catalog: str, properties: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._properties = dict(properties)
        self._secrets = secret_values(properties)
        self._retries = _MAX_RETRIES.of(properties)
        self._clients: dict[int, Any] = {}
        self._pid = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_clients": {}}

    def __repr__(self) -> str:
        return f"GlueClient({self._catalog!r})"

    def call(self, operation: str, **arguments: Any) -> Any:
        """Call a Glue operation, such as `get_table`, and return its answer.

        Raise `GlueAnswerError` for an error answer, `CatalogUnavailableError` if no answer arrived.
        """
        if catalog_id := self._properties.get("glue.id"):
            arguments["CatalogId"] = catalog_id
        if operation not in _DELETIONS:
            return self._send(self._retries, operation, arguments)
        for attempt in range(self._retries):
            try:
                return self._send(0, operation, arguments)
            except GlueAnswerError as e:
                if e.code not in _THROTTLING_CODES:
                    raise
            time.sleep(min(_FIRST_WAIT_S * 2**attempt, _LONGEST_WAIT_S) * (0.5 + random.random()))
        return self._send(0, operation, arguments)

    def change(self, operation: str, **arguments: Any) -> None:
        """Call an operation that changes something.

        Raise `GlueAnswerError` or `CatalogUnavailableError` if nothing was done, and
        `CommitStateUnknownError` if it is unknown whether it was done.
        """
        try:
            self.call(operation, **arguments)
        except GlueUnreachableError as e:
            if operation in _DELETIONS:
                raise
            # botocore may have sent the request before
            raise CommitStateUnknownError(str(e)) from e
        except CatalogUnavailableError as e:
            raise CommitStateUnknownError(str(e)) from e
        except GlueAnswerError as e:
            if e.is_certain:
                raise
            raise CommitStateUnknownError(str(e)) from e

    def _send(self, retries: int, operation: str, arguments: Mapping[str, Any]) -> Any:
        from botocore.exceptions import (  # noqa: PLC0415
            BotoCoreError,
            ClientError,
            ConnectTimeoutError,
            EndpointConnectionError,
            NoCredentialsError,
            ParamValidationError,
            ProxyConnectionError,
        )

        unsent = (
            ConnectTimeoutError,
            EndpointConnectionError,
            NoCredentialsError,
            ProxyConnectionError,
        )
        try:
            client = self._client_here(retries)
            with request_limits(_REQUEST_S, _LARGEST_ANSWER):
                return getattr(client, operation)(**arguments)
        except LimitReached as e:
            raise CatalogUnavailableError(
                f"catalog '{self._catalog}': Glue at {client.meta.endpoint_url} gave no answer to "
                f"{operation}: {e}; try again, or check glue.endpoint"
            ) from None
        except ParamValidationError as e:
            raise InvalidRequestError(
                f"catalog '{self._catalog}': Glue refused the request as invalid: {self._text(e)}"
            ) from harmless_cause(e, self._secrets)
        except ClientError as e:
            raise self._answer(operation, e) from harmless_cause(e, self._secrets)
        except BotoCoreError as e:
            kind = GlueUnreachableError if isinstance(e, unsent) else CatalogUnavailableError
            raise kind(
                f"catalog '{self._catalog}': Glue gave no answer to {operation}: {self._text(e)}"
            ) from harmless_cause(e, self._secrets)

    def pages(self, operation: str, key: str, **arguments: Any) -> Iterator[Any]:
        """Yield the items of all pages of a list operation."""
        token: dict[str, str] = {}
        used_tokens = set[str]()
        while True:
            page = self.call(operation, **arguments, **token)
            yield from page.get(key) or ()
            following = page.get("NextToken")
            if not following:
                return
            if following in used_tokens:
                raise CatalogError(
                    f"catalog '{self._catalog}': {operation} names the same next page twice; its "
                    "list would never end"
                )
            used_tokens.add(following)
            token = {"NextToken": following}

    def _answer(self, operation: str, e: Any) -> CatalogError:
        code = str(e.response.get("Error", {}).get("Code", ""))
        metadata = e.response.get("ResponseMetadata", {})
        text = f"catalog '{self._catalog}': Glue answered {operation} with {self._text(e)}"
        if code in _AUTHORIZATION_CODES:
            return NotAuthorizedError(text)
        is_undecided = (
            metadata.get("HTTPStatusCode", 500) >= _SERVER_ERROR or code in _TIMEOUT_CODES
        )
        is_certain = not is_undecided and not metadata.get("RetryAttempts", 0)
        return GlueAnswerError(text, code, is_certain)

    def _text(self, e: Exception) -> str:
        return without_secrets(str(e), self._secrets)

    def _client_here(self, retries: int) -> Any:
        if self._pid != os.getpid():
            self._clients, self._pid = {}, os.getpid()
        clients = self._clients
        if retries not in clients:
            clients[retries] = self._new_client(retries)
        return clients[retries]

    def _new_client(self, retries: int) -> Any:
        try:
            from botocore.config import Config  # noqa: PLC0415
            from botocore.exceptions import BotoCoreError  # noqa: PLC0415
            from botocore.session import Session  # noqa: PLC0415
        except ImportError as e:
            raise InvalidRequestError(
                f"catalog '{self._catalog}': type 'glue' needs botocore; run "
                "pip install 'iceberg-pyspark[glue]'"
            ) from e
        try:
            session = Session(profile=self._properties.get("glue.profile-name"))
            session.register_component("data_loader", _loader_like(session))
            client = session.create_client(
                "glue",
                region_name=self._value("region"),
                endpoint_url=self._properties.get("glue.endpoint"),
                aws_access_key_id=self._value("access-key-id"),
                aws_secret_access_key=self._value("secret-access-key"),
                aws_session_token=self._value("session-token"),
                config=Config(
                    retries={
                        "total_max_attempts": retries + 1,
                        "mode": "standard",
                    }
                ),
            )
        except (BotoCoreError, ValueError) as e:
            raise InvalidRequestError(
                f"catalog '{self._catalog}': Glue cannot be reached as configured: "
                f"{self._text(e)}; set glue.region, glue.access-key-id and so on, or log in with "
                "AWS's own tools"
            ) from harmless_cause(e, self._secrets)
        _limit_connections(client)
        return client

    def _value(self, name: str) -> str | None:
        return self._properties.get(f"glue.{name}") or self._properties.get(f"client.{name}")


def _limit_connections(client: Any) -> None:
    """Let the connections of a client of botocore obey `request_limits`."""
    pools = client._endpoint.http_session._pool_classes_by_scheme
    for scheme, pool in pools.items():
        connection = type("_Connection", (_LimitedConnection, pool.ConnectionCls), {})
        pools[scheme] = type("_Pool", (pool,), {"ConnectionCls": connection})


class _LimitedConnection:
    sock: Any

    def connect(self) -> None:
        super().connect()  # type: ignore[misc] # the class of botocore that comes second
        self.sock = LimitedSocket(self.sock)
