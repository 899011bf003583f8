"""Caches compiled classes in jars, for later sessions of the same user.

The name of a jar contains digests of its sources and of its bytes, so truncated, damaged or
extended jars are detected and compiled again. Jars that were unused for long are removed; a JVM
that has one open keeps it.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

MAX_JARS = 40
"""How many jars are kept, the most recently used; each pair of releases needs five."""

_UNFINISHED_SUFFIX = ".unfinished"
_UNFINISHED_SECONDS = 3600


@contextmanager
def class_jar(
    parent: str | None, source_text: str, compile_classes: Callable[[], Mapping[str, bytes]]
) -> Iterator[Path]:
    """Yield the path of a jar with the files; compile only if `parent` has no jar made of the same
    text.

    Only this user may have access to the folder `parent`. Without a `parent`, or if no file can be
    written there, the jar is temporary and removed at the end; by then the JVM must have opened it.
    """
    key = sha256(source_text.encode()).hexdigest()
    cached_jar = None if parent is None else _cached_jar(Path(parent), key)
    if cached_jar is not None:
        yield cached_jar
        return
    jar = _jar(compile_classes())
    if parent is not None:
        with contextlib.suppress(OSError):
            cached_jar = _cache_jar(Path(parent), key, jar)
    if cached_jar is not None:
        yield cached_jar
        return
    with tempfile.TemporaryDirectory(prefix="iceberg-pyspark-bridge-") as folder:
        path = Path(folder) / "classes.jar"
        path.write_bytes(jar)
        yield path


def _cached_jar(parent: Path, key: str) -> Path | None:
    """Return a jar of the key whose bytes match its name; remove other jars of the key."""
    for path in sorted(parent.glob(f"{key}-*.jar")):
        with contextlib.suppress(OSError):
            if _content(path) == path.stem.partition("-")[2]:
                os.utime(path)
                return path
            path.unlink()
    return None


def _content(path: Path) -> str | None:
    """Return the digest of a file that this user owns and nobody else can write, or None."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
            return None
        if stat.S_IMODE(status.st_mode) & 0o022:
            return None
        return sha256(file.read()).hexdigest()


def _cache_jar(parent: Path, key: str, jar: bytes) -> Path:
    """Write the jar to the folder; the jar is complete and on the disk before it gets its name."""
    path = parent / f"{key}-{sha256(jar).hexdigest()}.jar"
    file, temporary_path = tempfile.mkstemp(dir=parent, suffix=_UNFINISHED_SUFFIX)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(jar)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary_path, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary_path)
        raise
    folder = os.open(parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    _evict(parent)
    return path


def _evict(parent: Path) -> None:
    jars: list[tuple[float, Path]] = []
    for path in parent.iterdir():
        # Another session may remove the jar at the same time.
        with contextlib.suppress(OSError):
            last = path.lstat().st_mtime
            if path.suffix == ".jar":
                jars.append((last, path))
            elif path.suffix == _UNFINISHED_SUFFIX and time.time() - last > _UNFINISHED_SECONDS:
                path.unlink()
    for _, path in sorted(jars, reverse=True)[MAX_JARS:]:
        with contextlib.suppress(OSError):
            path.unlink()


def _jar(classes: Mapping[str, bytes]) -> bytes:
    """Return a jar; equal classes give equal bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as jar:
        for name in sorted(classes):
            jar.writestr(zipfile.ZipInfo(name), classes[name])
    return out.getvalue()
