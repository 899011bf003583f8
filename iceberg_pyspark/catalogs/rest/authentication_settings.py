"""Creates the authentication that a catalog's properties ask for, and that of single tables.

`rest.auth.type` chooses, as in Java, or `auth.type`, as in PyIceberg; without these properties,
`token` or `credential` mean OAuth2. A
server may issue a token for one table, or a token to exchange for such a token (Open API
specification of the REST catalog, `LoadTableResult`).

Creates an authentication from a user's own class, named in properties as in PyIceberg.

`auth.type` = `custom`, `auth.impl` = `module.Class`, and `auth.custom.<name>` for each argument of
the class. Only the user's properties are read: a server's properties `auth.*` are ignored
(`server_properties.py`). A class that is not an authentication is never called, so that properties
cannot start any other code of the module's.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, cast

import httpx

from iceberg_pyspark.catalogs.rest.authentication import (
    Authentication,
    BasicAuthentication,
    NoAuthentication,
)
from iceberg_pyspark.catalogs.rest.oauth2 import SUBJECTS, OAuth2, oauth2_settings
from iceberg_pyspark.catalogs.rest.rest_session import HttpSettings
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.redaction import harmless_cause, secret_values, without_secrets

IMPL = "auth.impl"
_ARGUMENT = "auth.custom."


class _AuthorizationHeader:
    """An authentication by an object with the method of PyIceberg's class `AuthManager`."""

    def __init__(self, auth_header: Callable[[], str | None]) -> None:
        self._auth_header = auth_header

    def headers(self, method: str, url: str, body: bytes) -> Mapping[str, str]:
        """Return the header `Authorization`, or no header if the object has no value for it."""
        value = self._auth_header()
        return {} if value is None else {"Authorization": value}

    def renew(self) -> bool:
        """Return False: the object is asked for each request, and renews its value itself."""
        return False


def custom_authentication_of(catalog: str, properties: Mapping[str, str]) -> Authentication:
    """Return an object of the class that `auth.impl` names; raise `InvalidRequestError`."""
    name = properties.get(IMPL, "")
    cls = _class(catalog, name)
    is_pyicebergs = callable(getattr(cls, "auth_header", None))
    if not is_pyicebergs and not all(callable(getattr(cls, m, None)) for m in ("headers", "renew")):
        raise InvalidRequestError(
            f"catalog '{catalog}': {IMPL} '{name}' is not an authentication; the class needs the "
            "method auth_header() of PyIceberg's AuthManager, or the methods headers() and renew() "
            "of iceberg_pyspark.catalogs.rest.authentication.Authentication"
        )
    # a variable of the environment cannot contain the underscore of an argument's name
    arguments = {
        key[len(_ARGUMENT) :].replace("-", "_"): value
        for key, value in properties.items()
        if key.startswith(_ARGUMENT)
    }
    try:
        authentication = cls(**arguments)
    except Exception as e:  # noqa: BLE001 - the user's class may raise anything
        secrets = secret_values(properties)
        raise InvalidRequestError(
            f"catalog '{catalog}': {IMPL} '{name}' cannot be created with the arguments "
            f"{', '.join(sorted(arguments)) or 'none'} ({type(e).__name__}: "
            f"{without_secrets(str(e), secrets):.300}); check the properties {_ARGUMENT}*"
        ) from harmless_cause(e, secrets)
    if is_pyicebergs:
        return _AuthorizationHeader(authentication.auth_header)
    return cast(Authentication, authentication)


def _class(catalog: str, name: str) -> type[Any]:
    module, _, class_name = name.rpartition(".")
    if not module or not all(part.isidentifier() for part in name.split(".")):
        raise InvalidRequestError(
            f"catalog '{catalog}': auth.type = custom needs {IMPL} = module.Class, not '{name}'"
        )
    try:
        cls = getattr(importlib.import_module(module), class_name)
    except Exception as e:
        # the import runs the module, which can fail with any error
        raise InvalidRequestError(
            f"catalog '{catalog}': the class {IMPL} '{name}' cannot be imported "
            f"({type(e).__name__}: {e}); check its name, and that Python on the driver finds its "
            "module; executors do not need it"
        ) from e
    if not isinstance(cls, type):
        raise InvalidRequestError(f"catalog '{catalog}': {IMPL} '{name}' is not a class")
    return cls


AUTH_TYPE = "rest.auth.type"
PYICEBERG_AUTH_TYPE = "auth.type"
_USER = "rest.auth.basic.username"
_PASSWORD = "rest.auth.basic.password"
_TYPES = ("none", "basic", "oauth2", "sigv4")
_PYICEBERG_TYPES = ("noop", "basic", "custom")


