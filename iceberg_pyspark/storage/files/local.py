"""Files of the local file system, or of a file system that is mounted there.

A location is a path, optionally after `file:` or `file://`. Its characters are the file's name
without change: nothing is percent-decoded, because Java writes Hadoop paths in this way, and a
partition folder `a=%2F` has exactly this name. Every write is synced to disk, so an acknowledged
commit survives a power failure.

Move local files that another program has written into a table.

`sync_file` and `move_file` together correspond to `LocalFileIO.open_output`, whose files are safely
on disk.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from iceberg_pyspark.errors import FileAlreadyExistsError, FileNotWrittenError, StorageError
from iceberg_pyspark.storage.files.file_io import FileInfo, outside_file, temporary_name
from iceberg_pyspark.storage.files.syncs import sync

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer


_BUFFER_BYTES = 1 << 20
_HAS_FOLDER_HANDLES = {os.open, os.unlink} <= os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_OPEN_FOLDER = (
    # where it exists, O_PATH needs no permission to read the folders
    getattr(os, "O_PATH", os.O_RDONLY)
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_NO_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
# errors from the file system itself, not from a device or network on the way to it
_PLACE_ERRORS = (
    *_ABSENT,
    *(errno.EACCES, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EXDEV, errno.ENAMETOOLONG),
)


def is_local(location: str) -> bool:
    """Return whether the location is in the local file system: without scheme, or with `file:`."""
    return location.startswith("/") or location[:5].lower() == "file:"


def local_path(location: str) -> str:
    """Return the absolute path of a local location, with all characters unchanged.

    >>> local_path("file:/tmp/a b%20c"), local_path("file:///tmp/x"), local_path("/tmp/x")
    ('/tmp/a b%20c', '/tmp/x', '/tmp/x')
    """
    path = location
    if location[:5].lower() == "file:":
        path = location[5:]
        if path.startswith("//"):
            host, slash, rest = path[2:].partition("/")
            if host not in ("", "localhost"):
                raise StorageError(
                    f"{location}: a file of host '{host}' cannot be reached; mount it"
                )
            path = slash + rest
    if not path.startswith("/"):
        raise StorageError(
            f"{location}: not an absolute path; write an absolute path, such as /a/b or file:/a/b"
        )
    return path


def plain_location(location: str) -> str:
    """Return a local location without empty names, `.` and `..`; any other location unchanged.

    Engines shorten such paths, so that a position delete would name another file than the table.

    >>> plain_location("file:/tmp//a/./b/"), plain_location("s3://b//c")
    ('file:/tmp/a/b', 's3://b//c')
    """
    if not is_local(location):
        return location
    path = local_path(location)
    scheme = location[: len(location) - len(path)]
    plain = os.path.realpath(path) if ".." in path.split("/") else os.path.normpath(path)
    return f"{scheme}/{plain.lstrip('/')}"


@dataclass(frozen=True, slots=True)
class LocalFileIO:
    """Reads, exclusive creates and deletes of local files."""

    def open_input(self, location: str) -> BinaryIO:
        """Return a seekable stream, whose `name` is the path; the caller closes it."""
        with local_errors("read", location):
            return io.BufferedReader(_Input(local_path(location), location), _BUFFER_BYTES)

    def read_bytes(self, location: str) -> bytes:
        """Return the content of the whole file."""
        with local_errors("read", location), _Input(local_path(location), location) as file:
            return file.readall()

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; raise `StorageError` if the file is shorter."""
        with local_errors("read", location), _Input(local_path(location), location) as file:
            size = os.fstat(file.fileno()).st_size
            # check before memory is allocated: offsets come from metadata, which may be damaged
            if offset < 0 or length < 0 or offset + length > size:
                raise outside_file(location, offset, length, size)
            parts = []
            while length > 0:
                part = os.pread(file.fileno(), length, offset)
                if not part:
                    raise StorageError(
                        f"cannot read {location}: it became shorter while it was read"
                    )
                parts.append(part)
                offset += len(part)
                length -= len(part)
            return parts[0] if len(parts) == 1 else b"".join(parts)

    def size(self, location: str) -> int:
        """Return the size in bytes."""
        with local_errors("read", location):
            status = os.stat(local_path(location))
        if stat.S_ISDIR(status.st_mode):
            raise StorageError(f"cannot read {location}: it is a folder")
        return status.st_size

    def exists(self, location: str) -> bool:
        """Return whether the file exists; a folder does not count."""
        with local_errors("look for", location):
            try:
                return not stat.S_ISDIR(os.stat(local_path(location)).st_mode)
            except OSError as e:
                if e.errno in _ABSENT:
                    return False
                raise

    def open_output(self, location: str) -> BinaryIO:
        """Return a stream to a new file; the file is complete when the stream is closed.

        `syncs.py` decides when the closed file is synced to disk.
        """
        with local_errors("create", location):
            path = local_path(location)
            _make_folder(os.path.dirname(path))
            return io.BufferedWriter(_Output(path, location), _BUFFER_BYTES)

    def create_exclusive(self, location: str, data: bytes) -> None:
        """Publish a whole file atomically, or raise `FileAlreadyExistsError`.

        The bytes go to a temporary file, and link() gives it the final name. link() refuses a name
        that exists, where rename() would replace the file, and never shows a partial file.
        """
        with _not_written(), local_errors("create", location):
            path = local_path(location)
            temporary = _write_temporary(path, location, data)
        with local_errors("create", location):
            try:
                _link(temporary, path, location)
            finally:
                # the outcome is decided by now; a leftover temporary file does not change it
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            _sync_folder(os.path.dirname(path))

    def write_bytes(self, location: str, data: bytes) -> None:
        """Write or replace a whole file; readers see either the old or the new bytes."""
        with local_errors("write", location):
            path = local_path(location)
            temporary = _write_temporary(path, location, data)
            try:
                os.replace(temporary, path)
            except OSError:
                os.unlink(temporary)
                raise
            _sync_folder(os.path.dirname(path))

    def delete(self, location: str) -> None:
        """Delete a file; a missing file is not an error."""
        with local_errors("delete", location):
            try:
                os.unlink(local_path(location))
            except OSError as e:
                if e.errno not in _ABSENT:
                    raise

    def delete_without_links(self, location: str) -> None:
        """Delete a file; raise `StorageError` if a folder on its path is a link.

        The path, which was without links when it was checked, is opened folder by folder, so that
        a folder that was replaced by a link meanwhile leads nowhere.
        """
        if not _HAS_FOLDER_HANDLES:
            self.delete(location)
            return
        with local_errors("delete", location):
            *folders, name = local_path(location).split("/")[1:]
            try:
                folder = _open_folders(folders)
                try:
                    os.unlink(name, dir_fd=folder)
                finally:
                    os.close(folder)
            except FileNotFoundError:
                return

    def list_files(self, prefix: str) -> Iterator[FileInfo]:
        """Yield all files below a folder; locations begin with `prefix` unchanged.

        Links to folders are not followed.
        """
        folders = [prefix.rstrip("/")]
        while folders:
            folder = folders.pop()
            for name, status, is_link in _folder_entries(f"{folder}/"):
                if stat.S_ISDIR(status.st_mode):
                    folders.append(f"{folder}/{name}")
                else:
                    yield FileInfo(
                        location=f"{folder}/{name}",
                        size=status.st_size,
                        modified_ms=status.st_mtime_ns // 1_000_000,
                        is_link=is_link,
                    )


