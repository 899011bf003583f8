"""The files of a scan that a server planned: from the JSON of an answer to the files to read.

Open API specification of the REST catalog, `ScanTasks`, `FileScanTask` and `ContentFile`. Files get
the same form as files from manifests (`planning/scan_plan.py`), so readers need no other code. The
server says which delete files apply to a data file, but sends no sequence numbers.

Java's server differs from the specification in bounds, which it sends as binary single values in
hexadecimal digits. Both forms are read for types where the forms cannot be confused. For other
types, the bounds are unknown, which only makes pruning less effective.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from iceberg_pyspark.catalogs.catalog import ScanToPlan
from iceberg_pyspark.errors import (
    InvalidMetadataError,
    InvalidRequestError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.expressions.json import predicate_from_json
from iceberg_pyspark.expressions.predicates import AlwaysFalse, AlwaysTrue, Predicate
from iceberg_pyspark.expressions.rewriting import leaves_of, push_not
from iceberg_pyspark.formats.encoding.physical_types import physical_type
from iceberg_pyspark.planning.entry_filter import Mask, matching_partitions
from iceberg_pyspark.planning.manifest_pruning import SpecFilter, SpecFilters
from iceberg_pyspark.planning.scan_plan import PlannedFiles
from iceberg_pyspark.planning.scan_tasks import UNKNOWN_SEQUENCE_NUMBER, DeleteFileRef
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.entry_columns import (
    ENTRY_COLUMNS,
    FILTER_METRICS,
    MetricMap,
    metric_column,
)
from iceberg_pyspark.spec.json_fields import MAX_INT64, JsonObject, short_text
from iceberg_pyspark.spec.manifests import EntryStatus, FileContent, FileFormat
from iceberg_pyspark.spec.values import value_from_json, value_to_bytes

_CONTENTS = {
    "data": FileContent.DATA,
    "position-deletes": FileContent.POSITION_DELETES,
    "equality-deletes": FileContent.EQUALITY_DELETES,
}
_DATA_FORMATS: Mapping[str, FileFormat] = {"parquet": "parquet", "orc": "orc", "avro": "avro"}
_DELETE_FORMATS: Mapping[str, FileFormat] = {**_DATA_FORMATS, "puffin": "puffin"}
_COLUMN_TYPES: Mapping[str, pa.DataType] = {
    "status": pa.int32(),
    "snapshot_id": pa.int64(),
    "sequence_number": pa.int64(),
    "file_sequence_number": pa.int64(),
    "content": pa.int32(),
    "file_path": pa.string(),
    "file_format": pa.string(),
    "spec_id": pa.int32(),
    "record_count": pa.int64(),
    "file_size_in_bytes": pa.int64(),
    "key_metadata": pa.binary(),
    "split_offsets": pa.list_(pa.int64()),
    "equality_ids": pa.list_(pa.int32()),
    "sort_order_id": pa.int32(),
    "first_row_id": pa.int64(),
    "referenced_data_file": pa.string(),
    "content_offset": pa.int64(),
    "content_size_in_bytes": pa.int64(),
}
_BOUNDED_TYPES = (
    types.BooleanType,
    types.IntegerType,
    types.LongType,
    types.FloatType,
    types.DoubleType,
    types.DateType,
    types.TimeType,
    types.TimestampType,
    types.TimestamptzType,
    types.TimestampNsType,
    types.TimestamptzNsType,
)
"""Types whose JSON values cannot be confused with strings of hexadecimal digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlannedFile:
    """One data file; `entry` maps the column names of `spec/entry_columns.py` to values."""

    entry: Mapping[str, Any]
    partition: tuple[Any, ...]
    deletes: tuple[DeleteFileRef, ...]
    residual: Predicate | None


