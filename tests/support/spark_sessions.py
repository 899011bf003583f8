"""Spark for tests: a session in this process, a standalone cluster, a Connect server.

Everything listens on 127.0.0.1 only and runs with this Python and with the Java that
`jobs/find_java.py` finds. Daemons are separate processes that end with their `with` block.
"""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import JavaClass, JavaPackage, JVMView
from pyspark.sql import SparkSession

from jobs.find_java import find_java_home
from tests.support.ports import free_port, is_listening
from tests.support.python_daemons import start_python_daemons

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


ROOT = Path(__file__).parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
START_TIMEOUT_SECONDS = 300

# Short work on few cores takes a fifth less time than with the defaults; not for benches. The code
# cache has the size that is the default with all compiler tiers: with one tier the JVM would
# reserve only a fifth, which many queries fill up.
QUICK_JVM = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=400m"
)
# The collections that grow the heap of a driver to this size take a tenth of the time of a test.
_FULL_HEAP = "-Xms1g -Xmn640m"

WORKER_START = Path(__file__).parent / "worker_start"
"""The folder with what Spark's Python daemons do at their start."""

LOCAL_FILES = "com.globalmentor:hadoop-bare-naked-local-fs:0.1.0"
"""Hadoop's local file system, changed to set permissions by a call instead of a process.

Hadoop without its native library runs `chmod` for each file and folder that it creates: a tenth of
the processor time of tests that write. `oracle.bring_local_files` downloads the jar; without it,
tests are only slower.
"""

_LOCAL_FILES_CLASS = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
_LOCAL_FILES_JAR = ROOT / ".oracle" / "hadoop-bare-naked-local-fs-0.1.0.jar"


def _is_of_pytest() -> bool:
    """Return whether pytest started this process; a bench must start Spark as a user does."""
    return "PYTEST_VERSION" in os.environ


def _has_quick_files() -> bool:
    return _is_of_pytest() and _LOCAL_FILES_JAR.exists()


def spark_environment() -> dict[str, str]:
    """Return the environment for every Spark process of a test, the pytest process included."""
    modules = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if _is_of_pytest():
        start_python_daemons()
        modules = [str(WORKER_START), *modules]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(modules)),
        # Otherwise every worker would compile the package's source again.
        "PYTHONDONTWRITEBYTECODE": "",
        "JAVA_HOME": str(find_java_home()),
        # A SPARK_HOME from the user's environment would mix two releases of Spark.
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
        # Spark collects timestamps in the time zone of the Python process.
        "TZ": "UTC",
    }
    if _is_of_pytest():
        environment["SPARK_SUBMIT_OPTS"] = _program_options()
    if _has_quick_files():
        environment["SPARK_DIST_CLASSPATH"] = str(_LOCAL_FILES_JAR)
    return environment


def _program_options() -> str:
    """Return the options for drivers of programs that start Spark as users do, as `jobs/` does.

    Such a program does not get the settings of `session_conf`.
    """
    if not _has_quick_files():
        return QUICK_JVM
    return f"{QUICK_JVM} -Dspark.hadoop.fs.file.impl={_LOCAL_FILES_CLASS}"


def session_conf(scratch: Path) -> dict[str, str]:
    """Return the settings of every test session; Spark writes its files below `scratch`."""
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"{_FULL_HEAP} {QUICK_JVM}",
        "spark.driver.memory": "2g",
        "spark.local.dir": str(scratch / "local"),
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if _has_quick_files():
        settings["spark.hadoop.fs.file.impl"] = _LOCAL_FILES_CLASS
    return settings


