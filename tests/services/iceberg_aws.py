"""The jars of S3FileIO, Iceberg's own access to S3 in Java: downloaded from Maven and kept."""

from __future__ import annotations

from pathlib import Path

from tests.services.maven import kept_jar

_FAILSAFE = "dev.failsafe:failsafe:3.3.2"
"""The library with which S3FileIO retries requests."""


def aws_sdk_jar(version: str) -> Path:
    """Return the AWS SDK jar of an Iceberg release; Iceberg's Spark runtime has the rest."""
    return _jar(f"org.apache.iceberg:iceberg-aws-bundle:{version}", version)


def s3_file_io_jars(version: str) -> list[Path]:
    """Return all jars for a program that otherwise has only Iceberg's core."""
    return [
        aws_sdk_jar(version),
        _jar(f"org.apache.iceberg:iceberg-aws:{version}", version),
        _jar(_FAILSAFE, version),
    ]


def _jar(artifact: str, version: str) -> Path:
    """Return one jar; skip the test if Maven's repository is not available."""
    return kept_jar("S3FileIO", artifact, f"iceberg-aws-{version}")
