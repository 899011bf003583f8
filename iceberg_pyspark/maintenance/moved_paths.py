"""Maps the paths of a table to the paths of its copy: one prefix replaces another.

Table metadata, manifest lists, manifests, position delete files and deletion vectors contain
absolute paths. Each path must begin with the source prefix, because otherwise the copy would depend
on the original.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.spec.metadata_columns import DELETE_FILE_PATH
from iceberg_pyspark.spec.unknown_keys import unknown_keys

_PATH_PROPERTIES = (
    "write.data.path",
    "write.metadata.path",
    "write.folder-storage.path",
    "write.object-storage.path",
)
_STEPS = (".", "..")


@dataclass(frozen=True, slots=True)
class MovedPaths:
    """A source folder and a target folder, between which paths are moved.

    >>> MovedPaths("/a/t", "s3://b/t").moved("/a/t/data/f"), MovedPaths("/a/", "/b").moved("/a")
    ('s3://b/t/data/f', '/b')
    """

    source_prefix: str
    target_prefix: str

    def __post_init__(self) -> None:
        """Raise `InvalidRequestError` for empty or equal prefixes."""
        for name in ("source_prefix", "target_prefix"):
            if not getattr(self, name).strip():
                raise InvalidRequestError(f"{name} must not be empty; name a folder")
        if _folder(self.source_prefix) == _folder(self.target_prefix):
            raise InvalidRequestError(
                f"source_prefix and target_prefix are both {self.source_prefix}; name another "
                "folder as the target"
            )

    def moved(self, path: str) -> str:
        """Return the path below the target; raise `InvalidRequestError` for a foreign path."""
        below = self.below(path)
        return _folder(self.target_prefix) + below if below else self.target_prefix.rstrip("/")

    def below(self, path: str) -> str:
        """Return the part of a path after the source prefix."""
        source = _folder(self.source_prefix)
        if f"{path}/" == source:
            return ""
        below = path[len(source) :]
        if not path.startswith(source) or any(step in _STEPS for step in below.split("/")):
            raise InvalidRequestError(
                f"{path} is not below the source prefix {self.source_prefix}, but the table needs "
                "it; paths are compared as text, so give a prefix that all paths have, or bring "
                "the file into the table's folder with rewrite_data_files first"
            )
        return below


def _folder(prefix: str) -> str:
    return prefix.rstrip("/") + "/"


def move_metadata(data: dict[str, Any], paths: MovedPaths, location: str) -> None:
    """Replace the paths in the JSON of table metadata.

    Raises `UnsupportedFeatureError` if an unknown key contains a path. Specification, Appendix C.
    """
    for key, values in unknown_keys(data).by_object.items():
        if _mentions(values, _folder(paths.source_prefix)):
            raise UnsupportedFeatureError(
                f"{location}: one of the keys {', '.join(values)} ({key or 'of the table'}) has a "
                "path whose meaning is unknown; use a newer version of this package"
            )
    data["location"] = paths.moved(data["location"])
    properties = data.get("properties") or {}
    for name in _PATH_PROPERTIES:
        if name in properties:
            properties[name] = paths.moved(properties[name])
    for snapshot in data.get("snapshots") or ():
        if snapshot.get("manifest-list") is not None:
            snapshot["manifest-list"] = paths.moved(snapshot["manifest-list"])
        if snapshot.get("manifests") is not None:
            snapshot["manifests"] = [paths.moved(m) for m in snapshot["manifests"]]
    for files in ("statistics", "partition-statistics"):
        for file in data.get(files) or ():
            file["statistics-path"] = paths.moved(file["statistics-path"])
    for entry in data.get("metadata-log") or ():
        entry["metadata-file"] = paths.moved(entry["metadata-file"])


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
                    text = paths.moved(bytes(bound[value]).decode())
                except (InvalidRequestError, UnicodeDecodeError):
                    continue
                bound = {**bound, value: text.encode()}
            bounds.append(bound)
        file[metric] = bounds
