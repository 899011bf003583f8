"""A Hive metastore on a Derby database, run with the jars that pyspark includes.

Spark's jars include Hive's own metastore (2.3.10 since Spark 3.5) and Derby, so nothing is
downloaded. The JDK's launcher runs it from its one source file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyspark

from jobs.find_java import find_java_home
from tests.services.server import Server, absent, running
from tests.support.ports import LOOPBACK, free_port

VERSION = "2.3.10"
_SOURCE = Path(__file__).with_name("LoopbackHive.java")


def program() -> Path:
    """Return the jar of the metastore."""
    jars = Path(pyspark.__file__).parent / "jars"
    jar = jars / f"hive-metastore-{VERSION}.jar"
    if not jar.exists():
        result = ", ".join(p.name for p in jars.glob("hive-metastore-*.jar")) or "none"
        absent("the Hive metastore", f"pyspark has no {jar.name} (it has {result})")
    if not (find_java_home() / "bin" / "javac").exists():
        absent("the Hive metastore", "it needs a JDK, and this Java has no compiler")
    return jar


@contextlib.contextmanager
def hive_metastore(folder: Path) -> Iterator[Server]:
    """Serve a metastore whose database is in `folder`."""
    jars = program().parent
    port = free_port()
    java = str(find_java_home() / "bin" / "java")
    # C1 alone starts faster, and no test runs long enough to profit from C2. No test needs the
    # database to survive a crash of the machine.
    command = [java, "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    command += [f"-Dderby.system.home={folder}", "-Dderby.system.durability=test"]
    command += ["-cp", f"{jars}/*", str(_SOURCE), str(port), str(folder)]
    log = folder / "hive-metastore.log"
    with running("hive-metastore", command, port=port, log=log, seconds=120) as server:
        yield server


def thrift_uri(server: Server) -> str:
    """Return the metastore's address as the catalog property `uri`."""
    return f"thrift://{LOOPBACK}:{server.port}"
