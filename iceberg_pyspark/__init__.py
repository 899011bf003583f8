"""Apache Iceberg for PySpark, with `pip install` and nothing else.

Names are loaded when they are first asked for, so that the package also serves where pyspark is
not installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iceberg_pyspark.spark.data_source.source import IcebergDataSource
    from iceberg_pyspark.spark.session import install
    from iceberg_pyspark.table.table import Table
    from iceberg_pyspark.table.table_catalog import TableCatalog, load_catalog

__all__ = ["IcebergDataSource", "Table", "TableCatalog", "install", "load_catalog"]

_MODULES = {
    "IcebergDataSource": "iceberg_pyspark.spark.data_source.source",
    "Table": "iceberg_pyspark.table.table",
    "TableCatalog": "iceberg_pyspark.table.table_catalog",
    "install": "iceberg_pyspark.spark.session",
    "load_catalog": "iceberg_pyspark.table.table_catalog",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'iceberg_pyspark' has no attribute '{name}'")
    found = getattr(import_module(_MODULES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
