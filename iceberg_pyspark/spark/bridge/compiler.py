"""Compiles the Java sources of this folder with the Janino inside Spark, once on a machine.

Janino knows the Java of long ago: raw types, casts and no lambdas. The sources pass questions on
and hold no rule of Iceberg's.

The classes go to a jar that is added to the class loader Spark's driver resolves names with, so
that the catalog class is found by its name however late a catalog is configured. What changes of
rows need is compiled when the first is made: many sessions only read.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from iceberg_pyspark.spark.bridge.class_jar import class_jar
from iceberg_pyspark.storage.user_folder import user_folder

_BRIDGE = "main"
_CHANGES = "changes"
_OF_EACH_JAR = (
    "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan",
    "org.apache.spark.sql.classic.SparkSession",
    "org.codehaus.janino.SimpleCompiler",
)
"""A class of every jar that decides what is compiled."""

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
        _add_classes(gateway, loader, _MARKER, _BRIDGE, known=None)
    # a session's own loader may stand before the one that the classes were added to
    return loader.loadClass(_MARKER).getClassLoader()


def load_changes(gateway: Any, loader: Any) -> None:
    """Have the loader of the bridge know what changes of rows need besides."""
    if not _knows(loader, _CHANGES_MARKER):
        _add_classes(gateway, loader, _CHANGES_MARKER, _CHANGES, known=_BRIDGE)


def _knows(loader: Any, name: str) -> bool:
    # asked as a resource: a missing class would be an exception, and a costly one through py4j
    return loader.getResource(f"{name}.class") is not None


def _add_classes(gateway: Any, loader: Any, marker: str, lot: str, known: str | None) -> None:
    """Compile sources, or find their classes kept; `known` is the lot they build on."""
    jvm = gateway.jvm
    source = _source(lot)

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

    built_on = "" if known is None else _source(known)
    made_of = "\n".join((_compiled_with(jvm, loader), built_on, source))
    # another session may remove a jar that was kept before the JVM has opened it
    for parent in (user_folder("iceberg-pyspark-bridge"), None):
        with class_jar(parent, made_of, compiled) as jar:
            loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())
            if _knows(loader, marker):
                return
    raise BridgeUnavailableError("the driver's class loader does not find the classes it was given")


def _compiled_with(jvm: Any, loader: Any) -> str:
    """Which Spark, compiler and Java: their versions, and the files that they lie in."""
    spark = getattr(getattr(jvm.org.apache.spark, "package$"), "MODULE$")
    said = [
        spark.SPARK_VERSION(),
        spark.SPARK_REVISION(),
        *(jvm.java.lang.System.getProperty(f"java.{p}") for p in ("version", "vendor", "home")),
    ]
    for name in _OF_EACH_JAR:
        where = loader.loadClass(name).getProtectionDomain().getCodeSource()
        if where is None:
            continue
        file = jvm.java.io.File(where.getLocation().getPath())
        said += [where.getLocation().toString(), file.length(), file.lastModified()]
    return " ".join(map(str, said))


def _source(lot: str) -> str:
    """The sources of a folder as the one file that Janino takes: it wants the imports first."""
    files = sorted((Path(__file__).parent / "java" / lot).glob("*.java"))
    lines = [line for f in files for line in f.read_text("utf-8").splitlines()]
    imports = sorted({line for line in lines if line.startswith("import ")})
    return "\n".join([*imports, *(line for line in lines if not line.startswith("import "))])
