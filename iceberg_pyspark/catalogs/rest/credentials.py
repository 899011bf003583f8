"""Storage properties of a table: the catalog's, then the server's, then vended credentials.

Open API specification of the REST catalog, `LoadTableResult` and `StorageCredential`. Later
properties replace earlier ones. Credentials apply to location prefixes:
`storage/credentials/vended_credentials.py` chooses the credentials for a location.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from iceberg_pyspark.catalogs.properties import CatalogProperties, storage_properties
from iceberg_pyspark.catalogs.rest.answers import config_of
from iceberg_pyspark.catalogs.rest.server_properties import taken_properties
from iceberg_pyspark.spec.json_fields import JsonObject
from iceberg_pyspark.storage.credentials.server_endpoints import (
    SERVER_PROPERTIES,
    server_property_names,
)
from iceberg_pyspark.storage.credentials.vended_credentials import VENDED_CREDENTIALS


def table_storage_properties(
    answer: JsonObject, *, catalog: str, uri: str, properties: Mapping[str, str]
) -> CatalogProperties:
    """Return the storage properties of the table in an answer; `properties` are the catalog's."""
    table_properties = taken_properties(catalog, uri, config_of(answer, "config"), properties)
    before = storage_properties(properties)
    sent = storage_properties(table_properties)
    servers = server_property_names(sent, before, before.get(SERVER_PROPERTIES))
    all_properties = {**before, **sent, SERVER_PROPERTIES: servers}
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

    def vended_properties(credential: JsonObject) -> dict[str, str]:
        config = config_of(credential, "config")
        return dict(storage_properties(taken_properties(catalog, uri, config, properties)))

    credentials = [
        {"prefix": o.string("prefix"), "config": vended_properties(o)}
        for o in answer.objects("storage-credentials")
    ]
    return json.dumps(credentials, separators=(",", ":")) if credentials else None
