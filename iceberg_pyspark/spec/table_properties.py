"""The known table properties, with the names and defaults of the reference implementation.

Code reads a table's property where it uses the value, as in
`COMMIT_NUM_RETRIES.of(metadata.properties)`, with the rules of Java (`property_types.py`). Values
that users set are checked before they are stored in a table; the properties that a commit needs are
checked before its first file is written. Options and catalog configuration are not table
properties: the user wrote them for this package, so they are read strictly. Specification, "Table
Metadata".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.spec.encryption import DATA_KEY_LENGTH, TABLE_KEY_ID
from iceberg_pyspark.spec.name_mapping import name_mapping_from_text
from iceberg_pyspark.spec.property_types import (
    LONG_MAX,
    BoolProperty,
    ChoiceProperty,
    ColumnProperties,
    FractionProperty,
    IntProperty,
    PatternProperty,
    TableProperty,
    check_settable,
    whole_number,
)

RESERVED_PROPERTIES = frozenset(
    {
        "format-version",
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
"""Names that request or display something; they are never stored in the table metadata."""


FORMAT_VERSION = "format-version"
DEFAULT_FORMAT_VERSION = 2

# --- commits ------------------------------------------------------------------------------------

COMMIT_NUM_RETRIES = IntProperty("commit.retry.num-retries", 4, 0, below="minimum")
COMMIT_MIN_WAIT_MS = IntProperty("commit.retry.min-wait-ms", 100, 0, below="minimum")
COMMIT_MAX_WAIT_MS = IntProperty("commit.retry.max-wait-ms", 60_000, 0, below="minimum")
COMMIT_TOTAL_TIMEOUT_MS = IntProperty(
    "commit.retry.total-timeout-ms", 1_800_000, 0, below="minimum"
)
STATUS_CHECK_NUM_RETRIES = IntProperty("commit.status-check.num-retries", 3, 0, below="minimum")
STATUS_CHECK_MIN_WAIT_MS = IntProperty(
    "commit.status-check.min-wait-ms", 1_000, 0, LONG_MAX, below="minimum"
)
STATUS_CHECK_MAX_WAIT_MS = IntProperty(
    "commit.status-check.max-wait-ms", 60_000, 0, LONG_MAX, below="minimum"
)
STATUS_CHECK_TOTAL_TIMEOUT_MS = IntProperty(
    "commit.status-check.total-timeout-ms", 1_800_000, 0, LONG_MAX, below="minimum"
)
MANIFEST_TARGET_SIZE = IntProperty(
    "commit.manifest.target-size-bytes", 8_388_608, 1, LONG_MAX, below="minimum"
)
MANIFEST_MIN_COUNT_TO_MERGE = IntProperty(
    "commit.manifest.min-count-to-merge", 100, 0, below="minimum"
)
MANIFEST_MERGE_ENABLED = BoolProperty("commit.manifest-merge.enabled", True)
ROOT_MANIFESTS = BoolProperty("write.root.enabled", False)
"""Whether snapshots of a version 4 table get root manifests, which no other engine can read yet."""
ROOTS_IN_FOLDERS = BoolProperty("write.root.file-system-tables.enabled", False)
"""Whether tables without a catalog may have version 4, although version 4 ends such tables."""
ROOT_MAX_DATA_ENTRIES = IntProperty("write.root.max-data-entries", 100, 0, below="minimum")
ROOT_MAX_DELETE_ENTRIES = IntProperty("write.root.max-delete-entries", 200, 0, below="minimum")
ROOT_MAX_BYTES = IntProperty("write.root.max-bytes", 4_194_304, 0, LONG_MAX, below="minimum")
AVRO_CODECS = ("gzip", "zstd", "snappy", "none", "uncompressed")
MANIFEST_COMPRESSION = ChoiceProperty("write.manifest.compression-codec", "gzip", AVRO_CODECS)
SUMMARY_PARTITION_LIMIT = IntProperty("write.summary.partition-limit", 0, 0, below="minimum")
METADATA_PREVIOUS_VERSIONS_MAX = IntProperty(
    "write.metadata.previous-versions-max", 100, 1, below="minimum"
)
METADATA_DELETE_AFTER_COMMIT = BoolProperty("write.metadata.delete-after-commit.enabled", False)
METADATA_COMPRESSION = ChoiceProperty("write.metadata.compression-codec", "none", ("none", "gzip"))

# --- where files go -----------------------------------------------------------------------------

_A_LOCATION = (re.compile(r"\S(?s:.*)"), "a location")
WRITE_DATA_PATH = "write.data.path"
WRITE_METADATA_PATH = "write.metadata.path"
OBJECT_STORAGE = BoolProperty("write.object-storage.enabled", False)
PARTITIONED_PATHS = BoolProperty("write.object-storage.partitioned-paths", True)

# --- reading, and what may be deleted -----------------------------------------------------------

SPLIT_TARGET_SIZE = IntProperty("read.split.target-size", 134_217_728, 1, LONG_MAX)
SPLIT_LOOKBACK = IntProperty("read.split.planning-lookback", 10, 1)
SPLIT_OPEN_FILE_COST = IntProperty("read.split.open-file-cost", 4_194_304, 0, LONG_MAX)
NAME_MAPPING = "schema.name-mapping.default"
VERIFY_CHECKSUMS = BoolProperty("read.parquet.verify-checksum", True)
"""Whether readers verify the page checksums of Parquet files that have them.

