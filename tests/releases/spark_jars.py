"""Only the jars of a Spark release that our Java sources are compiled against.

They come from an environment with the release's pyspark, or else from Maven, in the versions that
the release's parent POM states; if Maven fails, such an environment is created.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.releases.environments import EnvironmentUnavailableError, python_of
from tests.releases.releases import FOLDER
from tests.support.spark_sessions import spark_environment

_SPARK = (
    "spark-catalyst_2.13",
    "spark-common-utils_2.13",
    "spark-core_2.13",
    "spark-kvstore_2.13",
    "spark-network-common_2.13",
    "spark-sql-api_2.13",
    "spark-sql_2.13",
    "spark-unsafe_2.13",
    "spark-variant_2.13",
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


def download_jars(releases: Sequence[str]) -> None:
    """Download the jars of releases that have none here, as far as Maven has them.

    One run of Maven for all takes a third of the processor time of one for each release.
    """
    missing = [r for r in releases if _installed(r) is None and not _has_all(_folder(r))]
    try:
        if missing and (unknown := _run_maven(missing)):
            _run_maven([release for release in missing if release not in unknown])
    except (OSError, subprocess.SubprocessError) as error:
        sys.stderr.write(f"mvn could not bring the jars of Spark: {error}\n")


def jars_of(release: str) -> list[Path]:
    """Return the jars of a release; raise `JarsUnavailableError`.

    Without jars of `download_jars`, an environment with the release's pyspark is created.
    """
    if _installed(release) is None and _has_all(_folder(release)):
        return sorted(_folder(release).glob("*.jar"))
    try:
        python_of(release)
    except EnvironmentUnavailableError as error:
        raise JarsUnavailableError(
            f"mvn could not bring the jars of Spark {release}, and {error}"
        ) from error
    installed = _installed(release)
    assert installed is not None
    return [jar for jar in sorted(installed.glob("*.jar")) if _is_needed(jar)]


def _installed(release: str) -> Path | None:
    """Return the jars folder of pyspark in one of this project's environments, or None."""
    root = FOLDER.parent
    for environment in (root / ".venv", root / ".venv-oracle", FOLDER / release):
        for info in environment.glob(f"lib/python3*/site-packages/pyspark-{release}.dist-info"):
            return info.parent / "pyspark/jars"
    return None


def _folder(release: str) -> Path:
    return FOLDER / "jars" / release


def _has_all(folder: Path) -> bool:
    """Return whether the kept jars include all jars that are needed now."""
    names = [artifact.partition(":")[2] for artifact in (*_OTHERS, *_VERSIONED)]
    return all(any(folder.glob(f"{name}-[0-9]*.jar")) for name in (*_SPARK, *names))


def _is_needed(jar: Path) -> bool:
    others = (artifact.partition(":")[2] for artifact in (*_OTHERS, *_VERSIONED))
    names = (*_SPARK, *_SINCE_4_1, *others)
    return any(re.fullmatch(rf"{re.escape(name)}-\d.*", jar.name) for name in names)


def _run_maven(releases: Sequence[str]) -> set[str]:
    """Run Maven once, with a project for each release; return releases that Maven does not have.

    If there are such releases, Maven downloads nothing.
    """
    if not releases:
        return set()
    (FOLDER / "jars").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER / "jars") as name:
        scratch = Path(name)
        for release in releases:
            (scratch / release).mkdir()
            (scratch / release / "pom.xml").write_text(_pom(release), encoding="utf-8")
        (scratch / "pom.xml").write_text(_pom_of_all(releases), encoding="utf-8")
        command = ["mvn", "--quiet", "--batch-mode", "--fail-at-end", "--file", str(scratch)]
        copy = ["dependency:copy-dependencies", "-DoutputDirectory=jars"]
        done = subprocess.run(
            [*command, *copy],
            env=spark_environment(),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        sys.stderr.write(done.stdout + done.stderr)
        for release in releases:
            if _has_all(scratch / release / "jars"):
                shutil.rmtree(_folder(release), ignore_errors=True)
                # Move the folder as a whole, so that it is never incomplete.
                (scratch / release / "jars").rename(_folder(release))
    return set(re.findall(r"spark-parent_2\.13:pom:(\d+\.\d+\.\d+)", done.stdout))


def _pom_of_all(releases: Sequence[str]) -> str:
    modules = "".join(f"<module>{release}</module>" for release in releases)
    return f"""<project>
<modelVersion>4.0.0</modelVersion>
<groupId>jars</groupId><artifactId>all</artifactId><version>1</version>
<packaging>pom</packaging>
<modules>{modules}</modules>
</project>
"""


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
<artifactId>jars-{release}</artifactId><packaging>pom</packaging>
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
