"""The text of `IcebergSession.describe()`: the features of Iceberg in a session."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.bridge.features import FEATURES

if TYPE_CHECKING:
    from iceberg_pyspark.spark.bridge.jvm import Bridge


def describe_session(spark: SparkSession, bridge: Bridge | None, portable_because: str) -> str:
    """Return the versions, then a line for each feature: whether it is native, else its
    replacement.
    """
    java = "not reached" if bridge is None else bridge.java_version
    lines = [
        f"iceberg-pyspark {package_version()}",
        f"Spark {spark.version}, Java {java}",
        f"Python {platform.python_version()}, pyarrow {pa.__version__}",
    ]
    if bridge is None:
        lines.append(f'portable, by format("iceberg-py") alone: {portable_because}')
        return "\n".join(lines)
    width = max(len(f.name) for f in FEATURES)
    for feature in FEATURES:
        why = bridge.missing_features.get(feature)
        state = "native" if why is None else f"not native: {feature.otherwise} ({why})"
        lines.append(f"{feature.name:<{width}}  {state}")
    return "\n".join(lines)


def package_version() -> str:
    """Return the version of this package."""
    try:
        return metadata.version("iceberg-pyspark")
    except metadata.PackageNotFoundError:
        return "(not installed as a package)"