Reading whole rows takes no measurable extra time. A sum over a few columns takes about 3 percent
more processor time with the Python reader and 6 percent more with Spark's own reader, which
verifies checksums only if the property is set.
"""
GC_ENABLED = BoolProperty("gc.enabled", True)
HISTORY_MAX_SNAPSHOT_AGE_MS = IntProperty(
    "history.expire.max-snapshot-age-ms", 432_000_000, 0, LONG_MAX
)
HISTORY_MIN_SNAPSHOTS_TO_KEEP = IntProperty("history.expire.min-snapshots-to-keep", 1, 1)
HISTORY_MAX_REF_AGE_MS = IntProperty("history.expire.max-ref-age-ms", LONG_MAX, 0, LONG_MAX)

# --- data files ---------------------------------------------------------------------------------

DATA_FORMAT = ChoiceProperty("write.format.default", "parquet", ("parquet", "orc", "avro"))
DELETE_FORMAT = ChoiceProperty("write.delete.format.default", "parquet", ("parquet", "orc", "avro"))
"""If a table does not set the property, delete files have the format of its data files."""
TARGET_FILE_SIZE = IntProperty(
    "write.target-file-size-bytes", 536_870_912, 1, LONG_MAX, below="default"
)

PARQUET_COMPRESSION = ChoiceProperty(
    "write.parquet.compression-codec",
    "gzip",
    ("zstd", "gzip", "snappy", "lz4", "lz4_raw", "brotli", "uncompressed", "none"),
)
PARQUET_COMPRESSION_OF_NEW_TABLES = "zstd"
PARQUET_LEVEL = IntProperty("write.parquet.compression-level", 0)
PARQUET_ROW_GROUP_SIZE = IntProperty("write.parquet.row-group-size-bytes", 134_217_728, 1)
PARQUET_PAGE_SIZE = IntProperty("write.parquet.page-size-bytes", 1_048_576, 1)
PARQUET_DICTIONARY_SIZE = IntProperty("write.parquet.dict-size-bytes", 2_097_152, 1)
PARQUET_PAGE_ROWS = IntProperty("write.parquet.page-row-limit", 20_000, 1)
PARQUET_PAGE_VERSION = ChoiceProperty("write.parquet.page-version", "v1", ("v1", "v2"))
SHRED_VARIANTS = BoolProperty("write.parquet.shred-variants", False)
VARIANT_INFERENCE_ROWS = IntProperty("write.parquet.variant-inference-buffer-size", 100, 1)
PARQUET_BLOOM_MAX_BYTES = IntProperty("write.parquet.bloom-filter-max-bytes", 1_048_576, 1)
PARQUET_BLOOM_ENABLED = "write.parquet.bloom-filter-enabled.column."
PARQUET_BLOOM_FPP = "write.parquet.bloom-filter-fpp.column."
PARQUET_BLOOM_NDV = "write.parquet.bloom-filter-ndv.column."
PARQUET_STATISTICS = "write.parquet.stats-enabled.column."
PARQUET_DICTIONARY = "write.parquet.dict-encoding-enabled.column."

AVRO_COMPRESSION = ChoiceProperty("write.avro.compression-codec", "gzip", AVRO_CODECS)
AVRO_LEVEL = IntProperty("write.avro.compression-level", 0)

ORC_STRIPE_SIZE = IntProperty("write.orc.stripe-size-bytes", 67_108_864, 1, LONG_MAX)
ORC_COMPRESSION = ChoiceProperty(
    "write.orc.compression-codec",
    "zlib",
    ("zlib", "gzip", "zstd", "snappy", "lz4", "none", "uncompressed"),
)
ORC_STRATEGY = ChoiceProperty("write.orc.compression-strategy", "speed", ("speed", "compression"))
ORC_BLOOM_COLUMNS = "write.orc.bloom.filter.columns"
ORC_BLOOM_FPP = FractionProperty("write.orc.bloom.filter.fpp", 0.05)

_A_METRICS_MODE = (
    re.compile(r"none|counts|full|truncate\(0*[1-9][0-9]{0,8}\)", re.IGNORECASE),
    "a metrics mode: none, counts, truncate(<length>) or full",
)
METRICS_DEFAULT = PatternProperty("write.metadata.metrics.default", *_A_METRICS_MODE)
METRICS_COLUMN = "write.metadata.metrics.column."
METRICS_MAX_INFERRED = IntProperty(
    "write.metadata.metrics.max-inferred-column-defaults", 100, 0, below="default"
)

# --- writing through Spark, and changes of rows ---------------------------------------------------

_MODES = ("none", "hash", "range")
DISTRIBUTION_MODE = ChoiceProperty("write.distribution-mode", "hash", _MODES)
FANOUT = BoolProperty("write.spark.fanout.enabled", True)
ADVISORY_PARTITION_SIZE = IntProperty(
    "write.spark.advisory-partition-size-bytes", 0, 0, LONG_MAX, below="minimum"
)
NATIVE_WRITER = BoolProperty("write.spark.native-writer.enabled", True)
ACCEPT_ANY_SCHEMA = BoolProperty("write.spark.accept-any-schema", False)
WAP_ENABLED = BoolProperty("write.wap.enabled", False)
DELETE_GRANULARITY = ChoiceProperty("write.delete.granularity", "file", ("file", "partition"))
ROW_LEVEL_OPERATIONS = ("delete", "update", "merge")
ROW_LEVEL_MODE = {
    op: ChoiceProperty(f"write.{op}.mode", "copy-on-write", ("copy-on-write", "merge-on-read"))
    for op in ROW_LEVEL_OPERATIONS
}
ROW_LEVEL_ISOLATION = {
    op: ChoiceProperty(f"write.{op}.isolation-level", "serializable", ("serializable", "snapshot"))
    for op in ROW_LEVEL_OPERATIONS
}
ROW_LEVEL_DISTRIBUTION = {
    op: ChoiceProperty(f"write.{op}.distribution-mode", "hash", _MODES)
    for op in ROW_LEVEL_OPERATIONS
}

CHARACTER_TYPE = "iceberg-py.character-type."
"""Before the id of a string column: `varchar(n)`, its type for Spark."""

# --- checks -------------------------------------------------------------------------------------

_NEEDED_BY_COMMITS = (
    COMMIT_NUM_RETRIES,
    COMMIT_MIN_WAIT_MS,
    COMMIT_MAX_WAIT_MS,
    COMMIT_TOTAL_TIMEOUT_MS,
    STATUS_CHECK_NUM_RETRIES,
    STATUS_CHECK_MIN_WAIT_MS,
    STATUS_CHECK_MAX_WAIT_MS,
    STATUS_CHECK_TOTAL_TIMEOUT_MS,
    MANIFEST_TARGET_SIZE,
    MANIFEST_MIN_COUNT_TO_MERGE,
    MANIFEST_MERGE_ENABLED,
    ROOT_MANIFESTS,
    ROOTS_IN_FOLDERS,
    ROOT_MAX_DATA_ENTRIES,
    ROOT_MAX_DELETE_ENTRIES,
    ROOT_MAX_BYTES,
    MANIFEST_COMPRESSION,
    SUMMARY_PARTITION_LIMIT,
    METADATA_PREVIOUS_VERSIONS_MAX,
    METADATA_DELETE_AFTER_COMMIT,
    METADATA_COMPRESSION,
    OBJECT_STORAGE,
    PARTITIONED_PATHS,
)


@dataclass(frozen=True, slots=True)
class _NameMappingProperty:
    name: str

    def problem(self, text: str) -> str | None:
        """Return why the text must not be set (see `TableProperty`)."""
        try:
            name_mapping_from_text(text)
        except InvalidMetadataError as e:
            return f"is not a name mapping: {e}"
        return None


_OTHERS: tuple[TableProperty, ...] = (
    _NameMappingProperty(NAME_MAPPING),
    IntProperty(FORMAT_VERSION, DEFAULT_FORMAT_VERSION, 1),
    PatternProperty(TABLE_KEY_ID, re.compile(r"\S(?s:.*)"), "the id of a key"),
    DATA_KEY_LENGTH,
    PatternProperty(WRITE_DATA_PATH, *_A_LOCATION),
    PatternProperty(WRITE_METADATA_PATH, *_A_LOCATION),
    *(SPLIT_TARGET_SIZE, SPLIT_LOOKBACK, SPLIT_OPEN_FILE_COST, VERIFY_CHECKSUMS, GC_ENABLED),
    *(HISTORY_MAX_SNAPSHOT_AGE_MS, HISTORY_MIN_SNAPSHOTS_TO_KEEP, HISTORY_MAX_REF_AGE_MS),
    *(DATA_FORMAT, DELETE_FORMAT, TARGET_FILE_SIZE),
    *(METRICS_DEFAULT, METRICS_MAX_INFERRED),
    *(SHRED_VARIANTS, VARIANT_INFERENCE_ROWS),
    *(DISTRIBUTION_MODE, FANOUT, ADVISORY_PARTITION_SIZE, NATIVE_WRITER, ACCEPT_ANY_SCHEMA),
    *(WAP_ENABLED, DELETE_GRANULARITY),
    *ROW_LEVEL_MODE.values(),
    *ROW_LEVEL_ISOLATION.values(),
    *ROW_LEVEL_DISTRIBUTION.values(),
    # this package ignores these properties, but Java reads them
    IntProperty("write.delete.target-file-size-bytes", 67_108_864, 1, LONG_MAX),
    IntProperty("read.split.metadata-target-size", 33_554_432, 1, LONG_MAX),
    BoolProperty("read.split.adaptive-size.enabled", True),
    BoolProperty("read.parquet.vectorization.enabled", True),
    IntProperty("read.parquet.vectorization.batch-size", 5000, 1),
    BoolProperty("read.orc.vectorization.enabled", False),
    IntProperty("read.orc.vectorization.batch-size", 5000, 1),
    BoolProperty("write.upsert.enabled", False),
    BoolProperty("write.spark.auto-schema-evolution.enabled", True),
    BoolProperty("compatibility.snapshot-id-inheritance.enabled", False),
)
_OF_FORMATS: tuple[TableProperty, ...] = (
    *(PARQUET_COMPRESSION, PARQUET_LEVEL, PARQUET_ROW_GROUP_SIZE, PARQUET_PAGE_SIZE),
    *(PARQUET_DICTIONARY_SIZE, PARQUET_PAGE_ROWS, PARQUET_PAGE_VERSION, PARQUET_BLOOM_MAX_BYTES),
    *(AVRO_COMPRESSION, AVRO_LEVEL),
    *(ORC_STRIPE_SIZE, ORC_COMPRESSION, ORC_STRATEGY, ORC_BLOOM_FPP),
)
_OF_COLUMNS = (
    ColumnProperties(METRICS_COLUMN, METRICS_DEFAULT),
    ColumnProperties(PARQUET_BLOOM_ENABLED, BoolProperty("", False)),
    ColumnProperties(PARQUET_BLOOM_FPP, FractionProperty("", 0.01)),
    ColumnProperties(PARQUET_BLOOM_NDV, IntProperty("", 0, 1, LONG_MAX)),
    ColumnProperties(PARQUET_STATISTICS, BoolProperty("", True)),
    ColumnProperties(PARQUET_DICTIONARY, BoolProperty("", True)),
)
_WRITE, _WRITE_DELETES = "write.", "write.delete."

COLUMN_PREFIXES = tuple(p.name for p in _OF_COLUMNS)
"""The prefixes of properties for single columns; the column's full name follows the prefix."""

