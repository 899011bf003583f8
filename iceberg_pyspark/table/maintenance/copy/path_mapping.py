"""Maps the paths of a table to the paths of its copy: one prefix replaces another.

Table metadata, manifest lists, manifests, position delete files and deletion vectors contain
paths. Each path must begin with the source prefix, because otherwise the copy would depend on the
original. In files of version 4, a path without a scheme is relative to the table's location
(specification of version 4, "Paths in Metadata"): such a path stays as it is, because the location
moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from iceberg_pyspark.changes.compatibility import with_scheme
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.formats.locations import DEPRECATED_PATHS
from iceberg_pyspark.spec.metadata_columns import DELETE_FILE_PATH
from iceberg_pyspark.spec.relative_paths import (
    RELATIVE_PATHS_VERSION,
    older_path,
    resolved_path,
    scheme_of,
)
from iceberg_pyspark.spec.table_properties import WRITE_DATA_PATH, WRITE_METADATA_PATH
from iceberg_pyspark.spec.unknown_keys import unknown_keys

_PATH_PROPERTIES = (WRITE_DATA_PATH, WRITE_METADATA_PATH, *DEPRECATED_PATHS)
_STEPS = (".", "..")


@dataclass(frozen=True, slots=True)
class MovedPaths:
    """A source folder and a target folder, between which paths are moved.

    Before version 4, `table_location` is None, and paths are compared as text. From version 4 on it
    is the table's location: a source prefix or an older path without a scheme gets the scheme of
    the location, and the copy of a path with a scheme has one too.

    >>> MovedPaths("/a/t", "s3://b/t").move("/a/t/data/f"), MovedPaths("/a/", "/b").move("/a")
    ('s3://b/t/data/f', '/b')
    >>> upgraded = MovedPaths("/a/t", "/b").of_location("file:/a/t")
    >>> upgraded.move("/a/t/data/f"), upgraded.move("file:/a/t/data/f")
    ('/b/data/f', 'file:/b/data/f')
    """

    source_prefix: str
    target_prefix: str
    table_location: str | None = None

    def __post_init__(self) -> None:
        """Raise `InvalidRequestError` for empty or equal prefixes."""
        for name in ("source_prefix", "target_prefix"):
            if not getattr(self, name).strip():
                raise InvalidRequestError(f"{name} must not be empty; name a folder")
        target = self.target_prefix
        if self.table_location is not None:
            target = with_scheme(target)
        if self._source == _folder(target):
            raise InvalidRequestError(
                f"source_prefix and target_prefix are both {self.source_prefix}; name another "
                "folder as the target"
            )

    def of_location(self, table_location: str) -> MovedPaths:
        """Return the paths of a table of version 4 at this location."""
        return replace(self, table_location=table_location)

    def move(self, path: str) -> str:
        """Return the path below the target; raise `InvalidRequestError` for a foreign path."""
        below = self.below(path)
        target = self.target_prefix
        if self.table_location is not None and scheme_of(path):
            target = with_scheme(target)
        return _folder(target) + below if below else target.rstrip("/")

    def below(self, path: str) -> str:
        """Return the part of a path after the source prefix."""
        source, absolute = self._source, self.absolute(path)
        if f"{absolute}/" == source:
            return ""
        below = absolute[len(source) :]
        if not absolute.startswith(source) or any(step in _STEPS for step in below.split("/")):
            raise InvalidRequestError(
                f"{path} is not below the source prefix {self.source_prefix}, but the table needs "
                "it; paths are compared as text, so give a prefix that all paths have, or bring "
                "the file into the table's folder with rewrite_data_files first"
            )
        return below

    def absolute(self, path: str) -> str:
        """Return a path of a file from before version 4 in the form that paths are compared in."""
        return path if self.table_location is None else older_path(path, self.table_location)

    @property
    def _source(self) -> str:
        return _folder(self.absolute(self.source_prefix))


@dataclass(frozen=True, slots=True)
class StoredPaths:
    """The paths in one metadata file; in a file of version 4 they may be relative to `base`.

    >>> paths = MovedPaths("/a/t", "/b").of_location("file:/a/t")
    >>> stored = StoredPaths(paths, base="file:/a/t")
    >>> stored.move("data/f"), stored.move("file:/a/t/data/f"), stored.absolute("data/f")
    ('data/f', 'file:/b/data/f', 'file:/a/t/data/f')
    """

    paths: MovedPaths
    base: str | None = None
    """The table's location as the file of version 4 has it; None for a file of before."""

    def absolute(self, path: str) -> str:
        """Return the path in the form that entry tables have."""
        return self.paths.absolute(path) if self.base is None else resolved_path(path, self.base)

    def move(self, path: str) -> str:
        """Return the path in the copy; raise `InvalidRequestError` for a foreign path."""
        if self.base is None or scheme_of(path):
            return self.paths.move(path)
        self.paths.below(self.absolute(path))
        return path


