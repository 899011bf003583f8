"""OAuth2 for REST catalogs: a fixed token, client credentials, and token exchange.

RFC 6749 section 4.4 (client credentials), RFC 8693 (token exchange), with Iceberg's property names.
A token is renewed shortly before it expires, and once if the server refuses it; if it cannot be
renewed, the old one is used until it expires. Times come from the monotonic clock, so a change of
the system clock has no effect.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx

from iceberg_pyspark.catalogs.rest.rest_session import AnswerLimits, remedy_of
from iceberg_pyspark.errors import (
    CatalogUnavailableError,
    InvalidMetadataError,
    InvalidRequestError,
    NotAuthorizedError,
)
from iceberg_pyspark.redaction import without_secrets
from iceberg_pyspark.spec.json_fields import JsonObject, parse_json
from iceberg_pyspark.spec.table_properties import bool_property, int_property
from iceberg_pyspark.storage.credentials.credential_renewal import Renewed
from iceberg_pyspark.storage.http_answers import receive

_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:"
_ACCESS_TOKEN = f"{_TOKEN_TYPE}access_token"
# in Java's order of precedence
SUBJECTS = tuple(
    f"{_TOKEN_TYPE}{kind}" for kind in ("id_token", "access_token", "jwt", "saml2", "saml1")
)
"""Properties that hold a token to exchange, named by the token's type."""

