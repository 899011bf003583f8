"""A program that converts Hive-format tables of a Derby metastore with Java and with our code.

Its argument is a folder to work in. Its last output line is JSON: for each table its rows, and the
rows of the Iceberg tables that `snapshot`, `add_files` and `migrate` create from its files, as Java
and our code read them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from iceberg_pyspark import install
from tests.support.oracle import Oracle, start_oracle

FORMATS = ("PARQUET", "ORC", "AVRO")
COLUMNS = "Id BIGINT, Name STRING, at ARRAY<INT>"
SESSION = "spark.sql.catalog.spark_catalog"


def start(folder: Path) -> Oracle:
    oracle = start_oracle(
        folder,
        {
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.javax.jdo.option.ConnectionURL": (
                f"jdbc:derby:;databaseName={folder}/metastore;create=true"
            ),
            "spark.hadoop.hive.metastore.schema.verification": "false",
            "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
            "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
        },
    )
    for key, value in {
        "spark.sql.catalog.lake": "iceberg_pyspark",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(oracle.warehouse),
        SESSION: "iceberg_pyspark",
        f"{SESSION}.type": "sql",
        f"{SESSION}.uri": f"sqlite:///{folder}/session.db",
        f"{SESSION}.warehouse": f"{folder}/session",
    }.items():
        oracle.spark.conf.set(key, value)
    assert install(oracle.spark).is_native
    return oracle


def rows(oracle: Oracle, table: str) -> list[str]:
    oracle.sql(f"REFRESH TABLE {table}")
    return sorted(str(tuple(row)) for row in oracle.sql(f"SELECT * FROM {table}").collect())


def taken_over(oracle: Oracle, name: str, file_format: str, partitioned: bool) -> dict[str, Any]:
    tail = "PARTITIONED BY (Day STRING)" if partitioned else ""
    oracle.sql(f"CREATE TABLE h.{name} ({COLUMNS}) {tail} STORED AS {file_format}")
    days = (", 'a b'", ", 'c'") if partitioned else ("", "")
    oracle.sql(f"INSERT INTO h.{name} VALUES (1, 'é', array(1, 2){days[0]})")
    oracle.sql(f"INSERT INTO h.{name} VALUES (2, NULL, NULL{days[1]})")
    results: dict[str, Any] = {"source": rows(oracle, f"h.{name}"), "counts": {}, "rows": {}}
    by = "PARTITIONED BY (Day)" if partitioned else ""
    columns = f"{COLUMNS}, Day STRING" if partitioned else COLUMNS
    for catalog, side in (("java_hadoop", "java"), ("lake", "ours")):
        table = f"db.{name}_{side}"
        calls = {
            "snapshot": f"snapshot('spark_catalog.h.{name}', '{catalog}.{table}')",
            "add_files": f"add_files('{catalog}.{table}_added', 'spark_catalog.h.{name}')",
        }
        oracle.sql(f"CREATE TABLE java_hadoop.{table}_added ({columns}) USING iceberg {by}")
        for procedure, call in calls.items():
            result = oracle.sql(f"CALL {catalog}.system.{call}").collect()
            results["counts"][f"{procedure} {side}"] = result[0][0]
            for reader in ("java_hadoop", "lake"):
                suffix = "_added" if procedure == "add_files" else ""
                results["rows"][f"{procedure} {side}, {reader}"] = rows(
                    oracle, f"{reader}.{table}{suffix}"
                )
    [migrated] = oracle.sql(f"CALL spark_catalog.system.migrate('h.{name}')").collect()
    results["counts"]["migrate ours"] = migrated[0]
    results["rows"]["migrate ours"] = rows(oracle, f"h.{name}")
    oracle.sql(f"DROP TABLE h.{name}_BACKUP_")
    results["rows"]["without the backup"] = rows(oracle, f"h.{name}")
    return results


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    oracle = start(folder)
    oracle.sql(f"CREATE NAMESPACE h LOCATION '{folder}/h'")
    oracle.sql("CREATE NAMESPACE java_hadoop.db")
    answer = {}
    for file_format in FORMATS:
        for partitioned in (True, False):
            name = f"{file_format.lower()}_{partitioned}".lower()
            answer[name] = taken_over(oracle, name, file_format, partitioned)
    oracle.spark.stop()
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
