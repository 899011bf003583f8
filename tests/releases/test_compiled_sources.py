"""All Java sources compile with the jars of every release and find the internals they look for.

No Spark runs: a JVM with the jars of all releases compiles with Janino, as sessions would.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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
from tests.releases.release_jvm import ReleaseJvm, store_jars
from tests.releases.releases import LACKING, RELEASES
from tests.releases.spark_jars import JarsUnavailableError, download_jars, jars_of
from tests.services.server import absent

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def jvm() -> Iterator[ReleaseJvm]:
    download_jars(RELEASES)
    result = ReleaseJvm(release_jars(RELEASES[-1]))
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
    stores = store_jars(jars)
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
