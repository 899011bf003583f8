"""Compiles the Java sources of this folder with the Janino inside Spark, once on a machine.

The classes go to a folder that is added to the class loader Spark's driver resolves names with, so
that the catalog class is found by its name however late a catalog is configured. What changes of
rows need is compiled when the first is made: many sessions only read.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iceberg_pyspark.spark.bridge.class_folder import class_folder
from iceberg_pyspark.storage.user_folder import user_folder

_BRIDGE = ("Bridge.java", "Callback.java", "Commands.java", "Sizes.java")
_CHANGES = (
    "Changes.java",
    "Frames.java",
    "Joins.java",
    "Layout.java",
    "ParquetWrites.java",
    "RowLevel.java",
)
_MARKER = "IcebergPyBridge"
_CHANGES_MARKER = "IcebergPyRowLevel"


class BridgeUnavailableError(Exception):
    """The bridge cannot be installed in this JVM; the message says why."""


def load_bridge(gateway: Any) -> Any:
    """The class loader that knows what sessions, catalogs and scans need."""
    loader = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if not _knows(loader, _MARKER):
        if not any(m.getName() == "addURL" for m in loader.getClass().getMethods()):
            raise BridgeUnavailableError(
                f"the driver's class loader is a {loader.getClass().getName()}, "
                "which takes no classes"
            )
        _add_classes(gateway, loader, _BRIDGE, known=())
    # a session's own loader may stand before the one that the classes were added to
    return loader.loadClass(_MARKER).getClassLoader()


def load_changes(gateway: Any, loader: Any) -> None:
    """Have the loader of the bridge know what changes of rows need besides."""
    if not _knows(loader, _CHANGES_MARKER):
        _add_classes(gateway, loader, _CHANGES, known=_BRIDGE)


def _knows(loader: Any, name: str) -> bool:
    # asked as a resource: a missing class would be an exception, and a costly one through py4j
    return loader.getResource(f"{name}.class") is not None


def _add_classes(gateway: Any, loader: Any, names: Sequence[str], known: Sequence[str]) -> None:
    """Compile sources, or find their classes kept; `known` are the sources they build on."""
    jvm = gateway.jvm
    source = _source(names)

    def compiled() -> dict[str, bytes]:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(loader)
        compiler.setSourceVersion(8)
        compiler.setTargetVersion(8)
        compiler.cook(source)
        # one answer for all: class by class they take as long as compiling does
        text = jvm.com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString(
            compiler.getBytecodes()
        )
        return {name: base64.b64decode(code) for name, code in json.loads(text).items()}

    folder = class_folder(
        user_folder("iceberg-pyspark-bridge"),
        "\n".join((_compiled_against(jvm, loader), _source(known), source)),
        compiled,
    )
    loader.addURL(jvm.java.io.File(str(folder)).toURI().toURL())


def _compiled_against(jvm: Any, loader: Any) -> str:
    """Which Spark, and where it lies, and which Java."""
    spark = loader.loadClass("org.apache.spark.sql.catalyst.plans.logical.LogicalPlan")
    where = spark.getProtectionDomain().getCodeSource()
    found = (
        getattr(getattr(jvm.org.apache.spark, "package$"), "MODULE$").SPARK_VERSION(),
        "" if where is None else where.getLocation().toString(),
        jvm.java.lang.System.getProperty("java.version"),
    )
    return " ".join(map(str, found))


def _source(names: Sequence[str]) -> str:
    """Those sources as the one file that Janino takes: it wants the imports first."""
    folder = Path(__file__).parent
    lines = [line for n in names for line in (folder / n).read_text("utf-8").splitlines()]
    imports = sorted({line for line in lines if line.startswith("import ")})
    return "\n".join([*imports, *(line for line in lines if not line.startswith("import "))])
