"""Checks the live entries of one manifest, and the manifest list's summaries of their partitions.

Rules of one entry hold for the form of versions 1 to 3; `roots/entry_rules.py` has those of root
manifests. Entries of deleted files are not checked: some writers leave their fields out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.planning.bound_values import decode_bounds
from iceberg_pyspark.spec.encryption import TABLE_KEY_ID
from iceberg_pyspark.spec.entry_columns import MetricMap, metric_column
from iceberg_pyspark.spec.manifests import EntryStatus, FileContent, ManifestFile
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import (
    NestedField,
    PrimitiveType,
    StructType,
    UUIDType,
    VariantType,
)
from iceberg_pyspark.spec.values import value_from_bytes
from iceberg_pyspark.table.verify.findings import Problem


def metric_fields(metadata: TableMetadata) -> dict[int, NestedField]:
    """Return the columns whose metrics are checked, by id."""
    fields: dict[int, NestedField] = {}
    for schema in reversed(metadata.schemas_newest_first):
        fields |= schema.field_by_id
    return {i: f for i, f in fields.items() if isinstance(f.type, PrimitiveType)}


def entry_problems(
    entries: pa.Table,
    metadata: TableMetadata,
    manifest: ManifestFile,
    type_: StructType,
    fields: Mapping[int, NestedField],
) -> Iterator[Problem]:
    """Yield the problems of a manifest's entries, apart from those of metrics.

    `type_` is the type of partitions, and `fields` are those of `metric_fields`.
    """
    live = _live(entries)
    if not live.num_rows:
        return
    yield from _partition_summaries(live, manifest, type_)
    yield from _of_vectors(live, manifest)
    yield from _equality_ids(live, fields)
    if TABLE_KEY_ID in metadata.properties:
        if manifest.key_metadata is None:
            yield "encrypted", "the manifest is not encrypted"
        yield from _first(live, pc.is_null(live["key_metadata"]), "encrypted", "is not encrypted")


def metric_problems(entries: pa.Table, fields: Iterable[NestedField]) -> Iterator[Problem]:
    """Yield the problems of the metrics of these columns, which `entries` has."""
    live = _live(entries)
    for f in fields:
        yield from _metrics(live, f)


def _live(entries: pa.Table) -> pa.Table:
    return entries.filter(pc.not_equal(entries["status"], int(EntryStatus.DELETED)))


def _first(live: pa.Table, wrong: Any, rule: str, problem: str) -> Iterator[Problem]:
    """Yield one problem of the first wrong entry, with the number of the others."""
    rows = np.flatnonzero(np.asarray(pc.fill_null(wrong, False)))
    if len(rows):
        others = f"; so are {len(rows) - 1} others" if len(rows) > 1 else ""
        yield rule, f"{live['file_path'][int(rows[0])]} {problem}{others}"


def _partition_summaries(
    live: pa.Table, manifest: ManifestFile, type_: StructType
) -> Iterator[Problem]:
    """Filters skip a manifest by its summaries, so a wrong one hides rows."""
    rule = "partition-summaries"
    if manifest.partitions is None:
        return
    if len(manifest.partitions) != len(type_.fields):
        yield rule, f"{len(manifest.partitions)} summaries of {len(type_.fields)} partition fields"
        return
    partition = live["partition"].combine_chunks()
    for i, (f, summary) in enumerate(zip(type_.fields, manifest.partitions, strict=True)):
        values = pc.struct_field(partition, i)
        if values.null_count and not summary.contains_null:
            yield rule, f"'{f.name}' has nulls, and contains_null is false"
        values = values.drop_null()
        if pa.types.is_floating(values.type):
            is_nan = pc.is_nan(values)
            if summary.contains_nan is False and pc.any(is_nan).as_py():
                yield rule, f"'{f.name}' has NaN, and contains_nan is false"
            values = values.filter(pc.invert(is_nan))
        # Java's order of UUIDs is another one
        if not len(values) or isinstance(f.type, UUIDType):
            continue
        if summary.lower_bound is None or summary.upper_bound is None:
            yield rule, f"'{f.name}' has values, and a bound is missing"
            continue
        try:
            lower = value_from_bytes(f.type, summary.lower_bound)
            upper = value_from_bytes(f.type, summary.upper_bound)
        except InvalidMetadataError as e:
            yield rule, f"'{f.name}': {e}"
            continue
        least, most = pc.min(values).as_py(), pc.max(values).as_py()
        if least < lower or upper < most:
            yield rule, f"'{f.name}' has a value outside of the bounds"


def _of_vectors(live: pa.Table, manifest: ManifestFile) -> Iterator[Problem]:
    rule = "vector-iff-type"
    is_vector = pc.equal(live["file_format"], "puffin")
    places = ("content_offset", "content_size_in_bytes", "referenced_data_file")
    is_position_delete = pc.equal(live["content"], int(FileContent.POSITION_DELETES))
    for name in places:
        missing = pc.and_(is_vector, pc.is_null(live[name]))
        yield from _first(live, missing, rule, f"is a deletion vector without {name}")
    for name in places[:2]:
        given = pc.and_not(pc.is_valid(live[name]), is_vector)
        yield from _first(live, given, rule, f"is no Puffin file, and has {name}")
    wrong = pc.and_not(is_vector, is_position_delete)
    yield from _first(live, wrong, rule, "is a Puffin file, and no position delete")
    row_ids = pc.and_(pc.is_valid(live["first_row_id"]), pc.greater(live["content"], 0))
    yield from _first(live, row_ids, "first-row-id-of-data", "has deletes, and a first_row_id")
    if manifest.content.name == "DELETES" and manifest.first_row_id is not None:
        yield "first-row-id-of-data", "a manifest of deletes has a first_row_id"


def _equality_ids(live: pa.Table, known: Mapping[int, NestedField]) -> Iterator[Problem]:
    rule = "equality-ids-iff-equality-deletes"
    is_equality_delete = pc.equal(live["content"], int(FileContent.EQUALITY_DELETES))
    has_ids = pc.greater(pc.fill_null(pc.list_value_length(live["equality_ids"]), 0), 0)
    missing = pc.and_not(is_equality_delete, has_ids)
    yield from _first(live, missing, rule, "is an equality delete without equality_ids")
    given = pc.and_not(has_ids, is_equality_delete)
    yield from _first(live, given, rule, "is no equality delete, and has equality_ids")
    used = pc.unique(pc.list_flatten(live["equality_ids"])).to_pylist()
    unknown = sorted(i for i in used if i not in known)
    if unknown:
        yield rule, f"equality_ids {unknown} are no columns of primitive types in any schema"


def _metrics(live: pa.Table, f: NestedField) -> Iterator[Problem]:
    """Check counts and bounds of one column; scans treat such metrics as unknown."""
    rule = "column-metrics"

    def column(metric: MetricMap) -> pa.Array:
        name = metric_column(metric, f.field_id)
        known = name in live.column_names
        return live[name].combine_chunks() if known else pa.nulls(live.num_rows)

    counts: list[npt.NDArray[np.int64]] = []
    for metric in ("value_counts", "null_value_counts", "nan_value_counts"):
        values = column(metric)
        if not pa.types.is_null(values.type):
            negative = pc.less(values, 0)
            yield from _first(
                live, negative, rule, f"has a negative number in {metric} of {f.name}"
            )
        counts.append(np.asarray(values.cast(pa.int64()).fill_null(0)))
    has_counts = np.asarray(pc.is_valid(column("value_counts")))
    above = pa.array(has_counts & (counts[1] + counts[2] > counts[0]))
    yield from _first(live, above, rule, f"has more nulls and NaNs than values in '{f.name}'")
    lower, upper = column("lower_bounds"), column("upper_bounds")
    is_unordered = isinstance(f.type, UUIDType | VariantType)
    if is_unordered or pa.types.is_null(lower.type) or pa.types.is_null(upper.type):
        return
    low, high = decode_bounds(lower, f.type), decode_bounds(upper, f.type)
    crossed = pc.greater(low, high)
    yield from _first(live, crossed, rule, f"has a lower bound above the upper one in '{f.name}'")