def _open_folders(names: Sequence[str]) -> int:
    """Open the folder that these names lead to from the root; a link among them is an error."""
    handle = os.open("/", _OPEN_FOLDER)
    for name in names:
        try:
            next_handle = os.open(name, _OPEN_FOLDER, dir_fd=handle)
        finally:
            os.close(handle)
        handle = next_handle
    return handle


def _folder_entries(folder: str) -> list[tuple[str, os.stat_result, bool]]:
    entries = []
    with local_errors("list", folder):
        try:
            with os.scandir(local_path(folder)) as iterator:
                for entry in sorted(iterator, key=lambda e: e.name):
                    # a file may be deleted between the listing and the stat call
                    with contextlib.suppress(FileNotFoundError):
                        entries.append((entry.name, _status(entry), entry.is_symlink()))
        except OSError as e:
            if e.errno not in _ABSENT:
                raise
    return entries


def _status(entry: os.DirEntry[str]) -> os.stat_result:
    status = entry.stat(follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode) and not entry.is_dir():
        return entry.stat()
    return status


def _make_folder(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except FileExistsError as e:
        raise StorageError(f"cannot make the folder {folder}: a file has that name") from e


def _write_temporary(path: str, location: str, data: bytes) -> str:
    folder = os.path.dirname(path)
    _make_folder(folder)
    temporary = os.path.join(folder, temporary_name())
    try:
        with io.BufferedWriter(_Output(temporary, location, at_once=True), _BUFFER_BYTES) as file:
            file.write(data)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    return temporary


def _link(temporary: str, path: str, location: str) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        # on a network file system the reply to a successful link() may be lost, and the repeated
        # call fails
        if os.stat(temporary).st_nlink < 2:
            raise
    except OSError as e:
        if e.errno in _NO_HARD_LINKS:
            raise FileNotWrittenError(
                f"cannot create {location} exclusively: this file system has no hard links "
                f"({os.strerror(e.errno)}), so racing commits could overwrite each other; "
                "keep tables on another one"
            ) from e
        if e.errno in _PLACE_ERRORS:
            raise FileNotWrittenError(f"cannot create {location}: {os.strerror(e.errno)}") from e
        raise


def _sync_folder(folder: str) -> None:
    # some file systems cannot sync a folder, and the file is already published
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def local_errors(action: str, location: str) -> Iterator[None]:
    """Convert errors of the operating system to `StorageError`s about the location."""
    try:
        yield
    except FileExistsError as e:
        raise FileAlreadyExistsError(f"cannot {action} {location}: it exists already") from e
    except OSError as e:
        raise StorageError(f"cannot {action} {location}: {e.strerror or e}") from e
    except ValueError as e:  # a NUL, or a character outside the file system's encoding
        raise StorageError(f"cannot {action} {location!r}: not a valid name ({e})") from e


@contextlib.contextmanager
def _not_written() -> Iterator[None]:
    """Convert a `StorageError` to `FileNotWrittenError`: the final name does not exist yet."""
    try:
        yield
    except StorageError as e:
        raise FileNotWrittenError(str(e)) from e


class _Input(io.FileIO):
    def __init__(self, path: str, location: str) -> None:
        super().__init__(path, "rb")
        self._location = location

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        with local_errors("read", self._location):
            return super().readinto(buffer)

    def readall(self) -> bytes:
        with local_errors("read", self._location):
            return super().readall()


class _Output(io.FileIO):
    def __init__(self, path: str, location: str, *, at_once: bool = False) -> None:
        super().__init__(path, "xb")
        self._location = location
        self._sync = os.fsync if at_once else lambda descriptor: sync(descriptor, location)

    def write(self, data: ReadableBuffer, /) -> int:
        with local_errors("write", self._location):
            return super().write(data)

    def close(self) -> None:
        if not self.closed:
            with local_errors("write", self._location):
                try:
                    self._sync(self.fileno())
                finally:
                    super().close()


def files_below(location: str) -> list[tuple[str, str]]:
    """Return the relative folder and the name of every file below a folder, sorted by both."""
    top = local_path(location)
    files = []
    for folder, _, names in os.walk(top):
        relative = os.path.relpath(folder, top)
        files += [(relative, name) for name in names]
    return sorted(files)


def sync_file(location: str) -> int:
    """Sync a finished file to disk and return its size in bytes."""
    try:
        descriptor = os.open(local_path(location), os.O_RDONLY)
        try:
            os.fsync(descriptor)
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
    except OSError as e:
        raise StorageError(f"cannot sync {location}: {e.strerror or e}") from e


def move_file(source: str, location: str) -> None:
    """Rename a file within one file system; no other process may use the new name."""
    target = local_path(location)
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.lexists(target):
            raise FileAlreadyExistsError(f"cannot move {source} to {location}: it exists already")
        os.rename(local_path(source), target)
    except OSError as e:
        raise StorageError(f"cannot move {source} to {location}: {e.strerror or e}") from e


def remove_folder(location: str) -> None:
    """Remove a folder with its content; anything that cannot be removed stays."""
    with contextlib.suppress(OSError):
        shutil.rmtree(local_path(location))
