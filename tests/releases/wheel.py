"""`python -m tests.releases.wheel FOLDER`: the wheel with Java classes for each release of Spark.

Some classes extend Hadoop's stores, which Maven brings. Without a store's jars its classes are left
out, and sessions that have the store compile.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from iceberg_pyspark.spark.bridge import java_classes
from tests.releases.environments import built_wheel
from tests.releases.release_jvm import ReleaseJvm, hadoop_among, store_jars
from tests.releases.releases import RELEASES
from tests.releases.spark_jars import download_jars, jars_of
from tests.services import gcs_connector, hadoop_aws, hadoop_azure

ALL_RELEASES = (*RELEASES, "4.0.1", "4.0.2", "4.0.3", "4.0.4")
COMPILED = Path(java_classes.__file__).parent / java_classes.COMPILED


def build(folder: Path, releases: tuple[str, ...] = ALL_RELEASES) -> Path:
    """Build the wheel in a folder and return it; leave no classes in the checkout."""
    download_jars(releases)
    jars = {release: jars_of(release) for release in releases}
    jvm = ReleaseJvm(jars[releases[0]])
    builds = {}
    for of_release in jars.values():
        hadoop = hadoop_among(of_release)
        _bring(lambda hadoop=hadoop: hadoop_aws.s3a_jars(hadoop))
        _bring(lambda hadoop=hadoop: hadoop_azure.abfs_jar(hadoop))
        _bring(gcs_connector.connector_jar)
        stores = (jar for of_store in store_jars(of_release).values() for jar in of_store)
        with jvm.gateway([*of_release, *stores]) as gateway:
            digest, classes = java_classes.classes_of_build(gateway)
        builds[digest] = classes
    jvm.stop()
    COMPILED.write_bytes(java_classes.packed_classes(builds))
    try:
        return built_wheel(folder)
    finally:
        COMPILED.unlink()


def _bring(jars: Callable[..., object]) -> None:
    try:
        jars()
    except pytest.skip.Exception as e:
        sys.stderr.write(f"{e}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    sys.stdout.write(f"{build(parser.parse_args().folder)}\n")
