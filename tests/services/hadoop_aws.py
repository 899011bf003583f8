"""The jars of `s3a`, Hadoop's file system for S3, for the JVM of a test; kept after download.

Their version is the version of Hadoop in pyspark. Only the modules of the AWS SDK that s3a calls
are included, because the bundle that Hadoop names has half a gigabyte.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.services.server import SERVICES, absent, build_lock
from tests.support.spark_sessions import SPARK_HOME, spark_environment

_SDK = ("s3", "s3-transfer-manager", "sts", "apache-client", "url-connection-client")
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <parent>
    <groupId>org.apache.hadoop</groupId>
    <artifactId>hadoop-project</artifactId>
    <version>{hadoop}</version>
    <relativePath/>
  </parent>
  <artifactId>iceberg-pyspark-test-s3a</artifactId>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.hadoop</groupId>
      <artifactId>hadoop-aws</artifactId>
      <version>{hadoop}</version>
      <exclusions>
        <exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>
      </exclusions>
    </dependency>
    {more}
  </dependencies>
</project>
"""
# A library of Hadoop's since 3.4.2, whose parent states the version.
_ACCELERATOR = """\
<dependency>
      <groupId>software.amazon.s3.analyticsaccelerator</groupId>
      <artifactId>analyticsaccelerator-s3</artifactId>
      <exclusions>
        <exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>
      </exclusions>
    </dependency>"""
_MODULE = """\
<dependency>
      <groupId>software.amazon.awssdk</groupId>
      <artifactId>{name}</artifactId>
      <version>${{aws-java-sdk-v2.version}}</version>
      <exclusions>
        <exclusion><groupId>org.slf4j</groupId><artifactId>*</artifactId></exclusion>
      </exclusions>
    </dependency>"""


def hadoop_version() -> str:
    """Return the version of Hadoop in pyspark."""
    return next((SPARK_HOME / "jars").glob("hadoop-client-api-*.jar")).stem.rpartition("-")[2]


def made_jars() -> list[Path]:
    """Return the jars if they have been downloaded already, else an empty list."""
    folder = SERVICES / f"hadoop-aws-{hadoop_version()}"
    return sorted((folder / "jars").glob("*.jar")) if (folder / "done").exists() else []


def s3a_jars(hadoop: str | None = None) -> list[Path]:
    """Return the jars for a version of Hadoop, or that of pyspark; skip the test without Maven."""
    hadoop = hadoop or hadoop_version()
    with build_lock(f"hadoop-aws-{hadoop}") as folder:
        done = folder / "done"
        jars = folder / "jars"
        if not done.exists():
            maven = shutil.which("mvn")
            if maven is None:
                absent("hadoop-aws", "it comes by Maven, and there is no program 'mvn'")
            more = [_MODULE.format(name=name) for name in _SDK]
            if hadoop != "3.4.1":
                more.append(_ACCELERATOR)
            pom = folder / "pom.xml"
            text = _POM.format(hadoop=hadoop, more="\n    ".join(more))
            pom.write_text(text, encoding="utf-8")
            fetched = subprocess.run(
                [
                    *(maven, "--batch-mode", "--quiet", "--file", str(pom)),
                    *("dependency:copy-dependencies", "-DincludeScope=runtime"),
                    f"-DoutputDirectory={jars}",
                ],
                env=spark_environment(),
                capture_output=True,
                text=True,
                check=False,
            )
            if fetched.returncode:
                absent("hadoop-aws", f"Maven failed: {fetched.stdout.strip()[-500:]}")
            done.touch()
        return sorted(jars.glob("*.jar"))
