"""Compiles the Java sources of this folder with the Janino inside Spark, once per JVM.

The classes go to a folder that is added to the class loader Spark's driver resolves names with, so
that the catalog class is found by its name however late a catalog is configured.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

_SOURCES = ("Bridge.java", "Commands.java", "Layout.java", "RowLevel.java", "Sizes.java")
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
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.setSourceVersion(8)
    compiler.setTargetVersion(8)
    compiler.cook(_source())
    folder = Path(tempfile.mkdtemp(prefix="iceberg-pyspark-bridge-"))
    for name, code in compiler.getBytecodes().items():
        (folder / f"{name}.class").write_bytes(bytes(code))
    loader.addURL(jvm.java.io.File(str(folder)).toURI().toURL())
    return loader


def _source() -> str:
    """All sources as the one file that Janino takes: it wants the imports first."""
    folder = Path(__file__).parent
    lines = [line for n in _SOURCES for line in (folder / n).read_text("utf-8").splitlines()]
    imports = sorted({line for line in lines if line.startswith("import ")})
    return "\n".join([*imports, *(line for line in lines if not line.startswith("import "))])


def _knows(gateway: Any, loader: Any) -> bool:
    # asked as a resource: a missing class would be an exception, and a costly one through py4j
    return loader.getResource(f"{_MARKER}.class") is not None
