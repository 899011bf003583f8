"""The Python programs that Spark runs for the data source.

Spark looks for data sources with PYSPARK_DRIVER_PYTHON, which may be Jupyter, and without the files
of `--py-files`. It runs all other steps and the tasks with PYSPARK_PYTHON. Without these variables,
it runs the `python3` of PATH, which is another Python than the driver's if the driver's environment
is not activated.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.bridge.plain_sessions import register_unless_found
from iceberg_pyspark.spark.data_source.source import IcebergDataSource

if TYPE_CHECKING:
    from pyspark import SparkContext

_log = get_logger(__name__)

_PACKAGE = "iceberg_pyspark"
_PROBE = f"""
import importlib.util, sys
print("%d.%d" % sys.version_info[:2], importlib.util.find_spec("{_PACKAGE}") is not None)
"""
_PROBE_SECONDS = 20


def prepare_worker_python(spark: SparkSession) -> None:
    """Register the data source where Spark cannot find it, and warn of a Python that cannot run it.

    Spark is asked only where its search may fail, because its search takes a second. Nothing is
    done under Spark Connect.
    """
    context = _context(spark)
    if context is None:
        return
    program = os.environ.get("PYSPARK_DRIVER_PYTHON")
    is_python = not program or Path(program).name.startswith("python")
    if not is_python or _has_own_files(context):
        register_unless_found(spark, IcebergDataSource)
    if problem := worker_python_problem(spark):
        _warn_once(problem)


def worker_python_problem(spark: SparkSession) -> str | None:
    """Return why the Python of Spark's tasks cannot run this package, or None.

    The answer is None too on a cluster, whose machines have Pythons of their own, and under Spark
    Connect.
    """
    context = _context(spark)
    if context is not None and (wheel := _sent_wheel(context)):
        return (
            f"Spark gives Python tasks no wheels, such as {wheel} in --py-files; rename it to .zip"
        )
    if context is None or not (context.master or "").startswith("local"):
        return None
    return _problem(context.pythonExec, needs_package=not _has_own_files(context))


def _sent_wheel(context: SparkContext) -> str | None:
    """Return the name of the wheel of `--py-files` that the driver imports this package from."""
    # `getConf` would copy each setting with a call of the JVM.
    files = context._conf.get("spark.submit.pyFiles", "") or ""
    names = {Path(file).name for file in files.split(",") if file.endswith(".whl")}
    return next((folder.name for folder in Path(__file__).parents if folder.name in names), None)


def _has_own_files(context: SparkContext) -> bool:
    """Return whether the application sends Python files, which may be this package, to its tasks.

    These are the files of `--py-files` and of `addPyFile`.
    """
    return bool(getattr(context, "_python_includes", ()))


def _context(spark: SparkSession) -> SparkContext | None:
    """Return the context of a classic session; None under Spark Connect."""
    return getattr(spark, "sparkContext", None)


@cache
def _problem(program: str, *, needs_package: bool) -> str | None:
    path = shutil.which(program)
    if path is not None and _is_own(path):
        return None
    advice = (
        "activate the driver's environment, or set the environment variable PYSPARK_PYTHON to "
        f"{sys.executable}, before Spark starts"
    )
    if path is None:
        return f"Spark runs Python tasks with '{program}', which is not on PATH; {advice}"
    try:
        answer = subprocess.run(
            [path, "-c", _PROBE], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=True
        ).stdout.split()
        version, has_package = answer[-2:]
    except (OSError, subprocess.SubprocessError, ValueError):
        # it may be a program that runs only in Spark's tasks
        return None
    own_version = "{}.{}".format(*sys.version_info)
    if version != own_version:
        return (
            f"Spark runs Python tasks with {path}, which is Python {version}, and the driver is "
            f"Python {own_version}; {advice}"
        )
    if needs_package and has_package != "True":
        return (
            f"Spark runs Python tasks with {path}, where iceberg-pyspark is not installed; {advice}"
        )
    return None


def _is_own(path: str) -> bool:
    """Return whether a program is the driver's Python: by its environment's folder, too."""
    own = sys.executable
    is_of_environment = os.path.dirname(os.path.abspath(path)) == os.path.dirname(own)
    return is_of_environment and os.path.realpath(path) == os.path.realpath(own)


@cache
def _warn_once(problem: str) -> None:
    """Log a problem, the first time."""
    _log.warning("%s", problem)
