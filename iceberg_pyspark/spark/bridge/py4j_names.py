"""The names of py4j, by which Python calls the JVM, that modules without a JVM import too.

A client of Spark Connect may have no py4j: `pyspark-client` does not bring it. It has no JVM
either, so no object and no error is of these types there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from py4j.protocol import Py4JError, Py4JJavaError
else:
    try:
        from py4j.java_gateway import JavaObject
        from py4j.protocol import Py4JError, Py4JJavaError
    except ModuleNotFoundError:

        class JavaObject:
            """An object of the JVM."""

        class Py4JError(Exception):
            """Any error of py4j."""

        class Py4JJavaError(Py4JError):
            """An exception of the JVM."""


__all__ = ["JavaObject", "Py4JError", "Py4JJavaError"]
