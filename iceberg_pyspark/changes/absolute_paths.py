"""Requires schemes in the locations and paths of tables of version 4.

Specification of version 4, "Paths in Metadata": a path without a scheme is relative to the table's
location, even if it begins with a slash. An upgrade adds the scheme of local files to existing
paths without one, because only local paths lack a scheme.
"""

from __future__ import annotations

from dataclasses import replace

from iceberg_pyspark.changes.metadata_builder import MetadataBuilder
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.relative_paths import RELATIVE_PATHS_VERSION, older_path, scheme_of
from iceberg_pyspark.spec.snapshots import with_paths
from iceberg_pyspark.spec.table_metadata import TableMetadata

_LOCAL = "file:"


def normal_location(location: str) -> str:
    """Return the location without trailing slashes, unless it consists of slashes or a scheme only.

    >>> normal_location("s3://bucket/table/")
    's3://bucket/table'
    """
    path = location.rstrip("/")
    return location if not path or path.endswith(":") else path


def with_scheme(location: str) -> str:
    """Return a table location in the form that version 4 requires: with a scheme.

    >>> with_scheme("/wh/t"), with_scheme("s3://b/t")
    ('file:/wh/t', 's3://b/t')
    """
    return location if scheme_of(location) or not location else f"{_LOCAL}{location}"


def set_location(builder: MetadataBuilder, location: str) -> None:
    """Set the table's location; refuse to move a version 4 table that has root manifests."""
    m = builder.metadata
    location = normal_location(location)
    if m.format_version >= RELATIVE_PATHS_VERSION:
        location = with_scheme(location)
        if m.location != location and any(s.root_manifest is not None for s in m.snapshots):
            raise InvalidRequestError(
                f"table {m.location}: its location cannot become {location}, because paths in "
                f"metadata of version {m.format_version} are relative to it; leave the location "
                "as it is, or make a new table there"
            )
    builder.change(location=location)


def with_schemes(m: TableMetadata) -> TableMetadata:
    """Return the metadata for an upgrade to version 4: every location and path has a scheme."""
    location = with_scheme(m.location)
    return replace(
        m,
        location=location,
        snapshots=tuple(with_paths(s, location, older_path) for s in m.snapshots),
        metadata_log=tuple(
            replace(e, metadata_file=older_path(e.metadata_file, location)) for e in m.metadata_log
        ),
        statistics=tuple(
            replace(s, statistics_path=older_path(s.statistics_path, location))
            for s in m.statistics
        ),
        partition_statistics=tuple(
            replace(s, statistics_path=older_path(s.statistics_path, location))
            for s in m.partition_statistics
        ),
    )
