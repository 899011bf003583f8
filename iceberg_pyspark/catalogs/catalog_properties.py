"""The properties of a catalog: their sources, the secrets among them, and those for storage.

Sources besides arguments are PyIceberg's file and environment variables. Precedence: explicit
properties, then `PYICEBERG_CATALOG__<NAME>__<KEY>`, then the first `.pyiceberg.yaml` of
$PYICEBERG_HOME, the home folder and the working folder. Catalog names are compared in lower case.
In the file, the mappings `auth` and `ssl` of a catalog stand for keys with dots:
`ssl: {cabundle: ca.pem}` sets `ssl.cabundle`. In the key of a variable, `__` stands for a dot and
`_` for a dash: `PYICEBERG_CATALOG__LAKE__S3__ACCESS_KEY_ID` sets `s3.access-key-id` of `lake`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.redaction import MASK, redact_properties
from iceberg_pyspark.storage.store_properties import LOCATION_OPTIONS, STORAGE_PREFIXES

TABLE_DEFAULT_PREFIX = "table-default."
TABLE_OVERRIDE_PREFIX = "table-override."
VIEW_DEFAULT_PREFIX = "view-default."
VIEW_OVERRIDE_PREFIX = "view-override."


_SHOWN_KEYS = (
    *("type", "uri", "warehouse", "catalog-impl", "io-impl", "py-io-impl", "prefix", "region"),
    *("client", "clients", "ugi", "scope", "audience", "resource", "oauth2-server-uri"),
    *("default-namespace", "namespace-separator", "unique-table-location", "cache-enabled"),
    *("scan-planning-mode", "snapshot-loading-mode", "native", "view-endpoints-supported"),
    *("lock-check-max-wait-time", "lock-check-min-wait-time", *LOCATION_OPTIONS),
)
_SHOWN_PREFIXES = (
    *STORAGE_PREFIXES,
    *("auth.", "cache.", "engine.", "glue.", "hadoop.", "hive.", "iceberg.", "jdbc.", "rest-"),
    *("rest.", "signer.", "ssl.", "sql.", "write.", TABLE_DEFAULT_PREFIX, TABLE_OVERRIDE_PREFIX),
    *(VIEW_DEFAULT_PREFIX, VIEW_OVERRIDE_PREFIX),
)
"""The properties of catalogs whose values may be shown; a value under another key may be a secret.
"""

_NO_SECRETS = (
    *("token-exchange-enabled", "token-expires-in-ms", "token-refresh-enabled"),
    "refresh-credentials-enabled",
)
"""The ends of properties that are shown although their names have the words of secrets."""


def shown_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return a catalog's properties with secrets, and the values of unknown keys, hidden."""
    return {
        key: properties[key]
        if key.endswith(_NO_SECRETS)
        else (value if key in _SHOWN_KEYS or key.startswith(_SHOWN_PREFIXES) else MASK)
        for key, value in redact_properties(properties).items()
    }


class CatalogProperties(Mapping[str, str]):
    """The configuration of one catalog; its repr hides secrets and values of unknown keys."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._values = dict(properties)

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"CatalogProperties({shown_properties(self._values)})"


def storage_properties(properties: Mapping[str, str]) -> CatalogProperties:
    """Return the properties for storage, without those of the catalog itself (URI, password).

    The settings of the locations that tables may read are storage properties.
    """
    return CatalogProperties(
        {
            k: v
            for k, v in properties.items()
            if k.startswith(STORAGE_PREFIXES) or k in LOCATION_OPTIONS
        }
    )


def properties_below(prefix: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties whose keys start with the prefix, without the prefix."""
    return {k.removeprefix(prefix): v for k, v in properties.items() if k.startswith(prefix)}


def required_property(name: str, properties: Mapping[str, str], key: str, remedy: str) -> str:
    """Return a required property; raise `InvalidRequestError` if it is missing or empty."""
    value = properties.get(key)
    if not value:
        raise InvalidRequestError(f"catalog '{name}' needs the property '{key}': {remedy}")
    return value


DEFAULT_NAME = "default"
_FILE_NAME = ".pyiceberg.yaml"
_PREFIX = "PYICEBERG_CATALOG__"
_GROUPS = ("auth", "ssl")
_DEFAULT_CATALOG = "PYICEBERG_DEFAULT_CATALOG"