_DEFAULT_PATH = "v1/oauth/tokens"
_now_s = time.monotonic


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth2Settings:
    """The source and the parameters of tokens; secret fields are left out of the repr."""

    catalog: str
    server_uri: str
    credential: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    subject: tuple[str, str] | None = field(default=None, repr=False)
    scope: str = "catalog"
    parameters: Mapping[str, str] = field(default_factory=dict)
    lifetime_s: float = 3600.0
    refreshes: bool = True
    exchanges: bool = True
    limits: AnswerLimits = field(default_factory=AnswerLimits)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must never be shown."""
        client_secret = None if self.credential is None else self.credential.split(":", 1)[-1]
        subject = None if self.subject is None else self.subject[1]
        return tuple(s for s in (client_secret, self.credential, self.token, subject) if s)


def oauth2_settings(
    catalog: str, properties: Mapping[str, str], uri: str, limits: AnswerLimits
) -> OAuth2Settings:
    """Parse the OAuth2 settings of a catalog at `uri`.

    Without `oauth2-server-uri`, the catalog's own token endpoint is used. Raise
    `InvalidRequestError`.
    """
    server = properties.get("oauth2-server-uri") or _DEFAULT_PATH
    server_uri = urljoin(f"{uri}/", server)
    if urlsplit(server_uri).scheme not in ("http", "https"):
        raise InvalidRequestError(
            f"catalog '{catalog}': oauth2-server-uri must begin with http:// or https://"
        )
    subject = next(((kind, properties[kind]) for kind in SUBJECTS if kind in properties), None)
    settings = OAuth2Settings(
        catalog=catalog,
        server_uri=server_uri,
        credential=properties.get("credential"),
        token=properties.get("token"),
        subject=subject,
        scope=properties.get("scope", "catalog"),
        parameters={k: properties[k] for k in ("audience", "resource") if k in properties},
        lifetime_s=int_property(properties, "token-expires-in-ms", 3_600_000) / 1000,
        refreshes=bool_property(properties, "token-refresh-enabled", True),
        exchanges=bool_property(properties, "token-exchange-enabled", True),
        limits=limits,
    )
    if not settings.secrets:
        raise InvalidRequestError(
            f"catalog '{catalog}': OAuth2 needs the property 'credential' (client:secret) or "
            "'token'"
        )
    return settings


class OAuth2:
    """A bearer token, fetched on first use and renewed before it expires; thread-safe.

    In a token exchange, the actor token comes from `actor`, or else from the settings.
    """

    def __init__(
        self, settings: OAuth2Settings, client: httpx.Client, actor: OAuth2 | None = None
    ) -> None:
        self._settings = settings
        self._client = client
        self._actor = actor
        self._token = Renewed[str](f"token of catalog '{settings.catalog}'", _now_s)
        self._is_token_taken = False

    def __repr__(self) -> str:
        return f"OAuth2({self._settings!r})"

    def headers(self, method: str, url: str, body: bytes) -> Mapping[str, str]:
        """Return the header `Authorization`.

        Raise `NotAuthorizedError` or `CatalogUnavailableError` if no token can be fetched.
        """
        return {"Authorization": f"Bearer {self._current()}"}

    def renew(self) -> bool:
        """Discard a refused token; return whether the next request fetches a new token."""
        if self._settings.credential is None and self._settings.subject is None:
            return False
        self._token.forget()
        return True

    def _current(self) -> str:
        return self._token.get(self._renewed)

    def _renewed(self, old: str | None) -> tuple[str, float | None]:
        token, end_s = self._fetch(old)
        return token, end_s if self._settings.refreshes else None

    def _fetch(self, old: str | None) -> tuple[str, float | None]:
        s = self._settings
        if s.subject is not None and (old is None or s.credential is None):
            actor = s.token if self._actor is None else self._actor._current()
            return self._exchange_token(*s.subject, actor=actor)
        if old is None and s.token is not None and not self._is_token_taken:
            # the fixed token is used once; if the server refuses it, only the credential remains
            self._is_token_taken = True
            return s.token, _end_of(s.token, None)
        if old is None or s.credential is not None:
            return self._request_token()
        return self._exchange_token(_ACCESS_TOKEN, old, bearer=old) if s.exchanges else (old, None)

    def _request_token(self) -> tuple[str, float | None]:
        credential = self._settings.credential or ""
        client_id, separator, secret = credential.partition(":")
        form = {"grant_type": "client_credentials"}
        if separator:
            form["client_id"] = client_id.strip()
        form["client_secret"] = secret.strip() if separator else credential
        return self._fetch_token(form, {})

    def _exchange_token(
        self, kind: str, text: str, *, actor: str | None = None, bearer: str | None = None
    ) -> tuple[str, float | None]:
        form = {"grant_type": _EXCHANGE, "subject_token": text, "subject_token_type": kind}
        if actor is not None:
            form |= {"actor_token": actor, "actor_token_type": _ACCESS_TOKEN}
            bearer = actor
        return self._fetch_token(form, {"Authorization": f"Bearer {bearer}"} if bearer else {})

    def _fetch_token(
        self, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[str, float | None]:
        s = self._settings
        data = {**form, "scope": s.scope, **s.parameters}
        end_s = time.monotonic() + s.limits.time_s
        try:
            response = receive(
                self._client,
                "POST",
                s.server_uri,
                end_s=end_s,
                size=s.limits.size,
                data=data,
                headers=headers,
            )
        except httpx.HTTPError as e:
            remedy = remedy_of(e, s.limits, end_s) or "check oauth2-server-uri, or try again"
            raise CatalogUnavailableError(
                f"catalog '{s.catalog}': its OAuth2 server {s.server_uri} cannot be reached "
                f"({type(e).__name__}); {remedy}"
            ) from None
        where = f"the answer of the OAuth2 server {s.server_uri}"
        if response.status != 200:
            text = response.body.decode("utf-8", "replace")
            text = without_secrets(text, (*s.secrets, *form.values()))[:300]
            kind = CatalogUnavailableError if response.status >= 500 else NotAuthorizedError
            raise kind(
                f"catalog '{s.catalog}': {where} is {response.status}: {text}; check the "
                "properties credential, token, scope and oauth2-server-uri"
            )
        try:
            answer = JsonObject(parse_json(response.body, where))
            token, expires_in = answer.string("access_token"), _seconds(answer.value("expires_in"))
        except InvalidMetadataError:
            # raise without the cause: the answer may contain a token
            raise CatalogUnavailableError(
                f"catalog '{s.catalog}': {where} holds no access_token; check oauth2-server-uri"
            ) from None
        return token, _end_of(token, expires_in, s.lifetime_s)


def _seconds(value: Any) -> float | None:
    """Return a number of seconds, also one sent as text; None if it is missing or no number."""
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) else None


def _end_of(
    token: str, expires_in_s: float | None, lifetime_s: float | None = None
) -> float | None:
    """Return the monotonic time at which a token expires, or None if it is unknown."""
    if expires_in_s is None:
        expires_at = _expiry_of(token)
        expires_in_s = lifetime_s if expires_at is None else expires_at - time.time()
    return None if expires_in_s is None else _now_s() + expires_in_s


def _expiry_of(token: str) -> float | None:
    """Return when a JSON Web Token expires (claim `exp`), or None for any other token."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return None
    expires_at = claims.get("exp") if isinstance(claims, dict) else None
    return float(expires_at) if isinstance(expires_at, int | float) else None
