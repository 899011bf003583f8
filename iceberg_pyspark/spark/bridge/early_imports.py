"""Imports what `install` needs while Python waits for Spark's JVM, which takes seconds to start.

The import of pyspark's module that starts the JVM calls this: so it imports nothing of pyspark
itself.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from importlib import import_module
from typing import Any

THREAD = "iceberg-py-imports"


def import_while_java_starts(gateway: Any) -> None:
    """Make `pyspark.java_gateway` start a thread that imports, once it has started the JVM."""
    start = vars(gateway).get("Popen")
    if start is None:  # an internal of pyspark, without which `install` imports
        return

    def start_and_import(*arguments: Any, **named: Any) -> Any:
        # the thread comes after the process, whose fork it would disturb
        process = start(*arguments, **named)
        threading.Thread(target=_import, name=THREAD, daemon=True).start()
        return process

    gateway.Popen = start_and_import


def _import() -> None:
    # `install` imports the same and raises the error
    with suppress(Exception):
        import_module("iceberg_pyspark.spark.session")
