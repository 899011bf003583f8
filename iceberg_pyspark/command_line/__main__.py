"""Runs `iceberg-py`, also as `python -m iceberg_pyspark.command_line`."""

from __future__ import annotations

import atexit
import gc
import sys


def main() -> None:
    """Run the command line of this process, and exit with a code of `group.py`."""
    try:
        import typer  # noqa: F401, PLC0415 - an optional dependency
    except ImportError:
        sys.exit(
            "error: the command line needs the package typer; pip install 'iceberg-pyspark[cli]'"
        )
    # the modules of a command are many objects, which no collection frees, and not the one at exit
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
    from iceberg_pyspark.command_line import invocation  # noqa: PLC0415 - needs typer
    from iceberg_pyspark.command_line.application import app  # noqa: PLC0415 - the same

    invocation.before_open = _without_python_types
    app(prog_name="iceberg-py")


def _without_python_types() -> None:
    """Let pyarrow do without pandas and dateutil, which take long to import.

    pyarrow tries the imports once, when it makes the first array of Python values, to recognize
    their values. The command has none; `import pandas` works as ever afterwards.
    """
    import pyarrow as pa  # noqa: PLC0415 - not for `--help`

    if "pandas" in sys.modules:
        return
    finder = _AbsentPackages()
    sys.meta_path.insert(0, finder)
    try:
        pa.scalar(0)
    finally:
        sys.meta_path.remove(finder)


class _AbsentPackages:
    """A finder for which the packages are not installed."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname in ("pandas", "dateutil"):
            raise ImportError(fullname)


if __name__ == "__main__":
    main()
