"""Represents a scan plan by a catalog's server in the form of a local plan.

The server does not report the files that it left out, so they are not counted. No report of the
scan is sent, because the server knows what it has planned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.catalogs.catalog import ScanPlanner, ScanToPlan
from iceberg_pyspark.planning.scan_plan import PlannedFiles, PlanStatistics, split_into_tasks
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.planning.split_pack import DEFAULT_SPLIT, SplitOptions


class ServerPlan:
    """The files that a server planned for one scan; iterating requests the plan."""

    def __init__(
        self,
        planner: ScanPlanner,
        scan: Callable[[Callable[[str], None]], ScanToPlan] | None,
        only_files: Collection[str] | None,
    ) -> None:
        """Build the scan with `scan`, which gets a callback for credentials; None: no snapshot.

        `only_files` are the only files to keep.
        """
        self._planner = planner
        self.credentials: str | None = None
        """The storage property with the credentials for the files, set after `start`."""

        self._scan = None if scan is None else scan(self._take_credentials)
        self._started_files: Iterator[PlannedFiles] | None = None
        self._only = None if only_files is None else pa.array(sorted(only_files), pa.string())
        self._deletes: set[str] = set()
        self.statistics = PlanStatistics()

    def _take_credentials(self, credentials: str) -> None:
        self.credentials = credentials

    def start(self) -> None:
        """Request the plan, once, so that the credentials are known."""
        if self._started_files is None:
            files = self._files()
            first = next(files, None)
            self._started_files = files if first is None else chain((first,), files)

    def files(self) -> Iterator[PlannedFiles]:
        """Yield the files, in groups of one spec; closing the iterator early cancels the plan."""
        started_files, self._started_files = self._started_files, None
        return self._files() if started_files is None else started_files

    def _files(self) -> Iterator[PlannedFiles]:
        if self._scan is None:
            return
        with closing(self._planner(self._scan)) as planner:
            for planned_files in planner:
                wanted_files = (
                    planned_files if self._only is None else _only(planned_files, self._only)
                )
                if wanted_files.entries.num_rows:
                    self._count(wanted_files)
                    yield wanted_files

    def tasks(self, split: SplitOptions | None = DEFAULT_SPLIT) -> Iterator[ScanTask]:
        """Yield the files as tasks, with large files split; `split` None splits no file."""
        return split_into_tasks(self.files(), split)

    def _count(self, files: PlannedFiles) -> None:
        # as floats, since wrong sizes must not overflow
        sizes = files.entries["file_size_in_bytes"].cast(pa.float64(), safe=False)
        self._deletes.update(d.file_path for refs in files.deletes.values() for d in refs)
        files_count = self.statistics.data_files_kept + files.entries.num_rows
        self.statistics = replace(
            self.statistics,
            data_files=files_count,
            data_files_kept=files_count,
            delete_files=len(self._deletes),
            bytes_kept=self.statistics.bytes_kept + int(pc.sum(sizes).as_py()),
        )


def _only(files: PlannedFiles, paths: pa.Array) -> PlannedFiles:
    mask = pc.is_in(files.entries["file_path"], value_set=paths).to_numpy()
    rows = np.flatnonzero(mask).tolist()
    return replace(
        files,
        entries=files.entries.take(pa.array(rows, pa.int64())),
        deletes={i: files.deletes[row] for i, row in enumerate(rows) if row in files.deletes},
        satisfies_filter=files.satisfies_filter[rows],
        residuals={i: files.residuals[row] for i, row in enumerate(rows) if row in files.residuals},
    )