def _folder(prefix: str) -> str:
    return prefix.rstrip("/") + "/"


def move_metadata(data: dict[str, Any], paths: MovedPaths, location: str) -> None:
    """Replace the paths in the JSON of table metadata.

    Raises `UnsupportedFeatureError` if an unknown key contains a path. Specification, Appendix C.
    """
    prefixes = {_folder(paths.source_prefix), _folder(paths.absolute(paths.source_prefix))}
    for key, values in unknown_keys(data).by_object.items():
        if any(_mentions(values, prefix) for prefix in prefixes):
            raise UnsupportedFeatureError(
                f"{location}: one of the keys {', '.join(values)} ({key or 'of the table'}) has a "
                "path whose meaning is unknown; use a newer version of this package"
            )
    stored_paths = StoredPaths(paths)
    if data["format-version"] >= RELATIVE_PATHS_VERSION:
        # a table may leave its location to the catalog
        base = data.get("location") or paths.table_location
        stored_paths = StoredPaths(paths, base=None if base is None else base.rstrip("/"))
    if data.get("location") is not None:
        data["location"] = paths.move(data["location"])
    properties = data.get("properties") or {}
    for name in _PATH_PROPERTIES:
        value = properties.get(name)
        # an absolute path in the properties may lack the scheme in every version
        if value is not None and (
            stored_paths.base is None or scheme_of(value) or value[:1] == "/"
        ):
            properties[name] = paths.move(value)
    for snapshot in data.get("snapshots") or ():
        for place in ("root-manifest", "manifest-list"):
            if snapshot.get(place) is not None:
                snapshot[place] = stored_paths.move(snapshot[place])
        if snapshot.get("manifests") is not None:
            snapshot["manifests"] = [stored_paths.move(m) for m in snapshot["manifests"]]
    for statistics in ("statistics", "partition-statistics"):
        for file in data.get(statistics) or ():
            file["statistics-path"] = stored_paths.move(file["statistics-path"])
    for entry in data.get("metadata-log") or ():
        entry["metadata-file"] = stored_paths.move(entry["metadata-file"])


def _mentions(value: Any, prefix: str) -> bool:
    match value:
        case str():
            return prefix in value
        case Mapping():
            return any(_mentions(v, prefix) for v in value.values())
        case list():
            return any(_mentions(v, prefix) for v in value)
        case _:
            return False


def move_bounds(file: dict[str, Any], paths: MovedPaths) -> None:
    """Replace the bounds of `file_path` in the record of a position delete file.

    A bound that was truncated within the prefix is removed: without the bound, no reader is misled.
    """
    for metric, key, value in (("_125", "_126", "_127"), ("_128", "_129", "_130")):
        if file.get(metric) is None:
            continue
        bounds = []
        for bound in file[metric]:
            if bound[key] == DELETE_FILE_PATH.field_id:
                try:
                    text = paths.move(bytes(bound[value]).decode())
                except (InvalidRequestError, UnicodeDecodeError):
                    continue
                bound = {**bound, value: text.encode()}
            bounds.append(bound)
        file[metric] = bounds
