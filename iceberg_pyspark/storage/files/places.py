"""Compares locations independent of their spelling.

Different spellings of one location (`s3a` and `s3`, `file:/x` and `/x`) are equal. Stores interpret
empty folder names and `..` differently, so where the difference matters, all interpretations must
agree.
"""

from __future__ import annotations

import functools
import os
import posixpath
import re
from collections.abc import Sequence

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.files.local import is_local, local_path
from iceberg_pyspark.storage.files.memory_files import is_memory, process_memory

LOCAL_STORE = "file://"
EQUAL_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
"""Alternative spellings of a scheme, and the spelling that represents all of them."""

REMOTE_SCHEMES = frozenset(
    ("s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "az", "hdfs", "http", "https")
)
"""The schemes of stores that can be opened for a location, in addition to local files."""

_NO_SERVERS = frozenset(
    (
        *("arrow_hdfs", "async_wrapper", "asynclocal", "asyncwrapper", "blockcache", "cached"),
        *("dask", "data", "dir", "dvc", "file", "filecache", "generic", "git", "libarchive"),
        *("local", "memory", "pyscript", "reference", "simplecache", "tar", "viewfs", "zip"),
    )
)
"""The schemes of fsspec for this machine's own files, for programs and for files in files."""

_HTTP = ("http", "https")
_ENCODED_STEP = re.compile(r"%(2e|2f|5c)|\\", re.IGNORECASE)


def is_web(location: str) -> bool:
    """Return whether a location is on a web server.

    >>> is_web("https://host/t"), is_web("s3://b/t")
    (True, False)
    """
    return location.partition("://")[0].lower() in _HTTP


def store_of(location: str) -> str:
    """Return the scheme and authority of a location, which identify its bucket, host or mount.

    >>> store_of("s3a://b/wh/t"), store_of("/wh/t"), store_of("hdfs://nn:8020/t")
    ('s3://b', 'file://', 'hdfs://nn:8020')
    """
    if is_local(location):
        local_path(location)
        return LOCAL_STORE
    scheme, authority, _ = _split(location)
    return f"{scheme}://{authority}"


def is_in_store(location: str, store_location: str) -> bool:
    """Return whether a location is in the store of `store_location`.

    Raises `StorageError` for text that is not a location.

    >>> is_in_store("s3a://b/x", "s3://b/wh/t"), is_in_store("/etc/passwd", "s3://b/wh/t")
    (True, False)
    """
    # a fast path: a plan checks every file, and nearly all have the same spelling
    start = _plain_start(store_location)
    if start and location.startswith(start) and location[len(start) : len(start) + 1] != "/":
        return True
    return store_of(location) == store_of(store_location)


def are_in_store(locations: Sequence[str], store_location: str) -> bool:
    """Return whether all locations are in the store of `store_location`.

    Raises `StorageError` for text that is not a location.

    >>> are_in_store(["s3a://b/x", "s3://b/y"], "s3://b/wh/t"), are_in_store([], "/a")
    (True, True)
    """
    # a fast path, as in `is_in_store`: nearly all locations of a plan begin with the same folders
    start, shared = _plain_start(store_location), posixpath.commonprefix(locations)
    if start and shared.startswith(start) and shared[len(start) :][:1] not in ("", "/"):
        return True
    return all(is_in_store(location, store_location) for location in locations)


def check_scheme(location: str) -> None:
    """Raise `StorageError` for a scheme that tables must not name: `local://`, `zip://`, chains."""
    if is_local(location):
        local_path(location)
        return
    if is_memory(location):
        process_memory(location)
        return
    scheme, separator, _ = location.partition("://")
    if not separator or not (scheme.lower() in REMOTE_SCHEMES or is_fsspec_scheme(scheme.lower())):
        _split(location)
        raise StorageError(
            f"{location}: refused, because scheme '{scheme}' is not supported; supported are "
            f"file, {', '.join(sorted(REMOTE_SCHEMES))}, and servers that fsspec reaches, such as "
            "webdav and sftp"
        )


@functools.lru_cache(maxsize=64)
def is_fsspec_scheme(scheme: str) -> bool:
    """Return whether only fsspec reaches the stores of a scheme.

    >>> [is_fsspec_scheme(s) for s in ("sftp", "s3", "zip", "zip::s3")]
    [True, False, False, False]
    """
    if scheme in _NO_SERVERS or scheme in REMOTE_SCHEMES:
        return False
    # fsspec would be a quarter of a worker's imports, unused if all files are in other stores
    from fsspec.registry import known_implementations, registry  # noqa: PLC0415

    return scheme in known_implementations or scheme in registry


def is_below(location: str, folder: str) -> bool:
    """Return whether a location is a folder or inside it.

    Raises `StorageError` for text that is not a location.

    >>> is_below("s3a://b/wh/t/data/f", "s3://b/wh/t/"), is_below("s3://b/wh/t/../u", "s3://b/wh/t")
    (True, False)
    """
    return all(
        _starts_with(normalized_location(location, empty), normalized_location(folder, empty))
        for empty in (True, False)
    )


def spellings(location: str) -> frozenset[str]:
    """Return all spellings of a location that engines may write, one per scheme of its store.

    >>> sorted(spellings("s3a://b/x")), sorted(spellings("file:/x"))
    (['s3://b/x', 's3a://b/x', 's3n://b/x'], ['/x', 'file:///x', 'file:/x'])
    """
    if is_local(location):
        try:
            path = local_path(location)
        except StorageError:
            # no file can have this location
            return frozenset((location,))
        return frozenset((location, path, f"file:{path}", f"{LOCAL_STORE}{path}"))
    scheme, _, rest = location.partition("://")
    name = EQUAL_SCHEMES.get(scheme, scheme)
    schemes = (scheme, name, *(other for other, same in EQUAL_SCHEMES.items() if same == name))
    return frozenset(f"{s}://{rest}" for s in schemes)


def depth(location: str) -> int:
    """Return the number of names in a location: its bucket and its folders.

    >>> depth("/"), depth("/a/b"), depth("s3://b"), depth("s3://b/t"), depth("hdfs://nn/t")
    (0, 2, 1, 2, 1)
    """
    if is_local(location):
        return len(_resolve_parts(local_path(location), keep_empty=False))
    scheme, authority, path = _split(location)
    # a bucket or container has its own content, a host does not
    has_none = not authority or scheme in ("hdfs", "viewfs", *_HTTP) or is_fsspec_scheme(scheme)
    bucket = 0 if has_none else 1
    return bucket + len(_resolve_parts(path, keep_empty=False))


@functools.lru_cache(maxsize=1024)
def normalized_location(location: str, keep_empty: bool = True) -> str:
    """Return the location with a canonical scheme, and with `.` and `..` resolved.

    An object store keeps empty folder names; Hadoop's file systems drop them, even for object
    stores, and a local file system always drops them.

    >>> normalized_location("s3a://b/t/../u"), normalized_location("file:///tmp//x/")
    ('s3://b/u', 'file:///tmp/x/')
    """
    if is_local(location):
        path = local_path(location)
        end = "/" if path.endswith("/") else ""
        return f"{LOCAL_STORE}/{'/'.join(_resolve_parts(path, keep_empty=False))}{end}"
    scheme, authority, path = _split(location)
    return f"{scheme}://{authority}/{'/'.join(_resolve_parts(path, keep_empty=keep_empty))}"


def path_in_store(location: str) -> str:
    """Return the path of a file in its store, which is equal for all spellings of the location.

    Links to local folders are resolved; a link to a file counts as a file of its own. Raises
    `StorageError` for text that is not a location.

    >>> path_in_store("s3a://b/t//x/./f"), path_in_store("file:/proc/../f")
    ('/t/x/f', '/f')
    """
    folder, _, name = location.rpartition("/")
    if name in ("", ".", ".."):
        # the location is a folder, not a file
        return _folder_path(location)
    return f"{_folder_path(folder)}/{name}".replace("//", "/", 1)


def file_identity(location: str) -> str:
    """Return a text that is equal for all locations of one file, and for no other file.

    An object store distinguishes `//` and `/`, other stores do not.

    >>> file_identity("s3a://b//x"), file_identity("file:/a//x"), file_identity("hdfs://n/a//x")
    ('s3://b//x', 'file:///a/x', 'hdfs://n/a/x')
    """
    try:
        if is_local(location):
            return f"{LOCAL_STORE}{path_in_store(location)}"
        scheme, authority, path = _split(location)
    except StorageError:
        return location
    if scheme in ("hdfs", "viewfs"):
        return normalized_location(location, keep_empty=False)
    return f"{scheme}://{authority}{path}"


def is_directly_in(location: str, folder: str) -> bool:
    """Return whether a file is in a folder, and not in a subfolder, whatever their spelling.

    >>> is_directly_in("s3a://b/t/f", "s3://b/t/"), is_directly_in("s3://b/t/u/f", "s3://b/t")
    (True, False)
    """
    parent, _, name = location.rpartition("/")
    return file_identity(f"{parent}/{name}") == file_identity(f"{folder.rstrip('/')}/{name}")


@functools.lru_cache(maxsize=16_384)
def _folder_path(folder: str) -> str:
    """Return the path of a folder; the cache helps because many files share a folder."""
    _, _, rest = normalized_location(f"{folder}/x", keep_empty=False).partition("://")
    path = posixpath.dirname(f"/{rest.partition('/')[2]}")
    return os.path.realpath(path) if is_local(folder) else path


@functools.lru_cache(maxsize=256)
def _plain_start(location: str) -> str | None:
    """Return the prefix that a store's locations share, or None if a prefix test is unsafe."""
    if location.startswith("/"):
        return "/"
    if location.startswith("file:"):
        return "file:/"
    scheme, authority, _ = _split(location)
    return None if scheme in _HTTP else f"{location.partition('://')[0]}://{authority}/"


def _starts_with(place: str, folder: str) -> bool:
    prefix = folder.rstrip("/")
    return place == prefix or place.startswith(f"{prefix}/")


def _split(location: str) -> tuple[str, str, str]:
    scheme, separator, rest = location.partition("://")
    if not separator:
        raise StorageError(f"{location}: not an absolute location; it has neither scheme nor /")
    scheme = scheme.lower()
    authority, _, path = rest.partition("/")
    if scheme in _HTTP and _ENCODED_STEP.search(rest):
        # a server may interpret these as steps to another folder
        raise StorageError(f"{location}: refused, because it hides '.', '/' or '\\' in its path")
    return EQUAL_SCHEMES.get(scheme, scheme), authority, f"/{path}"


def _resolve_parts(path: str, *, keep_empty: bool) -> list[str]:
    parts: list[str] = []
    for part in path.split("/")[1:]:
        if part == "..":
            if parts:
                parts.pop()
        elif part != "." and (part or keep_empty):
            parts.append(part)
    return parts
