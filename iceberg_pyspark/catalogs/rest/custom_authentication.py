"""Creates an authentication from a user's own class, named in properties as in PyIceberg.

`auth.type` = `custom`, `auth.impl` = `module.Class`, and `auth.custom.<name>` for each argument of
the class. Only the user's properties are read: a server's properties `auth.*` are ignored
(`server_properties.py`). A class that is no authentication is never called, so that properties
cannot start any other code of the module's.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, cast

from iceberg_pyspark.catalogs.rest.authentication import Authentication
from iceberg_pyspark.errors import InvalidRequestError
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
            f"catalog '{catalog}': {IMPL} '{name}' is no authentication; the class needs the "
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
        raise InvalidRequestError(f"catalog '{catalog}': {IMPL} '{name}' is no class")
    return cls