def authentication_of(
    catalog: str, properties: Mapping[str, str], settings: HttpSettings, client: httpx.Client
) -> Authentication:
    """Return the authentication that a catalog's properties ask for."""
    kind = properties.get(AUTH_TYPE, "").lower()
    if any(key.startswith("auth.") for key in properties):
        return _pyiceberg_authentication(catalog, properties, kind)
    if not kind:
        # the older properties of Java and PyIceberg
        if properties.get("rest.sigv4-enabled", "").lower() == "true":
            kind = "sigv4"
        else:
            kind = "oauth2" if "token" in properties or "credential" in properties else "none"
    match kind:
        case "none":
            return NoAuthentication()
        case "basic":
            return _basic(catalog, properties, AUTH_TYPE, (_USER, _PASSWORD))
        case "oauth2":
            return OAuth2(
                oauth2_settings(catalog, properties, settings.uri, settings.limits), client
            )
        case "sigv4":
            return _sigv4(catalog, properties)
        case _:
            raise UnsupportedFeatureError(
                f"catalog '{catalog}': {AUTH_TYPE} '{kind}' is not known; there "
                f"are {', '.join(_TYPES)}, and classes named there are never loaded: name your own "
                f"Python class with {PYICEBERG_AUTH_TYPE} = custom and {IMPL} = module.Class"
            )


def _pyiceberg_authentication(
    catalog: str, properties: Mapping[str, str], other_kind: str
) -> Authentication:
    """Return the authentication of PyIceberg's properties `auth.*`."""
    if other_kind:
        raise InvalidRequestError(
            f"catalog '{catalog}': {AUTH_TYPE} and the properties auth.* are both set; remove one"
        )
    kind = properties.get(PYICEBERG_AUTH_TYPE, "").lower()
    if kind != "custom" and IMPL in properties:
        raise InvalidRequestError(
            f"catalog '{catalog}': {IMPL} needs {PYICEBERG_AUTH_TYPE} = custom, not '{kind}'"
        )
    match kind:
        case "noop":
            return NoAuthentication()
        case "basic":
            names = ("auth.basic.username", "auth.basic.password")
            return _basic(catalog, properties, PYICEBERG_AUTH_TYPE, names)
        case "custom":
            return custom_authentication_of(catalog, properties)
        case _:
            raise UnsupportedFeatureError(
                f"catalog '{catalog}': {PYICEBERG_AUTH_TYPE} '{kind}' is not known here; there are "
                f"{', '.join(_PYICEBERG_TYPES)}; for OAuth2 set 'credential' (client:secret), "
                "'oauth2-server-uri' and 'scope' instead"
            )


def _basic(
    catalog: str, properties: Mapping[str, str], type_key: str, names: tuple[str, str]
) -> Authentication:
    user, password = map(properties.get, names)
    if user is None or password is None:
        raise InvalidRequestError(
            f"catalog '{catalog}': {type_key} = basic needs {' and '.join(names)}"
        )
    return BasicAuthentication(user, password)


TABLE_TOKENS = ("token", *SUBJECTS)
"""The keys of a table's `config` that belong to the client, not to the table's storage."""


def table_authentication_of(
    catalog: str,
    properties: Mapping[str, str],
    tokens: Mapping[str, str],
    own: Authentication,
    settings: HttpSettings,
    client: httpx.Client,
) -> Authentication | None:
    """Return the authentication of a table's requests, or None to use the catalog's, `own`.

    `tokens` holds what the server sent for the table: a token, or else a token to exchange, with
    the catalog's token as the actor. If the catalog uses another kind of authentication, the user
    has chosen that kind, and it is kept.
    """
    if not isinstance(own, OAuth2 | NoAuthentication):
        return None
    parameters = {k: v for k, v in properties.items() if k not in ("credential", *TABLE_TOKENS)}
    if "token" in tokens:
        settings_of_table = oauth2_settings(
            catalog, {**parameters, "token": tokens["token"]}, settings.uri, settings.limits
        )
        return OAuth2(settings_of_table, client)
    if not tokens or not isinstance(own, OAuth2):
        return None
    exchanging = oauth2_settings(catalog, {**parameters, **tokens}, settings.uri, settings.limits)
    return OAuth2(exchanging, client, own)


def _sigv4(catalog: str, properties: Mapping[str, str]) -> Authentication:
    try:
        # botocore is an extra, and few catalogs sign requests
        from iceberg_pyspark.catalogs.rest.sigv4 import sigv4_of  # noqa: PLC0415
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] != "botocore":
            raise
        raise UnsupportedFeatureError(
            f"catalog '{catalog}': signing its requests needs botocore; run pip install "
            "'iceberg-pyspark[rest-sigv4]'"
        ) from e
    return sigv4_of(catalog, properties)
