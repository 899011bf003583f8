"""Options of the format `iceberg-py`: its table and its reads.

Names and defaults are Iceberg's (`SparkReadOptions`); options of writes are in
`spark/write/write_options.py`. Catalog and storage settings are given as `catalog`,
`catalog.<key>`, or by their own storage keys (`s3.endpoint`, ...). A temporary view passes its
options to both its reads and its inserts, so reads accept write options and the reverse. An insert
refuses options that select rows: rows that a read leaves out cannot be written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast, get_args

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.options.option_values import (
    BETWEEN_SNAPSHOTS,
    choice_option,
    flag_option,
    list_items,
    lower_names,
    number_option,
    refuse_unknown,
    snapshot_bounds,
)
from iceberg_pyspark.spark.options.stream_options import (
    STREAM_OPTIONS,
    STREAM_OPTIONS_WITHOUT_EFFECT,
)
from iceberg_pyspark.spark.row_changes.change_request import (
    PINNED,
    REWRITE,
    STATE,
    TABLE_CALL,
    PinnedRead,
)
from iceberg_pyspark.spark.rows.nanoseconds import NanosAs
from iceberg_pyspark.spark.write.write_options import (
    OPTIONS,
    PREFIXES,
    WITHOUT_EFFECT,
    WriteOptions,
    write_options,
)
from iceberg_pyspark.spec.property_types import INT_MAX
from iceberg_pyspark.spec.table_properties import (
    SPLIT_LOOKBACK,
    SPLIT_OPEN_FILE_COST,
    SPLIT_TARGET_SIZE,
    VERIFY_CHECKSUMS,
)
from iceberg_pyspark.storage.store_properties import LOCATION_OPTIONS, STORAGE_PREFIXES
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector, timestamp_ms_of

COMMON = frozenset({"path", "paths", "catalog", "table", "native", *LOCATION_OPTIONS})
"""Options of both reads and writes."""

_OF_THE_PACKAGE = frozenset({PINNED, STATE, TABLE_CALL, REWRITE})
"""Options that only this package gives."""

_SNAPSHOT_ID = number_option("snapshot-id")
_AS_OF_TIMESTAMP = number_option("as-of-timestamp")
_CASE_SENSITIVE = flag_option("case-sensitive", False)
_VERIFY_CHECKSUMS = flag_option(VERIFY_CHECKSUMS.name, VERIFY_CHECKSUMS.default)
_PLANNING = {
    SPLIT_TARGET_SIZE.name: number_option("split-size", 1),
    SPLIT_LOOKBACK.name: number_option("lookback", 1, INT_MAX),
    SPLIT_OPEN_FILE_COST.name: number_option("file-open-cost", 0),
}
_LOCALITY = flag_option("locality", False)
_NANOS_AS = choice_option("nanos-as", *get_args(NanosAs))
_FLAGS_OF_CATALOG_TABLES = (
    flag_option("preserve-data-grouping", False),
    flag_option("preserve-data-ordering", False),
)
_CHOOSING_ROWS = frozenset(
    {
        *("columns", "filter", "tag", "timestampasof", "versionasof"),
        *(_SNAPSHOT_ID.name, _AS_OF_TIMESTAMP.name),
        *BETWEEN_SNAPSHOTS,
    }
)
READ_OPTIONS = frozenset(
    {
        *_CHOOSING_ROWS,
        *("branch", _LOCALITY.name, _CASE_SENSITIVE.name, _VERIFY_CHECKSUMS.name),
        _NANOS_AS.name,
        *(option.name for option in _PLANNING.values()),
    }
)
READ_OPTIONS_WITHOUT_EFFECT = frozenset(
    {
        # accepted because users carry them over from the JVM connector
        *("vectorization-enabled", "batch-size", "aggregate-push-down-enabled"),
        # These options apply only to tables in a catalog of the session.
        *(flag.name for flag in _FLAGS_OF_CATALOG_TABLES),
    }
)
_ALL_OF_READS = READ_OPTIONS | READ_OPTIONS_WITHOUT_EFFECT
_WRITE = OPTIONS["portable"] | WITHOUT_EFFECT["portable"]
_STREAM = STREAM_OPTIONS | STREAM_OPTIONS_WITHOUT_EFFECT


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """The table that the options name: its name or path, and its catalog's and store's settings."""

    table: str
    catalog: str | None
    catalog_properties: Mapping[str, str] = field(repr=False)
    storage_properties: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The options of a read."""

    columns: tuple[str, ...] | None
    filter: str | None
    selector: SnapshotSelector
    pinned: PinnedRead | None
    reads_state: bool
    call: str | None
    rewrite: str | None
    read_properties: Mapping[str, str]
    case_sensitive: bool
    nanos_as: NanosAs = "refused"
    of_streams: tuple[str, ...] = ()
    """The options that have a meaning for a stream only."""

    def require_batch(self) -> None:
        """Raise `InvalidRequestError` for options of streams, which choose rows or limit them."""
        if self.of_streams:
            raise InvalidRequestError(
                f"the option {', '.join(self.of_streams)} is for streams, and a batch read would "
                "ignore it: use spark.readStream, or leave it out"
            )


