"""The lots of Java sources: folders of `java/`, each compiled by itself.

A lot that a release of Spark's has no classes for leaves the others as they are; what its features
fall back to says `features.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from iceberg_pyspark.spark.bridge import parser_source

CORE = "core"
"""The catalog, the callback to Python, the optimizer rule and commands: without it nothing is."""

PARQUET_SCAN = "parquet_scan"
"""Data files read by Spark's own Parquet reader."""

LAYOUT = "layout"
"""Rows spread over the tasks that write them."""

PARQUET_WRITE = "parquet_write"
"""Data files written by Spark's own Parquet writer."""

ROW_LEVEL = "row_level"
"""DELETE, UPDATE and MERGE: statements taken apart, and joins."""

EXTENSIONS = "extensions"
"""Iceberg's statements of ALTER TABLE: a parser in front of Spark's."""

BUILDS_ON: Mapping[str, tuple[str, ...]] = {
    CORE: (),
    PARQUET_SCAN: (CORE,),
    LAYOUT: (CORE,),
    PARQUET_WRITE: (CORE,),
    ROW_LEVEL: (CORE,),
    EXTENSIONS: (CORE,),
}
"""Every lot, and those whose classes it knows; these stand before it."""

_SOURCES = Path(__file__).parent / "java"


def classes_of(lot: str) -> list[str]:
    """The names of the classes that a lot has a file for."""
    return [path.stem for path in _files(lot)]


def source_of(lot: str) -> str:
    """The sources of a lot as the one file that Janino takes: it wants the imports first."""
    lines = [line for f in _files(lot) for line in f.read_text("utf-8").splitlines()]
    imports = sorted({line for line in lines if line.startswith("import ")})
    return "\n".join([*imports, *(line for line in lines if not line.startswith("import "))])


def written_for(lot: str, loader: Any) -> str:
    """What a lot has besides: classes written for the release whose class loader that is."""
    return parser_source.parser_source(loader) if lot == EXTENSIONS else ""


def writer_of(lot: str) -> str:
    """The text of what writes them: other classes come of another."""
    return inspect.getsource(parser_source) if lot == EXTENSIONS else ""


def _files(lot: str) -> list[Path]:
    return sorted((_SOURCES / lot).glob("*.java"))
