"""Runs a step in one of Spark's Python workers, with less overhead and with short errors.

Before each step pyspark 4.1 invalidates Python's import caches. Python then lists every archive on
the import path again; the archives of pyspark and of Spark's core have some 10,000 entries, which
takes 0.1 seconds. Newer pyspark does this only if the path has changed. After each task pyspark
collects garbage, and the worker's next task waits meanwhile; the collection goes through all
imported modules, which takes 0.05 seconds. The error of a failed step is sent to the driver as
text. For errors of this package only the message is sent, without the traceback, which would come
first.
"""

from __future__ import annotations

import gc
import os
import sys
import zipimport
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from iceberg_pyspark.errors import IcebergError

_HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"


@contextmanager
def worker_step() -> Iterator[None]:
    """Run a step in a worker; drop the import finders of archives, and freeze imported objects.

    The next import of a new module creates the finders again, from archive directories that
    zipimport keeps. `sys.path_importer_cache` is only a cache. Objects are frozen once in a
    process, after its first step: garbage collection leaves out the objects of that time.
    """
    try:
        yield
    except IcebergError:
        if _in_a_worker():
            # Affects only this exception: pyspark ends a worker whose step has failed.
            os.environ[_HIDE_TRACEBACK] = "1"
        raise
    finally:
        for path, finder in list(sys.path_importer_cache.items()):
            if isinstance(finder, zipimport.zipimporter):
                sys.path_importer_cache.pop(path, None)
        if _in_a_worker():
            _freeze_objects()


@cache
def _freeze_objects() -> None:
    """Leave all present objects out of garbage collection; later calls do nothing.

    `gc.get_freeze_count` could say whether it was called, but goes through all frozen objects.
    """
    gc.freeze()


def _in_a_worker() -> bool:
    """Return whether pyspark, and not a user's program, started this process."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")
