"""The Java classes of a session: compiled with Spark's Janino once per machine, and called.

Janino compiles an old dialect of Java: raw types, casts, no lambdas. The sources pass requests on
and contain no rule of Iceberg. The classes of each module are stored in a jar, which is added to
the class loader of Spark's driver, so Spark finds the catalog class by name whenever a catalog is
configured. All modules are compiled when Iceberg is installed, so missing features are known from
then on.

The jars are a cache for later sessions of the same user. The name of a jar contains digests of its
sources and of its bytes, so truncated, damaged or extended jars are detected and compiled again.
Jars that were unused for long are removed; a JVM that has one open keeps it.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import io
import json
import os
import shutil
import stat
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pyspark
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.spark.bridge.java_modules import (
    BUILDS_ON,
    CORE,
    FILES_THAT_LAST,
    FORMATS,
    REQUIRED_CLASSES,
    classes_of,
    generated_source,
    generator_text,
    source_of,
)
from iceberg_pyspark.spark.bridge.py4j_names import JavaObject, Py4JError, Py4JJavaError
from iceberg_pyspark.storage.files.cache import user_folder

MAX_JARS = 10 * len(BUILDS_ON)
"""How many jars are kept, the most recently used: those of ten environments, each with a jar of
each module; all of them take some 10 MB.
"""

_UNFINISHED_SUFFIX = ".unfinished"
_UNFINISHED_SECONDS = 3600


@contextmanager
def class_jar(
    parent: str | None, source_text: str, compile_classes: Callable[[], Mapping[str, bytes]]
) -> Iterator[Path]:
    """Yield the path of a jar with the files; compile only if `parent` has no jar made of the same
    text.

    Only this user may have access to the folder `parent`. Without a `parent`, or if no file can be
    written there, the jar is temporary and removed at the end; by then the JVM must have opened it.
    """
    key = sha256(source_text.encode()).hexdigest()
    cached_jar = None if parent is None else _cached_jar(Path(parent), key)
    if cached_jar is not None:
        yield cached_jar
        return
    jar = _jar(compile_classes())
    if parent is not None:
        with contextlib.suppress(OSError):
            cached_jar = _cache_jar(Path(parent), key, jar)
    if cached_jar is not None:
        yield cached_jar
        return
    with tempfile.TemporaryDirectory(prefix="iceberg-pyspark-bridge-") as folder:
        path = Path(folder) / "classes.jar"
        path.write_bytes(jar)
        yield path


def _cached_jar(parent: Path, key: str) -> Path | None:
    """Return a jar of the key whose bytes match its name; remove other jars of the key."""
    for path in sorted(parent.glob(f"{key}-*.jar")):
        with contextlib.suppress(OSError):
            if _content(path) == path.stem.partition("-")[2]:
                os.utime(path)
                return path
            path.unlink()
    return None


def _content(path: Path) -> str | None:
    """Return the digest of a file that this user owns and nobody else can write, or None."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
            return None
        if stat.S_IMODE(status.st_mode) & 0o022:
            return None
        return sha256(file.read()).hexdigest()


