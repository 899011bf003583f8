"""The Java classes of a session: compiled with Spark's Janino once per machine, and called.

Janino compiles an old dialect of Java: raw types, casts, no lambdas. The sources pass requests on
and contain no rule of Iceberg. The classes are stored in one jar, which is added to the class
loader of Spark's driver, so Spark finds the catalog class by name whenever a catalog is configured;
executors get the jar when they need a class of it. All modules are compiled when Iceberg is
installed, so missing features are known from then on.

A wheel made by `make wheel` has the classes compiled for the releases of Spark, which spare a new
machine the compilation. They are used if Spark's build and the sources are those that they were
made of; other builds of Spark compile the sources.

The jars of compiled sources are a cache for later sessions of the same user. The name of a jar
contains digests of its sources and of its bytes, so truncated, damaged or extended jars are
detected and compiled again. Jars that were unused for long are removed; a JVM uses a copy.
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import pyspark
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.bridge.java_modules import (
    BUILDS_ON,
    CORE,
    FORMATS,
    REQUIRED_CLASSES,
    classes_of,
    generated_source,
    generator_text,
    source_of,
)
from iceberg_pyspark.spark.bridge.py4j_names import JavaObject, Py4JError, Py4JJavaError
from iceberg_pyspark.storage.files.cache import user_folder

_log = get_logger(__name__)

MAX_JARS = 10
"""How many jars are kept, the most recently used: those of ten environments, of some 1 MB each."""

_UNFINISHED_SUFFIX = ".unfinished"
_UNFINISHED_SECONDS = 3600


def class_jar(
    parent: str | None, source_text: str, compile_classes: Callable[[], Mapping[str, bytes]]
) -> bytes:
    """Return a jar with the files; compile only if `parent` has no jar made of the same text.

    Only this user may have access to the folder `parent`. Without a `parent`, or if no file can be
    written there, the jar is not kept.
    """
    key = sha256(source_text.encode()).hexdigest()
    cached_jar = None if parent is None else _cached_jar(Path(parent), key)
    if cached_jar is not None:
        return cached_jar
    jar = _jar(compile_classes())
    if parent is not None:
        with contextlib.suppress(OSError):
            _cache_jar(Path(parent), key, jar)
    return jar


def _cached_jar(parent: Path, key: str) -> bytes | None:
    """Return a jar of the key whose bytes match its name; remove other jars of the key."""
    for path in sorted(parent.glob(f"{key}-*.jar")):
        with contextlib.suppress(OSError):
            jar = _content(path)
            if jar is not None and sha256(jar).hexdigest() == path.stem.partition("-")[2]:
                os.utime(path)
                return jar
            path.unlink()
    return None


def _content(path: Path) -> bytes | None:
    """Return the bytes of a file that this user owns and nobody else can write, or None."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
            return None
        if stat.S_IMODE(status.st_mode) & 0o022:
            return None
        return file.read()


def _cache_jar(parent: Path, key: str, jar: bytes) -> None:
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


