"""What a session's Spark has: the features of `install()`, and the JVM's file systems.

A feature needs modules of Java sources that compile (`java_modules.py`) and internals of Spark, by
the names in `IcebergPyInternals`. Missing features are determined and logged once per JVM, when
Iceberg is first installed; users of a feature call `Bridge.has`.
"""

from __future__ import annotations

import logging
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.bridge.java_modules import (
    AZURE_FILES,
    CHANGE_WRITE,
    CHANGELOG,
    DELETION_VECTORS,
    DIRECT_WRITE,
    EXTENSIONS,
    FILE_KEYS,
    FILE_SIZES,
    FORMAT_NAME,
    GOOGLE_FILES,
    ICEBERG_NAME,
    LAYOUT,
    PARQUET_SCAN,
    PARQUET_WRITE,
    POSITION_DELETES,
    RENEWED_S3A,
    ROW_LEVEL,
    TASK_STORES,
)

S3A_IN_TASKS = "IcebergPyRenewedS3A"
"""S3A, which renews credentials."""

GOOGLE_IN_TASKS = "IcebergPyGoogleFiles"
"""Google's connector by another scheme."""

AZURE_IN_TASKS = "IcebergPyAzureFiles"
"""Hadoop's file system for Azure by another scheme."""


@dataclass(frozen=True, slots=True)
class JvmFileSystem:
    """The file system that a session of Spark has for a scheme."""

    name: str
    """The name of its Java class."""

    options: Mapping[str, str] = field(default_factory=dict)
    """Hadoop options that this session needs to open the file system."""

    has_blob_interface: bool = False
    """Whether the file system can use Azure's Blob interface, the only one that emulators have."""

    bucket_options: Sequence[str] = ()
    """The names, after `fs.s3a.bucket.`, of the session's options for single buckets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JvmLocalFiles:
    """How the JVM names files of the local file system."""

    encoding: str = "utf-8"
    """The encoding of file names in the JVM's locale."""

    default_file_system: str = "file:///"
    """The URI of the file system that the JVM takes for a location without a scheme."""

    def keeps(self, locations: pa.ChunkedArray) -> bool:
        """Return whether the JVM certainly opens local files by the same locations."""
        is_default = self.default_file_system.startswith("file:")
        return is_default and pc.all(pc.string_is_ascii(locations)).as_py() is not False

    def location(self, location: str) -> str | None:
        """Return the location by which the JVM opens a local file; None if it cannot name the
        file.
        """
        if not location.isascii():
            try:
                location.encode(self.encoding)
            except (LookupError, UnicodeEncodeError):
                return None
        if location.startswith("/") and not self.default_file_system.startswith("file:"):
            return f"file://{location}"
        return location


@dataclass(frozen=True, kw_only=True)
class Feature:
    """A feature of `install()`; `otherwise` is a sentence that says what happens without the
    feature.

    `log_level` is that of the line that says so: few users notice that a minor one is missing.
    """

    name: str
    modules: tuple[str, ...] = ()
    internals: tuple[str, ...] = ()
    otherwise: str
    log_level: int = logging.WARNING


