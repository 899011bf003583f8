"""Imports what `install` needs while Spark's JVM starts, which takes seconds that Python waits for.

The import of pyspark's module that starts the JVM calls this: so it imports nothing of pyspark
itself.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from typing import Any


def import_while_java_starts(gateway: Any) -> None:
    """Make `pyspark.java_gateway` import as soon as it has started the process of the JVM."""
    start = vars(gateway).get("Popen")
    if start is None:  # an internal of pyspark, without which `install` imports
        return

    def start_and_import(*arguments: Any, **named: Any) -> Any:
        process = start(*arguments, **named)
        if "iceberg_pyspark.auto" in sys.modules:  # most of its processes may not use Iceberg
            return process
        # not in a thread: pyspark's modules import each other, which only one thread can do safely
        with suppress(Exception):  # `install` imports the same and raises the error
            import_module("iceberg_pyspark.spark.session")
        return process

    gateway.Popen = start_and_import
