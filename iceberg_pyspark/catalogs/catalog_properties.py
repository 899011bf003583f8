"""The properties of a catalog: a mapping that hides secrets, and the subset for storage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.redaction import MASK, redact_properties
from iceberg_pyspark.storage.restricted_io import LOCATION_OPTIONS
from iceberg_pyspark.storage.store_properties import STORAGE_PREFIXES

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
