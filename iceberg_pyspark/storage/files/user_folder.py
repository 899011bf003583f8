"""A folder for files that later processes of the same user can reuse."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile


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
