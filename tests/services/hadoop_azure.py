"""The jar of `abfs`, Hadoop's file system for Azure, for the JVM of a test; kept after download."""

from __future__ import annotations

from pathlib import Path

from tests.services.hadoop_aws import hadoop_version
from tests.services.maven import kept_jar
from tests.services.server import SERVICES


def made_jars() -> list[Path]:
    """Return the jar, of any version, if it has been downloaded already, else an empty list."""
    return sorted(SERVICES.glob("hadoop-azure-*/*.jar"))[-1:]


def abfs_jar(hadoop: str | None = None) -> Path:
    """Return the jar for a version of Hadoop, or that of pyspark; skip the test without Maven."""
    version = hadoop or hadoop_version()
    artifact = f"org.apache.hadoop:hadoop-azure:{version}"
    return kept_jar("hadoop-azure", artifact, f"hadoop-azure-{version}")
