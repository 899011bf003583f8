"""Counts distinct values on Spark's executors: each task returns a sketch of each column.

A sketch keeps the smallest hashes whatever the order of values, so the merged sketches of all tasks
equal the sketch of a single process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from pyspark import Accumulator
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.util import inheritable_thread_target

from iceberg_pyspark.formats.puffin.theta_sketches import ThetaSketch
from iceberg_pyspark.planning.scan_tasks import ScanContext, ScanTask
from iceberg_pyspark.spark.bridge.py4j_names import Py4JError
from iceberg_pyspark.spark.error_text import error_of_job
from iceberg_pyspark.spark.job_progress import described_jobs, task_count
from iceberg_pyspark.spark.rows.worker_steps import worker_step
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.progress import Progress, StepQueue, no_progress
from iceberg_pyspark.table.reading.table_scan import TableScan
from iceberg_pyspark.table.statistics.table_statistics import (
    FILES_READ,
    SketchedColumn,
    Sketches,
    sketches_of_task,
    unite_sketches,
)

if TYPE_CHECKING:
    from pyspark import SparkContext


_TASKS_PER_CORE = 4


def sketches_by_executors(
    context: SparkContext,
    scan: TableScan,
    columns: Sequence[SketchedColumn],
    progress: Progress = no_progress,
) -> Sketches:
    """Return the sketches of all rows of a scan; raise the error of a failed task.

    The job has the job group and the tags of the calling thread.
    """
    scan, plan = scan.scan_and_plan()
    tasks = list(plan.tasks(scan.split))
    total = {c.field.field_id: ThetaSketch() for c in columns}
    progress(FILES_READ, 0, len(tasks))
    if not tasks:
        return total
    steps = StepQueue[int]()
    parts = min(len(tasks), _TASKS_PER_CORE * context.defaultParallelism)
    table = scan.context.table
    with (
        described_jobs(context, f"iceberg-py compute_table_stats {table}: {len(tasks)} data files"),
        task_count(context, steps.add) as read_count,
        ThreadPoolExecutor(1, thread_name_prefix="sketches") as pool,
    ):
        sketch = partial(_sketches, scan.context, columns, scan.io, read_count)
        job = context.parallelize(tasks, parts).mapPartitions(sketch)
        # the jobs of the other thread have all properties of this one, such as the job group
        of_this_thread = inheritable_thread_target(SparkSession.builder.getOrCreate())
        collecting = pool.submit(of_this_thread(job.collect))
        file_count = 0
        for count in steps.wait_for(collecting):
            file_count += count
            progress(FILES_READ, file_count, len(tasks))
    try:
        results = collecting.result()
    except (PySparkException, Py4JError) as e:
        raise error_of_job(e, f"compute_table_stats of {table}") from e
    for sketches in results:
        more = {i: ThetaSketch.from_bytes(data, "a task") for i, data in sketches.items()}
        unite_sketches(total, more)
    return total


def _sketches(
    context: ScanContext,
    columns: Sequence[SketchedColumn],
    io: FileIO,
    read_count: Accumulator[int],
    tasks: Iterable[ScanTask],
) -> Iterator[dict[int, bytes]]:
    total = {c.field.field_id: ThetaSketch() for c in columns}
    with worker_step():
        for task in tasks:
            unite_sketches(total, sketches_of_task(context, columns, io, task))
            read_count.add(1)
    yield {field_id: sketch.to_bytes() for field_id, sketch in total.items()}
