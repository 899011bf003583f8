"""Names of temporary files and folders of a write; a killed write leaves them behind."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence

_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_FILE = re.compile(rf"\.{_UUID}\.tmp")
_FOLDER = re.compile(f"writing-{_UUID}")


def temporary_name() -> str:
    """Return a new hidden file name, for a file that later gets its final name."""
    return f".{uuid.uuid4()}.tmp"


def writing_folder_name() -> str:
    """Return a new name of a folder for the files of one write, including its temporary files."""
    return f"writing-{uuid.uuid4()}"


def without_temporary(names: Sequence[str]) -> Sequence[str]:
    """Return the names of a path up to the first name that only a write of this package uses.

    >>> without_temporary(["metadata", ".1b4e28ba-2fa1-11d2-883f-0016d3cca427.tmp"])
    ['metadata']
    >>> without_temporary(["data", "writing-1b4e28ba-2fa1-11d2-883f-0016d3cca427", "_other", "a"])
    ['data']
    >>> without_temporary([".tmp", "_writing"])
    ['.tmp', '_writing']
    """
    if _FILE.fullmatch(names[-1]):
        names = names[:-1]
    for i, name in enumerate(names):
        if _FOLDER.fullmatch(name):
            return names[:i]
    return names
