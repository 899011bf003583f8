"""Compiled classes on disk, for the next session of the same user: compiling takes a second or two.

The folder is one that only this user can enter, and its name says what the classes were made of.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path


def class_folder(
    parent: str | None, made_of: str, compile_classes: Callable[[], Mapping[str, bytes]]
) -> Path:
    """A folder with the classes, compiled now unless `parent` has one made of the same.

    `parent` None: nothing can be kept, and the folder is a temporary one.
    """
    if parent is None:
        return _written(compile_classes(), Path(tempfile.mkdtemp(prefix="iceberg-pyspark-bridge-")))
    kept = Path(parent) / sha256(made_of.encode()).hexdigest()
    if kept.is_dir():
        return kept
    # under another name until it is whole: sessions may start at the same time
    making = _written(compile_classes(), Path(tempfile.mkdtemp(dir=parent)))
    try:
        os.rename(making, kept)
    except OSError:
        if not kept.is_dir():
            return making
        shutil.rmtree(making, ignore_errors=True)
    return kept


def _written(classes: Mapping[str, bytes], folder: Path) -> Path:
    for name, code in classes.items():
        (folder / f"{name}.class").write_bytes(code)
    return folder
