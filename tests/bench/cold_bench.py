"""A new process compared with the JVM connector: its start, and the first of each statement.

`python -m tests.bench.cold_bench [--runs 3]`. Each side runs in a process of its own, in turns, on
its own table of 1,000 rows (`cold_steps.py`). Ours runs with the compiled classes that an earlier
process has kept, and with empty caches, without and with the classes of a wheel. Both run also with
an archive of the classes that an earlier process of the same side has loaded (class data sharing of
the JVM). A table of Spark's own shows what Spark itself takes. The CPU seconds are those of all
processes; they compare where other work on the machine makes times differ.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table as TextTable

from iceberg_pyspark.spark.bridge import java_classes
from tests.bench.cold_steps import OF_SPARK, START, STATEMENTS
from tests.releases.release_jvm import ReleaseJvm
from tests.support.oracle import oracle_jars
from tests.support.spark_sessions import SPARK_HOME, spark_environment

WHOLE = "whole process"
ARCHIVED = " archived"
WHEEL_FILE = "compiled.zip"
LIMITS = {WHOLE: 0.85}
MAX_OF_STEPS = 1.0
MAX_OVER_SPARK = 0.3
MAX_OF_EMPTY_CACHES = 1.0
RUNS = 3
Steps = Mapping[str, tuple[float, float, Mapping[str, float]]]


def run_side(side: str, scratch: Path, cache: Path, java_option: str = "") -> Steps:
    """Run one side in a new process; return its steps with the whole process as the last."""
    environment = {**spark_environment(), "XDG_CACHE_HOME": str(cache)}
    if java_option:
        environment["PYSPARK_SUBMIT_ARGS"] = f"--driver-java-options {java_option} pyspark-shell"
    folder = scratch / "warehouse"
    files = {"jvm": [str(oracle_jars()[0])], "wheel": [str(scratch / WHEEL_FILE)]}.get(side, [])
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.cold_steps", side, str(folder), *files],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    taken = time.perf_counter() - started
    shutil.rmtree(folder, ignore_errors=True)
    if done.returncode:
        raise AssertionError(f"{side}:\n{done.stdout}\n{done.stderr}")
    steps: dict[str, tuple[float, float, Mapping[str, float]]]
    # The JVM writes of classes that no archive can have.
    (printed,) = (line for line in done.stdout.splitlines() if line.startswith("{"))
    steps = json.loads(printed)
    return {**steps, WHOLE: (taken, sum(cpu for _, cpu, _ in steps.values()), {})}


def compare(runs: int = RUNS) -> list[TextTable]:
    """Measure everything and return the tables to print."""
    sides: dict[str, list[Steps]] = {
        **{side: [] for side in ("ours", "jvm", "spark", "empty", "wheel")},
        **{f"{side}{ARCHIVED}": [] for side in ("ours", "jvm")},
    }
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as folder:
        scratch = Path(folder)
        _pack_classes(scratch / WHEEL_FILE)
        run_side("ours", scratch, scratch / "kept")
        for side in ("ours", "jvm"):
            # The JVM writes the archive when it ends; the process is waited for until then.
            option = f"-XX:ArchiveClassesAtExit={scratch / side}.jsa"
            run_side(side, scratch, scratch / "kept", option)
        turns = list(sides)
        for run in range(runs):
            turns.reverse()
            for side in turns:
                cache = scratch / (f"{side}{run}" if side in ("empty", "wheel") else "kept")
                program = "ours" if side == "empty" else side.removesuffix(ARCHIVED)
                archive = f"-XX:SharedArchiveFile={scratch / program}.jsa"
                option = archive if side.endswith(ARCHIVED) else ""
                sides[side].append(run_side(program, scratch, cache, option))
        stages = run_side("stages", scratch, scratch / "kept")
    title = f"the first of each statement in a new process, 1,000 rows: medians of {runs}"
    return [
        _steps(title, sides["ours"], sides["jvm"]),
        _steps(
            "the same, both with an archive of their classes",
            *(sides[f"{side}{ARCHIVED}"] for side in ("ours", "jvm")),
        ),
        _beside_spark(sides),
        _over_spark(sides),
        _stages(stages),
    ]


def _pack_classes(file: Path) -> None:
    """Write the classes that a wheel has for this Spark."""
    jars = sorted((SPARK_HOME / "jars").glob("*.jar"))
    jvm = ReleaseJvm(jars)
    with jvm.gateway(jars) as gateway:
        build = java_classes.classes_of_build(gateway)
    jvm.stop()
    file.write_bytes(java_classes.packed_classes(dict([build])))


def _median(steps: Sequence[Steps], name: str, number: int) -> float:
    return statistics.median(s[name][:2][number] for s in steps)


def _steps(title: str, of_ours: Sequence[Steps], of_jvm: Sequence[Steps]) -> TextTable:
    text = TextTable("step", title=title)
    columns = ("ours s", "JVM s", "ours/JVM", "ours CPU s", "JVM CPU s", "CPU ratio", "at most")
    for column in columns:
        text.add_column(column, justify="right")
    for name in (START, *STATEMENTS, WHOLE):
        cells = []
        for number in (0, 1):
            ours, jvm = (_median(steps, name, number) for steps in (of_ours, of_jvm))
            cells += [f"{ours:.2f}", f"{jvm:.2f}", f"{ours / jvm:.2f}" if jvm else ""]
        text.add_row(name, *cells, f"{LIMITS.get(name, MAX_OF_STEPS)}")
    return text


def _beside_spark(sides: Mapping[str, Sequence[Steps]]) -> TextTable:
    """Return what no connector can do without: the CPU seconds of Spark's own Parquet table."""
    text = TextTable("step", title="CPU seconds beside a table of Spark's own, in Parquet")
    for column in ("Spark", "ours", "JVM", "ours/Spark", "JVM/Spark"):
        text.add_column(column, justify="right")
    rows = {
        name: [_median(sides[side], name, 1) for side in ("spark", "ours", "jvm")]
        for name in (START, *OF_SPARK)
    }
    rows["together"] = [sum(of_side) for of_side in zip(*rows.values(), strict=True)]
    for name, (spark, ours, jvm) in rows.items():
        numbers = (spark, ours, jvm, ours / spark, jvm / spark)
        text.add_row(name, *(f"{number:.2f}" for number in numbers))
    return text