_SETTABLE: tuple[TableProperty, ...] = (*_NEEDED_BY_COMMITS, *_OTHERS, *_OF_FORMATS)

KNOWN_PROPERTIES: Mapping[str, TableProperty] = {
    **{p.name: p for p in _SETTABLE},
    # each format property has a second form that applies to delete files only
    **{p.name.replace(_WRITE, _WRITE_DELETES, 1): p for p in _OF_FORMATS},
}
"""The properties whose values are checked, by name; properties of single columns are not included.
"""


def known_property(name: str) -> TableProperty | None:
    """Return the definition of a property, or None if it is unknown and may have any value."""
    table_property = KNOWN_PROPERTIES.get(name)
    if table_property is None:
        table_property = next((p for p in _OF_COLUMNS if name.startswith(p.name)), None)
    return table_property


def check_set_properties(properties: Mapping[str, str]) -> None:
    """Raise `InvalidRequestError`, naming the property, for a value that a user must not set."""
    texts: Mapping[Any, Any] = properties
    for name, text in texts.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise InvalidRequestError(
                f"property {name!r}: {text!r} is not text; names and values of properties must be "
                "strings"
            )
        prop = known_property(name)
        if prop is not None:
            check_settable(prop, text, name)


def check_commit_properties(properties: Mapping[str, str]) -> None:
    """Check every property that a commit to a table with these properties will read.

    Raises `InvalidRequestError` naming the property; call it before the first file is written.
    """
    for prop in _NEEDED_BY_COMMITS:
        prop.of(properties)


# --- options and configuration --------------------------------------------------------------------


def int_property(properties: Mapping[str, str], name: str, default: int) -> int:
    """Return an option that is an integer; raise `InvalidRequestError` for any other text.

    >>> int_property({"txn-version": "7"}, "txn-version", 0)
    7
    """
    text = properties.get(name)
    if text is None:
        return default
    number = whole_number(text.strip())
    if number is None:
        raise InvalidRequestError(f"property '{name}': '{text}' is not an integer")
    return number


def bool_property(properties: Mapping[str, str], name: str, default: bool) -> bool:
    """Return an option that is `true` or `false` in any case, or raise `InvalidRequestError`."""
    text = properties.get(name)
    if text is None:
        return default
    lower_text = text.strip().lower()
    if lower_text not in ("true", "false"):
        raise InvalidRequestError(f"property '{name}': '{text}' is neither true nor false")
    return lower_text == "true"
