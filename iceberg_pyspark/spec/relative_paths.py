"""Paths of format version 4, which may be relative to the table's location.

Specification of version 4, "Paths in Metadata". A path that begins with a scheme is absolute; any
other path is relative, even if it begins with a slash. Nothing is normalised: `.`, `..` and empty
names stay as they are.
"""

from __future__ import annotations

import re

from iceberg_pyspark.errors import InvalidRequestError

RELATIVE_PATHS_VERSION = 4
"""The first format version whose metadata may hold relative paths."""

SCHEME = r"^[A-Za-z][A-Za-z0-9+.-]*:"
"""The pattern of the start of an absolute path (RFC 3986, section 3.1)."""

_SCHEME = re.compile(SCHEME)


def resolved_path(path: str, table_location: str) -> str:
    """Return the absolute form of a path from the metadata of a table at `table_location`.

    >>> resolved_path("data/a.parquet", "s3://b/t"), resolved_path("file:/x", "s3://b/t")
    ('s3://b/t/data/a.parquet', 'file:/x')
    >>> resolved_path("/x", "s3://b/t")
    's3://b/t//x'
    """
    return path if _SCHEME.match(path) else f"{table_location}/{path}"


def relative_path(path: str, table_location: str) -> str:
    """Return the form of a path in the metadata of the table: relative to its location if possible.

    `resolved_path` restores the path, whatever characters it has. Raises `InvalidRequestError` for
    a path that `resolved_path` could not restore: without a scheme and not below the location.

    >>> relative_path("s3://b/t/data/a.parquet", "s3://b/t"), relative_path("s3://b/tt/a", "s3://b/t")
    ('data/a.parquet', 's3://b/tt/a')
    >>> relative_path("s3://b/t/a:b/c.parquet", "s3://b/t")
    's3://b/t/a:b/c.parquet'
    """
    below = f"{table_location}/"
    if path.startswith(below):
        rest = path[len(below) :]
        if not _SCHEME.match(rest):
            return rest
    if _SCHEME.match(path):
        return path
    raise InvalidRequestError(
        f"{path} has no scheme, so version {RELATIVE_PATHS_VERSION} would treat it as a path "
        f"relative to {table_location}; give it a scheme, such as file:"
    )


def older_path(path: str, table_location: str) -> str:
    """Return the absolute form of a path from before version 4, which may lack the table's scheme.

    >>> older_path("/x/data/a.parquet", "file:/x"), older_path("s3://b/a", "s3://b/t")
    ('file:/x/data/a.parquet', 's3://b/a')
    """
    return path if _SCHEME.match(path) else f"{scheme_of(table_location)}{path}"


def scheme_of(location: str) -> str:
    """Return the scheme at the start of a location, including the colon, or an empty string."""
    match = _SCHEME.match(location)
    return "" if match is None else match[0]


def may_hold_relative_paths(format_version: str | None) -> bool:
    """Return whether manifests and manifest lists of a `format-version` may have relative paths.

    >>> may_hold_relative_paths("4"), may_hold_relative_paths("3"), may_hold_relative_paths(None)
    (True, False, False)
    """
    version = format_version or ""
    return version.isascii() and version.isdigit() and int(version) >= RELATIVE_PATHS_VERSION
