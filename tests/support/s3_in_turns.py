"""A program in which Java (S3FileIO) and our code take turns changing a table in S3.

Our code uses s3a and Python. The argument is JSON: the store's `properties`, the `uri` of a REST
catalog whose warehouse is in the store, a `scratch` folder, the format `versions` of the tables,
and `every_turn`, with which there are more changes. The last output line is JSON: the rows that
every reader sees after two of the changes, or with `every_turn` after each change of version 3.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from iceberg_pyspark import install, load_catalog
from tests.services.hadoop_aws import s3a_jars
from tests.services.iceberg_aws import aws_sdk_jar
from tests.support.oracle import Oracle, start_oracle

ICEBERG = "1.12.0"
"""The Iceberg release of the oracle, and of the S3FileIO used here."""
NATIVE = "spark.sql.iceberg.native-writer-enabled"
COLUMNS = "(id BIGINT, v STRING, p STRING) USING iceberg PARTITIONED BY (p)"


class Turns:
    """One REST catalog, open as `java`, as `ours` and as a Python catalog."""

    def __init__(self, oracle: Oracle, arguments: dict[str, Any]) -> None:
        self._oracle = oracle
        self._ours = {"type": "rest", "uri": arguments["uri"], **arguments["properties"]}
        # Each side must see the other side's changes at once.
        in_spark = {**self._ours, "cache-enabled": "false"}
        java = {
            **in_spark,
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "client.region": arguments["properties"]["s3.region"],
        }
        self._configure("java", "org.apache.iceberg.spark.SparkCatalog", java)
        oracle.sql("CREATE NAMESPACE java.db")
        self._catalog = load_catalog("python", **self._ours)
        self._configure("ours", "iceberg_pyspark", in_spark)
        assert install(oracle.spark).is_native
        self._every_turn = bool(arguments["every_turn"])
        self.turns: list[dict[str, Any]] = []
        self.writers: set[str] = set()

    def _configure(self, name: str, kind: str, properties: dict[str, str]) -> None:
        self._oracle.spark.conf.set(f"spark.sql.catalog.{name}", kind)
        for key, value in properties.items():
            self._oracle.spark.conf.set(f"spark.sql.catalog.{name}.{key}", value)

    def run(self, name: str, version: int) -> None:
        """Change a table on both sides by each writer of data files and of delete files."""
        java, ours = f"java.db.{name}", f"ours.db.{name}"
        mode = (
            f"TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='merge-on-read', "
            "'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read')"
        )
        creator = java if version == 2 else ours
        self._turn(name, f"CREATE TABLE {creator} {COLUMNS} {mode}")
        self._turn(name, f"INSERT INTO {java} SELECT id, 'j', concat('p', id % 3) FROM range(9)")
        insert = "SELECT id, 'o' v, concat('p', id % 3) p FROM range(20, 29)"
        self._turn(name, f"INSERT INTO {ours} {insert}")
        self._oracle.spark.conf.set(NATIVE, "false")
        self._turn(name, f"INSERT INTO {ours} SELECT id + 20, v, p FROM ({insert})")
        self._oracle.spark.conf.set(NATIVE, "true")
        if self._every_turn:
            self._turn(name, f"DELETE FROM {java} WHERE id % 4 = 1")
            self._turn(name, f"DELETE FROM {ours} WHERE id % 4 = 2")
        source = "(SELECT 0L id, 'm' v, 'p0' p UNION ALL SELECT 90L, 'm', 'p4') s"
        merge = "ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
        self._turn(name, f"MERGE INTO {ours} t USING {source} {merge}", looks=True)
        self._turn(name, f"UPDATE {java} SET v = 'x' WHERE id IN (3, 90)")
        table = self._catalog.load_table(f"db.{name}")
        table.append(pa.table({"id": [60], "v": ["py"], "p": ["p1"]}))
        self._look(name, "Python's append")
        for file in self._oracle.sql(f"SELECT file_path FROM {ours}.data_files").collect():
            with table.io.open_input(file.file_path) as stream:
                footer = pq.read_metadata(stream)
            is_spark = b"org.apache.spark.version" in footer.metadata
            self.writers.add("Spark" if is_spark else footer.created_by.split()[0])

    def _turn(self, name: str, statement: str, *, looks: bool = False) -> None:
        self._oracle.sql(statement)
        if looks or (self._every_turn and name == "v3"):
            self._look(name, statement)

    def _look(self, name: str, change: str) -> None:
        spark = self._oracle.spark
        options = {
            "catalog": "python",
            "native": "false",
            **{f"catalog.{k}" if k in ("type", "uri") else k: v for k, v in self._ours.items()},
        }
        frames = {
            "java": spark.table(f"java.db.{name}"),
            "native": spark.table(f"ours.db.{name}"),
            "portable": spark.read.format("iceberg-py").options(**options).load(f"db.{name}"),
        }
        rows = {reader: sorted(list(r) for r in f.collect()) for reader, f in frames.items()}
        self.turns.append({"what": f"{name}: {change}", **rows})


def main(arguments: dict[str, Any]) -> None:
    """Run both tables and print the rows that the readers saw."""
    scratch = Path(arguments["scratch"])
    scratch.mkdir()
    # The AWS SDK must be the connector's, and Netty must be Spark's own.
    s3a = [jar for jar in s3a_jars() if not jar.name.startswith("netty-")]
    jars = [aws_sdk_jar(ICEBERG), *s3a]
    oracle = start_oracle(scratch, more_jars=jars)
    try:
        turns = Turns(oracle, arguments)
        for version in arguments["versions"]:
            turns.run(f"v{version}", version)
        java_io = (
            oracle.load_java_table(f"java.db.v{arguments['versions'][0]}")
            .io()
            .getClass()
            .getSimpleName()
        )
    finally:
        oracle.spark.stop()
    answer = {"turns": turns.turns, "writers": sorted(turns.writers), "java_io": java_io}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
