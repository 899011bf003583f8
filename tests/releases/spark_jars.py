"""Only the jars of a Spark release that our Java sources are compiled against.

They come from an environment with the release's pyspark, or else from Maven, in the versions that
the release's parent POM states; if Maven fails, such an environment is created.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.releases.environments import EnvironmentUnavailableError, python_of
from tests.releases.releases import FOLDER
from tests.support.oracle import run_download

_SPARK = (
    "spark-catalyst_2.13",
    "spark-common-utils_2.13",
    "spark-core_2.13",
    "spark-kvstore_2.13",
    "spark-network-common_2.13",
    "spark-sql-api_2.13",
    "spark-sql_2.13",
    "spark-unsafe_2.13",
)
_SINCE_4_1 = ("spark-common-utils-java_2.13",)
_OTHERS = (
    "com.esotericsoftware:kryo-shaded",
    "com.fasterxml.jackson.core:jackson-annotations",
    "com.fasterxml.jackson.core:jackson-core",
    "com.fasterxml.jackson.core:jackson-databind",
    "commons-io:commons-io",
    "org.antlr:antlr4-runtime",
    "org.apache.arrow:arrow-vector",
    "org.apache.avro:avro",
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.apache.logging.log4j:log4j-api",
    "org.apache.logging.log4j:log4j-core",
    "org.apache.parquet:parquet-column",
    "org.apache.parquet:parquet-hadoop",
    "org.codehaus.janino:commons-compiler",
    "org.codehaus.janino:janino",
    "org.roaringbitmap:RoaringBitmap",
    "org.scala-lang:scala-library",
    "org.scala-lang:scala-reflect",
    "org.slf4j:slf4j-api",
)
# Spark's parent manages no version of these artifacts, only a property for some
_VERSIONED = {
    "net.sf.py4j:py4j": "0.10.9.9",
    "org.apache.arrow:arrow-memory-core": "${arrow.version}",
    "org.apache.parquet:parquet-common": "${parquet.version}",
    "org.apache.parquet:parquet-format-structures": "${parquet.version}",
    "org.json4s:json4s-ast_2.13": "4.0.7",
}


class JarsUnavailableError(Exception):
    """The jars of a release are not available here; the message says what is missing."""


def jars_of(release: str) -> list[Path]:
    """Return the jars of a release, downloaded if necessary; raise `JarsUnavailableError`."""
    installed = _installed(release)
    folder = FOLDER / "jars" / release
    if installed is None and not _has_all(folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                _bring(release, Path(scratch))
        except (OSError, subprocess.SubprocessError) as error:
            installed = _installed_now(release, type(error).__name__)
    if installed is None:
        return sorted(folder.glob("*.jar"))
    return [jar for jar in sorted(installed.glob("*.jar")) if _is_needed(jar)]


def _installed_now(release: str, why_not_maven: str) -> Path | None:
    try:
        python_of(release)
    except EnvironmentUnavailableError as error:
        raise JarsUnavailableError(
            f"mvn could not bring the jars of Spark {release} ({why_not_maven}), and {error}"
        ) from error
    return _installed(release)


def _installed(release: str) -> Path | None:
    """Return the jars folder of pyspark in one of this project's environments, or None."""
    root = FOLDER.parent
    for environment in (root / ".venv", root / ".venv-oracle", FOLDER / release):
        for info in environment.glob(f"lib/python3*/site-packages/pyspark-{release}.dist-info"):
            return info.parent / "pyspark/jars"
    return None


def _has_all(folder: Path) -> bool:
    """Return whether the kept jars include all jars that are needed now."""
    names = [artifact.partition(":")[2] for artifact in (*_OTHERS, *_VERSIONED)]
    return all(any(folder.glob(f"{name}-[0-9]*.jar")) for name in names)


def _is_needed(jar: Path) -> bool:
    others = (artifact.partition(":")[2] for artifact in (*_OTHERS, *_VERSIONED))
    names = (*_SPARK, *_SINCE_4_1, *others)
    return any(re.fullmatch(rf"{re.escape(name)}-\d.*", jar.name) for name in names)


def _bring(release: str, scratch: Path) -> None:
    pom = scratch / "pom.xml"
    pom.write_text(_pom(release), encoding="utf-8")
    created = scratch / "jars"
    run_download(
        [
            *("mvn", "--quiet", "--batch-mode", "--file", str(pom)),
            *("dependency:copy-dependencies", f"-DoutputDirectory={created}"),
        ]
    )
    # Move the folder as a whole, so that it is never incomplete.
    created.rename(FOLDER / "jars" / release)


def _pom(release: str) -> str:
    spark = _SPARK if release.startswith("4.0.") else (*_SPARK, *_SINCE_4_1)
    dependencies = [
        *(_dependency(f"org.apache.spark:{name}", release) for name in spark),
        *(_dependency(artifact, version) for artifact, version in _VERSIONED.items()),
        *(_dependency(artifact) for artifact in _OTHERS),
    ]
    return f"""<project>
<modelVersion>4.0.0</modelVersion>
<parent>
<groupId>org.apache.spark</groupId><artifactId>spark-parent_2.13</artifactId>
<version>{release}</version><relativePath/>
</parent>
<artifactId>jars</artifactId><packaging>pom</packaging>
<dependencies>
{"".join(dependencies)}
</dependencies>
</project>
"""


def _dependency(artifact: str, version: str = "") -> str:
    group, _, name = artifact.partition(":")
    options = f"<version>{version}</version>" if version else ""
    nothing_else = "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>{options}"
        f"<exclusions>{nothing_else}</exclusions></dependency>\n"
    )
