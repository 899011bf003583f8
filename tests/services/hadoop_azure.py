"""The jar of `abfs`, Hadoop's file system for Azure, for the JVM of a test; kept after download."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.services.hadoop_aws import hadoop_version
from tests.services.maven import bring
from tests.services.server import SERVICES, absent, build_lock


def made_jars() -> list[Path]:
    """Return the jar, of any version, if it has been downloaded already, else an empty list."""
    return sorted(SERVICES.glob("hadoop-azure-*/*.jar"))[-1:]


def abfs_jar() -> Path:
    """Return the jar for the Hadoop of pyspark; skip the test if Maven cannot bring it."""
    version = hadoop_version()
    with build_lock(f"hadoop-azure-{version}") as folder:
        if shutil.which("mvn") is None:
            absent("hadoop-azure", "it comes by Maven, and there is no program 'mvn'")
        try:
            return bring(f"org.apache.hadoop:hadoop-azure:{version}", folder)
        except (OSError, subprocess.SubprocessError) as e:
            absent("hadoop-azure", f"Maven failed: {e}")
