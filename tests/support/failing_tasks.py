"""A task of a Spark program that fails once after it has written its rows, and what it leaves."""

from __future__ import annotations

from pathlib import Path

from tests.support.frames import data_files, path_table

FAIL_ONCE = '''
import os
from contextlib import suppress
from pyspark import TaskContext


def fail_once(batches):
    """Write everything, then fail in the attempt that gets here first: Spark may start two."""
    yield from batches
    task = TaskContext.get()
    if task.partitionId() == 1:
        with suppress(FileExistsError), open(f"{folder}/failed", "x") as file:
            print(task.taskAttemptId(), os.getppid(), file=file)
            raise ValueError("the first attempt fails")
'''
"""Code of a program that has a `folder`: its function for `mapInArrow` is for four partitions."""


def check_retried_table(folder: Path, driver: int) -> None:
    """Check that the table `retried` has a file of each partition, and none of the failed task.

    A failed attempt removes its file. The task ran in another process than `driver`.
    """
    failed_task, executor_process = (folder / "failed").read_text().split()
    assert int(executor_process) != driver
    retried = folder / "retried"
    assert len(list(path_table(retried).scan().plan_files())) == 4
    assert not any(f.name.startswith(f"00001-{failed_task}-") for f in data_files(retried))
