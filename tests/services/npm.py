"""Servers that are packages of npm, installed with the Node of this machine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.services.server import absent, build_lock


def npm_program(name: str, package: str, version: str, program: str) -> Path:
    """Return a program of a package, installed from npm if necessary; `name` is for messages."""
    with build_lock(f"{package}-{version}") as folder:
        path = folder / "node_modules" / ".bin" / program
        if path.exists():
            return path
        npm = shutil.which("npm")
        if npm is None:
            absent(name, "it comes by npm, and there is no program 'npm'; install Node 20")
        installed = subprocess.run(
            [
                *(npm, "install", "--no-audit", "--no-fund", "--prefer-offline"),
                *("--fetch-retries=2", "--fetch-timeout=60000"),
                *("--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"),
                *("--prefix", folder, f"{package}@{version}"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if installed.returncode:
            absent(name, f"npm install failed: {installed.stderr.strip()[-500:]}")
        return path
