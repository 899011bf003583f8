"""The jar of Google's connector for Hadoop, for the JVM of a test; kept after download."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.services.maven import bring
from tests.services.server import SERVICES, absent, build_lock

VERSION = "4.0.0"


def made_jars() -> list[Path]:
    """Return the jar if it has been downloaded already, else an empty list."""
    return list((SERVICES / f"gcs-connector-{VERSION}").glob("*.jar"))


def connector_jar() -> Path:
    """Return the jar with all that it needs; skip the test if Maven cannot bring it."""
    with build_lock(f"gcs-connector-{VERSION}") as folder:
        if shutil.which("mvn") is None:
            absent("gcs-connector", "it comes by Maven, and there is no program 'mvn'")
        try:
            return bring(f"com.google.cloud.bigdataoss:gcs-connector:{VERSION}:jar:shaded", folder)
        except (OSError, subprocess.SubprocessError) as e:
            absent("gcs-connector", f"Maven failed: {e}")
