"""A JVM that has the jars of all releases of Spark, each in class loaders of its own.

No Spark runs: Janino compiles in it as in sessions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from iceberg_pyspark.spark.bridge.java_modules import AZURE_FILES, GOOGLE_FILES, RENEWED_S3A
from jobs.find_java import find_java_home
from tests.services import gcs_connector, hadoop_azure
from tests.services.server import SERVICES
from tests.support.spark_sessions import QUICK_JVM, SPARK_HOME

_COMPILER = ("janino-", "commons-compiler-")


class ReleaseJvm:
    """A JVM in which each release has class loaders of its own.

    Releases with the same version of Janino share its classes, which then compile at full speed.
    """

    def __init__(self, jars: list[Path]) -> None:
        """`jars` are those of any release."""
        py4j_jar = next(jar for jar in jars if jar.name.startswith("py4j"))
        # The JVM ends when the process object, which holds its input, is gone.
        self._port, self._token, self._process = launch_gateway(
            classpath=str(py4j_jar),
            jarpath=str(py4j_jar),
            javaopts=QUICK_JVM.split(),
            java_path=str(find_java_home() / "bin/java"),
            die_on_exit=True,
            enable_auth=True,
            return_proc=True,
        )
        self._compilers: dict[tuple[str, ...], Any] = {}

    @contextmanager
    def gateway(self, jars: list[Path]) -> Iterator[Any]:
        """Yield a gateway whose class loader is like that of Spark's driver with these jars."""
        parameters = GatewayParameters(port=self._port, auth_token=self._token, auto_convert=True)
        gateway = JavaGateway(gateway_parameters=parameters)
        try:
            thread = gateway.jvm.java.lang.Thread.currentThread()
            java_classes = [jar for jar in jars if jar.name.startswith(_COMPILER)]
            names = tuple(sorted(jar.name for jar in java_classes))
            if names not in self._compilers:
                platform = gateway.jvm.java.lang.ClassLoader.getPlatformClassLoader()
                self._compilers[names] = _loader(gateway, java_classes, platform)
            others = [jar for jar in jars if jar not in java_classes]
            thread.setContextClassLoader(_loader(gateway, others, self._compilers[names]))
            driver_loader = gateway.jvm.org.apache.spark.util.MutableURLClassLoader
            no_urls = gateway.new_array(gateway.jvm.java.net.URL, 0)
            thread.setContextClassLoader(driver_loader(no_urls, thread.getContextClassLoader()))
            yield gateway
        finally:
            gateway.close()
            # Python objects of this gateway that go later call no JVM.
            gateway._gateway_client.is_connected = False

    def stop(self) -> None:
        """Stop the JVM."""
        with self._process:
            self._process.kill()


def _loader(gateway: Any, jars: list[Path], parent: Any) -> Any:
    urls = gateway.new_array(gateway.jvm.java.net.URL, len(jars))
    for i, jar in enumerate(jars):
        urls[i] = gateway.jvm.java.io.File(str(jar)).toURI().toURL()
    return gateway.jvm.java.net.URLClassLoader(urls, parent)


def store_jars(jars: list[Path]) -> Mapping[str, list[Path]]:
    """Return by module the jars of the store that the module needs, as far as they are here.

    `jars` are those of a release.
    """
    return {
        RENEWED_S3A: _s3a_jars_for(jars),
        GOOGLE_FILES: gcs_connector.made_jars(),
        AZURE_FILES: hadoop_azure.made_jars(),
    }


def hadoop_among(jars: list[Path]) -> str:
    """Return the version of Hadoop among the jars of a release."""
    name = next(j.name for j in jars if j.name.startswith("hadoop-client-api-"))
    return name.removeprefix("hadoop-client-api-").removesuffix(".jar")


def _s3a_jars_for(jars: list[Path]) -> list[Path]:
    """Return the jars of S3A for the Hadoop release among the jars, if they were downloaded."""
    s3a = sorted((SERVICES / f"hadoop-aws-{hadoop_among(jars)}" / "jars").glob("*.jar"))
    # Spark has this library of S3A too, but no source of ours needs it otherwise.
    return [*s3a, *(SPARK_HOME / "jars").glob("commons-lang3-*.jar")] if s3a else []