class PlannedFilesReader:
    """A reader of the server's answers for one scan."""

    def __init__(self, scan: ScanToPlan) -> None:
        self._scan = scan
        others = (s for s in scan.metadata.schemas_newest_first if s is not scan.schema)
        self._filters = SpecFilters(scan.metadata, scan.predicate, (scan.schema, *others))
        self._leaves = frozenset(leaves_of(push_not(scan.predicate)))
        self._columns = {
            i: scan.schema.field_by_id[i]
            for i in sorted(scan.metrics)
            if i in scan.schema.field_by_id
        }

    def read(self, answer: JsonObject) -> list[PlannedFiles]:
        """Return the files of one answer, grouped by partition spec.

        Raise `InvalidMetadataError` or `UnsupportedFeatureError` with the JSON path.
        """
        deletes = [self._delete_file(o) for o in answer.objects("delete-files")]
        by_spec: dict[int, list[_PlannedFile]] = {}
        for task in answer.objects("file-scan-tasks"):
            file = self._file(task, deletes)
            by_spec.setdefault(file.entry["spec_id"], []).append(file)
        return [self._planned_files(spec_id, files) for spec_id, files in by_spec.items()]

    def _file(self, task: JsonObject, deletes: Sequence[DeleteFileRef]) -> _PlannedFile:
        o = task.object("data-file")
        if _content(o) is not FileContent.DATA:
            raise o.wrong("content", "a data file must have the content 'data'")
        path = o.string("file-path")
        _check_is_unencrypted(o)
        spec = self._spec(o)
        entry = {
            "file_path": path,
            "file_format": _format(o, _DATA_FORMATS),
            "spec_id": spec.spec.spec_id,
            # files imported by old writers have a record count of -1
            "record_count": o.int64("record-count", -1),
            "file_size_in_bytes": o.int64("file-size-in-bytes", 0),
            "split_offsets": _int64s(o, "split-offsets"),
            "sort_order_id": o.optional_int32("sort-order-id"),
            "first_row_id": o.optional_int64("first-row-id", 0),
            **self._metrics(o),
        }
        references = task.int32s("delete-file-references", 0)
        for i, reference in enumerate(references):
            if reference >= len(deletes):
                rule = f"its answer has {len(deletes)} delete-files"
                raise task.wrong("delete-file-references", rule, i)
        return _PlannedFile(
            entry=entry,
            partition=_partition(o, spec.partition_type),
            deletes=tuple(_delete_of(deletes[r], path) for r in dict.fromkeys(references)),
            residual=self._residual(task),
        )

    def _delete_file(self, o: JsonObject) -> DeleteFileRef:
        content = _content(o)
        if content is FileContent.DATA:
            raise o.wrong("content", "a delete file must hold deletes")
        _check_is_unencrypted(o)
        # only validate the partition: a delete file applies to the tasks that refer to the file
        _partition(o, self._spec(o).partition_type)
        file_format = _format(o, _DELETE_FORMATS)
        is_vector = file_format == "puffin"
        if is_vector and content is not FileContent.POSITION_DELETES:
            raise o.wrong("file-format", "equality deletes are in data files")
        equality_ids = o.int32s("equality-ids")
        if content is FileContent.EQUALITY_DELETES and not equality_ids:
            raise o.wrong("equality-ids", "an equality delete file must have field ids")
        return DeleteFileRef(
            content=content,
            file_path=o.string("file-path"),
            file_format=file_format,
            file_size_in_bytes=o.int64("file-size-in-bytes", 0),
            record_count=o.int64("record-count", -1),
            data_sequence_number=UNKNOWN_SEQUENCE_NUMBER,
            equality_ids=equality_ids if content is FileContent.EQUALITY_DELETES else (),
            referenced_data_file=o.optional_string("referenced-data-file"),
            content_offset=o.int64("content-offset", 0) if is_vector else None,
            content_size_in_bytes=o.int64("content-size-in-bytes", 0) if is_vector else None,
        )

    def _spec(self, o: JsonObject) -> SpecFilter:
        return self._filters.of_spec(o.int32("spec-id"), o.path_of("spec-id"))

    def _residual(self, task: JsonObject) -> Predicate | None:
        """Return the server's residual filter if it is not implied by the scan's own predicate."""
        # a missing residual means the scan's own filter; null is invalid, and not the same as
        # missing
        if "residual-filter" not in task.names():
            return None
        path = task.path_of("residual-filter")
        try:
            server_filter = predicate_from_json(task.value("residual-filter"), self._scan.schema)
        except InvalidRequestError as e:
            raise UnsupportedFeatureError(f"{path}: an unsupported filter: {e}") from e
        residual = push_not(server_filter)
        # parts of the scan's predicate add nothing, because every row is tested with all of it
        is_own = self._leaves.issuperset(leaves_of(residual))
        return None if is_own and not isinstance(residual, AlwaysFalse) else residual

    def _metrics(self, o: JsonObject) -> dict[str, Any]:
        metrics: dict[str, Any] = {}
        for metric in FILTER_METRICS:
            by_id = _metric(o, metric) if self._columns else {}
            for i, column in self._columns.items():
                value = by_id.get(i)
                if metric.endswith("bounds"):
                    value = _bound(column.type, value, o, metric)
                metrics[metric_column(metric, i)] = value
        return metrics

    def _planned_files(self, spec_id: int, files: Sequence[_PlannedFile]) -> PlannedFiles:
        spec = self._filters.of_spec(spec_id, "spec-id")
        columns: dict[str, Sequence[Any]] = {
            name: [f.entry.get(name) for f in files] for name in _COLUMN_TYPES
        }
        columns["status"] = [int(EntryStatus.EXISTING)] * len(files)
        columns["content"] = [int(FileContent.DATA)] * len(files)
        for name in ("sequence_number", "file_sequence_number"):
            columns[name] = [UNKNOWN_SEQUENCE_NUMBER] * len(files)
        arrays = {name: pa.array(columns[name], type_) for name, type_ in _COLUMN_TYPES.items()}
        arrays["partition"] = _partitions(spec.partition_type, [f.partition for f in files])
        table = pa.table({name: arrays[name] for name in ENTRY_COLUMNS})
        for metric in FILTER_METRICS:
            type_ = pa.binary() if metric.endswith("bounds") else pa.int64()
            for i in self._columns:
                name = metric_column(metric, i)
                table = table.append_column(name, pa.array([f.entry[name] for f in files], type_))
        return PlannedFiles(
            spec=spec.spec,
            partition_type=spec.partition_type,
            entries=table,
            deletes={i: f.deletes for i, f in enumerate(files) if f.deletes},
            satisfies_filter=_filter_satisfaction(table, spec.strict),
            residuals={i: f.residual for i, f in enumerate(files) if f.residual is not None},
        )


