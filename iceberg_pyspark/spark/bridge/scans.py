"""Scans by Spark's own readers: relations over given files, and conditions for deleted rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from iceberg_pyspark.spark.bridge.calls import (
    ParquetRelation,
    PositionPlaces,
    SelectedColumn,
    VectorPlaces,
    arrow_stream,
    to_json,
)
from iceberg_pyspark.spark.bridge.java_classes import JavaClasses
from iceberg_pyspark.spark.bridge.lots import (
    DELETION_VECTORS,
    POSITION_DELETES,
    source_of_threads,
    source_on_executors,
)

_SETTINGS_OF_READERS = {
    # columns of Parquet files are found by field id, only in the relations that say so
    "spark.sql.parquet.fieldId.read.enabled": "true",
    # columns of ORC files are found by name, and what is damaged is an error
    "orc.force.positional.evolution": "false",
    "orc.skip.corrupt.data": "false",
    # whole row groups are skipped, and no rows in them: Spark's reader would return those empty
    "orc.sarg.to.filter": "false",
    "orc.filter.use.selected": "false",
    "orc.filter.plugin": "false",
}
_LIKE_FILES = pa.RecordBatch.from_pydict({"location": ["file"], "size": [1]})
"""One row with the types of a table of files."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The analysed plan of columns made of a relation's, which one call of the JVM makes."""

    relation: ParquetRelation
    files: pa.RecordBatch
    outputs: Sequence[SelectedColumn]


@dataclass(frozen=True)
class Scans:
    """The JVM's side of scans."""

    _java: JavaClasses

    @property
    def _scans(self) -> Any:
        return self._java.instance("IcebergPyParquetScans")

    def prepare(self) -> None:
        """Have the JVM load what a first scan needs."""
        self._scans.prepare(arrow_stream(_LIKE_FILES))

    def relation(self, relation: ParquetRelation, files: pa.RecordBatch) -> DataFrame:
        """A DataFrame over chosen files: columns of theirs, and facts about each file.

        Use it to build a plan that the session's optimizer rule accepts.
        """
        frame = self._scans.relation(
            self._java.session, _with_settings(relation), arrow_stream(files)
        )
        return self._java.frame(frame)

    def plan(self, request: PlanRequest) -> Any:
        """The plan."""
        return self._scans.plan(self._java.session, *_arguments(request))

    def answer(self, text: str, request: PlanRequest) -> Any:
        """A list of the JVM's: an answer's text, and the plan as its only part."""
        return self._scans.answer(self._java.session, *_arguments(request), text)

    def not_in_bitmaps(self, plan: Any, bitmaps: bytes, wide: bool) -> Any:
        """The condition that a plan's row is in no bitmap of its file."""
        digest = hashlib.sha256(bitmaps).hexdigest()
        probe = self._scans.cachedLiveRows(plan, digest, wide)
        if probe is not None:
            return probe
        return self._scans.liveRows(self._java.session, plan, digest, bitmaps, wide)

    def not_in_vectors(self, plan: Any, places: VectorPlaces) -> Any:
        """The condition that a plan's row is in no deletion vector of its file."""
        return self._not_deleted(plan, DELETION_VECTORS, places)

    def not_in_position_deletes(self, plan: Any, places: PositionPlaces) -> Any:
        """The condition that a plan's row is in no position delete file of its file."""
        return self._not_deleted(plan, POSITION_DELETES, places)

    def _not_deleted(self, plan: Any, lot: str, places: VectorPlaces | PositionPlaces) -> Any:
        text = to_json(places)
        return self._java.instance("IcebergPyDeleteConditions").liveRows(
            self._java.session,
            plan,
            lot,
            hashlib.sha256(text.encode()).hexdigest(),
            text,
            source_on_executors(lot),
            source_of_threads(),
        )

    def conjunction(self, one: Any, other: Any) -> Any:
        """The conjunction of two conditions."""
        return self._java.instance("IcebergPyDeleteConditions").both(one, other)

    def with_statistics(self, plan: Any, rows: int) -> Any:
        """The plan over Python tasks with its row count, by which Spark chooses joins."""
        return self._java.instance("IcebergPySizes").withStatistics(plan, rows)


def _arguments(request: PlanRequest) -> tuple[str, bytes, str]:
    return (
        _with_settings(request.relation),
        arrow_stream(request.files),
        to_json(request.outputs),
    )


def _with_settings(relation: ParquetRelation) -> str:
    options = {**relation.options, **_SETTINGS_OF_READERS}
    return to_json(replace(relation, options=options))
