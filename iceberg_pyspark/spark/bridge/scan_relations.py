"""Scans by Spark's own readers: relations over chosen files, and conditions for deleted rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from iceberg_pyspark.spark.bridge.call_arguments import (
    ParquetRelation,
    PositionPlaces,
    SelectedColumn,
    VectorPlaces,
    arrow_stream,
    to_json,
)
from iceberg_pyspark.spark.bridge.java_classes import JavaClasses
from iceberg_pyspark.spark.bridge.java_modules import (
    DELETION_VECTORS,
    POSITION_DELETES,
    source_of_threads,
    source_on_executors,
)

_SETTINGS_OF_READERS = {
    # Columns of Parquet files are found by field id, but only in relations that ask for it.
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    # Columns of ORC files are found by name, and damaged data is an error.
    "orc.force.positional.evolution": "false",
    "orc.skip.corrupt.data": "false",
    # ORC skips whole row groups but no single rows: Spark's reader would return such rows empty.
    "orc.sarg.to.filter": "false",
    "orc.filter.use.selected": "false",
    "orc.filter.plugin": "false",
}


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A request for the analysed plan of columns over a relation; it takes one call of the JVM."""

    relation: ParquetRelation
    files: pa.RecordBatch
    outputs: Sequence[SelectedColumn]


@dataclass(frozen=True)
class Scans:
    """The JVM's operations on scans."""

    _java: JavaClasses

    @property
    def _scans(self) -> Any:
        return self._java.instance("IcebergPyParquetScans")

    def prepare(self) -> None:
        """Make the JVM load the classes that a first scan needs."""
        files = pa.RecordBatch.from_pydict({"location": ["file"], "size": [1]})
        self._scans.prepare(arrow_stream(files))

    def relation(self, relation: ParquetRelation, files: pa.RecordBatch) -> DataFrame:
        """Return a DataFrame over chosen files: their columns, and facts about each file.

        Use it to build a plan that the session's optimizer rule accepts.
        """
        frame = self._scans.relation(self._java.session, *_relation(relation, files))
        return self._java.frame(frame)

    def plan(self, request: PlanRequest) -> Any:
        """Return the analysed plan of a request."""
        return self._scans.plan(self._java.session, *_arguments(request))

    def response(self, text: str, request: PlanRequest) -> Any:
        """Return the JVM's list of a response's text and of the plan as its only part."""
        return self._scans.response(self._java.session, *_arguments(request), text)

    def not_in_bitmaps(self, plan: Any, bitmaps: bytes, wide: bool) -> Any:
        """Return the condition that a row of the plan is in no bitmap of its file."""
        digest = hashlib.sha256(bitmaps).hexdigest()
        probe = self._scans.cachedLiveRows(plan, digest, wide)
        if probe is not None:
            return probe
        return self._scans.liveRows(self._java.session, plan, digest, bitmaps, wide)

    def not_in_vectors(self, plan: Any, places: VectorPlaces) -> Any:
        """Return the condition that a row of the plan is in no deletion vector of its file."""
        return self._not_deleted(plan, DELETION_VECTORS, places)

    def not_in_position_deletes(self, plan: Any, places: PositionPlaces) -> Any:
        """Return the condition that a row of the plan is in no position delete file of its file."""
        return self._not_deleted(plan, POSITION_DELETES, places)

    def _not_deleted(self, plan: Any, module: str, places: VectorPlaces | PositionPlaces) -> Any:
        text = to_json(places)
        return self._java.instance("IcebergPyDeleteConditions").liveRows(
            self._java.session,
            plan,
            module,
            hashlib.sha256(text.encode()).hexdigest(),
            text,
            source_on_executors(module),
            source_of_threads(),
        )

    def conjunction(self, one: Any, other: Any) -> Any:
        """Return the conjunction of two conditions."""
        return self._java.instance("IcebergPyDeleteConditions").both(one, other)

    def with_statistics(self, plan: Any, rows: int) -> Any:
        """Return a plan over Python tasks with its row count, which Spark uses to choose joins."""
        return self._java.instance("IcebergPySizes").withStatistics(plan, rows)


def _arguments(request: PlanRequest) -> tuple[str, str, bytes, str]:
    return (*_relation(request.relation, request.files), to_json(request.outputs))


def _relation(relation: ParquetRelation, files: pa.RecordBatch) -> tuple[str, str, bytes]:
    """Return the description of a relation, a key that is equal for equal rows, and its files.

    Spark reads equal scans once: the conditions from which files were planned do not matter.
    """
    relation = replace(relation, options={**relation.options, **_SETTINGS_OF_READERS})
    stream = arrow_stream(files)
    same = (relation.file_format, relation.columns, relation.file_constants, relation.keys)
    key = hashlib.sha256(to_json((*same, sorted(relation.options.items()))).encode())
    key.update(stream)
    return to_json(relation), key.hexdigest(), stream
