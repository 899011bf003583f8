"""What the writers of rows and of changed rows share: what tasks get, the commit, and the abort.

Spark passes only the messages of successful attempts to `commit`, so retried or speculative tasks
never duplicate rows. Executors import this module.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from iceberg_pyspark.changes.outcomes import NeverSent
from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spark.rows.worker_steps import worker_step
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.written_files import remove_files


class Prepared(Protocol):
    """The state that the driver and the tasks of a job share."""

    @property
    def io(self) -> FileIO:
        """The table's files."""
        ...

    def for_tasks(self) -> Any:
        """Return a copy without a catalog's secrets."""
        ...


PreparedT = TypeVar("PreparedT", bound=Prepared)


class JobWriter(DataSourceArrowWriter, Generic[PreparedT]):
    """A writer for one job, whose commit is one snapshot."""

    def __init__(self, prepared: PreparedT) -> None:
        self._prepared = prepared
        self._is_for_tasks = False
        self._tasks_have_it = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the whole state for the commit, and for tasks a state without a catalog's secrets.

        Spark pickles a writer first with the function of its tasks, and then alone for its commit.
        """
        if self._is_for_tasks or self._tasks_have_it:
            return self.__dict__
        self._tasks_have_it = True
        # Not a dictionary with the names of fields: a field that is renamed would stay as it is.
        of_tasks = type(self)(self._prepared.for_tasks())
        of_tasks._is_for_tasks = True
        return of_tasks.__dict__

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit what the tasks have done; if the commit is refused, remove their files."""
        with worker_step():
            if self._is_for_tasks:
                raise UnsupportedFeatureError(
                    "this release of Spark calls commit on the tasks' copy of the writer, so "
                    "nothing was committed; write in a session that has Iceberg installed"
                )
            self._commit([m for m in messages if m is not None])

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete the files of a job whose commit never ran.

        Spark also calls this after a failed commit, which may in fact have succeeded. Only a
        missing message proves that a task failed and that commit was not reached. A task that Spark
        kills after it has written everything reports nothing; only orphan removal finds its files.
        """
        if None in messages:
            files = self._files_of([m for m in messages if m is not None])
            remove_files(self._prepared.io, [f.file_path for f in files], NeverSent())

    @abstractmethod
    def _commit(self, messages: Sequence[Any]) -> None:
        """Make one snapshot of the messages of all tasks."""

    @abstractmethod
    def _files_of(self, messages: Sequence[Any]) -> Iterable[DataFile]:
        """Return the data files of tasks."""


def current_task() -> TaskContext:
    """Return the task that this process runs."""
    task = TaskContext.get()
    assert task is not None, "Spark runs write() in a task"
    return task