def configured_properties(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return a catalog's properties from the file and the environment; empty if there are none."""
    file = _catalogs_of_file(environment).get(name.lower(), {})
    return {**file, **_catalogs_of_environment(environment).get(name.lower(), {})}


def configured_names(environment: Mapping[str, str]) -> list[str]:
    """Return the sorted names of the catalogs in the file and the environment."""
    return sorted({*_catalogs_of_file(environment), *_catalogs_of_environment(environment)})


def default_name(environment: Mapping[str, str]) -> str:
    """Return the name of the default catalog: the value of `default-catalog`, else `default`."""
    for key, value in environment.items():
        if key.upper() == _DEFAULT_CATALOG and value:
            return value
    configured_name = _file(environment).get("default-catalog")
    return configured_name if isinstance(configured_name, str) and configured_name else DEFAULT_NAME


def _catalogs_of_environment(environment: Mapping[str, str]) -> dict[str, dict[str, str]]:
    catalogs: dict[str, dict[str, str]] = {}
    for variable, value in environment.items():
        if not variable.upper().startswith(_PREFIX):
            continue
        name, separator, key = variable[len(_PREFIX) :].lower().partition("__")
        if not (name and separator and key):
            raise InvalidRequestError(
                f"environment variable {variable}: expected PYICEBERG_CATALOG__<NAME>__<KEY>"
            )
        key = key.replace("__", ".").replace("_", "-")
        catalogs.setdefault(name.replace("_", "-"), {})[key] = value
    return catalogs


def _catalogs_of_file(environment: Mapping[str, str]) -> dict[str, dict[str, str]]:
    mapping = _file(environment).get("catalog") or {}
    if not isinstance(mapping, dict):
        raise InvalidRequestError(f"{_FILE_NAME}: 'catalog' must map names to properties")
    catalogs: dict[str, dict[str, str]] = {}
    for name, properties in mapping.items():
        flat = dict(_flat(properties)) if isinstance(properties, dict) else {}
        if not isinstance(properties, dict) or None in flat.values():
            raise InvalidRequestError(
                f"{_FILE_NAME}: catalog '{name}' must map property names to plain values"
            )
        catalogs[str(name).lower()] = {k: v for k, v in flat.items() if v is not None}
    return catalogs


def _flat(properties: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, str | None]]:
    """Yield the properties, those of the mappings of `_GROUPS` by keys with dots.

    The value is None if it is no text: other mappings are mistakes, such as a password in braces.
    """
    for name, value in properties.items():
        key = f"{prefix}{name}".lower()
        if isinstance(value, dict) and key.split(".")[0] in _GROUPS:
            yield from _flat(value, f"{key}.")
        else:
            yield key, value if isinstance(value, str) else None


def _file(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the content of the first non-empty configuration file; every scalar is text."""
    for folder in (
        environment.get("PYICEBERG_HOME"),
        os.path.expanduser("~"),
        os.getcwd(),
    ):
        if not folder:
            continue
        path = os.path.join(folder, _FILE_NAME)
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, UnicodeDecodeError) as e:
            raise InvalidRequestError(f"cannot read the configuration {path}: {e}") from e
        content = _parse(text, path)
        if content:
            if not isinstance(content, dict):
                raise InvalidRequestError(f"configuration {path} must be a mapping")
            return {str(k).lower(): v for k, v in content.items()}
    return {}


def _parse(text: str, path: str) -> Any:
    # Spark's Python processes import this module again for every step, and mostly find no file
    import yaml  # noqa: PLC0415

    try:
        # the base loader creates only strings, lists and mappings
        return yaml.load(text, Loader=yaml.BaseLoader)
    except RecursionError:
        raise InvalidRequestError(f"configuration {path} is nested too deeply") from None
    except yaml.YAMLError as e:
        # raise without the cause and name only the line, because the text may contain secrets
        mark = getattr(e, "problem_mark", None)
        place = f" in line {mark.line + 1}" if mark is not None else ""
        raise InvalidRequestError(f"configuration {path} is not valid YAML{place}") from None
