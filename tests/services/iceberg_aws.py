"""What Iceberg's own access to S3 in Java, S3FileIO, takes: jars from Maven, kept."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.services.maven import bring
from tests.services.server import absent, build_lock

_FAILSAFE = "dev.failsafe:failsafe:3.3.2"
"""What it repeats requests with."""


def aws_sdk_jar(version: str) -> Path:
    """The SDK that a release of Iceberg uses; its runtime for Spark has the rest."""
    return _jar(f"org.apache.iceberg:iceberg-aws-bundle:{version}", version)


def s3_file_io_jars(version: str) -> list[Path]:
    """The same with the classes of Iceberg, for a program that has its core alone."""
    return [
        aws_sdk_jar(version),
        _jar(f"org.apache.iceberg:iceberg-aws:{version}", version),
        _jar(_FAILSAFE, version),
    ]


def _jar(artifact: str, version: str) -> Path:
    """One jar; a test without a way to Maven's registry skips."""
    with build_lock(f"iceberg-aws-{version}") as folder:
        try:
            return bring(artifact, folder)
        except (OSError, subprocess.SubprocessError) as error:
            absent("S3FileIO", f"{artifact} did not come ({error!r:.300})")
