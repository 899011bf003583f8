"""Parquet's own encryption with one key a file, for footer and columns, as Iceberg uses it."""

from __future__ import annotations

from typing import Any

from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spec.encryption import FileKey


def encryption_properties(key: FileKey | None) -> dict[str, Any]:
    """Return the argument of `ParquetWriter` that encrypts a file; none without a key."""
    if key is None:
        return {}
    properties = _module().create_encryption_properties(
        key.key, aad_prefix=key.aad_prefix, store_aad_prefix=False
    )
    return {"encryption_properties": properties}


def decryption_properties(key: FileKey | None) -> dict[str, Any]:
    """Return the argument of `ParquetFile` that decrypts a file; none without a key."""
    if key is None:
        return {}
    # an empty prefix is none
    properties = _module().create_decryption_properties(key.key, aad_prefix=key.aad_prefix or None)
    return {"decryption_properties": properties}


def _module() -> Any:
    import pyarrow.parquet.encryption as module  # noqa: PLC0415

    if not hasattr(module, "create_decryption_properties"):
        raise UnsupportedFeatureError(
            "encrypted Parquet files need pyarrow 25 or newer, on the driver and on executors: "
            "pip install 'iceberg-pyspark[encryption]'"
        )
    return module