def _cache_jar(parent: Path, key: str, jar: bytes) -> Path:
    """Write the jar to the folder; the jar is complete and on the disk before it gets its name."""
    path = parent / f"{key}-{sha256(jar).hexdigest()}.jar"
    file, temporary_path = tempfile.mkstemp(dir=parent, suffix=_UNFINISHED_SUFFIX)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(jar)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary_path, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary_path)
        raise
    folder = os.open(parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    _evict(parent)
    return path


def _evict(parent: Path) -> None:
    jars: list[tuple[float, Path]] = []
    for path in parent.iterdir():
        # Another session may remove the jar at the same time.
        with contextlib.suppress(OSError):
            last = path.lstat().st_mtime
            if path.suffix == ".jar":
                jars.append((last, path))
            elif path.suffix == _UNFINISHED_SUFFIX and time.time() - last > _UNFINISHED_SECONDS:
                path.unlink()
    for _, path in sorted(jars, reverse=True)[MAX_JARS:]:
        with contextlib.suppress(OSError):
            path.unlink()


def _jar(classes: Mapping[str, bytes]) -> bytes:
    """Return a jar; equal classes give equal bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as jar:
        for name in sorted(classes):
            jar.writestr(zipfile.ZipInfo(name), classes[name])
    return out.getvalue()


_OF_EACH_JAR = (
    "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan",
    "org.apache.spark.sql.classic.SparkSession",
    "org.codehaus.janino.SimpleCompiler",
)
"""One class of each jar that affects the compilation."""

_REGISTER = "org.apache.spark.sql.sources.DataSourceRegister"
_failures: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
"""Why modules do not compile, by gateway; finding out again would take as long as compiling."""


class BridgeUnavailableError(Exception):
    """The error if the bridge cannot be installed in this JVM; the message says why."""


@dataclass(frozen=True)
class JavaModules:
    """The state of the sources in a JVM: the class loader, and why some modules are missing."""

    loader: Any
    failures: Mapping[str, str]


def load_modules(gateway: Any) -> JavaModules:
    """Load all modules that compile into the JVM; raise `BridgeUnavailableError` without `core`."""
    loader = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    failures = _failures.setdefault(gateway, {})
    compiler = _Compiler(gateway.jvm, loader)
    for module in BUILDS_ON:
        if module in failures or compiler.knows(module):
            continue
        if compiler.is_possible(module) and not compiler.is_taken(module):
            failure = compiler.add(module)
            if failure is None:
                continue
            if module == CORE:
                raise BridgeUnavailableError(f"Spark {_release(gateway.jvm)}: {failure}")
            failures[module] = failure
    # A session's own class loader may delegate to the loader that the classes were added to.
    return JavaModules(loader.loadClass(_marker(CORE)).getClassLoader(), failures)


class _Compiler:
    """A class loader, and the modules that are compiled for it."""

    def __init__(self, jvm: Any, loader: Any) -> None:
        self._jvm = jvm
        self._loader = loader
        self._compiled_with = ""

    def knows(self, module: str) -> bool:
        """Return whether the loader has the module's classes."""
        return self._has(_marker(module))

    def _has(self, name: str) -> bool:
        # Looked up as a resource: a missing class would raise an exception, which is slow through
        # py4j.
        return self._loader.getResource(f"{name}.class") is not None

    def is_possible(self, module: str) -> bool:
        """Return whether the loader has the class of another library that the module needs."""
        required_class = REQUIRED_CLASSES.get(module)
        return required_class is None or self._has(required_class.replace(".", "/"))

    def is_taken(self, module: str) -> bool:
        """Return whether another library already provides the format name that the module would
        register.
        """
        if module not in FORMATS:
            return False
        formats = _new_instance(self._loader, "IcebergPyFormats")
        return bool(formats.isTaken(FORMATS[module][1]))

    def add(self, module: str) -> str | None:
        """Compile a module or take it from the cache, and add it to the loader.

        Return the reason on failure.
        """
        if self._refusal is not None:
            return self._refusal
        source = source_of(module)
        self._compiled_with = self._compiled_with or _toolchain(self._jvm, self._loader)
        built_on = [source_of(other) for other in BUILDS_ON[module]]
        source_text = "\n".join((self._compiled_with, *built_on, source, generator_text(module)))
        # Another session may remove a cached jar before the JVM has opened it.
        for parent in (user_folder("iceberg-pyspark-bridge"), None):
            try:
                with class_jar(parent, source_text, lambda: self._classes(module)) as jar:
                    path = _lasting_copy(jar) if module in FILES_THAT_LAST else jar
                    self._loader.addURL(self._file(str(path)).toURI().toURL())
                    if self.knows(module):
                        return None
            except Py4JJavaError as e:
                return _first_line(e)
        return "the driver's class loader does not find the classes it was given"

    @cached_property
    def _file(self) -> Any:
        """The class `File`; py4j would ask for each part of its name again, for each module."""
        return self._jvm.java.io.File

    @cached_property
    def _refusal(self) -> str | None:
        """The reason why the loader accepts no classes, or None; cached, as each check calls the
        JVM.
        """
        kind = self._loader.getClass()
        if any(m.getName() == "addURL" for m in kind.getMethods()):
            return None
        return f"the driver's class loader is a {kind.getName()}, which takes no classes"

    def _classes(self, module: str) -> dict[str, bytes]:
        jvm = self._jvm
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(self._loader)
        compiler.setSourceVersion(8)
        compiler.setTargetVersion(8)
        compiler.cook(source_of(module) + generated_source(module, self._loader))
        # One call for all classes: a call for each class would take as long as compiling.
        text = jvm.com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString(
            compiler.getBytecodes()
        )
        entries = {f"{n}.class": base64.b64decode(code) for n, code in json.loads(text).items()}
        if module in FORMATS:
            entries[f"META-INF/services/{_REGISTER}"] = f"{FORMATS[module][0]}\n".encode()
        return entries


def _new_instance(loader: Any, name: str) -> Any:
    """Return a new object of a class that the loader knows."""
    # Two calls of the JVM: with `getDeclaredConstructor` they would be a dozen.
    return loader.loadClass(name).newInstance()


def _lasting_copy(jar: Path) -> Path:
    """Return a copy that stays until this process ends.

    Spark opens the file again whenever it looks up a format, of any name, and whenever an executor
    requests it; other jars are opened only once.
    """
    folder = Path(tempfile.mkdtemp(prefix="iceberg-pyspark-formats-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(shutil.copy(jar, folder))


def _marker(module: str) -> str:
    return classes_of(module)[0]


def _first_line(error: Py4JJavaError) -> str:
    """Return the JVM's message without the stack trace."""
    text = str(error.java_exception.toString()).partition("\n")[0]
    return text.removeprefix("org.codehaus.commons.compiler.CompileException: ")


def _release(jvm: Any) -> str:
    return str(_spark_package(jvm).SPARK_VERSION())


def _spark_package(jvm: Any) -> Any:
    return getattr(getattr(jvm.org.apache.spark, "package$"), "MODULE$")


def _toolchain(jvm: Any, loader: Any) -> str:
    """Return the versions of Spark, the compiler and Java, and the files they are loaded from."""
    versions = [
        _release(jvm),
        _spark_package(jvm).SPARK_REVISION(),
        *(jvm.java.lang.System.getProperty(f"java.{p}") for p in ("version", "vendor", "home")),
    ]
    for name in _OF_EACH_JAR:
        where = loader.loadClass(name).getProtectionDomain().getCodeSource()
        if where is None:
            continue
        file = jvm.java.io.File(where.getLocation().getPath())
        versions += [where.getLocation().toString(), file.length(), file.lastModified()]
    return " ".join(map(str, versions))


class JvmSessions:
    """A registry of a JVM's sessions that calls the JVM and keeps no session alive."""

    def __init__(self, plans: Any) -> None:
        """`plans` is an `IcebergPyPlans` object of the JVM."""
        self._plans = plans

    @cached_property
    def jvm(self) -> str:
        """The common prefix of the JVM's handles, up to a hyphen."""
        return str(self._plans.jvm())

    def session_of(self, handle: str) -> SparkSession | None:
        """Return the session of a handle if it exists and Iceberg is still installed in it."""
        session, context = self._plans.sessionOf(handle), pyspark.SparkContext._active_spark_context
        return None if session is None or context is None else SparkSession(context, session)

    def abandoned_handles(self) -> list[str] | None:
        """Return the handles that are no longer used, each once, or None if the JVM has ended."""
        try:
            return list(json.loads(self._plans.unusableHandles()))
        except (OSError, Py4JError):
            return None

    def clear_unused_callback(self) -> bool:
        """Clear the JVM's callback if no session has Iceberg; return whether that is so."""
        return bool(self._plans.clearUnusedCallback())


class JavaClasses:
    """A set of a session's Java classes, with one object of each class, made on first use."""

    def __init__(self, spark: SparkSession, loader: Any) -> None:
        """`loader` is the class loader that has the classes."""
        self.spark = spark
        gateway: Any = spark.sparkContext._gateway
        self._gateway = gateway
        self._loader = loader
        self._instances: dict[str, Any] = {}
        self.server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)

    @property
    def jvm(self) -> Any:
        """The JVM, as py4j's view."""
        return self._gateway.jvm

    @property
    def session(self) -> Any:
        """The JVM's `SparkSession`."""
        return self.spark._jsparkSession

    def instance(self, name: str) -> Any:
        """Return the object of a class."""
        if name not in self._instances:
            self._instances[name] = _new_instance(self._loader, name)
        return self._instances[name]

    def frame(self, dataset: Any) -> DataFrame:
        """Return a `Dataset` of the JVM as a DataFrame."""
        return DataFrame(dataset, self.spark)
