"""Runs a step in one of Spark's Python workers, with less overhead and with short errors.

Before each step pyspark 4.1 invalidates Python's import caches. Python then lists every archive on
the import path again: those of pyspark and of Spark's core have some 10,000 entries, which takes
0.1 seconds. Newer pyspark does this only if the path has changed. The error of a failed step is
sent to the driver as text: for errors of this package only the message, without the traceback,
which would come first.
"""

from __future__ import annotations

import os
import sys
import zipimport
from collections.abc import Iterator
from contextlib import contextmanager

from iceberg_pyspark.errors import IcebergError

_HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"


@contextmanager
def worker_step() -> Iterator[None]:
    """A step of ours in a worker, after which the finders of archives are dropped.

    The next import of something new makes them again, with the directories as they were first
    read. `sys.path_importer_cache` is no more than its name says.
    """
    try:
        yield
    except IcebergError:
        if _in_a_worker():
            # for this exception alone: pyspark ends a worker whose step has failed
            os.environ[_HIDE_TRACEBACK] = "1"
        raise
    finally:
        for path, finder in list(sys.path_importer_cache.items()):
            if isinstance(finder, zipimport.zipimporter):
                sys.path_importer_cache.pop(path, None)


def _in_a_worker() -> bool:
    """Whether pyspark started this process, and no program of a user's did."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")