def _content(o: JsonObject) -> FileContent:
    # before 1.11, Java wrote the names of its enum constants
    content = _CONTENTS.get(o.string("content").lower().replace("_", "-"))
    if content is None:
        raise UnsupportedFeatureError(
            f"{o.path_of('content')}: {short_text(o.value('content'))} is not known; "
            f"{', '.join(_CONTENTS)} are"
        )
    return content


def _format(o: JsonObject, formats: Mapping[str, FileFormat]) -> FileFormat:
    file_format = formats.get(o.string("file-format").lower())
    if file_format is None:
        raise UnsupportedFeatureError(
            f"{o.path_of('file-format')}: {short_text(o.value('file-format'))} is not supported; "
            f"{', '.join(formats)} are"
        )
    return file_format


def _check_is_unencrypted(o: JsonObject) -> None:
    if o.has("key-metadata"):
        raise UnsupportedFeatureError(
            f"{o.path_of('key-metadata')}: {short_text(o.string('file-path'))} is encrypted, "
            "which is not supported"
        )


def _delete_of(delete: DeleteFileRef, path: str) -> DeleteFileRef:
    """Return the delete file for one data file.

    A deletion vector has only one data file, and the server may leave out the path of that file.
    """
    if delete.is_deletion_vector and delete.referenced_data_file is None:
        return replace(delete, referenced_data_file=path)
    return delete


