"""Names of Java classes that a test run looks up once.

For each mention of a class, py4j asks the JVM, which searches all jars of Spark for a class of that
name in each package that pyspark imports: a twentieth of the JVM's time in short tests.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from py4j.java_gateway import JavaClass, JavaPackage, JVMView

_PACKAGES = ("java", "org", "scala")


def look_up_once() -> None:
    """Have py4j cache what it finds: classes, and packages of Java, Scala and Spark.

    Any other name is looked up each time, because an import or a new class can change what it is.
    """
    for owner in (JVMView, JavaPackage):
        if not hasattr(owner.__getattr__, "__wrapped__"):
            owner.__getattr__ = _cached(owner.__getattr__)


def _cached(look_up: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    cache: dict[tuple[Any, str], Any] = {}

    @functools.wraps(look_up)
    def cached(self: Any, name: str) -> Any:
        full_name = f"{self._fqn}.{name}" if isinstance(self, JavaPackage) else name
        key = (self._gateway_client, full_name)
        if key in cache:
            return cache[key]
        result = look_up(self, name)
        is_package = full_name.startswith(_PACKAGES) and full_name.islower()
        if isinstance(result, JavaClass) or is_package:
            cache[key] = result
        return result

    return cached
