"""Reports the progress of a rewrite of data files within its groups, which several threads write.

A group may be large, so its data files count as read one by one. They count as rewritten when the
whole group is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.table.maintenance.rewrites.file_groups import FileGroup
from iceberg_pyspark.table.progress import Progress, StepQueue

REWRITTEN = "data files rewritten"
READ = "data files read"
WRITING_PHASE = "new data files written"


@dataclass(frozen=True, slots=True)
class _Step:
    group_number: int
    read_count: int = 0
    written_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSteps:
    """The number of a group, from 0, among all groups of a rewrite; counts the group's steps.

    The methods are thread-safe, and do not wait for the receiver of the progress.
    """

    number: int
    group_count: int
    add: Callable[[_Step], None]

    def add_read(self, file_count: int) -> None:
        """Count data files of the group whose rows were read to the end."""
        self.add(_Step(self.number, read_count=file_count))

    def add_written(self, file_count: int) -> None:
        """Count new data files of the group."""
        self.add(_Step(self.number, written_count=file_count))


class RewriteProgress:
    """The progress of one rewrite; all methods are for the thread that runs the rewrite."""

    def __init__(self, progress: Progress, groups: Sequence[FileGroup]) -> None:
        self._progress = progress
        self._file_counts = [len(g.tasks) for g in groups]
        self._total = sum(self._file_counts)
        self._read_counts = [0] * len(groups)
        self._read_count = 0
        self._written_count = 0
        self._rewritten_count = 0
        self._steps = StepQueue[_Step]()
        progress(REWRITTEN, 0, self._total)

    def steps_of(self, group_number: int) -> GroupSteps:
        """Return the object that counts the steps of a group."""
        return GroupSteps(
            number=group_number, group_count=len(self._file_counts), add=self._steps.add
        )

    def report_while_writing(self, writing: Future[list[DataFile]]) -> None:
        """Report the steps of all groups until the writing of one group has ended."""
        for step in self._steps.wait_for(writing):
            self._add_read(step.group_number, step.read_count)
            if step.written_count:
                self._written_count += step.written_count
                self._progress(WRITING_PHASE, self._written_count, None)

    def end_group(self, group_number: int) -> None:
        """Report that the files of a group are rewritten, or skipped after an error."""
        self._add_read(group_number, self._file_counts[group_number])
        self._rewritten_count += self._file_counts[group_number]
        self._progress(REWRITTEN, self._rewritten_count, self._total)

    def end(self) -> None:
        """Report the number of new data files, unless there are none."""
        if self._written_count:
            self._progress(WRITING_PHASE, self._written_count, self._written_count)

    def _add_read(self, group_number: int, file_count: int) -> None:
        """Count files as read; a sort in little memory reads a file more than once."""
        before = self._read_counts[group_number]
        after = min(before + file_count, self._file_counts[group_number])
        if after > before:
            self._read_counts[group_number] = after
            self._read_count += after - before
            self._progress(READ, self._read_count, self._total)
