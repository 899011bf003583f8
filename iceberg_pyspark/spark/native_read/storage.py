"""Whether the JVM reaches a table's files, by which location and with which options.

Where it has no file system for a scheme (hadoop-aws, for one, does not come with pyspark), or a
storage property has no option of Hadoop's, the files are read portably.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping

from iceberg_pyspark.spark.native_read.hadoop_options import hadoop_options, jvm_schemes
from iceberg_pyspark.storage.local import is_local
from iceberg_pyspark.storage.places import REMOTE_SCHEMES

_log = logging.getLogger(__name__)
_warnings: set[str] = set()


class NativeStorage:
    """The stores of one table's files as the JVM sees them."""

    def __init__(self, has_file_system: Callable[[str], bool], properties: Mapping[str, str]):
        """`has_file_system` answers for a scheme; `properties` are Iceberg's."""
        self._has_file_system = has_file_system
        self._properties = properties
        self._roots: dict[str, str | None] = {}
        self._options: dict[str, str] = {}

    @property
    def options(self) -> Mapping[str, str]:
        """Hadoop's options for the locations so far."""
        return self._options

    def location(self, location: str) -> str | None:
        """The location by which the JVM reaches a file; None where it does not."""
        if is_local(location):
            return location
        scheme, separator, rest = location.partition("://")
        host, _, _ = rest.partition("/")
        root = f"{scheme}{separator}{host}"
        if root not in self._roots:
            self._roots[root] = self._jvm_scheme(scheme, root)
        jvm_scheme = self._roots[root]
        return None if jvm_scheme is None else f"{jvm_scheme}://{rest}"

    def _jvm_scheme(self, scheme: str, root: str) -> str | None:
        # Hadoop opens some, `ftp` for one, that no table may name; Python refuses those
        may_be = jvm_schemes(scheme) if scheme.lower() in REMOTE_SCHEMES else ()
        jvm_scheme = next((s for s in may_be if self._has_file_system(s)), None)
        options = hadoop_options(root, self._properties)
        if jvm_scheme is None:
            _warn_once(f"the JVM has no file system for {scheme}://, so Python reads what is there")
        elif options is None:
            jvm_scheme = None
            _warn_once(
                f"the JVM cannot be given all storage properties for {scheme}://, so Python reads "
                "what is there"
            )
        else:
            self._options |= options
        return jvm_scheme


def store_digest(options: Mapping[str, str]) -> str:
    """Equal for stores that options of Hadoop's make equal."""
    return hashlib.sha256(json.dumps(dict(options), sort_keys=True).encode()).hexdigest()


def _warn_once(line: str) -> None:
    if line not in _warnings:
        _warnings.add(line)
        _log.warning(line)
