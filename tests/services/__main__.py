"""Build or download every server that tests use; run it once with `python -m tests.services`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from tests.services import (
    azurite,
    chromium,
    gcs,
    gcs_connector,
    hadoop_aws,
    hadoop_azure,
    hdfs,
    hive,
    iceberg_aws,
    mysql,
    postgres,
    rest_fixture,
    s3,
    s3rver,
    toxiproxy,
)

_PROGRAMS: Mapping[str, Callable[[], object]] = {
    "versitygw": s3.program,
    "toxiproxy": toxiproxy.program,
    "Azurite": azurite.program,
    "s3rver": s3rver.program,
    "Chromium": chromium.program,
    "fake-gcs-server": gcs.program,
    "HDFS": hdfs.program,
    "gcs-connector": gcs_connector.connector_jar,
    "hadoop-aws": lambda: hadoop_aws.s3a_jars()[0].parent,
    "hadoop-azure": hadoop_azure.abfs_jar,
    "rest-fixture": rest_fixture.program,
    "S3FileIO": lambda: iceberg_aws.s3_file_io_jars(rest_fixture.VERSION)[0].parent,
    "hive-metastore": hive.program,
    "postgres": postgres.program,
    "mariadb": mysql.program,
}


def main() -> None:
    """Print the path of each server's program and the seconds it took to get it."""
    os.environ["CI"] = "true"
    for name, program in _PROGRAMS.items():
        started = time.monotonic()
        path = program()
        print(f"{name}: {path} ({time.monotonic() - started:.0f} s)")


if __name__ == "__main__":
    main()