def start_session(
    scratch: Path, conf: Mapping[str, str] | None = None, *, jars: Sequence[Path] = ()
) -> SparkSession:
    """Start a classic session on `local[2]` in this process; the caller stops it.

    `jars` are on the class path of the JVM itself, so that py4j and Janino see the classes.
    """
    os.environ.update(spark_environment())
    class_path = os.pathsep.join(map(str, jars))
    if jars and _is_of_pytest():
        # Behind Spark's own jars.
        others = os.environ.get("SPARK_DIST_CLASSPATH")
        os.environ["SPARK_DIST_CLASSPATH"] = f"{others}:{class_path}" if others else class_path
    elif jars:
        conf = {"spark.driver.extraClassPath": class_path, **(conf or {})}
    if _is_of_pytest():
        look_up_once()
    time.tzset()
    builder = SparkSession.builder.master("local[2]").appName("iceberg-pyspark tests")
    for key, value in {**session_conf(scratch), **(conf or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def run_driver(
    scratch: Path,
    script: Path,
    *arguments: str,
    master: str,
    conf: Mapping[str, str] | None = None,
    timeout_seconds: float = 500,
) -> str:
    """Run a driver program with spark-submit and return its stdout; on failure show stderr."""
    settings = {
        **session_conf(scratch),
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": QUICK_JVM,
        **(conf or {}),
    }
    options = [part for item in settings.items() for part in ("--conf", "=".join(item))]
    command = [
        str(SPARK_HOME / "bin/spark-submit"),
        *("--master", master),
        *options,
        str(script),
        *arguments,
    ]
    return run_process(command, timeout_seconds)


def run_python(script: Path, *arguments: str) -> str:
    """Run a program, such as a Connect client, and return its stdout; on failure show stderr.

    It is a separate process because one Python process has either classic or Connect sessions.
    """
    return run_process([sys.executable, str(script), *arguments], 500)


def run_process(
    command: Sequence[str],
    timeout_seconds: float,
    errors: bool = False,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a command in the tests' environment; return its stdout, and stderr if `errors`.

    `environment` has variables that replace those of the tests.
    """
    done = subprocess.run(
        command,
        env={**spark_environment(), **(environment or {})},
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )
    if done.returncode != 0:
        raise AssertionError(
            f"{command[0]} ... exited with {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
    return done.stdout + done.stderr if errors else done.stdout


@contextmanager
def standalone_cluster(scratch: Path, workers: int = 1, cores: int = 2) -> Iterator[str]:
    """Start a standalone master with workers and yield its URL, spark://127.0.0.1:PORT."""
    scratch.mkdir(parents=True, exist_ok=True)
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    spark_class = str(SPARK_HOME / "bin/spark-class")
    listen = ["--host", "127.0.0.1", "--webui-port", "0"]
    master_command = [
        spark_class,
        "org.apache.spark.deploy.master.Master",
        *listen,
        *("--port", str(port)),
    ]
    with ExitStack() as daemons:
        log = scratch / "master.log"
        daemons.enter_context(daemon(master_command, log, lambda text: "New state: ALIVE" in text))
        waits = []
        for number in range(workers):
            # Spark never runs two attempts of a task on one host, so give this host two names.
            host = ("127.0.0.1", "localhost")[number % 2]
            worker_command = [
                spark_class,
                "org.apache.spark.deploy.worker.Worker",
                *("--host", host, "--webui-port", "0"),
                *("--port", "0", "--cores", str(cores), "--memory", "1g"),
                *("--work-dir", str(scratch / "work")),
                url,
            ]
            log = scratch / f"worker-{number}.log"
            waits.append(daemons.enter_context(running(worker_command, log)))
        for wait in waits:
            wait(lambda text: "Successfully registered" in text)
        yield url


@contextmanager
def connect_server(
    scratch: Path, conf: Mapping[str, str] | None = None, *, port: int | None = None
) -> Iterator[str]:
    """Start a Spark Connect server on `local[2]` and yield its URL, sc://127.0.0.1:PORT."""
    scratch.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    settings = {
        **session_conf(scratch),
        **(conf or {}),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    command = [
        str(SPARK_HOME / "bin/spark-submit"),
        *("--master", "local[2]"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *[part for item in settings.items() for part in ("--conf", "=".join(item))],
        "spark-internal",
    ]
    with daemon(command, scratch / "connect.log", lambda _log: is_listening(port)):
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def daemon(
    command: Sequence[str], log_file: Path, is_ready: Callable[[str], bool]
) -> Iterator[None]:
    """Run a command until the block ends; the block starts once `is_ready(log text)` holds."""
    with running(command, log_file) as wait:
        wait(is_ready)
        yield


@contextmanager
def running(
    command: Sequence[str], log_file: Path
) -> Iterator[Callable[[Callable[[str], bool]], None]]:
    """Run a command until the block ends; yield a function that waits for `is_ready(log)`.

    The command gets its own process session, so that the executors that a worker starts end with
    it.
    """
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command,
            env=spark_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def wait(is_ready: Callable[[str], bool]) -> None:
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not is_ready(log_file.read_text(encoding="utf-8", errors="replace")):
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(
                    f"{' '.join(command[:2])} ... did not start\n"
                    f"{log_file.read_text(encoding='utf-8', errors='replace')}"
                )
            time.sleep(0.2)

    try:
        yield wait
    finally:
        for kind in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, kind)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
