"""Servers written in Go: one pinned binary each, built once from the module proxy and kept."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.services.server import absent, build_lock


def go_binary(service: str, module: str, version: str) -> Path:
    """Return the program of a module, which has its name's last part; a build takes minutes."""
    with build_lock(f"{service}-{version}") as folder:
        binary = folder / module.rpartition("/")[2]
        if binary.exists():
            return binary
        go = shutil.which("go")
        if go is None:
            absent(service, "it is built with Go, and there is no program 'go'; install Go 1.26")
        built = subprocess.run(
            [go, "install", f"{module}@v{version}"],
            env={**os.environ, "GOBIN": str(folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        if built.returncode:
            absent(service, f"go install failed: {built.stderr.strip()[-500:]}")
        return binary
