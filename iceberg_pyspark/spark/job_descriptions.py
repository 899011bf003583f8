"""Describes the Spark jobs of a step, and keeps the properties of the thread that starts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from pyspark import SparkContext

T = TypeVar("T")

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


def with_properties_of_this_thread(
    context: SparkContext, action: Callable[[], T]
) -> Callable[[], T]:
    """Return the action for another thread, whose jobs then have all properties of this thread.

    These are the job group, the tags, the description and more; Spark keeps them per thread.
    """
    properties = context._jsc.sc().getLocalProperties().clone()

    def run() -> T:
        context._jsc.sc().setLocalProperties(properties)
        return action()

    return run