def _jar(classes: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return a jar; equal classes give equal bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as jar:
        for name in sorted(classes):
            jar.writestr(zipfile.ZipInfo(name), classes[name], compression)
    return out.getvalue()


_OF_EACH_JAR = (
    "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan",
    "org.apache.spark.sql.classic.SparkSession",
    "org.codehaus.janino.SimpleCompiler",
)
"""One class of each jar that affects the compilation."""

_REGISTER = "org.apache.spark.sql.sources.DataSourceRegister"
_FAILURES = "iceberg_pyspark_failures.json"
"""The file of the jar that says why modules do not compile."""

_failures: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
"""Its content, by gateway."""


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
    if not _has(loader, _marker(CORE)):
        _add_classes(gateway, loader)
    # A session's own class loader may delegate to the loader that the classes were added to.
    loader = loader.loadClass(_marker(CORE)).getClassLoader()
    if gateway not in _failures:
        _failures[gateway] = json.loads(_new_instance(loader, "IcebergPyPlans").failures())
    return JavaModules(loader, _failures[gateway])


def _has(loader: Any, name: str) -> bool:
    # Looked up as a resource: a missing class would raise an exception, which is slow through
    # py4j.
    return _resource(loader, name) is not None


def _resource(loader: Any, name: str) -> Any:
    """Return the URL of a class's file, or None."""
    return loader.getResource(f"{name.replace('.', '/')}.class")


def _add_classes(gateway: Any, loader: Any) -> None:
    """Add the modules to the loader: those of the wheel, of the cache, or compiled now."""
    modules = _modules(loader)
    jar = _jar_of_wheel(gateway.jvm, modules)
    if jar is None:
        jar = class_jar(
            user_folder("iceberg-pyspark-bridge"),
            _text_of(_toolchain(gateway.jvm, loader), modules),
            lambda: _compile(gateway, loader, modules),
        )
    path = _lasting_folder() / "iceberg-pyspark-classes.jar"
    path.write_bytes(jar)
    _add_url(gateway.jvm, loader, path)
    if not _has(loader, _marker(CORE)):
        raise BridgeUnavailableError(
            "the driver's class loader does not find the classes it was given"
        )
    _register_formats(gateway.jvm, loader, path.parent)


COMPILED = "compiled.zip"
"""The file of this package in which a wheel has the classes for builds of Spark."""


def packed_classes(builds: Mapping[str, Mapping[str, bytes]]) -> bytes:
    """Return the content of `COMPILED`; `builds` are those of `classes_of_build`.

    Releases share most classes, so the file has each only once, by its digest, and the digests of
    the classes of each build.
    """
    packed: dict[str, bytes] = {}
    for build, files in builds.items():
        digests = {name: sha256(content).hexdigest() for name, content in files.items()}
        packed |= {digests[name]: content for name, content in files.items()}
        packed[build] = json.dumps(digests).encode()
    return _jar(packed, zipfile.ZIP_DEFLATED)


def classes_of_build(gateway: Any) -> tuple[str, Mapping[str, bytes]]:
    """Compile for the Spark of the JVM; return the digest of the build, and the classes.

    They are those of all modules whose required classes the JVM has. Raise `ValueError` if a module
    does not compile.
    """
    loader = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    files = _compile(gateway, loader, _modules(loader))
    if failures := json.loads(files[_FAILURES]):
        raise ValueError(f"Spark {_release(gateway.jvm)}: {failures}")
    return _build_digest(gateway.jvm), files


def _build_digest(jvm: Any) -> str:
    """Return a digest of the sources and of the builds of Spark and Hadoop."""
    builds = (
        _release(jvm),
        _spark_package(jvm).SPARK_REVISION(),
        jvm.org.apache.hadoop.util.VersionInfo.getBuildVersion(),
    )
    return sha256(_text_of(" ".join(map(str, builds)), list(BUILDS_ON)).encode()).hexdigest()


def _jar_of_wheel(jvm: Any, modules: Sequence[str]) -> bytes | None:
    """Return a jar with the classes of modules, or None if the wheel does not have all of them."""
    file = resources.files(__package__) / COMPILED
    if not file.is_file():
        return None
    build = _build_digest(jvm)
    left_out = {name for m in BUILDS_ON if m not in modules for name in classes_of(m)}
    try:
        with zipfile.ZipFile(io.BytesIO(file.read_bytes())) as packed:
            if build not in packed.namelist():
                return None
            digests: dict[str, str] = json.loads(packed.read(build))
            files = {n: packed.read(d) for n, d in digests.items() if _top_class(n) not in left_out}
    except Exception as e:  # noqa: BLE001 - a damaged archive raises almost any error
        _log.warning(
            "%s is damaged (%r): the Java classes are compiled; reinstall iceberg-pyspark", file, e
        )
        return None
    return _jar(files) if all(f"{_marker(m)}.class" in files for m in modules) else None


def _top_class(file_name: str) -> str:
    return file_name.removesuffix(".class").partition("$")[0]


def _modules(loader: Any) -> list[str]:
    """Return the modules whose required classes are there, each after those that it builds on."""
    missing = {m for m, name in REQUIRED_CLASSES.items() if not _has(loader, name)}
    return [module for module in BUILDS_ON if module not in missing]


def _text_of(toolchain: str, modules: Sequence[str]) -> str:
    """Return all that determines the classes of modules."""
    sources = (text for m in modules for text in (m, source_of(m), generator_text(m)))
    return "\n".join([toolchain, *sources])


def _add_url(jvm: Any, loader: Any, path: Path) -> None:
    """Add a jar or a folder; raise `BridgeUnavailableError` if the loader takes none."""
    url = jvm.java.io.File(str(path)).toURI().toURL()
    try:
        loader.addURL(url)
    except Py4JJavaError:
        raise
    except Py4JError as e:  # it has no such method
        kind = loader.getClass().getName()
        raise BridgeUnavailableError(
            f"the driver's class loader is a {kind}, which takes no classes"
        ) from e


def _lasting_folder() -> Path:
    """Return a folder that stays until this process ends.

    Spark opens the files in it again whenever it looks up a format, of any name, and whenever an
    executor requests the classes.
    """
    folder = Path(tempfile.mkdtemp(prefix="iceberg-pyspark-classes-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _register_formats(jvm: Any, loader: Any, folder: Path) -> None:
    """Let Spark find the formats whose names no other library provides."""
    formats = _new_instance(loader, "IcebergPyFormats")
    free = [
        name
        for module, (name, format_name) in FORMATS.items()
        if _has(loader, _marker(module)) and not formats.isTaken(format_name)
    ]
    services = folder / "services"
    file = services / "META-INF" / "services" / _REGISTER
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"{name}\n" for name in free), encoding="utf-8")
    _add_url(jvm, loader, services)


def _compile(gateway: Any, parent: Any, modules: Sequence[str]) -> dict[str, bytes]:
    """Return the files of the jar: the classes of all modules that compile, and why others do not.

    Each module is compiled by itself, and sees the classes of those before it.
    """
    jvm = gateway.jvm
    loader = jvm.org.apache.spark.util.MutableURLClassLoader(
        gateway.new_array(jvm.java.net.URL, 0), parent
    )
    files: dict[str, bytes] = {}
    failures: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="iceberg-pyspark-bridge-") as folder:
        for module in modules:
            try:
                classes = _classes(jvm, loader, module)
            except Py4JJavaError as e:
                if module == CORE:
                    raise BridgeUnavailableError(
                        f"Spark {_release(jvm)}: {_first_line(e)}"
                    ) from None
                failures[module] = _first_line(e)
                continue
            jar = Path(folder) / f"{module}.jar"
            jar.write_bytes(_jar(classes))
            _add_url(jvm, loader, jar)
            files |= classes
        loader.close()
    return {**files, _FAILURES: json.dumps(failures).encode()}


def _classes(jvm: Any, loader: Any, module: str) -> dict[str, bytes]:
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.setSourceVersion(8)
    compiler.setTargetVersion(8)
    compiler.cook(source_of(module) + generated_source(module, loader))
    # One call for all classes: a call for each class would take as long as compiling.
    text = jvm.com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString(
        compiler.getBytecodes()
    )
    return {f"{n}.class": base64.b64decode(code) for n, code in json.loads(text).items()}


def _new_instance(loader: Any, name: str) -> Any:
    """Return a new object of a class that the loader knows."""
    # Two calls of the JVM: with `getDeclaredConstructor` they would be a dozen.
    return loader.loadClass(name).newInstance()


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
        # The class itself is not needed: loading the compiler takes a tenth of a second.
        url = _resource(loader, name)
        if url is None:
            raise BridgeUnavailableError(f"there is no class {name}")
        jar = url.getPath().partition("!")[0]
        versions.append(jar)
        with contextlib.suppress(OSError):
            status = os.stat(unquote(jar.removeprefix("file:")))
            versions += [status.st_size, status.st_mtime_ns]
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
