"""A disk cache of immutable metadata files, and the folder for later processes of the same user.

Only files with a UUID in their name are cached, because other names may get other content
(`v3.metadata.json` of a table that is dropped and created again). Entries are kept in this process
and on disk, in a folder that only this user can access, for short-lived worker processes. Different
credentials have different entries. Losing the cache only costs time.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import stat
import tempfile
import uuid
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.storage.lru_map import LruMap

_CACHE_ENABLED = "io.manifest.cache-enabled"
_MAX_TOTAL_BYTES = "io.manifest.cache.max-total-bytes"
_MAX_ENTRY_BYTES = "io.manifest.cache.max-content-length"

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_METADATA_NAME = re.compile(r"(snap-.*|.*-m[0-9]+)\.(avro|parquet)|.*\.metadata\.json(\.gz)?")
_MAGIC = b"IPC1"
_EVICT_EVERY = 32


def is_written_once(name: str) -> bool:
    """Return whether a file name contains a UUID, so that the file's content never changes."""
    return _UUID.search(name) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataCache:
    """The settings of the cache; they can be pickled, the entries stay in the process and on disk.

    `owner` separates readers with different credentials. `folder` None means the user's cache
    folder. `max_total_bytes` limits the memory of a process, `max_disk_bytes` the size of the
    folder.
    """

    owner: str
    max_total_bytes: int = 100 << 20
    max_entry_bytes: int = 32 << 20
    max_disk_bytes: int = 1 << 30
    folder: str | None = None

    def read(self, location: str, read: Callable[[str], bytes]) -> bytes:
        """Return the bytes at `location`; cache them if the name shows that they never change."""
        name = location.rpartition("/")[2]
        if not (_METADATA_NAME.fullmatch(name) and is_written_once(name)):
            return read(location)
        key = hashlib.sha256(f"{self.owner}\n{location}".encode(errors="surrogatepass")).hexdigest()
        data = _memory.get(key)
        if data is not None:
            return data
        folder = self.folder if self.folder is not None else user_folder("iceberg-pyspark")
        data = _load(folder, key)
        if data is None:
            data = read(location)
            if len(data) > self.max_entry_bytes:
                return data
            self._store(folder, key, data)
        _memory.max_size = self.max_total_bytes
        _memory.put(key, data)
        return data

    def _store(self, folder: str | None, key: str, data: bytes) -> None:
        # a full disk or a removed folder must not make a read fail
        if folder is None:
            return
        temporary = os.path.join(folder, f"{uuid.uuid4()}.tmp")
        try:
            with open(temporary, "xb") as file:
                file.write(_MAGIC + zlib.crc32(data).to_bytes(4, "big") + data)
            os.replace(temporary, os.path.join(folder, key))
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            return
        if next(_writes) % _EVICT_EVERY == 0:
            _evict(folder, self.max_disk_bytes)


def metadata_cache(properties: Mapping[str, str]) -> MetadataCache | None:
    """Return the cache that storage properties configure, or None if they disable it."""
    if properties.get(_CACHE_ENABLED, "true").lower() != "true":
        return None
    # use a digest, so that no secret is kept or shown
    owner = hashlib.sha256(repr(sorted(properties.items())).encode(errors="surrogatepass"))
    return MetadataCache(
        owner=owner.hexdigest(),
        max_total_bytes=_bytes(properties, _MAX_TOTAL_BYTES, 100 << 20),
        max_entry_bytes=_bytes(properties, _MAX_ENTRY_BYTES, 32 << 20),
    )


_memory: LruMap[str, bytes] = LruMap(0, len)
_writes = itertools.count()


def _bytes(properties: Mapping[str, str], name: str, default: int) -> int:
    text = properties.get(name)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError as e:
        raise InvalidRequestError(f"{name} = {text}: must be a number of bytes") from e


def _load(folder: str | None, key: str) -> bytes | None:
    if folder is None:
        return None
    path = os.path.join(folder, key)
    try:
        with open(path, "rb") as file:
            entry = file.read()
        os.utime(path)  # the time of last use, for eviction
    except OSError:
        return None
    data = entry[8:]
    if entry[:8] != _MAGIC + zlib.crc32(data).to_bytes(4, "big"):
        return None
    return data


def _evict(folder: str, max_bytes: int) -> None:
    with contextlib.suppress(OSError):
        with os.scandir(folder) as entries:
            files = [(e.stat().st_mtime_ns, e.stat().st_size, e.path) for e in entries]
        excess = sum(size for _, size, _ in files) - max_bytes
        for _, size, path in sorted(files):
            if excess <= 0:
                return
            os.unlink(path)
            excess -= size


def user_folder(name: str) -> str | None:
    """Return a private folder of the current user, created if missing, or None if impossible."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    temporary = os.path.join(tempfile.gettempdir(), f"{name}-{os.getuid()}")
    for folder in (os.path.join(home, name), temporary):
        with contextlib.suppress(OSError):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            status = os.lstat(folder)
            private = stat.S_IMODE(status.st_mode) & 0o077 == 0 and status.st_uid == os.getuid()
            if stat.S_ISDIR(status.st_mode) and private and os.access(folder, os.W_OK):
                return folder
    return None
