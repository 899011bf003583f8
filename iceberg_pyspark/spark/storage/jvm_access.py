"""Decides whether the JVM can access a table's files, by which location and with which options.

If the JVM has no file system for the scheme (pyspark lacks hadoop-aws, for example), or a storage
property has no Hadoop option, Python reads and writes the files. Python also reads local files
whose names do not exist in the JVM's locale.

Tasks of the JVM renew credentials by a handle that they send to the driver, which asks the source
that the catalog registered (`storage/credentials/credential_renewal.py`), so many tasks cause one
request to the catalog's server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.bridge.features import (
    AZURE_IN_TASKS,
    GOOGLE_IN_TASKS,
    S3A_IN_TASKS,
    JvmFileSystem,
    JvmLocalFiles,
)
from iceberg_pyspark.spark.storage.hadoop_options import (
    AZURE_FILE_SYSTEMS,
    S3A_FILE_SYSTEM,
    hadoop_options,
    jvm_schemes,
    scheme_options,
    without_file_system_cache,
)
from iceberg_pyspark.storage.credentials.credential_renewal import (
    RENEWAL,
    CredentialSource,
    end_of,
    lasting_properties,
    source_of,
)
from iceberg_pyspark.storage.credentials.table_services import (
    REMOTE_SIGNING_ENABLED,
    is_signed_remotely,
)
from iceberg_pyspark.storage.credentials.vended_credentials import prefix_at, properties_at
from iceberg_pyspark.storage.files.local import is_local
from iceberg_pyspark.storage.files.places import REMOTE_SCHEMES
from iceberg_pyspark.storage.lru_map import LruMap

_log = get_logger(__name__)


_PYTHON_SERVES = "Python reads and writes there"
_NOT_ALL = "the JVM cannot be given all storage properties for"
# The version must match the Hadoop release of Spark.
_HADOOP_PACKAGES = {
    "s3a": "org.apache.hadoop:hadoop-aws:<version of Spark's hadoop-client-api>",
    "gs": "com.google.cloud.bigdataoss:gcs-connector:<version>",
    "abfs": "org.apache.hadoop:hadoop-azure:<version of Spark's hadoop-client-api>",
    "abfss": "org.apache.hadoop:hadoop-azure:<version of Spark's hadoop-client-api>",
}

_warnings: set[str] = set()


class NativeStorage:
    """The stores of one table's files, as the JVM can access them."""

    def __init__(
        self,
        file_system: Callable[[str], JvmFileSystem | None],
        properties: Mapping[str, str],
        *,
        writes: bool = False,
        open_in_tasks: Callable[[str, bool], str | None] = lambda *_: "not in this session",
        local_files: Callable[[], JvmLocalFiles] = JvmLocalFiles,
    ):
        """`file_system` returns the JVM's file system for a scheme; `properties` are Iceberg's
        properties.

        With `writes` the options are for written files and include encryption. `open_in_tasks` is
        `Bridge.open_in_tasks`. `local_files` is called if a location is local.
        """
        self._file_system = file_system
        # Not all credentials can be renewed in the JVM.
        self._properties = lasting_properties(properties)
        self._open_in_tasks = open_in_tasks
        self._local_files = local_files
        self._writes = writes
        self._roots: dict[str, tuple[str | None, Mapping[str, str]]] = {}
        self._places: dict[tuple[str, str | None], str | None] = {}
        self._options: dict[str, str] = {}

    @cached_property
    def _local(self) -> JvmLocalFiles:
        return self._local_files()

    @property
    def options(self) -> Mapping[str, str]:
        """Hadoop's options for all locations so far."""
        return self._options

    def locations(self, locations: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return what `location` returns for each location, as text or null."""
        if pc.all(are_local(locations)).as_py() and self._local.keeps(locations):
            return locations
        return pa.chunked_array([pa.array(map(self.location, locations.to_pylist()), pa.string())])

    def location(self, location: str) -> str | None:
        """Return the location by which the JVM opens a file, or None if the JVM cannot open it."""
        if is_local(location):
            return local_location(location, self._local)
        scheme, separator, rest = location.partition("://")
        host, _, _ = rest.partition("/")
        root = f"{scheme}{separator}{host}"
        # a store and a prefix of vended credentials have the same properties everywhere
        place = root, prefix_at(location, self._properties)
        if place not in self._places:
            self._places[place] = self._jvm_scheme_at(scheme, location, root)
        jvm_scheme = self._places[place]
        return None if jvm_scheme is None else f"{jvm_scheme}://{rest}"

    def _jvm_scheme_at(self, scheme: str, location: str, root: str) -> str | None:
        properties = properties_at(location, self._properties)
        if root not in self._roots:
            self._roots[root] = self._jvm_scheme(scheme, location, root, properties), properties
        jvm_scheme, properties_before = self._roots[root]
        if jvm_scheme is not None and properties != properties_before:
            _warn_once(f"{_NOT_ALL} {scheme}://: its folders have different ones; {_PYTHON_SERVES}")
            return None
        return jvm_scheme

    def _jvm_scheme(
        self, scheme: str, location: str, root: str, properties: Mapping[str, str]
    ) -> str | None:
        # Hadoop opens some schemes, such as `ftp`, that no table may name; Python refuses them.
        candidate_schemes = jvm_schemes(scheme) if scheme.lower() in REMOTE_SCHEMES else ()
        file_systems = ((s, self._file_system(s)) for s in candidate_schemes)
        jvm_scheme, file_system = next(((s, f) for s, f in file_systems if f), (None, None))
        if is_signed_remotely(properties):
            _warn_once(
                f"the catalog's server signs the requests to {scheme}:// "
                f"({REMOTE_SIGNING_ENABLED}), and the JVM cannot ask it to; {_PYTHON_SERVES}"
            )
            return None
        if jvm_scheme is None or file_system is None:
            _warn_once(
                f"the JVM has no file system for {scheme}://{_remedy(scheme)}; {_PYTHON_SERVES}"
            )
            return None
        options = hadoop_options(root, properties, writes=self._writes, file_system=file_system)
        if options is None:
            _warn_once(f"{_NOT_ALL} {scheme}://; {_PYTHON_SERVES}")
            return None
        if options and _is_overruled(root, options, file_system):
            _warn_once(
                f"the session's options fs.s3a.bucket.* for {root} would replace those of the "
                f"catalog; {_PYTHON_SERVES}"
            )
            return None
        if any(self._options.get(name, value) != value for name, value in options.items()):
            # Hadoop has one set of keys for all buckets.
            _warn_once(f"{_NOT_ALL} {scheme}://: its buckets have different ones; {_PYTHON_SERVES}")
            return None
        if options:
            # Hadoop caches an open file system for each scheme and bucket. To open a file system
            # for each file took longer than to read a small file, so each set of options gets a
            # scheme of its own.
            opened_store = self._opened_by(
                jvm_scheme, file_system.name, options, location, properties
            )
            if opened_store is None:
                return None
            jvm_scheme, of_scheme = opened_store
            options |= of_scheme
        self._options |= {**file_system.options, **options}
        return jvm_scheme

    def _opened_by(
        self,
        jvm_scheme: str,
        file_system: str,
        options: Mapping[str, str],
        location: str,
        properties: Mapping[str, str],
    ) -> tuple[str, Mapping[str, str]] | None:
        """Return the scheme for a store with options, and what it needs; None if Python serves."""
        scheme = location.partition("://")[0]
        renewal = self._renewal(location, properties)
        renews = renewal is not None
        another = f"the session's file system for {jvm_scheme}:// is a {file_system}"
        if jvm_scheme == "gs":
            problem = self._open_in_tasks(GOOGLE_IN_TASKS, renews)
            if problem is not None:
                _warn_once(f"{_NOT_ALL} {scheme}:// ({problem}); {_PYTHON_SERVES}")
                return None
        elif jvm_scheme == "s3a":
            problem = None
            if renews:
                is_own = file_system == S3A_FILE_SYSTEM
                problem = self._open_in_tasks(S3A_IN_TASKS, renews) if is_own else another
            if problem is not None:
                _warn_of_end(scheme, problem)
                renewal = None
        else:
            is_own = file_system in AZURE_FILE_SYSTEMS
            problem = self._open_in_tasks(AZURE_IN_TASKS, renews) if is_own else another
            if problem is not None:
                if renews:
                    _warn_of_end(scheme, problem)
                return jvm_scheme, without_file_system_cache(jvm_scheme)
        return scheme_options(location, jvm_scheme, options, renewal)

    def _renewal(self, location: str, properties: Mapping[str, str]) -> tuple[str, float] | None:
        """Return the handle and the end of credentials that the driver renews, or None."""
        end_s = end_of(properties)
        if end_s is None:
            return None
        handle = _register_store(location, self._properties)
        if handle is None:
            reason = "their catalog offers no renewal in this process"
            _warn_of_end(location.partition("://")[0], reason)
            return None
        return handle, end_s


def _is_overruled(root: str, options: Mapping[str, str], file_system: JvmFileSystem) -> bool:
    """Return whether the session's own options for the bucket would replace the catalog's.

    An address that the server of a catalog sends would then get the session's credentials.
    """
    bucket = f"{root.partition('://')[2]}."
    names = [n.removeprefix(bucket) for n in file_system.bucket_options if n.startswith(bucket)]
    is_whole = not options.keys().isdisjoint(("fs.s3a.endpoint", "fs.s3a.access.key"))
    return any(is_whole or f"fs.s3a.{name}" in options for name in names)


def are_local(locations: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return for each location what `is_local` returns for one."""
    return pc.or_(
        pc.starts_with(locations, "/"), pc.starts_with(locations, "file:", ignore_case=True)
    )


def local_location(location: str, files: JvmLocalFiles) -> str | None:
    """Return `files.location`, and log what is special about it."""
    jvm_location = files.location(location)
    if jvm_location == location:
        return location
    if jvm_location is None:
        _warn_once(
            f"the JVM's locale has file names in {files.encoding}, which lacks characters of a "
            f"table's location; {_PYTHON_SERVES} (start Spark with LC_ALL=C.UTF-8)"
        )
    else:
        _warn_once(
            "a table's location without a scheme is a folder of the local file system, and not of "
            f"Spark's default file system {files.default_file_system}; a location in the latter "
            "begins with its scheme"
        )
    return jvm_location


def _remedy(scheme: str) -> str:
    package = _HADOOP_PACKAGES.get(jvm_schemes(scheme.lower())[-1])
    return "" if package is None else f" (start Spark with --packages {package})"


def _warn_of_end(scheme: str, reason: str | None) -> None:
    _warn_once(
        f"the catalog's credentials for {scheme}:// expire, and tasks of the JVM cannot renew them "
        f"({reason}): a job that takes longer fails; to read by Python, whose tasks renew them "
        "where their catalog offers it, use format('iceberg-py') with the option native=false; to "
        "write by Python, use the option native-writer-enabled=false"
    )


def _warn_once(line: str) -> None:
    if line not in _warnings:
        _warnings.add(line)
        _log.warning(line)


_stores: LruMap[str, tuple[str, Mapping[str, str], CredentialSource]] = LruMap(1000)


def _register_store(location: str, properties: Mapping[str, str]) -> str | None:
    """Return the handle of a location's store, or None if its credentials cannot be renewed.

    `properties` are the table's storage properties. The handle is equal for equal sources and
    stores, and cannot be guessed.
    """
    source = source_of(properties)
    if source is None:
        return None
    bucket = location.partition("://")[2].partition("/")[0]
    handle = hashlib.sha256(f"{bucket}\n{properties[RENEWAL]}".encode()).hexdigest()
    _stores.put(handle, (location, properties, source))
    return handle


def renewed_properties(handle: str) -> tuple[str, Mapping[str, str]]:
    """Return a location in the store, and its properties with current credentials.

    Raises an `IcebergError` if there are none.
    """
    store = _stores.get(handle)
    if store is None:
        raise StorageError("the driver has no source of new credentials for this store")
    location, properties, source = store
    return location, properties_at(location, source.renew(properties))
