"""Runs `iceberg-py`, also as `python -m iceberg_pyspark.command_line`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line of this process, and exit with a code of `group.py`."""
    try:
        import typer  # noqa: F401, PLC0415 - an optional dependency
    except ImportError:
        sys.exit(
            "error: the command line needs the package typer; pip install 'iceberg-pyspark[cli]'"
        )
    from iceberg_pyspark.command_line.application import app  # noqa: PLC0415 - needs typer

    app(prog_name="iceberg-py")


if __name__ == "__main__":
    main()
