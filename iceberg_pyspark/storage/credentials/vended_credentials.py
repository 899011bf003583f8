"""Select the storage properties for a location: the table's, or those vended for a prefix.

A REST catalog may vend credentials for some locations only (`storage-credentials` of its answer).
They are passed as one storage property, `storage.credentials`: the JSON list of the answer, with a
`prefix` and a `config` in each entry. The longest prefix wins; it must end at the end of a folder
name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.storage.credentials.server_endpoints import with_vended
from iceberg_pyspark.storage.files.places import is_below

VENDED_CREDENTIALS = "storage.credentials"
"""The storage property with the credentials that a catalog vends by prefix."""


def properties_at(location: str, properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties for one location; properties vended for it override the table's.

    An address of the store that the server has set gets only the server's credentials
    (`server_endpoints.py`); raise `LocationRefusedError` if it has sent none.

    >>> vended = '[{"prefix": "s3://b/t", "config": {"s3.access-key-id": "k"}}]'
    >>> properties_at("s3://b/t/data/f", {"s3.region": "r", "storage.credentials": vended})
    {'s3.region': 'r', 's3.access-key-id': 'k'}
    >>> properties_at("s3://b/t2/data/f", {"s3.region": "r", "storage.credentials": vended})
    {'s3.region': 'r'}
    """
    text = properties.get(VENDED_CREDENTIALS)
    if text is None:
        return with_vended(location, properties, {})
    own = {k: v for k, v in properties.items() if k != VENDED_CREDENTIALS}
    entry = _entry_at(location, text)
    return with_vended(location, own, {} if entry is None else dict(entry[1]))


def prefix_at(location: str, properties: Mapping[str, str]) -> str | None:
    """Return the prefix whose credentials apply to a location, or None if the table's own apply."""
    text = properties.get(VENDED_CREDENTIALS)
    entry = None if text is None else _entry_at(location, text)
    return None if entry is None else entry[0]


def _entry_at(location: str, text: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    return next((entry for entry in vended_entries(text) if _is_for(entry[0], location)), None)


def _is_for(prefix: str, location: str) -> bool:
    scheme, separator, rest = prefix.partition("://")
    if not (separator and rest):
        # `s3` and `s3://` apply to all stores of the kind
        return location.partition("://")[0].lower() == scheme.lower()
    return is_below(location, prefix)


@lru_cache(maxsize=64)
def vended_entries(text: str) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Return the prefixes with their properties, longest first; raise `InvalidMetadataError`."""
    try:
        entries = [
            (str(e["prefix"]), tuple((str(k), str(v)) for k, v in e["config"].items()))
            for e in json.loads(text)
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        # not chained: the text contains secrets
        raise InvalidMetadataError(
            f"{VENDED_CREDENTIALS} is no list of objects with 'prefix' and 'config' "
            f"({type(e).__name__})"
        ) from None
    return tuple(sorted(entries, key=lambda entry: len(entry[0]), reverse=True))
