"""Kills a process at a point of a portable stream or change: Python runs this at its start.

ICEBERG_KILL names a file, which may change while processes run. It has the point, such as `before
IcebergStreamWriter.commit`, the victim, a file that marks that it was killed, and how often the
point is passed before, each on a line. The victim is

- `process`: the Python process at this point;
- `driver`: the process group of the program, whose first Python process is its leader;
- `jvm`: the JVM above this process;
- the id of a process.
"""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

PLACES = {
    "iceberg_pyspark.spark.data_source.stream_writer": ("IcebergStreamWriter", "write", "commit"),
    "iceberg_pyspark.spark.data_source.stream_reader": (
        "IcebergStreamReader",
        "latestOffset",
        "partitions",
    ),
    "iceberg_pyspark.spark.data_source.limited_stream_reader": (
        "LimitedStreamReader",
        "latestOffset",
    ),
    "iceberg_pyspark.spark.data_source.change_writer": ("ChangeWriter", "write", "commit"),
    "iceberg_pyspark.spark.portable.format_table": ("FormatTable", "write"),
    "iceberg_pyspark.catalogs.sql.database_catalog": ("SqlCatalog", "_swap_table"),
}
"""The modules with the class and the methods before and after which a victim may be killed."""

GENERATORS = {"iceberg_pyspark.spark.data_source.stream_reader": ("IcebergStreamReader", "read")}
"""Those that are killed after their first item."""


def pass_by(point: str) -> None:
    """Kill the victim if this is its point, unless it was killed before."""
    try:
        lines = Path(os.environ["ICEBERG_KILL"]).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return
    wanted, victim, mark, passed = lines
    if point != wanted:
        return
    for i in range(int(passed) + 1):
        last = i == int(passed)
        try:
            Path(mark if last else f"{mark} {i}").touch(exist_ok=False)
        except FileExistsError:
            continue
        if last:
            kill(victim)
        return


def kill(victim: str) -> None:
    """Kill the victim, and this process unless the victim is an unrelated one."""
    if victim.isdecimal():
        os.kill(int(victim), signal.SIGKILL)
        return
    if victim == "driver":
        os.killpg(int(os.environ["ICEBERG_KILL_GROUP"]), signal.SIGKILL)
    if victim == "jvm":
        parent = os.getppid()
        while Path(f"/proc/{parent}/comm").read_text().strip() != "java":
            # the state and the parent follow the name in parentheses
            status = Path(f"/proc/{parent}/stat").read_text()
            parent = int(status.rpartition(")")[2].split()[1])
        with suppress(ProcessLookupError):
            os.kill(parent, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def passing(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the method with a point before and after it."""

    def passed(*arguments: Any, **named: Any) -> Any:
        pass_by(f"before {name}")
        result = method(*arguments, **named)
        pass_by(f"after {name}")
        return result

    return passed


def passing_within(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the generator with a point after each item."""

    def passed(*arguments: Any) -> Any:
        for item in method(*arguments):
            yield item
            pass_by(f"within {name}")

    return passed


def add_points(module: Any) -> None:
    """Add the points of a module."""
    for places, wrap in ((PLACES, passing), (GENERATORS, passing_within)):
        owner, *methods = places.get(module.__name__, ("",))
        for method in methods:
            cls = getattr(module, owner)
            setattr(cls, method, wrap(getattr(cls, method), f"{owner}.{method}"))


if "ICEBERG_KILL" in os.environ:
    os.environ.setdefault("ICEBERG_KILL_GROUP", str(os.getpid()))
    from iceberg_pyspark.import_hooks import when_imported

    for module in PLACES:
        when_imported(module, add_points)
