"""Iceberg's REST fixture: the Java reference server of the REST catalog, on a JDBC catalog.

Maven, or else the Ivy inside Spark, downloads its jars into `.services/` by their coordinates. The
JDK's launcher runs it from its one source file.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import httpx
import pyspark

from jobs.find_java import find_java_home
from tests.services.server import Server, absent, build_lock, running
from tests.support.ports import LOOPBACK, free_port

VERSION = "1.11.0"
_SOURCE = Path(__file__).with_name("LoopbackRest.java")
_ICEBERG = "org.apache.iceberg"
_ARTIFACTS = (
    # group, name, version, classifier
    (_ICEBERG, "iceberg-core", VERSION, ""),
    (_ICEBERG, "iceberg-core", VERSION, "tests"),  # the adapter and the servlet
    ("org.eclipse.jetty.ee10", "jetty-ee10-servlet", "12.1.12", ""),
    ("org.apache.hadoop", "hadoop-client-api", "3.4.3", ""),
    ("org.apache.hadoop", "hadoop-client-runtime", "3.4.3", ""),
    ("org.xerial", "sqlite-jdbc", "3.53.2.1", ""),
    ("org.postgresql", "postgresql", "42.7.8", ""),
    ("org.slf4j", "slf4j-simple", "2.0.18", ""),
)


# C1 alone starts faster, and no test runs long enough to profit from C2.
_STARTS_SOON = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


@contextlib.contextmanager
def rest_server(
    folder: Path,
    properties: Mapping[str, str] | None = None,
    jars: Sequence[Path] = (),
    *,
    options: Sequence[str] = _STARTS_SOON,
) -> Iterator[Server]:
    """Serve a catalog whose database and warehouse are in `folder`, unless properties differ.

    `jars` contain classes that properties name; `options` are options of the JVM.
    """
    class_path = os.pathsep.join((f"{program()}/*", *map(str, jars)))
    port = free_port()
    settings = {
        "uri": f"jdbc:sqlite:{folder}/rest.db",
        "warehouse": str(folder / "warehouse"),
        # As in other catalogs, a table must have an existing namespace.
        "jdbc.strict-mode": "true",
        **(properties or {}),
    }
    java = _java()
    if not Path(java).with_name("javac").exists():
        absent("Iceberg's REST fixture", "it needs a JDK, and this Java has no compiler")
    command = [java, "-Xmx512m", *options, "-cp", class_path, str(_SOURCE)]
    command += [str(port), *(f"{key}={value}" for key, value in settings.items())]
    with running(
        "rest-fixture",
        command,
        port=port,
        log=folder / "rest-fixture.log",
        ready=lambda: _answers(port),
    ) as server:
        yield server


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://{LOOPBACK}:{port}/v1/config", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def _java() -> str:
    return str(find_java_home() / "bin" / "java")


def program() -> Path:
    """Return the folder of the jars, which are downloaded once."""
    with build_lock(f"rest-fixture-{VERSION}") as folder:
        jars = folder / "jars"
        if not jars.exists():
            bringing = folder / "bringing"
            shutil.rmtree(bringing, ignore_errors=True)
            bringing.mkdir()
            try:
                _bring(folder, bringing)
            except (OSError, subprocess.SubprocessError) as error:
                absent("Iceberg's REST fixture", f"its jars did not come ({error!r:.300})")
            bringing.rename(jars)
    return jars


def _bring(folder: Path, jars: Path) -> None:
    if shutil.which("mvn"):
        pom = folder / "pom.xml"
        pom.write_text(_pom())
        command = ["mvn", "--quiet", "--batch-mode", "--file", str(pom)]
        command += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        command += [f"-DoutputDirectory={jars}"]
    else:
        module = folder / "ivy.xml"
        module.write_text(_ivy())
        ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
        names = "[artifact]-[revision](-[classifier]).[ext]"
        command = [_java(), "-cp", str(ivy), "org.apache.ivy.Main", "-ivy", str(module)]
        command += ["-cache", str(folder / "ivy"), "-types", "jar", "bundle"]
        command += ["-confs", "default", "-retrieve", f"{jars}/{names}"]
    subprocess.run(command, stdout=sys.stderr, timeout=600, check=True, env=dict(os.environ))


def _pom() -> str:
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
        f"<version>{version}</version>"
        + (f"<classifier>{classifier}</classifier>" if classifier else "")
        + "</dependency>"
        for group, name, version, classifier in _ARTIFACTS
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>local</groupId><artifactId>rest-fixture</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


def _ivy() -> str:
    dependencies = ""
    for group, name, version, classifier in _ARTIFACTS:
        if classifier:
            continue
        classified = "".join(
            f'<artifact name="{name}" type="jar" ext="jar" m:classifier="{c}"/>'
            for g, n, _, c in _ARTIFACTS
            if (g, n) == (group, name) and c
        )
        own = f'<artifact name="{name}" type="jar" ext="jar"/>' if classified else ""
        dependencies += (
            f'<dependency org="{group}" name="{name}" rev="{version}" '
            f'conf="default->master,runtime">{own}{classified}</dependency>'
        )
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="local" module="rest-fixture"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )
