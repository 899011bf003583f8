"""Apache Iceberg for PySpark in pure Python.

Names are imported on first use, so the package also works without pyspark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from iceberg_pyspark.import_hooks import when_imported

if TYPE_CHECKING:
    from iceberg_pyspark import errors
    from iceberg_pyspark.arrow.write.variant_columns import (
        variants_from_json,
        variants_from_objects,
        variants_to_objects,
    )
    from iceberg_pyspark.errors import IcebergError
    from iceberg_pyspark.spark.data_source.source import IcebergDataSource
    from iceberg_pyspark.spark.installation import install
    from iceberg_pyspark.spark.session import IcebergSession
    from iceberg_pyspark.spark.spark_table import SparkTable
    from iceberg_pyspark.spec.schema import Schema
    from iceberg_pyspark.spec.snapshots import Snapshot
    from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
    from iceberg_pyspark.table.table import Table
    from iceberg_pyspark.table.table_catalog import TableCatalog, load_catalog, load_table

__all__ = [
    "IcebergDataSource",
    "IcebergError",
    "IcebergSession",
    "Schema",
    "Snapshot",
    "SnapshotSelector",
    "SparkTable",
    "Table",
    "TableCatalog",
    "errors",
    "install",
    "load_catalog",
    "load_table",
    "variants_from_json",
    "variants_from_objects",
    "variants_to_objects",
]

_MODULES = {
    "IcebergDataSource": "iceberg_pyspark.spark.data_source.source",
    "IcebergError": "iceberg_pyspark.errors",
    "IcebergSession": "iceberg_pyspark.spark.session",
    "Schema": "iceberg_pyspark.spec.schema",
    "Snapshot": "iceberg_pyspark.spec.snapshots",
    "SnapshotSelector": "iceberg_pyspark.table.reading.snapshot_selection",
    "SparkTable": "iceberg_pyspark.spark.spark_table",
    "Table": "iceberg_pyspark.table.table",
    "TableCatalog": "iceberg_pyspark.table.table_catalog",
    "errors": "iceberg_pyspark.errors",
    "install": "iceberg_pyspark.spark.installation",
    "load_catalog": "iceberg_pyspark.table.table_catalog",
    "load_table": "iceberg_pyspark.table.table_catalog",
    "variants_from_json": "iceberg_pyspark.arrow.write.variant_columns",
    "variants_from_objects": "iceberg_pyspark.arrow.write.variant_columns",
    "variants_to_objects": "iceberg_pyspark.arrow.write.variant_columns",
}

if not TYPE_CHECKING:
    # a type checker that saw `__getattr__` would accept every name as an attribute of the package

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'iceberg_pyspark' has no attribute '{name}'")
        module = import_module(_MODULES[name])
        value = module if name == "errors" else getattr(module, name)
        globals()[name] = value
        return value


def _say_how_to_install(captured: object) -> None:
    import_module("iceberg_pyspark.spark.bridge.install_advice").say_how_to_install(captured)


def _import_while_java_starts(gateway: Any) -> None:
    import_module("iceberg_pyspark.spark.bridge.early_imports").import_while_java_starts(gateway)


when_imported("pyspark.errors.exceptions.captured", _say_how_to_install)
when_imported("pyspark.java_gateway", _import_while_java_starts)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