NATIVE_SCAN = Feature(
    name="native scans",
    modules=(FILE_SIZES, FILE_KEYS, PARQUET_SCAN),
    internals=("parquet_scan",),
    otherwise="Python reads the files of tables",
)
SMALL_BATCHES = Feature(
    name="batches as small as the Parquet files of a scan",
    modules=(PARQUET_SCAN,),
    internals=("parquet_scan", "parquet_readers"),
    otherwise="tasks allocate the memory of a whole batch for each file",
)
VARIANT_FIELDS = Feature(
    name="fields of variants read without the variants",
    modules=(PARQUET_SCAN,),
    internals=("parquet_scan", "variant_fields"),
    otherwise="scans read whole variants",
    log_level=logging.INFO,
)
ANNOTATED_COLUMNS = Feature(
    name="native scans of Parquet files with variants and geometries",
    modules=(PARQUET_SCAN,),
    internals=("parquet_scan", "annotated_columns"),
    otherwise="Python reads the Parquet files of tables that ever had such a column",
    log_level=logging.INFO,
)
EXECUTOR_VECTORS = Feature(
    name="deletion vectors read by executors",
    modules=(DELETION_VECTORS,),
    otherwise="the driver reads all of them, and beyond some size Python reads their files",
)
EXECUTOR_POSITIONS = Feature(
    name="position deletes read by executors",
    modules=(DELETION_VECTORS, POSITION_DELETES),
    otherwise="the driver reads all of them, and beyond some size Python reads their files",
)
ORC_SCAN = Feature(
    name="native scans of ORC files",
    modules=(PARQUET_SCAN,),
    internals=("parquet_scan", "orc_readers"),
    otherwise="Python reads ORC files",
)
ORC_ZONES = Feature(
    name="native scans of ORC files that have times with a zone",
    modules=(PARQUET_SCAN,),
    internals=("parquet_scan", "orc_readers", "orc_zones"),
    otherwise="Python reads ORC files of tables that ever had such a column",
    log_level=logging.INFO,
)
NATIVE_SOURCE = Feature(
    name='native scans of format("iceberg-py")',
    internals=("python_source",),
    otherwise="its Python data source reads",
)
SIZED_ROWS = Feature(
    name="sizes of rows that Python reads",
    internals=("sized_rows",),
    otherwise="Spark takes them for too large to broadcast",
)
WRITE_LAYOUT = Feature(
    name="distribution of writes",
    modules=(LAYOUT,),
    otherwise="rows are written by the tasks they are in, unsorted",
)
NATIVE_WRITE = Feature(
    name="native Parquet writer",
    modules=(FILE_KEYS, PARQUET_WRITE, LAYOUT),
    internals=("parquet_writer",),
    otherwise="pyarrow writes the files",
)
STORE_WRITE = Feature(
    name="native Parquet writer in object stores",
    modules=(FILE_KEYS, PARQUET_WRITE, LAYOUT, DIRECT_WRITE),
    internals=("parquet_writer",),
    otherwise="pyarrow writes the files there",
)
CHANGE_JOBS = Feature(
    name="DELETE, UPDATE and MERGE whose rows do not go through Python",
    modules=(FILE_KEYS, PARQUET_WRITE, LAYOUT, CHANGE_WRITE),
    internals=("parquet_writer",),
    otherwise="Python tasks write the rows and collect positions",
    log_level=logging.INFO,
)
RENEWED_KEYS = Feature(
    name="vended credentials for S3 renewed in tasks of the JVM",
    modules=(TASK_STORES, RENEWED_S3A),
    otherwise="they must stay valid until the tasks end",
)
GOOGLE_STORES = Feature(
    name="Google's connector with the properties of a catalog",
    modules=(TASK_STORES, GOOGLE_FILES),
    otherwise="Python reads and writes there",
)
AZURE_STORES = Feature(
    name="one client for Azure for each set of keys, which tasks of the JVM renew",
    modules=(TASK_STORES, AZURE_FILES),
    otherwise="each file opens a client, and keys must stay valid until the tasks end",
)
ROW_CHANGES = Feature(
    name="DELETE, UPDATE and MERGE",
    modules=(ROW_LEVEL, LAYOUT),
    internals=("session_extensions",),
    otherwise="they are refused; replace rows by df.write.format('iceberg-py').mode('overwrite') "
    "with the option overwrite-filter",
)
COLUMN_DEFAULTS = Feature(
    name="DEFAULT of columns in SQL",
    internals=("column_default",),
    otherwise="it is refused; give defaults by session.table(name).update_schema()",
)
SCHEMA_EVOLUTION = Feature(
    name="MERGE WITH SCHEMA EVOLUTION",
    internals=("schema_evolution",),
    otherwise="it is refused; use session.table(name).merge_into(...).withSchemaEvolution()",
)
CACHED_TABLES = Feature(
    name="cached tables that follow changes",
    internals=("cached_tables",),
    otherwise="they keep the rows they had until UNCACHE TABLE",
)
SQL_EXTENSIONS = Feature(
    name="Iceberg's statements of ALTER TABLE",
    modules=(EXTENSIONS,),
    internals=("session_parser",),
    otherwise="give them to IcebergSession.sql(...)",
)
SAVE_MODES = Feature(
    name='every mode of save() of format("iceberg-py")',
    modules=(FORMAT_NAME, ICEBERG_NAME),
    otherwise="it takes append and overwrite, and knows no catalog of the session",
)
HIDDEN_IN_EVENTS = Feature(
    name="secrets hidden in the event log",
    internals=("event_log_settings",),
    otherwise="the event log shows settings of catalogs, passwords too; give those in "
    ".pyiceberg.yaml or in the environment",
)
NEW_SESSIONS = Feature(
    name="Iceberg in new sessions, and Python functions in DELETE, UPDATE and MERGE",
    internals=("session_extensions",),
    otherwise="a new session has it once it has named a catalog of ours, or install() it there; "
    "statements with Python functions fail",
)
VIEWS = Feature(
    name="views of catalogs",
    internals=("views",),
    otherwise="a query of one is an error; read the tables that it names",
)
STREAM_WRITES = Feature(
    name="streaming writes",
    internals=("stream_epoch",),
    otherwise="they are refused; write each batch in foreachBatch, with txn-app-id and txn-version",
)
CHANGE_FEEDS = Feature(
    name="change feeds: CHANGES of a table, and read.changes",
    modules=(CHANGELOG,),
    internals=("changelog",),
    otherwise="read the metadata table changes, which is a stream too",
    log_level=logging.INFO,
)
CLOSED_CATALOGS = Feature(
    name="catalogs closed by uninstall()",
    internals=("open_catalogs",),
    otherwise="the session keeps them, and their queries fail",
)

