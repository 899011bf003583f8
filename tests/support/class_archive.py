"""An archive of Spark's loaded classes (class data sharing), which halves the start of a session.

`python -m tests.support.class_archive` writes the archive of this environment beside its Python. A
JVM of another version or with other jars ignores the archive and loads classes from jars.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.services.server import build_lock
from tests.support.oracle import bring_local_files
from tests.support.spark_sessions import (
    CLASS_ARCHIVE,
    QUICK_JVM,
    SPARK_HOME,
    run_process,
)

TYPICAL = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.releases.first_steps import run_steps
STEPS = (
    "create and show namespaces",
    "create and show tables",
    "insert what a job makes",
    "select with filters",
    "count and join",
    "write the format by path",
    "merge on read delete update merge",
    "uninstall",
)
run_steps(Path(sys.argv[2]), STEPS)
"""
"""A program that loads most of the classes that tests need."""


def make_archive() -> None:
    """Download the faster local file system, if available, and dump Spark's classes."""
    bring_local_files()
    # Lanes of `make test` that begin together would each take a minute for the same archive.
    with build_lock("spark-classes"):
        _dump_classes()


def _dump_classes() -> None:
    """Run a typical program whose JVM dumps its loaded classes when it exits."""
    installed = max(jar.stat().st_ctime for jar in (SPARK_HOME / "jars").iterdir())
    if CLASS_ARCHIVE.exists() and CLASS_ARCHIVE.stat().st_mtime > installed:
        return
    CLASS_ARCHIVE.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=CLASS_ARCHIVE.parent) as folder:
        archive, script = Path(folder, "classes.jsa"), Path(folder, "typical.py")
        script.write_text(TYPICAL, encoding="utf-8")
        options = f"{QUICK_JVM} -XX:ArchiveClassesAtExit={archive} -Xlog:disable"
        run_process(
            [
                str(SPARK_HOME / "bin/spark-submit"),
                *("--driver-java-options", options),
                *(str(script), str(Path(__file__).parents[2]), folder),
            ],
            timeout_seconds=600,
        )
        if archive.exists():
            archive.replace(CLASS_ARCHIVE)


if __name__ == "__main__":
    make_archive()
