"""The lots of Java sources: folders of `java/`, each compiled separately.

If a release of Spark lacks classes for one lot, the others still compile; `features.py` has the
replacements.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from iceberg_pyspark.spark.bridge import parser_source

CORE = "core"
"""The catalog, the callback to Python, the optimizer rule and commands: without it nothing is."""

PARQUET_SCAN = "parquet_scan"
"""Data files read by Spark's own Parquet and ORC readers."""

DELETION_VECTORS = "deletion_vectors"
"""Deletion vectors read where the rows are."""

POSITION_DELETES = "position_deletes"
"""Position delete files read there."""

LAYOUT = "layout"
"""Rows spread over the tasks that write them."""

PARQUET_WRITE = "parquet_write"
"""Data files written by Spark's own Parquet writer."""

DIRECT_WRITE = "direct_write"
"""The same in object stores, where files stay where tasks put them: executors get its jar."""

ROW_LEVEL = "row_level"
"""DELETE, UPDATE and MERGE: statements taken apart, and joins."""

EXTENSIONS = "extensions"
"""Iceberg's statements of ALTER TABLE, and those about views: a parser in front of Spark's."""

FORMAT_NAME = "format_name"
"""The format iceberg-py as Spark finds it, with every mode of save."""

ICEBERG_NAME = "iceberg_name"
"""The same as format iceberg, where no connector has that name."""

BUILDS_ON: Mapping[str, tuple[str, ...]] = {
    CORE: (),
    PARQUET_SCAN: (CORE,),
    DELETION_VECTORS: (CORE, PARQUET_SCAN),
    POSITION_DELETES: (CORE, PARQUET_SCAN, DELETION_VECTORS),
    LAYOUT: (CORE,),
    PARQUET_WRITE: (CORE,),
    DIRECT_WRITE: (CORE,),
    ROW_LEVEL: (CORE,),
    EXTENSIONS: (CORE,),
    FORMAT_NAME: (CORE,),
    ICEBERG_NAME: (CORE, FORMAT_NAME),
}
"""Every lot, and those whose classes it knows; these stand before it."""

FILES_THAT_LAST = frozenset((DIRECT_WRITE, FORMAT_NAME, ICEBERG_NAME))
"""Lots whose jar is opened again while Spark runs, by the driver or for executors."""

FORMATS: Mapping[str, tuple[str, str]] = {
    FORMAT_NAME: ("IcebergPyFormat", "iceberg-py"),
    ICEBERG_NAME: ("IcebergPyIcebergFormat", "iceberg"),
}
"""Of lots: a class that Spark finds as a format, and the format's name; two of a name are an error.
"""

_OF_ALL_DELETES = (
    "IcebergPyDecoded",
    "IcebergPyDeletedRows",
    "IcebergPyHeldDeletes",
    "IcebergPyReadFailure",
)
_ON_EXECUTORS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    DELETION_VECTORS: (
        "IcebergPyVectorProbe",
        ("IcebergPyDeletionVector", "IcebergPyVectorProbe", "IcebergPyVectorRead"),
    ),
    POSITION_DELETES: (
        "IcebergPyPositionProbe",
        (
            "IcebergPyNoConverter",
            "IcebergPyNoConverters",
            "IcebergPyPositionColumns",
            "IcebergPyPositionFile",
            "IcebergPyPositionProbe",
            "IcebergPyPositionRead",
            "IcebergPyPositionsOfFile",
        ),
    ),
}
"""Of lots: the probe of rows, and the classes besides `_OF_ALL_DELETES` that executors compile for
it: they name no others of ours."""

_OF_THREADS = ("IcebergPyThreadProbe",)
"""What executors compile for rows that ask for a probe each."""

_SOURCES = Path(__file__).parent / "java"


def classes_of(lot: str) -> list[str]:
    """The names of the classes that a lot has a file for."""
    return [path.stem for path in _files(lot)]


def source_of(lot: str) -> str:
    """The sources of a lot as the one file that Janino takes: it wants the imports first."""
    return _one_file(_files(lot))


@cache
def source_on_executors(lot: str) -> str:
    """What reads the deletes of a lot, as the body of a class that Spark has generated."""
    probe, classes = _ON_EXECUTORS[lot]
    return _generate((*_OF_ALL_DELETES, *classes), f"new {probe}(references[0])")


@cache
def source_of_threads() -> str:
    """What finds a task's probe again, by a short text."""
    source = _generate(_OF_THREADS, "IcebergPyThreadProbe.of(references)")
    return re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)


def _generate(classes: Sequence[str], name: str) -> str:
    """Classes as the body of one that Spark has generated, which makes an object."""
    files = [f for lot in _ON_EXECUTORS for f in _files(lot) if f.stem in classes]
    entry = f"\npublic Object generate(Object[] references) {{ return {name}; }}\n"
    inner = re.sub(r"^(public )?class ", "static class ", _one_file(files), flags=re.MULTILINE)
    # where the driver executes as well, Janino would take its classes of these names
    return (inner + entry).replace("IcebergPy", "Inner")


def _one_file(files: Sequence[Path]) -> str:
    lines = [line for f in files for line in f.read_text("utf-8").splitlines()]
    imports = sorted({line for line in lines if line.startswith("import ")})
    return "\n".join([*imports, *(line for line in lines if not line.startswith("import "))])


def written_for(lot: str, loader: Any) -> str:
    """What a lot has besides: classes written for the release whose class loader that is."""
    return parser_source.parser_source(loader) if lot == EXTENSIONS else ""


def writer_of(lot: str) -> str:
    """What else than its sources decides about the content of a lot's jar, as text."""
    if lot == EXTENSIONS:
        return inspect.getsource(parser_source)
    return " ".join(FORMATS.get(lot, ()))


def _files(lot: str) -> list[Path]:
    return sorted((_SOURCES / lot).glob("*.java"))