FEATURES = (
    NATIVE_SCAN,
    SMALL_BATCHES,
    VARIANT_FIELDS,
    ANNOTATED_COLUMNS,
    EXECUTOR_VECTORS,
    EXECUTOR_POSITIONS,
    ORC_SCAN,
    ORC_ZONES,
    NATIVE_SOURCE,
    SIZED_ROWS,
    WRITE_LAYOUT,
    NATIVE_WRITE,
    STORE_WRITE,
    CHANGE_JOBS,
    RENEWED_KEYS,
    GOOGLE_STORES,
    AZURE_STORES,
    ROW_CHANGES,
    COLUMN_DEFAULTS,
    SCHEMA_EVOLUTION,
    CACHED_TABLES,
    SQL_EXTENSIONS,
    SAVE_MODES,
    HIDDEN_IN_EVENTS,
    NEW_SESSIONS,
    VIEWS,
    STREAM_WRITES,
    CHANGE_FEEDS,
    CLOSED_CATALOGS,
)

STORES_IN_TASKS: Mapping[str, Feature] = {
    S3A_IN_TASKS: RENEWED_KEYS,
    GOOGLE_IN_TASKS: GOOGLE_STORES,
    AZURE_IN_TASKS: AZURE_STORES,
}
"""The features that this package's own file systems belong to, by the name of their class."""


def missing_features(
    module_failures: Mapping[str, str], internals: Mapping[str, str | None]
) -> dict[Feature, str]:
    """Return the missing features and why: a module does not compile, or an internal is missing."""
    reasons: dict[Feature, str] = {}
    for feature in FEATURES:
        problems = [
            f"java/{module} does not compile: {module_failures[module]}"
            for module in feature.modules
            if module in module_failures
        ]
        for name in feature.internals:
            # An internal that the probe does not know counts as missing: its name here is wrong.
            why = internals.get(name, "nothing looks for it")
            if why is not None:
                problems.append(f"{name}: {why}")
        if problems:
            reasons[feature] = "; ".join(problems)
    return reasons


def describe_session(spark: SparkSession, bridge: Any, portable_because: str) -> str:
    """Return the versions, then a line for each feature: whether it is native, else its
    replacement.
    """
    java = "not reached" if bridge is None else bridge.java_version
    lines = [
        f"iceberg-pyspark {package_version()}",
        f"Spark {spark.version}, Java {java}",
        f"Python {platform.python_version()}, pyarrow {pa.__version__}",
    ]
    if bridge is None:
        lines.append(f'portable, by format("iceberg-py") alone: {portable_because}')
        return "\n".join(lines)
    width = max(len(f.name) for f in FEATURES)
    for feature in FEATURES:
        why = bridge.missing_features.get(feature)
        state = "native" if why is None else f"not native: {feature.otherwise} ({why})"
        lines.append(f"{feature.name:<{width}}  {state}")
    return "\n".join(lines)


def package_version() -> str:
    """Return the version of this package."""
    try:
        return metadata.version("iceberg-pyspark")
    except metadata.PackageNotFoundError:
        return "(not installed as a package)"