def parse_table_options(options: Mapping[str, str]) -> TableOptions:
    """Return the table and its catalog; raise `InvalidRequestError` if no table is named."""
    values = lower_names(options)
    table = values.get("path") or values.get("table")
    if values.get("paths"):
        raise InvalidRequestError(
            f"load() takes one table, got {values['paths']}; load them one by one and union them"
        )
    if not table:
        raise InvalidRequestError(
            "no table is named; use .load('db.table'), .save('db.table') or a path with a '/'. "
            "(Spark's saveAsTable, insertInto and CREATE TABLE ... USING lose the options; "
            "CREATE TEMPORARY VIEW v USING `iceberg-py` OPTIONS (path 'db.table') keeps them)"
        )
    return TableOptions(
        table=table,
        catalog=values.get("catalog"),
        catalog_properties={
            k.removeprefix("catalog."): v for k, v in values.items() if k.startswith("catalog.")
        },
        storage_properties={
            k: v
            for k, v in values.items()
            if k.startswith(STORAGE_PREFIXES) or k in LOCATION_OPTIONS
        },
    )


def parse_read_options(options: Mapping[str, str]) -> ReadOptions:
    """Return the read options; raise `InvalidRequestError` for an unknown name or a bad value."""
    values = lower_names(options)
    unnamed = _WRITE | _STREAM | _OF_THE_PACKAGE
    _refuse_unknown(values, "unknown read option", _ALL_OF_READS, (), also=unnamed)
    for flag in (_LOCALITY, *_FLAGS_OF_CATALOG_TABLES):
        flag.of(values)
    as_of = _AS_OF_TIMESTAMP.of(values)
    if as_of is None and "timestampasof" in values:
        as_of = timestamp_ms_of(values["timestampasof"])
    elif as_of is not None and "timestampasof" in values:
        raise InvalidRequestError("as-of-timestamp and timestampAsOf are both given; keep one")
    return ReadOptions(
        columns=list_items(values.get("columns")),
        filter=values.get("filter"),
        selector=SnapshotSelector(
            snapshot_id=_SNAPSHOT_ID.of(values),
            as_of_timestamp_ms=as_of,
            branch=values.get("branch"),
            tag=values.get("tag"),
            version=values.get("versionasof"),
            **snapshot_bounds(values),
        ),
        pinned=PinnedRead.of_text(values[PINNED]) if PINNED in values else None,
        reads_state=STATE in values,
        rewrite=values.get(REWRITE),
        call=values.get(TABLE_CALL),
        read_properties=_read_properties(values),
        case_sensitive=_CASE_SENSITIVE.of(values),
        of_streams=tuple(sorted(STREAM_OPTIONS & values.keys())),
        nanos_as=cast("NanosAs", _NANOS_AS.of(values) or "refused"),
    )


def _read_properties(values: Mapping[str, str]) -> dict[str, str]:
    numbers = {name: option.of(values) for name, option in _PLANNING.items()}
    properties = {k: str(v) for k, v in numbers.items() if v is not None}
    if _VERIFY_CHECKSUMS.name in values:
        # Stricter than the table property, for which every value except "true" means false.
        properties[VERIFY_CHECKSUMS.name] = str(_VERIFY_CHECKSUMS.of(values)).lower()
    return properties


def parse_write_options(options: Mapping[str, str]) -> WriteOptions:
    """Return the write options; raise `InvalidRequestError` for an unknown name or a bad value."""
    values = lower_names(options)
    for name in sorted(_CHOOSING_ROWS & values.keys()):
        raise InvalidRequestError(
            f"option '{name}' selects rows or columns to read, but a write needs the whole table; "
            "leave it out, or insert through another view"
        )
    _refuse_unknown(
        values, "unknown write option", _WRITE, PREFIXES["portable"], also=_ALL_OF_READS
    )
    return write_options(options, "portable")


def _refuse_unknown(
    values: Mapping[str, str],
    problem: str,
    accepted_names: frozenset[str],
    prefixes: tuple[str, ...],
    *,
    also: frozenset[str],
) -> None:
    refuse_unknown(
        values,
        problem,
        accepted_names | COMMON,
        ("catalog.", *prefixes),
        silent=also,
        silent_prefixes=(*STORAGE_PREFIXES, *PREFIXES["portable"]),
    )