def _int64s(o: JsonObject, key: str) -> list[int] | None:
    if not o.has(key):
        return None
    values = o.array(key)
    for i, value in enumerate(values):
        if type(value) is not int or not 0 <= value <= MAX_INT64:
            raise o.wrong(key, "expected an integer of 64 bits", i)
    return values


def _partition(o: JsonObject, type_: types.StructType) -> tuple[Any, ...]:
    """Return the partition values in the order of the spec.

    Java before 1.11 sends the values by field id.
    """
    value = o.value("partition")
    if value is None and not type_.fields:
        return ()
    if isinstance(value, dict):
        unknown = set(value) - {str(f.field_id) for f in type_.fields}
        if unknown:
            raise o.wrong("partition", f"spec {o.value('spec-id')} has other fields")
        value = [value.get(str(f.field_id)) for f in type_.fields]
    if not isinstance(value, list) or len(value) != len(type_.fields):
        raise o.wrong("partition", f"expected a list of {len(type_.fields)} values")
    return tuple(_values(o, type_, value))


def _values(o: JsonObject, type_: types.StructType, values: Sequence[Any]) -> Iterator[Any]:
    for i, (f, value) in enumerate(zip(type_.fields, values, strict=True)):
        try:
            yield value_from_json(f.type, value)
        except (TypeError, ValueError, InvalidMetadataError) as e:
            raise InvalidMetadataError(f"{o.path_of('partition')}[{i}]: {f.type}: {e}") from e


def _partitions(type_: types.StructType, tuples: Sequence[tuple[Any, ...]]) -> pa.Array:
    if not type_.fields:
        return pa.array([{}] * len(tuples), pa.struct([]))
    arrays = [
        pa.array([t[i] for t in tuples], physical_type(f.type)) for i, f in enumerate(type_.fields)
    ]
    return pa.StructArray.from_arrays(arrays, [str(f.field_id) for f in type_.fields])


def _metric(o: JsonObject, metric: MetricMap) -> Mapping[int, Any]:
    """Return a metric by field id; counts are checked, bounds are not."""
    key = metric.replace("_", "-")
    content = o.optional_object(key)
    if content is None:
        return {}
    keys = content.int32s("keys")
    values = content.array("values") if content.has("values") else []
    if len(keys) != len(values):
        raise content.wrong("values", f"expected as many values as keys, {len(keys)}")
    if not metric.endswith("bounds"):
        for i, value in enumerate(values):
            if value is not None and (type(value) is not int or not 0 <= value <= MAX_INT64):
                raise content.wrong("values", "expected a count", i)
    return dict(zip(keys, values, strict=True))


def _bound(type_: types.Type, value: Any, o: JsonObject, metric: MetricMap) -> bytes | None:
    """Return a bound as a binary single value, or None if the bound is unknown."""
    if value is None or not isinstance(type_, _BOUNDED_TYPES):
        return None
    try:
        if isinstance(value, str) and value.isalnum():
            return bytes.fromhex(value)
        return value_to_bytes(type_, value_from_json(type_, value))
    except (TypeError, ValueError, InvalidMetadataError) as e:
        raise InvalidMetadataError(
            f"{o.path_of(metric.replace('_', '-'))}: {short_text(value)} "
            f"is not of type {type_} ({e})"
        ) from e


def _filter_satisfaction(table: pa.Table, strict: Predicate) -> Mask:
    if isinstance(strict, AlwaysTrue | AlwaysFalse):
        return np.full(table.num_rows, isinstance(strict, AlwaysTrue))
    return matching_partitions(table, strict)
