"""Environments with one release of pyspark each, made once by Python's own venv and pip.

All else they take from the environment of the oldest release that the tests run on, so that no more
than pyspark is downloaded and installed for each.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.releases.releases import KEPT


class EnvironmentUnavailableError(Exception):
    """No environment with that release can be made here; the message says why."""


def python_of(release: str) -> Path:
    """The Python of a release's environment, made if it is not there yet.

    Raises `EnvironmentUnavailableError`.
    """
    for name in (".venv", ".venv-oracle"):
        if any(KEPT.parent.glob(f"{name}/lib/python3*/site-packages/pyspark-{release}.dist-info")):
            return KEPT.parent / name / "bin/python"
    folder = KEPT / release
    python = folder / "bin/python"
    done = folder / ".purelib"
    if not done.exists():
        _run(sys.executable, "-m", "venv", "--clear", str(folder))
        inner = _run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
        _run(
            *(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--use-pep517", f"pyspark=={release}"),
        )
        done.write_text(inner.strip(), encoding="utf-8")
    # behind the environment's own folder, so that its pyspark is the one found; said each time,
    # since an environment that is kept outlives the place of the other
    shared = Path(done.read_text(encoding="utf-8"), "shared.pth")
    shared.write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return python


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode != 0:
        raise EnvironmentUnavailableError(
            f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}"
        )
    return done.stdout
