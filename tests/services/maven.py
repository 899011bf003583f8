"""Single Maven artifacts, downloaded by coordinates and kept below `.services/`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.services.server import absent, build_lock


def kept_jar(service: str, artifact: str, folder_name: str) -> Path:
    """Return an artifact's file in a folder of `.services`; skip the test without Maven."""
    with build_lock(folder_name) as folder:
        if shutil.which("mvn") is None:
            absent(service, "it comes by Maven, and there is no program 'mvn'")
        try:
            return bring(artifact, folder)
        except (OSError, subprocess.SubprocessError) as e:
            absent(service, f"{artifact} did not come ({e!r:.300})")


def bring(artifact: str, folder: Path) -> Path:
    """Return the file of `group:name:version[:type[:classifier]]`, downloaded if necessary.

    Raise `OSError` or `subprocess.SubprocessError` if the download fails.
    """
    _group, name, version, *rest = artifact.split(":")
    kind, classifier = (*rest, "jar")[0], rest[1] if len(rest) > 1 else ""
    file = folder / f"{name}-{version}{'-' + classifier if classifier else ''}.{kind}"
    if not file.exists():
        bringing = folder / "bringing"
        shutil.rmtree(bringing, ignore_errors=True)
        command = ["mvn", "--quiet", "--batch-mode", "dependency:copy"]
        command += [f"-Dartifact={artifact}", f"-DoutputDirectory={bringing}"]
        subprocess.run(command, stdout=sys.stderr, timeout=600, check=True)
        (bringing / file.name).rename(file)
        bringing.rmdir()
    return file
