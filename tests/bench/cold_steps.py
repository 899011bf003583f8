"""The first of each statement in a new process: `cold_steps.py SIDE FOLDER [FILE]`.

`SIDE` is `spark` (Spark's own Parquet table, which has no changes of rows), `jvm` (the connector,
whose jar is `FILE`), `ours`, `wheel` (ours, with the compiled classes of a wheel in `FILE`), or
`stages`: ours, with the parts of each step. Prints one line of JSON: by step, the seconds and the
CPU seconds of all processes, and the parts. It imports what an application does, in the order of
the README.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

ROWS = 1_000
START = "session and install"
_PROPERTIES = (
    "'format-version' = '3', 'write.delete.mode' = 'merge-on-read', "
    "'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'"
)
STATEMENTS = {
    "CREATE TABLE": f"CREATE TABLE c.db.t (id BIGINT, v STRING) USING iceberg "
    f"TBLPROPERTIES ({_PROPERTIES})",
    "INSERT": f"INSERT INTO c.db.t SELECT id, CAST(id AS STRING) FROM range({ROWS})",
    "SELECT with WHERE": "SELECT count(v), max(v) FROM c.db.t WHERE id > 10",
    "UPDATE": "UPDATE c.db.t SET v = 'changed' WHERE id % 10 = 3",
    "DELETE": "DELETE FROM c.db.t WHERE id % 10 = 4",
    "MERGE": f"MERGE INTO c.db.t t USING (SELECT id * 3 AS id, 'new' AS v FROM range({ROWS})) s "
    "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
}
OF_SPARK = {
    "CREATE TABLE": "CREATE TABLE t (id BIGINT, v STRING) USING parquet",
    **{name: STATEMENTS[name].replace("c.db.t", "t") for name in ("INSERT", "SELECT with WHERE")},
}
# 1,000 rows without the 100 of the DELETE, and 699 of the MERGE that are new
EXPECTED = (1_599, 1_797_899, 1_000)


def cpu_seconds(program: str = "") -> float:
    """Return the CPU seconds of this process and of all that it has started; 0 without /proc.

    Only those that run `program` count, if it is given.
    """
    if not os.path.isdir("/proc/self"):
        return 0.0
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            with open(f"/proc/{name}/cmdline", encoding="utf-8", errors="replace") as file:
                is_of_program = program in file.read()
        except OSError:
            continue  # it has ended
        parents[int(name)] = int(fields[1])
        ticks[int(name)] = sum(map(int, fields[11:15])) if is_of_program else 0
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(ticks[pid] for pid in ours) / os.sysconf("SC_CLK_TCK")


class Parts:
    """The parts of a step of ours, by name: seconds, or a count."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = {}
        self._jobs = 0
        self._python = 0.0

    def add(self, name: str, value: float) -> None:
        self.parts[name] = self.parts.get(name, 0) + value

    def time(self, owner: Any, function: str, part: str) -> None:
        """Add the time in a function to a part, and count its calls."""
        original = getattr(owner, function)

        def timed(*arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            try:
                return original(*arguments, **options)
            finally:
                self.add(part, time.perf_counter() - started)
                self.add(f"{part}, count", 1)

        setattr(owner, function, timed)

    def prepare(self, spark: Any) -> None:
        """Import what `install` needs, and time its parts and the requests of the JVM."""
        started = time.perf_counter()
        from iceberg_pyspark.spark import session  # noqa: PLC0415
        from iceberg_pyspark.spark.bridge import java_classes, jvm  # noqa: PLC0415
        from iceberg_pyspark.table.commits import commit  # noqa: PLC0415
        from iceberg_pyspark.table.reading.table_scan import TableScan  # noqa: PLC0415

        self.add("imports", time.perf_counter() - started)
        self.time(jvm, "load_modules", "classes")
        self.time(java_classes, "_compile", "compiled")
        self.time(session, "handle_request", "requests")
        self.time(TableScan, "plan", "plans")
        self.time(commit, "_commit", "commits")
        session.install(spark)

    def take(self, spark: Any) -> dict[str, float]:
        """Return the parts since the last call, with Spark's jobs and the CPU of Python workers."""
        jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
        ended = [j for i in range(jobs.size()) if (j := jobs.apply(i)).completionTime().isDefined()]
        for job in (j for j in ended if j.jobId() >= self._jobs):
            span = job.completionTime().get().getTime() - job.submissionTime().get().getTime()
            self.add("jobs", span / 1000)
            self.add("jobs, count", 1)
        self._jobs = max((j.jobId() + 1 for j in ended), default=0)
        python = cpu_seconds("pyspark.daemon")
        if python > self._python:
            self.add("CPU of Python workers", python - self._python)
        self._python = python
        parts, self.parts = self.parts, {}
        return parts


def main() -> None:
    """Run the steps of one side."""
    side, folder, *files = sys.argv[1:]
    steps: dict[str, tuple[float, float, dict[str, float]]] = {}
    parts = Parts()
    spark: Any = None

    def step(name: str, action: Callable[[], object]) -> None:
        cpu, started = cpu_seconds(), time.perf_counter()
        action()
        taken = time.perf_counter() - started
        own_parts = parts.take(spark) if side == "stages" else {}
        steps[name] = taken, cpu_seconds() - cpu, own_parts

    def start() -> None:
        nonlocal spark
        from pyspark.sql import SparkSession  # noqa: PLC0415

        if side in ("ours", "wheel", "stages"):
            import iceberg_pyspark  # noqa: PLC0415

        builder = SparkSession.builder.master("local[2]")
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.log.level": "ERROR",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.warehouse.dir": folder,
            "spark.sql.catalog.c": "iceberg_pyspark",
            "spark.sql.catalog.c.type": "hadoop",
            "spark.sql.catalog.c.warehouse": folder,
        }
        if side == "jvm":
            settings |= {
                "spark.driver.extraClassPath": files[0],
                "spark.sql.catalog.c": "org.apache.iceberg.spark.SparkCatalog",
                "spark.sql.extensions": "org.apache.iceberg.spark.extensions."
                "IcebergSparkSessionExtensions",
            }
        for key, value in settings.items():
            builder = builder.config(key, value)
        started = time.perf_counter()
        spark = builder.getOrCreate()
        parts.add("Spark", time.perf_counter() - started)
        if side == "stages":
            parts.prepare(spark)
        elif side in ("ours", "wheel"):
            if side == "wheel":
                from iceberg_pyspark.spark.bridge import java_classes  # noqa: PLC0415

                java_classes.COMPILED = files[0]
            iceberg_pyspark.install(spark)

    step(START, start)
    for name, text in (OF_SPARK if side == "spark" else STATEMENTS).items():
        step(name, lambda text=text: spark.sql(text).collect())  # type: ignore[misc]
    if side != "spark":
        found = spark.sql("SELECT count(*), sum(id), count_if(v = 'new') FROM c.db.t").first()
        assert tuple(found) == EXPECTED, found
    print(json.dumps(steps))


if __name__ == "__main__":
    main()
