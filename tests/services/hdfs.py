"""HDFS on loopback: a name node and a data node in one process, with jars from Maven.

The JDK's launcher runs it from its one source file.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jobs.find_java import find_java_home
from tests.services.server import Server, absent, build_lock, running
from tests.support.ports import LOOPBACK, free_port

VERSION = "3.4.3"
_SOURCE = Path(__file__).with_name("LoopbackHdfs.java")
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId>
  <artifactId>hdfs</artifactId>
  <version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = """
    <dependency>
      <groupId>org.apache.hadoop</groupId>
      <artifactId>{name}</artifactId>
      <version>{version}</version>
    </dependency>"""
# the pages of its web servers, which must exist although nobody opens them
_PAGES = ("webapps/hdfs", "webapps/datanode")


@dataclass(frozen=True)
class HdfsServer:
    """A running name node."""

    server: Server

    @property
    def root(self) -> str:
        """The location of the root folder of the file system."""
        return f"hdfs://{LOOPBACK}:{self.server.port}"


@contextlib.contextmanager
def hdfs_server(folder: Path) -> Iterator[HdfsServer]:
    """Serve an empty file system whose blocks are in `folder`."""
    home = program()
    port = free_port()
    java = str(find_java_home() / "bin" / "java")
    if not Path(java).with_name("javac").exists():
        absent("HDFS", "it needs a JDK, and this Java has no compiler")
    log = folder / "hdfs.log"
    # C1 alone starts faster, and no test runs long enough to profit from C2.
    command = [java, "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    command += ["-cp", f"{home}:{home}/jars/*", str(_SOURCE), str(port), str(folder)]
    with running(
        "hdfs",
        command,
        port=port,
        log=log,
        ready=lambda: "HDFS is ready" in log.read_text(errors="replace"),
        seconds=120,
    ) as server:
        yield HdfsServer(server)


def program() -> Path:
    """Return the folder with the jars, downloaded once, and with empty web pages."""
    with build_lock(f"hdfs-{VERSION}") as folder:
        jars = folder / "jars"
        if not jars.exists():
            if shutil.which("mvn") is None:
                absent("HDFS", "it comes by Maven, and there is no program 'mvn'")
            bringing, pom = folder / "bringing", folder / "pom.xml"
            shutil.rmtree(bringing, ignore_errors=True)
            names = ("hadoop-common", "hadoop-hdfs", "hadoop-hdfs-client")
            dependencies = "".join(_DEPENDENCY.format(name=n, version=VERSION) for n in names)
            pom.write_text(_POM.format(dependencies=dependencies))
            command = ["mvn", "--quiet", "--batch-mode", "--file", str(pom)]
            command += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
            command += [f"-DoutputDirectory={bringing}"]
            try:
                subprocess.run(command, stdout=sys.stderr, timeout=600, check=True)
            except (OSError, subprocess.SubprocessError) as e:
                absent("HDFS", f"its jars did not come ({e!r:.300})")
            for page in _PAGES:
                (folder / page).mkdir(parents=True, exist_ok=True)
            bringing.rename(jars)
    return folder
