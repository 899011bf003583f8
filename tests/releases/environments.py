"""Virtual environments, each with one release of pyspark, created once with venv and pip.

All other packages come from the environment that runs the tests, so that only pyspark is downloaded
and installed per release.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.releases.releases import FOLDER


class EnvironmentUnavailableError(Exception):
    """An environment with this release cannot be created here; the message says why."""


def python_of(release: str) -> Path:
    """Return the Python of a release's environment, which is created if necessary.

    Raise `EnvironmentUnavailableError` if this fails.
    """
    for name in (".venv", ".venv-oracle"):
        if any(
            FOLDER.parent.glob(f"{name}/lib/python3*/site-packages/pyspark-{release}.dist-info")
        ):
            return FOLDER.parent / name / "bin/python"
    folder = FOLDER / release
    python = folder / "bin/python"
    done = folder / ".purelib"
    if not done.exists():
        _run(sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder))
        inner = _run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
        _install(python, "--no-deps", f"pyspark=={release}")
        done.write_text(inner.strip(), encoding="utf-8")
    # This folder comes after the environment's own, so its own pyspark is found first. Write the
    # file each time, because a kept environment may outlive the folder that the file names.
    shared = Path(done.read_text(encoding="utf-8"), "shared.pth")
    shared.write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return python


def new_environment(folder: Path, *requirements: str) -> Path:
    """Create an environment with only these requirements and their dependencies; return its Python.

    Raise `EnvironmentUnavailableError` if this fails.
    """
    _run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    python = folder / "bin/python"
    _install(python, *requirements)
    return python


def client_environment(folder: Path, release: str) -> Path:
    """Create an environment with `pyspark-client` of a release, or the newest before it.

    Return its Python. It has the other packages of this one, but neither pyspark nor py4j. Raise
    `EnvironmentUnavailableError` if this fails.
    """
    python = new_environment(folder, "--no-deps", f"pyspark-client<={release}")
    own = _run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    for each in Path(sysconfig.get_path("purelib")).iterdir():
        link = Path(own, each.name)
        if not each.name.startswith(("pyspark", "py4j")) and not link.exists():
            link.symlink_to(each)
    return python


def built_wheel(folder: Path) -> Path:
    """Return a wheel of the checkout, built in a folder."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet")
    _run(*pip, "--no-deps", "--wheel-dir", str(folder), str(FOLDER.parent))
    (wheel,) = folder.glob("iceberg_pyspark-*.whl")
    return wheel


def _install(python: Path, *what: str) -> None:
    """Install distributions: by uv, or by pip where uv cannot do it."""
    options = ("--quiet", *what)
    # The wheel that uv builds of pyspark's source is not compressed, which takes half the time.
    build = ("--config-settings-package", "pyspark:--build-option=--compression=stored")
    try:
        uv = (sys.executable, "-m", "uv", "pip", "install", "--python", str(python))
        _run(*uv, *build, *options)
    except EnvironmentUnavailableError:
        pip = (sys.executable, "-m", "pip", "--python", str(python), "install")
        _run(*pip, "--disable-pip-version-check", "--use-pep517", *options)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode != 0:
        raise EnvironmentUnavailableError(
            f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}"
        )
    return done.stdout
