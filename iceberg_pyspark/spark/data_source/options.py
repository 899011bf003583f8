"""Options of `spark.read` and `df.write`, parsed once and refused when unknown.

Names and defaults are Iceberg's (`SparkReadOptions`, `SparkWriteOptions`); catalog and storage
settings travel as `catalog`, `catalog.<key>`, or storage keys by their own name (`s3.endpoint`,
...). A temporary view carries the options of its reads and of the inserts into it, so each action
takes the other's options too, but for those that choose rows: what they leave out cannot be
written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.properties import (
    DATA_FORMAT,
    NATIVE_WRITER,
    SPLIT_LOOKBACK,
    SPLIT_OPEN_FILE_COST,
    SPLIT_TARGET_SIZE,
    TARGET_FILE_SIZE,
    VERIFY_CHECKSUMS,
    check_set_properties,
)
from iceberg_pyspark.spec.property_types import INT_MAX, LONG_MAX, whole_number
from iceberg_pyspark.storage.restricted import LOCATION_OPTIONS
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector, timestamp_ms_of

_STORAGE_PREFIXES = ("s3.", "gcs.", "adls.", "hdfs.", "client.", "io.", "fsspec.")
_COMMON = {"path", "paths", "catalog", "table", "native", *LOCATION_OPTIONS}
_CHOOSING_ROWS = {
    "columns",
    "filter",
    "snapshot-id",
    "as-of-timestamp",
    "timestampasof",
    "versionasof",
    "tag",
}
_READ = {
    *_CHOOSING_ROWS,
    "branch",
    "split-size",
    "lookback",
    "file-open-cost",
    "locality",
    "case-sensitive",
    VERIFY_CHECKSUMS.name,
}
# without effect, and accepted because users carry them over from the JVM connector
_READ_WITHOUT_EFFECT = {
    "vectorization-enabled",
    "batch-size",
    "aggregate-push-down-enabled",
    # of tables in a catalog of the session
    "preserve-data-grouping",
    "preserve-data-ordering",
}
_FLAGS_OF_NATIVE_SCANS = ("locality", "preserve-data-grouping", "preserve-data-ordering")
_WRITE = {
    "branch",
    "overwrite-mode",
    "overwrite-filter",
    "partitioned-by",
    "target-file-size-bytes",
    "write-format",
    "compression-codec",
    "compression-level",
    "compression-strategy",
    "native-writer-enabled",
    "location",
    "format-version",
}
_WRITE_WITHOUT_EFFECT = {
    "check-nullability",  # a null in a required column is always refused
    "check-ordering",  # columns are found by name
    "fanout-enabled",  # a task always fans out
    # no delete files are made, no stream is written, no variant shredded
    "delete-format",
    "delete-granularity",
    "target-delete-file-size-bytes",
    "use-merge-append-for-streaming",
    "variant-inference-buffer-size",
}
OPTIONS_OF_THE_FORMAT = ("compression-codec", "compression-level", "compression-strategy")
"""Options for properties of the format of data files: `write.<format>.<option>`."""

_WRITE_PREFIXES = ("snapshot-property.", "table-property.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """Where the table is: a name or path, the catalog's settings and the store's."""

    table: str
    catalog: str | None
    catalog_properties: Mapping[str, str] = field(repr=False)
    storage_properties: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What to read of the table."""

    columns: tuple[str, ...] | None
    filter: str | None
    selector: SnapshotSelector
    read_properties: Mapping[str, str]
    case_sensitive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How to write the table; `overwrite_mode` is `static`, `dynamic` or `filter`."""

    branch: str | None
    overwrite_mode: str
    overwrite_filter: str | None
    partitioned_by: tuple[str, ...]
    location: str | None
    snapshot_properties: Mapping[str, str]
    table_properties: Mapping[str, str]
    write_properties: Mapping[str, str]
    """Table properties that this write overrides."""


def parse_table_options(options: Mapping[str, str]) -> TableOptions:
    """The table and its catalog; raises `InvalidRequestError` if no table is named."""
    given = _lowered(options)
    table = given.get("path") or given.get("table")
    if given.get("paths"):
        raise InvalidRequestError(
            f"load() takes one table, got {given['paths']}; load them one by one and union them"
        )
    if not table:
        raise InvalidRequestError(
            "no table is named; use .load('db.table'), .save('db.table') or a path with a '/'. "
            "(Spark's saveAsTable, insertInto and CREATE TABLE ... USING lose the options; "
            "CREATE TEMPORARY VIEW v USING `iceberg-py` OPTIONS (path 'db.table') keeps them)"
        )
    return TableOptions(
        table=table,
        catalog=given.get("catalog"),
        catalog_properties={
            k.removeprefix("catalog."): v for k, v in given.items() if k.startswith("catalog.")
        },
        storage_properties={
            k: v
            for k, v in given.items()
            if k.startswith(_STORAGE_PREFIXES) or k in LOCATION_OPTIONS
        },
    )


def parse_read_options(options: Mapping[str, str]) -> ReadOptions:
    """Read options; raises `InvalidRequestError` on an unknown name or a value that does not
    parse.
    """
    given = _lowered(options)
    _refuse_unknown(
        given, _READ | _READ_WITHOUT_EFFECT, (), "read", also=_WRITE | _WRITE_WITHOUT_EFFECT
    )
    for flag in _FLAGS_OF_NATIVE_SCANS:
        _boolean(given, flag, False)
    as_of = _integer(given, "as-of-timestamp")
    if as_of is None and "timestampasof" in given:
        as_of = timestamp_ms_of(given["timestampasof"])
    elif as_of is not None and "timestampasof" in given:
        raise InvalidRequestError("as-of-timestamp and timestampAsOf are both given; keep one")
    return ReadOptions(
        columns=_names(given.get("columns")),
        filter=given.get("filter"),
        selector=SnapshotSelector(
            snapshot_id=_integer(given, "snapshot-id"),
            as_of_timestamp_ms=as_of,
            branch=given.get("branch"),
            tag=given.get("tag"),
            version=given.get("versionasof"),
        ),
        read_properties=_read_properties(given),
        case_sensitive=_boolean(given, "case-sensitive", False),
    )


def _read_properties(given: Mapping[str, str]) -> dict[str, str]:
    asked = {
        SPLIT_TARGET_SIZE.name: _integer(given, "split-size", minimum=1),
        SPLIT_LOOKBACK.name: _integer(given, "lookback", minimum=1, largest=INT_MAX),
        SPLIT_OPEN_FILE_COST.name: _integer(given, "file-open-cost", minimum=0),
    }
    properties = {k: str(v) for k, v in asked.items() if v is not None}
    if VERIFY_CHECKSUMS.name in given:
        # strictly, unlike a table's property: what is not "true" there is false
        verify = _boolean(given, VERIFY_CHECKSUMS.name, VERIFY_CHECKSUMS.default)
        properties[VERIFY_CHECKSUMS.name] = str(verify).lower()
    return properties


def parse_write_options(options: Mapping[str, str]) -> WriteOptions:
    """Write options; raises `InvalidRequestError` on an unknown name or a value that does not
    parse.
    """
    given = _lowered(options)
    for name in sorted(_CHOOSING_ROWS & given.keys()):
        raise InvalidRequestError(
            f"option '{name}' chooses what is read, and a write takes whole tables; leave it out, "
            "or insert through another view"
        )
    known = _WRITE | _WRITE_WITHOUT_EFFECT
    _refuse_unknown(given, known, _WRITE_PREFIXES, "write", also=_READ | _READ_WITHOUT_EFFECT)
    overwrite_filter = given.get("overwrite-filter")
    overwrite_mode = given.get("overwrite-mode", "filter" if overwrite_filter else "static").lower()
    if overwrite_mode not in ("static", "dynamic", "filter"):
        raise InvalidRequestError(
            f"option overwrite-mode is static or dynamic, got '{overwrite_mode}'"
        )
    if (overwrite_mode == "filter") != (overwrite_filter is not None):
        raise InvalidRequestError(
            "an overwrite by filter takes the option overwrite-filter and no other overwrite-mode"
        )
    table_properties = _with_prefix(options, "table-property.")
    if "format-version" in given:
        table_properties["format-version"] = given["format-version"]
    check_set_properties(table_properties)
    return WriteOptions(
        branch=given.get("branch"),
        overwrite_mode=overwrite_mode,
        overwrite_filter=overwrite_filter,
        partitioned_by=_names(given.get("partitioned-by")) or (),
        location=given.get("location"),
        snapshot_properties=_with_prefix(options, "snapshot-property."),
        table_properties=table_properties,
        write_properties=_write_properties(given),
    )


_PROPERTY_BY_OPTION = {
    "target-file-size-bytes": TARGET_FILE_SIZE.name,
    "write-format": DATA_FORMAT.name,
    "native-writer-enabled": NATIVE_WRITER.name,
}


def _write_properties(given: Mapping[str, str]) -> dict[str, str]:
    _integer(given, "target-file-size-bytes", minimum=1)
    _integer(given, "compression-level")
    _boolean(given, "native-writer-enabled", True)
    of_format = {
        # only the format that files are written in is asked
        f"write.{file_format}.{option}": given[option]
        for file_format in ("parquet", "orc", "avro")
        for option in OPTIONS_OF_THE_FORMAT
        if option in given
    }
    return {
        **{p: given[option] for option, p in _PROPERTY_BY_OPTION.items() if option in given},
        **of_format,
    }


def _lowered(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}


def _with_prefix(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {k[len(prefix) :]: v for k, v in options.items() if k.lower().startswith(prefix)}


def _refuse_unknown(
    given: Mapping[str, str],
    known: set[str],
    prefixes: tuple[str, ...],
    action: str,
    *,
    also: set[str],
) -> None:
    accepted = known | _COMMON | also
    allowed_prefixes = ("catalog.", *_STORAGE_PREFIXES, *_WRITE_PREFIXES)
    for name in given:
        if name not in accepted and not name.startswith(allowed_prefixes):
            raise InvalidRequestError(
                f"unknown {action} option '{name}'; known: {', '.join(sorted(known | _COMMON))}"
                + "".join(f", {p}<key>" for p in ("catalog.", *prefixes))
            )


def _integer(
    given: Mapping[str, str], name: str, minimum: int | None = None, largest: int = LONG_MAX
) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    value = whole_number(text.strip(), largest)
    if value is None or (minimum is not None and value < minimum):
        bounds = "" if minimum is None else f" of at least {minimum} and at most {largest}"
        raise InvalidRequestError(f"option {name} is a whole number{bounds}, got '{text}'")
    return value


def _boolean(given: Mapping[str, str], name: str, default: bool) -> bool:
    text = given.get(name)
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise InvalidRequestError(f"option {name} is true or false, got '{text}'")
    return text.lower() == "true"


def _names(text: str | None) -> tuple[str, ...] | None:
    """Comma-separated items; commas in parentheses or backticks do not separate."""
    if text is None:
        return None
    items: list[str] = []
    depth, quoted, start = 0, False, 0
    for i, c in enumerate(text):
        if c == "`":
            quoted = not quoted
        elif quoted:
            continue
        elif c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
        elif c == "," and depth == 0:
            items.append(text[start:i])
            start = i + 1
    items.append(text[start:])
    names = tuple(item.strip() for item in items)
    if not all(names):
        raise InvalidRequestError(f"'{text}' has an empty item; write a,b,c")
    return names
