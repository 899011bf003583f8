"""What importing leaves behind in Python workers of Spark, and what that costs the next step.

Before each step pyspark 4.1 has Python forget what it knows of the import path, and Python then
reads the directory of every archive on it again: those of pyspark and of Spark's core, some 10,000
entries, a tenth of a second. Newer pyspark does so only when the path has changed.
"""

from __future__ import annotations

import sys
import zipimport
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def worker_step() -> Iterator[None]:
    """A step of ours in a worker, after which the finders of archives are dropped.

    The next import of something new makes them again, with the directories as they were first
    read. `sys.path_importer_cache` is no more than its name says.
    """
    try:
        yield
    finally:
        for path, finder in list(sys.path_importer_cache.items()):
            if isinstance(finder, zipimport.zipimporter):
                sys.path_importer_cache.pop(path, None)
