"""Creates a catalog from its name and properties, and finds the catalog of a table's name.

The types are a closed list: no catalog's class named in properties is imported. Without any
configuration, there is the embedded catalog: an SQLite file beside its tables in the folder
`iceberg-warehouse` of the working folder (`catalogs/sql/database_catalog.py`).
`catalog_properties.py` finds the properties.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from iceberg_pyspark.catalogs.catalog import Catalog, TableIdentifier, split_catalog
from iceberg_pyspark.catalogs.catalog_properties import (
    DEFAULT_NAME,
    configured_names,
    configured_properties,
    default_name,
)
from iceberg_pyspark.catalogs.hadoop.path_tables import PathCatalog, path_identifier
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.redaction import redact_uri
from iceberg_pyspark.spec.argument_types import check_text
from iceberg_pyspark.sql_text.names import is_path, parse_levels
from iceberg_pyspark.storage.store_properties import check_file_io_class

_LOCATING_PROPERTIES = ("type", "uri", "warehouse", "catalog-impl", "py-catalog-impl")
_TYPES = {
    "sql": "sql",
    "jdbc": "sql",
    "hadoop": "hadoop",
    "filesystem": "hadoop",
    "memory": "memory",
    "in-memory": "memory",
    "rest": "rest",
    "glue": "glue",
    "hive": "hive",
}
_TYPE_OF_SCHEME = {
    "http": "rest",
    "https": "rest",
    "thrift": "hive",
    "jdbc": "sql",
    "sqlite": "sql",
    "postgresql": "sql",
    "mysql": "sql",
    "mariadb": "sql",
}
# class names from users' Spark configurations; only these names are known, and no class is loaded
_TYPE_OF_JAVA_CLASS = {
    "org.apache.iceberg.jdbc.JdbcCatalog": "sql",
    "org.apache.iceberg.hadoop.HadoopCatalog": "hadoop",
    "org.apache.iceberg.inmemory.InMemoryCatalog": "memory",
    "org.apache.iceberg.rest.RESTCatalog": "rest",
    "org.apache.iceberg.hive.HiveCatalog": "hive",
    "org.apache.iceberg.aws.glue.GlueCatalog": "glue",
}


def load_catalog(name: str | None = None, **properties: str) -> Catalog:
    """Open a catalog; explicit properties win over the environment and `.pyiceberg.yaml`.

    Pass property names with dots and dashes as `**{"s3.region": "eu-west-1"}`. Without a name, open
    the default catalog, which is embedded in the working folder if nothing is configured for it.
    """
    environment = os.environ
    catalog_name = default_name(environment) if name is None else name
    check_text("catalog", catalog_name)
    if not catalog_name:
        raise InvalidRequestError("the catalog's name is empty; give a name")
    all_properties = {**configured_properties(catalog_name, environment), **_as_text(properties)}
    if catalog_name != DEFAULT_NAME and not any(map(all_properties.get, _LOCATING_PROPERTIES)):
        names = ", ".join(configured_names(environment)) or "none"
        raise InvalidRequestError(
            f"catalog '{catalog_name}' is not configured (configured are: {names}); give its "
            "type, uri and warehouse, "
            f"or set PYICEBERG_CATALOG__{catalog_name.upper().replace('-', '_')}__URI"
            + (
                f"; check the spelling of {', '.join(sorted(all_properties))}"
                if all_properties
                else ""
            )
        )
    check_file_io_class(f"catalog '{catalog_name}'", all_properties)
    match _type_of(catalog_name, all_properties):
        case "sql":
            # a catalog's modules are imported for this catalog alone; SQLAlchemy takes 0.3 seconds
            from iceberg_pyspark.catalogs.sql.database_catalog import open_sql_catalog  # noqa: PLC0415

            return open_sql_catalog(catalog_name, all_properties)
        case "hadoop":
            from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog  # noqa: PLC0415

            return FilesystemCatalog(catalog_name, all_properties)
        case "memory":
            from iceberg_pyspark.catalogs.memory_catalog import MemoryCatalog  # noqa: PLC0415

            return MemoryCatalog(catalog_name, all_properties)
        case "glue":
            from iceberg_pyspark.catalogs.glue.glue_catalog import GlueCatalog  # noqa: PLC0415

            return GlueCatalog(catalog_name, all_properties)
        case "hive":
            from iceberg_pyspark.catalogs.hive.hive_catalog import HiveCatalog  # noqa: PLC0415

            return HiveCatalog(catalog_name, all_properties)
        case _:
            return _rest_catalog(catalog_name, all_properties)


def resolve_table(
    name: str,
    *,
    catalog: str | None = None,
    catalog_properties: Mapping[str, str] | None = None,
    storage_properties: Mapping[str, str] | None = None,
) -> tuple[Catalog, TableIdentifier]:
    """Return the catalog and identifier for a name or path; the table is not loaded."""
    properties = dict(catalog_properties or {})
    storage = dict(storage_properties or {})
    if is_path(name):
        if catalog is not None or properties:
            raise InvalidRequestError(
                f"'{name}' is a path, which belongs to no catalog; remove the catalog options, or "
                "name the table as db.table"
            )
        return PathCatalog(storage), path_identifier(name)
    levels = parse_levels(name)
    if catalog is not None:
        # The form of spark.table is accepted too: catalog.db.table
        rest = levels[1:] if len(levels) > 2 and levels[0] == catalog else levels
        catalog_name = catalog
    elif properties:
        catalog_name, rest = default_name(os.environ), levels
    else:
        names = tuple(configured_names(os.environ))
        first, rest = split_catalog(levels, names)
        catalog_name = first or default_name(os.environ)
    identifier = TableIdentifier(namespace=rest[:-1], name=rest[-1])
    return load_catalog(catalog_name, **{**properties, **storage}), identifier


def _rest_catalog(name: str, properties: Mapping[str, str]) -> Catalog:
    try:
        # httpx is an extra, which other catalogs do not need
        from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog  # noqa: PLC0415
    except ModuleNotFoundError as e:
        if e.name != "httpx":
            raise
        raise UnsupportedFeatureError(
            f"catalog '{name}': type 'rest' needs httpx; run pip install 'iceberg-pyspark[rest]'"
        ) from e
    return RestCatalog(name, properties)


def _as_text(properties: Mapping[str, object]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for key, value in properties.items():
        if isinstance(value, bool):
            texts[key] = str(value).lower()
        elif value is not None:
            texts[key] = str(value)
    return texts


def _type_of(name: str, properties: Mapping[str, str]) -> str:
    if type_name := properties.get("type"):
        lower_name = type_name.lower()
        if lower_name not in _TYPES:
            raise UnsupportedFeatureError(
                f"catalog '{name}': type '{type_name}' is not known; there are {', '.join(_TYPES)}"
            )
        return _TYPES[lower_name]
    for key in ("catalog-impl", "py-catalog-impl"):
        if class_name := properties.get(key):
            if class_name not in _TYPE_OF_JAVA_CLASS:
                raise UnsupportedFeatureError(
                    f"catalog '{name}': '{key}' names the class {class_name}, and classes named "
                    "in properties are "
                    f"never loaded; set 'type' to one of {', '.join(_TYPES)}"
                )
            return _TYPE_OF_JAVA_CLASS[class_name]
    if uri := properties.get("uri"):
        scheme = uri.partition(":")[0].partition("+")[0].lower()
        if scheme not in _TYPE_OF_SCHEME:
            raise InvalidRequestError(
                f"catalog '{name}': its type cannot be derived from uri '{redact_uri(uri)}'; set "
                "'type' to one of "
                f"{', '.join(_TYPES)}"
            )
        return _TYPE_OF_SCHEME[scheme]
    return "sql"
