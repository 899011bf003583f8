"""Compiles the Java sources of this folder with the Janino inside Spark, once on a machine.

The classes go to a folder that is added to the class loader Spark's driver resolves names with, so
that the catalog class is found by its name however late a catalog is configured.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from iceberg_pyspark.spark.bridge.class_folder import class_folder
from iceberg_pyspark.storage.user_folder import user_folder

_SOURCES = (
    "Bridge.java",
    "Changes.java",
    "Commands.java",
    "Frames.java",
    "Joins.java",
    "Layout.java",
    "ParquetWrites.java",
    "RowLevel.java",
    "Sizes.java",
)
_MARKER = "IcebergPyBridge"


class BridgeUnavailableError(Exception):
    """The bridge cannot be installed in this JVM; the message says why."""


def load_bridge(gateway: Any) -> Any:
    """The class loader that knows the bridge's classes, compiled now if this JVM has not yet."""
    jvm = gateway.jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if _knows(gateway, loader):
        return loader
    if not any(m.getName() == "addURL" for m in loader.getClass().getMethods()):
        raise BridgeUnavailableError(
            f"the driver's class loader is a {loader.getClass().getName()}, which takes no classes"
        )
    source = _source()

    def compiled() -> dict[str, bytes]:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(loader)
        compiler.setSourceVersion(8)
        compiler.setTargetVersion(8)
        compiler.cook(source)
        return {name: bytes(code) for name, code in compiler.getBytecodes().items()}

    folder = class_folder(
        user_folder("iceberg-pyspark-bridge"),
        f"{_compiled_against(jvm, loader)}\n{source}",
        compiled,
    )
    loader.addURL(jvm.java.io.File(str(folder)).toURI().toURL())
    return loader


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


def _source() -> str:
    """All sources as the one file that Janino takes: it wants the imports first."""
    folder = Path(__file__).parent
    lines = [line for n in _SOURCES for line in (folder / n).read_text("utf-8").splitlines()]
    imports = sorted({line for line in lines if line.startswith("import ")})
    return "\n".join([*imports, *(line for line in lines if not line.startswith("import "))])


def _knows(gateway: Any, loader: Any) -> bool:
    # asked as a resource: a missing class would be an exception, and a costly one through py4j
    return loader.getResource(f"{_MARKER}.class") is not None
