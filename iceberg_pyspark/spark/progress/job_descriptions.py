"""Describes the Spark jobs of a step, and keeps the properties of the thread that starts them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext


_DESCRIPTION = "spark.job.description"


@contextmanager
def described_jobs(context: SparkContext, description: str) -> Iterator[None]:
    """Describe the jobs that this thread starts in the block; then restore its description.

    The job group, the tags and the other properties of the thread stay as they are.
    """
    of_the_caller = context.getLocalProperty(_DESCRIPTION)
    context.setJobDescription(description)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, of_the_caller)  # type: ignore[arg-type]
