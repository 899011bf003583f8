"""Kills a process of a portable stream at a point of a batch, once: Python runs this at its start.

ICEBERG_KILL has the point, such as `before IcebergStreamWriter.commit`, the victim, and a file that
marks that it was killed, each on a line. The victim is `process`, which is the Python process at
this point, or `driver`: the process group of the program, whose first Python process is its leader.
"""

import importlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

CLASSES = {
    "IcebergStreamWriter": "iceberg_pyspark.spark.data_source.stream_writer",
    "IcebergStreamReader": "iceberg_pyspark.spark.data_source.stream_reader",
    "LimitedStreamReader": "iceberg_pyspark.spark.data_source.limited_stream_reader",
}


def die(victim: str, mark: Path) -> None:
    """Kill the victim, unless it was killed before."""
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return
    if victim == "driver":
        os.killpg(int(os.environ["ICEBERG_KILL_GROUP"]), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def dying(method: Callable[..., Any], when: str, victim: str, mark: Path) -> Callable[..., Any]:
    """Return the method with an end before or after it; after the first item of a generator."""

    def before(*arguments: Any) -> Any:
        die(victim, mark)
        return method(*arguments)

    def after(*arguments: Any) -> Any:
        result = method(*arguments)
        die(victim, mark)
        return result

    def within(*arguments: Any) -> Any:
        for item in method(*arguments):
            yield item
            die(victim, mark)

    return {"before": before, "after": after, "within": within}[when]


if "ICEBERG_KILL" in os.environ:
    os.environ.setdefault("ICEBERG_KILL_GROUP", str(os.getpid()))
    point, victim, mark = os.environ["ICEBERG_KILL"].splitlines()
    when, _, name = point.partition(" ")
    owner, _, method = name.partition(".")
    cls = getattr(importlib.import_module(CLASSES[owner]), owner)
    setattr(cls, method, dying(getattr(cls, method), when, victim, Path(mark)))