def _over_spark(sides: Mapping[str, Sequence[Steps]]) -> TextTable:
    text = TextTable("what", "s", "CPU s", "at most s", title="what a start takes besides Spark's")
    for what, name, more, less, limit in (
        ("install, over Spark's own start", START, "ours", "spark", MAX_OVER_SPARK),
        ("the connector's start, over Spark's own", START, "jvm", "spark", None),
        ("empty caches, over kept classes, whole process", WHOLE, "empty", "ours", None),
        ("empty caches, over kept classes, start", START, "empty", "ours", None),
        ("empty caches and a wheel, whole process", WHOLE, "wheel", "ours", None),
        (
            "empty caches and a wheel, start",
            START,
            "wheel",
            "ours",
            MAX_OF_EMPTY_CACHES,
        ),
        ("an archive of classes, whole process", WHOLE, f"ours{ARCHIVED}", "ours", None),
    ):
        numbers = [_median(sides[more], name, i) - _median(sides[less], name, i) for i in (0, 1)]
        text.add_row(what, *(f"{n:.2f}" for n in numbers), "" if limit is None else f"{limit}")
    return text


def _stages(steps: Steps) -> TextTable:
    """Return what each step of ours consists of; jobs and requests overlap, as do tasks."""
    text = TextTable("step", "s", "parts", title="a process of ours by stage, one run")
    for name in (START, *STATEMENTS):
        seconds, _, parts = steps[name]
        shown = ", ".join(
            f"{part} {value:.2f}"
            + (f" ({parts[count]:.0f})" if (count := f"{part}, count") in parts else "")
            for part, value in parts.items()
            if not part.endswith(", count")
        )
        text.add_row(name, f"{seconds:.2f}", shown)
    return text


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="tests.bench.cold_bench")
    parser.add_argument("--runs", type=int, default=RUNS)
    for table in compare(parser.parse_args().runs):
        Console(width=132).print(table)


if __name__ == "__main__":
    main()
