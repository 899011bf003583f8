"""A step of ours in a Python worker of Spark, and what it leaves behind there.

Before each step pyspark 4.1 has Python forget what it knows of the import path, and Python then
reads the directory of every archive on it again: those of pyspark and of Spark's core, some 10,000
entries, a tenth of a second. Newer pyspark does so only when the path has changed.

A step that fails is told to the driver as text. Of an error of ours it is its message: where in
our code it was raised helps nobody who reads it, and would be the first line.
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
