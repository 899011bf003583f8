"""`python -m iceberg_pyspark.run dbt build` runs a program with `iceberg_pyspark.auto`.

The program is a console script of this Python's environment, the path of a Python file, or
`-m module`. Its arguments and its exit code are its own; Python processes that it starts have
`iceberg_pyspark.auto` too, by the environment variable.
"""

from __future__ import annotations

import os
import runpy
import sys
import sysconfig
from importlib.metadata import entry_points
from pathlib import Path

from iceberg_pyspark.auto import VARIABLE

_USAGE = "usage: python -m iceberg_pyspark.run {console script | file | -m module} [argument ...]"


def main() -> None:
    """Run the program that the arguments name; the exit code is 2 if there is none."""
    program, *arguments = sys.argv[1:] or [""]
    if program == "-m":
        program, *arguments = arguments or [""]
        _check(bool(program), "-m needs a module")
        sys.argv = [program, *arguments]
        _for_children()
        runpy.run_module(program, run_name="__main__", alter_sys=True)
        return
    scripts = entry_points(group="console_scripts", name=program)
    folder = Path(sysconfig.get_path("scripts"))
    path = folder / program if scripts else Path(program)
    _check(bool(scripts) or path.is_file(), f"no console script and no file is named {program!r}")
    sys.argv = [str(path), *arguments]
    if not getattr(sys.flags, "safe_path", False):  # Python 3.11
        sys.path[0] = str(path.resolve().parent)
    _for_children()
    if scripts:
        sys.exit(next(iter(scripts)).load()())
    runpy.run_path(str(path), run_name="__main__")


def _for_children() -> None:
    os.environ[VARIABLE] = "1"


def _check(is_right: bool, problem: str) -> None:
    if not is_right:
        sys.stderr.write(f"{problem}\n{_USAGE}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
