"""All Java sources compile with the jars of every release and find the internals they look for.

No Spark runs: a JVM with the jars of all releases compiles with Janino, as sessions would.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from iceberg_pyspark.spark.bridge import java_classes
from iceberg_pyspark.spark.bridge.features import FEATURES
from iceberg_pyspark.spark.bridge.java_classes import load_modules
from iceberg_pyspark.spark.bridge.java_modules import (
    AZURE_FILES,
    BUILDS_ON,
    GOOGLE_FILES,
    RENEWED_S3A,
    source_of,
)
from jobs.find_java import find_java_home
from tests.releases.releases import LACKING, RELEASES
from tests.releases.spark_jars import JarsUnavailableError, download_jars, jars_of
from tests.services import gcs_connector, hadoop_azure
from tests.services.server import SERVICES, absent
from tests.support.spark_sessions import QUICK_JVM, SPARK_HOME

pytestmark = pytest.mark.nightly

_COMPILER = ("janino-", "commons-compiler-")


class ReleaseJvm:
    """A JVM in which each release has class loaders of its own.

    Releases with the same version of Janino share its classes, which then compile at full speed.
    """

    def __init__(self, py4j_jar: Path) -> None:
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


@pytest.fixture(scope="module")
def jvm() -> Iterator[ReleaseJvm]:
    download_jars(RELEASES)
    jars = release_jars(RELEASES[-1])
    result = ReleaseJvm(next(jar for jar in jars if jar.name.startswith("py4j")))
    yield result
    result.stop()


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Force compilation, even if an earlier run has left classes in the user's folder."""
    monkeypatch.setattr(java_classes, "user_folder", lambda _name: None)


def release_jars(release: str) -> list[Path]:
    try:
        return jars_of(release)
    except JarsUnavailableError as e:
        absent(f"the jars of {release}", str(e))


def s3a_jars_for(jars: list[Path]) -> list[Path]:
    """Return the jars of S3A for the Hadoop release among the jars, if they were downloaded."""
    name = next(j.name for j in jars if j.name.startswith("hadoop-client-api-"))
    hadoop = name.removeprefix("hadoop-client-api-").removesuffix(".jar")
    s3a = sorted((SERVICES / f"hadoop-aws-{hadoop}" / "jars").glob("*.jar"))
    # Spark has this library of S3A too, but no source of ours needs it otherwise.
    return [*s3a, *(SPARK_HOME / "jars").glob("commons-lang3-*.jar")] if s3a else []


def lacking_in(gateway: Any, loader: Any) -> dict[str, str | None]:
    plans = loader.loadClass("IcebergPyPlans").getDeclaredConstructor(
        gateway.new_array(gateway.jvm.java.lang.Class, 0)
    )
    created = plans.newInstance(gateway.new_array(gateway.jvm.java.lang.Object, 0))
    result: dict[str, str | None] = json.loads(created.missingInternals(None))
    return result


@pytest.mark.parametrize("release", RELEASES)
def test_every_module_compiles_and_every_internal_is_there(release: str, jvm: ReleaseJvm) -> None:
    jars = release_jars(release)
    stores = {
        RENEWED_S3A: s3a_jars_for(jars),
        GOOGLE_FILES: gcs_connector.made_jars(),
        AZURE_FILES: hadoop_azure.made_jars(),
    }
    all_jars = [*jars, *(jar for of_store in stores.values() for jar in of_store)]
    with jvm.gateway(all_jars) as gateway:
        modules = load_modules(gateway)
        lacking = lacking_in(gateway, modules.loader)
        has_module = {
            module: modules.loader.getResource(f"{java_classes._marker(module)}.class") is not None
            for module in stores
        }
    assert modules.failures == {}
    assert has_module == {module: bool(of_store) for module, of_store in stores.items()}
    assert {name for name, why in lacking.items() if why is not None} == LACKING.get(release, set())
    assert set(lacking) == {name for f in FEATURES for name in f.internals}


def test_a_module_that_does_not_compile_leaves_the_others(
    jvm: ReleaseJvm, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = "row_level"
    monkeypatch.setattr(
        java_classes,
        "source_of",
        lambda module: "class A { B b; }" if module == broken else source_of(module),
    )
    # these jars lack the file systems of object stores, so the modules that need them are left out
    with jvm.gateway(release_jars(RELEASES[-1])) as gateway:
        modules = load_modules(gateway)
        again = load_modules(gateway)
        class_presence = {
            module: modules.loader.getResource(f"{java_classes._marker(module)}.class") is not None
            for module in BUILDS_ON
        }
    assert list(modules.failures) == list(again.failures) == [broken]
    assert '"B"' in modules.failures[broken]
    left_out = (broken, RENEWED_S3A, GOOGLE_FILES, AZURE_FILES)
    assert class_presence == {module: module not in left_out for module in BUILDS_ON}
