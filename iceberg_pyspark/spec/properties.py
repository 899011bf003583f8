"""Table properties: names and defaults of the reference implementation, and how their text is read.

A property is read where it is used: `COMMIT_NUM_RETRIES.of(metadata.properties)`. A value that
cannot be read is an error that names the property, never the default. Specification, "Table
Metadata".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iceberg_pyspark.errors import InvalidRequestError

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
"""Names that ask for something or show something; they are never written to the metadata."""


def int_property(properties: Mapping[str, str], name: str, default: int) -> int:
    """A property that holds an integer.

    >>> int_property({"commit.retry.num-retries": "7"}, "commit.retry.num-retries", 4)
    7
    """
    text = properties.get(name)
    if text is None:
        return default
    try:
        return int(text.strip())
    except ValueError as e:
        raise InvalidRequestError(f"property '{name}': '{text}' is not an integer") from e


def fraction_property(properties: Mapping[str, str], name: str, default: float) -> float:
    """A property that holds a number between 0 and 1, neither of them."""
    text = properties.get(name)
    if text is None:
        return default
    try:
        fraction = float(text)
    except ValueError:
        fraction = 0
    if not 0 < fraction < 1:
        raise InvalidRequestError(f"property '{name}': '{text}' is no number between 0 and 1")
    return fraction


def bool_property(properties: Mapping[str, str], name: str, default: bool) -> bool:
    """A property that holds `true` or `false`, in any case."""
    text = properties.get(name)
    if text is None:
        return default
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise InvalidRequestError(f"property '{name}': '{text}' is neither true nor false")
    return lowered == "true"


@dataclass(frozen=True, slots=True)
class IntProperty:
    """The name and default of an integer property; `minimum` is enforced on what users set."""

    name: str
    default: int
    minimum: int | None = None

    def of(self, properties: Mapping[str, str]) -> int:
        """Its value; raises `InvalidRequestError` naming the property."""
        value = int_property(properties, self.name, self.default)
        if self.minimum is not None and value < self.minimum:
            raise InvalidRequestError(
                f"property '{self.name}': {value} is less than {self.minimum}"
            )
        return value


@dataclass(frozen=True, slots=True)
class BoolProperty:
    """The name and default of a true-or-false property."""

    name: str
    default: bool

    def of(self, properties: Mapping[str, str]) -> bool:
        """Its value; raises `InvalidRequestError` naming the property."""
        return bool_property(properties, self.name, self.default)


@dataclass(frozen=True, slots=True)
class StringProperty:
    """The name and default of a text property."""

    name: str
    default: str

    def of(self, properties: Mapping[str, str]) -> str:
        """Its value."""
        return properties.get(self.name, self.default)


DEFAULT_FORMAT_VERSION = 2
FORMAT_VERSION = "format-version"

PARQUET_COMPRESSION = StringProperty("write.parquet.compression-codec", "gzip")
PARQUET_COMPRESSION_OF_NEW_TABLES = "zstd"
WRITE_METADATA_PATH = "write.metadata.path"

METADATA_PREVIOUS_VERSIONS_MAX = IntProperty("write.metadata.previous-versions-max", 100)
METADATA_DELETE_AFTER_COMMIT = BoolProperty("write.metadata.delete-after-commit.enabled", False)
MANIFEST_COMPRESSION = StringProperty("write.manifest.compression-codec", "gzip")
SUMMARY_PARTITION_LIMIT = IntProperty("write.summary.partition-limit", 0)

COMMIT_NUM_RETRIES = IntProperty("commit.retry.num-retries", 4, 0)
COMMIT_MIN_WAIT_MS = IntProperty("commit.retry.min-wait-ms", 100, 0)
COMMIT_MAX_WAIT_MS = IntProperty("commit.retry.max-wait-ms", 60_000, 0)
COMMIT_TOTAL_TIMEOUT_MS = IntProperty("commit.retry.total-timeout-ms", 1_800_000, 0)
STATUS_CHECK_NUM_RETRIES = IntProperty("commit.status-check.num-retries", 3, 0)
STATUS_CHECK_MIN_WAIT_MS = IntProperty("commit.status-check.min-wait-ms", 1_000, 0)
STATUS_CHECK_MAX_WAIT_MS = IntProperty("commit.status-check.max-wait-ms", 60_000, 0)
STATUS_CHECK_TOTAL_TIMEOUT_MS = IntProperty("commit.status-check.total-timeout-ms", 1_800_000, 0)
MANIFEST_TARGET_SIZE = IntProperty("commit.manifest.target-size-bytes", 8_388_608, 1)
MANIFEST_MIN_COUNT_TO_MERGE = IntProperty("commit.manifest.min-count-to-merge", 100, 0)
MANIFEST_MERGE_ENABLED = BoolProperty("commit.manifest-merge.enabled", True)


def check_commit_properties(properties: Mapping[str, str]) -> None:
    """Refuse values of `commit.*` properties that no later commit could work with."""
    for prop in (
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
        METADATA_PREVIOUS_VERSIONS_MAX,
    ):
        prop.of(properties)
    MANIFEST_MERGE_ENABLED.of(properties)
