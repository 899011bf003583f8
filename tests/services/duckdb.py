"""DuckDB with its Iceberg extension, which writes and reads tables in its own way.

Both are Python packages; they are installed into a folder of their own, because no part of this
project needs them.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.services.server import absent, build_lock

VERSION = "1.5.5"
_EXTENSIONS = ("avro", "httpfs", "iceberg")


def connect() -> Any:
    """Return a connection of DuckDB that reads and writes Iceberg; times are in UTC.

    Skip the test if DuckDB is unavailable.
    """
    folder = _packages()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    duckdb = importlib.import_module("duckdb")
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in _EXTENSIONS:
        [extension] = (folder / f"duckdb_extension_{name}").rglob("*.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
    connection.execute("SET timezone = 'UTC'; SET arrow_lossless_conversion = true")
    return connection


def _packages() -> Path:
    with build_lock(f"duckdb-{VERSION}-{sys.implementation.cache_tag}") as folder:
        packages = folder / "packages"
        if not all((packages / f"duckdb_extension_{name}").exists() for name in _EXTENSIONS):
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
            command += ["--target", str(packages), f"duckdb=={VERSION}"]
            command += [f"duckdb-extension-{name}=={VERSION}" for name in _EXTENSIONS]
            try:
                subprocess.run(command, stdout=sys.stderr, timeout=600, check=True)
            except (OSError, subprocess.SubprocessError) as error:
                absent("DuckDB", f"its packages did not come ({error!r:.300})")
    return packages
