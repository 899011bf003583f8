"""An answer of the server: status, headers and JSON, and the error that it means.

Open API specification of the REST catalog, `IcebergErrorResponse`: `error.type` is the name of a
Java exception, `error.code` repeats the status. `commits.py` decides what an error means for a
commit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from iceberg_pyspark.errors import (
    AlreadyExistsError,
    CatalogError,
    CatalogUnavailableError,
    CommitConflictError,
    IcebergError,
    InvalidMetadataError,
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    NotAuthorizedError,
    NotFoundError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.redaction import without_secrets
from iceberg_pyspark.spec.json_fields import JsonObject, parse_json

T = TypeVar("T")

_SHOWN_CHARACTERS = 500
_LOGIN_EXPIRED = 419
NOT_MODIFIED = 304
UNAUTHORIZED_STATUSES = (401, _LOGIN_EXPIRED)
CONFLICT = 409
PROXY_LOGIN = 407
TOO_MANY_REQUESTS = 429
PROXY_REMEDY = "check rest.client.proxy.username and rest.client.proxy.password"

_BY_TYPE: Mapping[str, type[IcebergError]] = {
    "NoSuchNamespaceException": NoSuchNamespaceError,
    "NoSuchTableException": NoSuchTableError,
    "NoSuchIcebergTableException": NoSuchTableError,
    "NoSuchViewException": NoSuchViewError,
    "NamespaceNotEmptyException": NamespaceNotEmptyError,
    "CommitFailedException": CommitConflictError,
    "UnsupportedOperationException": UnsupportedFeatureError,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of the server; `request` is the method and path of the request, for messages.

    `repeated` is true if an earlier attempt may have been carried out and its answer was lost.
    """

    request: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    repeated: bool = False

    @property
    def is_success(self) -> bool:
        """Whether the status is a success (2xx)."""
        return 200 <= self.status < 300

    def read(self, parse: Callable[[JsonObject], T]) -> T:
        """Parse the body's JSON with `parse`; an error in the body names the request.

        Raise `InvalidMetadataError` or `UnsupportedFeatureError`.
        """
        try:
            return parse(JsonObject(parse_json(self.body, "body")))
        except (InvalidMetadataError, UnsupportedFeatureError) as e:
            text = without_secrets(str(e), self.secrets)
            raise type(e)(f"answer to {self.request}: {text}") from None

    @property
    def error_type(self) -> str:
        """The name of the Java exception in the answer; empty if there is none."""
        return _text(self._error(), "type")

    def message(self) -> str:
        """Return the server's error message, without secrets."""
        text = _text(self._error(), "message") or self.body.decode("utf-8", "replace").strip()
        excerpt = without_secrets(text, self.secrets)[:_SHOWN_CHARACTERS]
        return f"{self.request} was answered with {self.status}: {excerpt or 'no message'}"

    def _error(self) -> Mapping[str, Any]:
        try:
            content = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        error = content.get("error") if isinstance(content, dict) else None
        return error if isinstance(error, dict) else {}


def _text(error: Mapping[str, Any], key: str) -> str:
    value = error.get(key)
    return value if isinstance(value, str) else ""


def config_of(content: JsonObject, key: str) -> dict[str, str]:
    """Return an object of properties; a missing one is empty.

    As in Java, nulls are left out, and numbers and booleans count as their JSON text.
    """
    values = content.optional_object(key)
    if values is None:
        return {}
    return {
        name: json.dumps(value) if isinstance(value, int | float) else values.string(name)
        for name in values.names()
        if (value := values.value(name)) is not None
    }


def error_of(
    answer: Answer,
    catalog: str,
    *,
    missing: type[NotFoundError] = NotFoundError,
    existing: type[AlreadyExistsError] = AlreadyExistsError,
) -> IcebergError:
    """Return the error that an unsuccessful answer means.

    `missing` and `existing` are the errors for a 404 and a 409 of this request if the server does
    not specify the error.
    """
    message = f"catalog '{catalog}': {answer.message()}"
    error_class = _BY_TYPE.get(answer.error_type)
    match answer.status:
        case 401 | 403 | 419:
            return NotAuthorizedError(f"{message}; check the catalog's credentials and rights")
        case 407:
            # only a proxy answers so, and it has not passed the request on
            return CatalogUnavailableError(f"{message}; {PROXY_REMEDY}")
        case 404:
            return (
                error_class if error_class and issubclass(error_class, NotFoundError) else missing
            )(message)
        case 409:
            if error_class is not None:
                return error_class(message)
            return _already_there(answer, existing)(message)
        case 406 | 501:
            return UnsupportedFeatureError(message)
        case 429 | 500 | 502 | 503 | 504:
            return CatalogUnavailableError(f"{message}; try again later")
        case status if 300 <= status < 400:
            return CatalogError(
                f"{message}; redirects are not followed, as credentials would go along: set the "
                "catalog's 'uri' to the address that serves it"
            )
        case status if 400 <= status < 500:
            return (error_class or InvalidRequestError)(message)
        case _:
            return CatalogError(message)


def _already_there(answer: Answer, existing: type[AlreadyExistsError]) -> type[AlreadyExistsError]:
    if answer.error_type != "AlreadyExistsException" or existing is not AlreadyExistsError:
        return existing
    text = answer.message()
    if "Namespace already exists" in text:
        return NamespaceAlreadyExistsError
    return TableAlreadyExistsError if "Table already exists" in text else AlreadyExistsError
