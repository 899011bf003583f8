"""The jar of Google's connector for Hadoop, for the JVM of a test; kept after download."""

from __future__ import annotations

from pathlib import Path

from tests.services.maven import kept_jar
from tests.services.server import SERVICES

VERSION = "4.0.0"
_FOLDER = f"gcs-connector-{VERSION}"


def made_jars() -> list[Path]:
    """Return the jar if it has been downloaded already, else an empty list."""
    return list((SERVICES / _FOLDER).glob("*.jar"))


def connector_jar() -> Path:
    """Return the jar with all that it needs; skip the test if Maven cannot bring it."""
    artifact = f"com.google.cloud.bigdataoss:gcs-connector:{VERSION}:jar:shaded"
    return kept_jar("gcs-connector", artifact, _FOLDER)
