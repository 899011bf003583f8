"""Storage properties of a table: the catalog's, then the server's, then vended credentials.

Open API specification of the REST catalog, `LoadTableResult` and `StorageCredential`. Later
properties replace earlier ones. Credentials apply to location prefixes:
`storage/vended_credentials.py` chooses the credentials for a location.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from iceberg_pyspark.catalogs.properties import CatalogProperties, storage_properties
from iceberg_pyspark.catalogs.rest.server_properties import taken_properties
from iceberg_pyspark.spec.json_fields import JsonObject
from iceberg_pyspark.storage.credential_renewal import RENEWAL
from iceberg_pyspark.storage.remote_signing import SIGNING
from iceberg_pyspark.storage.vended_credentials import VENDED_CREDENTIALS


def table_storage_properties(
    answer: JsonObject, *, catalog: str, uri: str, properties: Mapping[str, str]
) -> CatalogProperties:
    """Return the storage properties of the table in an answer; `properties` are the catalog's."""
    table_properties = taken_properties(catalog, uri, answer.string_map("config"), properties)
    all_properties = {**storage_properties(properties), **storage_properties(table_properties)}
    # the server's `config` must not set these: credentials have a list of their own, and this
    # client decides how to renew and to sign
    all_properties.pop(VENDED_CREDENTIALS, None)
    all_properties.pop(RENEWAL, None)
    all_properties.pop(SIGNING, None)
    credentials = vended_credentials(answer, catalog=catalog, uri=uri, properties=properties)
    return CatalogProperties(
        all_properties
        if credentials is None
        else {**all_properties, VENDED_CREDENTIALS: credentials}
    )


def vended_credentials(
    answer: JsonObject, *, catalog: str, uri: str, properties: Mapping[str, str]
) -> str | None:
    """Return the credentials in an answer as one storage property, or None if there are none.

    `properties` are the catalog's.
    """

    def config_of(credential: JsonObject) -> dict[str, str]:
        config = credential.string_map("config")
        return dict(storage_properties(taken_properties(catalog, uri, config, properties)))

    credentials = [
        {"prefix": o.string("prefix"), "config": config_of(o)}
        for o in answer.objects("storage-credentials")
    ]
    return json.dumps(credentials, separators=(",", ":")) if credentials else None
