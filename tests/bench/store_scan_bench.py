"""Spark scans of a table in S3 on this machine, compared with the JVM connector and S3FileIO.

`python -m tests.bench.store_scan_bench [--scale 1]`. We read natively (the JVM uses s3a) and
portably (Python), in one session with the connector. Requests are the requests for data files in
the server's log, from one run of each contestant.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table as TextTable

from iceberg_pyspark import install, load_catalog
from tests.bench.native_bench import FILES, JVM
from tests.bench.races import RUNS, Line, race
from tests.bench.tpch_queries import Q1_COLUMNS, Q6_COLUMNS, Q6_FILTER, full_scan, q1, q6
from tests.services.hadoop_aws import s3a_jars
from tests.services.iceberg_aws import aws_sdk_jar
from tests.services.s3 import S3Server, s3_server
from tests.support.oracle import Oracle, oracle_jars, start_oracle
from tests.support.tpch import tpch

ICEBERG = "1.12.0"
"""The release of the JVM connector and of its S3FileIO."""
MAX_NATIVE = 1.0
MAX_PORTABLE = 2.0
_TABLE = "bench.lineitem"
_QUERIES: Mapping[str, tuple[Callable[[DataFrame], object], Mapping[str, str]]] = {
    "full scan": (full_scan, {}),
    "Q1": (q1, {"columns": Q1_COLUMNS}),
    "Q6": (q6, {"columns": Q6_COLUMNS, "filter": Q6_FILTER}),
}


class StoreScanBench:
    """Lineitem in S3, written by the JVM connector and registered in a catalog of each side."""

    def __init__(self, oracle: Oracle, s3: S3Server, scratch: Path, scale: float) -> None:
        self.spark = oracle.spark
        self.s3 = s3
        self.warehouse = f"s3://{s3.new_bucket()}/warehouse"
        self._configure("java_s3", self._java(scratch), "org.apache.iceberg.spark.SparkCatalog")
        oracle.sql("CREATE NAMESPACE java_s3.bench")
        rows = self.spark.read.parquet(str(tpch(scale)["lineitem"]))
        rows.repartition(FILES).writeTo(f"java_s3.{_TABLE}").using("iceberg").create()
        java = oracle.load_java_table(f"java_s3.{_TABLE}")
        self.ours = {
            "type": "sql",
            "uri": f"sqlite:///{scratch / 'ours.db'}",
            "warehouse": self.warehouse,
            **s3.properties(),
        }
        catalog = load_catalog("lake", **self.ours)
        catalog.create_namespace("bench")
        catalog.register_table(_TABLE, java.operations().current().metadataFileLocation())
        self._configure("lake", self.ours, "iceberg_pyspark")
        assert install(self.spark).is_native

    def _java(self, scratch: Path) -> Mapping[str, str]:
        """Return properties of the connector's catalog; S3FileIO has mostly our names."""
        return {
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{scratch / 'java_s3.db'}",
            "jdbc.schema-version": "V1",
            "warehouse": self.warehouse,
            "cache-enabled": "false",
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "client.region": self.s3.properties()["s3.region"],
            **self.s3.properties(),
        }

    def _configure(self, name: str, properties: Mapping[str, str], catalog: str) -> None:
        self.spark.conf.set(f"spark.sql.catalog.{name}", catalog)
        for key, value in properties.items():
            self.spark.conf.set(f"spark.sql.catalog.{name}.{key}", value)

    def contestants(self, query: str) -> Mapping[str, Callable[[], object]]:
        """Return a query by contestant: natively, portably, and with the connector."""
        run, portable = _QUERIES[query]
        own = ("type", "uri", "warehouse")
        options = {
            "catalog": "lake",
            "native": "false",
            **{f"catalog.{k}" if k in own else k: v for k, v in self.ours.items()},
            **portable,
        }
        return {
            "ours": lambda: run(self.spark.table(f"lake.{_TABLE}")),
            "jvm": lambda: run(self.spark.table(f"java_s3.{_TABLE}")),
            "portable": lambda: run(
                self.spark.read.format("iceberg-py").options(**options).load(_TABLE)
            ),
        }

    def requests(self, query: str) -> Mapping[str, float]:
        """Return each contestant's number of requests per data file."""
        requests_per_file = {}
        for contestant, action in self.contestants(query).items():
            before = self.s3.requests("parquet")
            action()
            requests = self.s3.requests("parquet") - before
            requests_per_file[contestant] = requests.total() / FILES
        return requests_per_file


def compare(scale: float = 1.0, runs: int = RUNS) -> list[TextTable]:
    """Measure everything and return the table to print."""
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as name:
        scratch = Path(name)
        with s3_server(scratch / "s3") as s3:
            # The AWS SDK must be the connector's, and Netty must be Spark's own.
            s3a = [jar for jar in s3a_jars() if not jar.name.startswith("netty-")]
            jars = (*oracle_jars(), aws_sdk_jar(ICEBERG), *s3a)
            path = os.pathsep.join(str(jar) for jar in jars)
            oracle = start_oracle(scratch, {**JVM, "spark.driver.extraClassPath": path})
            try:
                bench = StoreScanBench(oracle, s3, scratch, scale)
                lines = [race(q, bench.contestants(q), runs=runs) for q in _QUERIES]
                requests = {q: bench.requests(q) for q in _QUERIES}
            finally:
                oracle.spark.stop()
    return [
        _shown(f"lineitem SF{scale:g} in S3, {FILES} files, medians of {runs}", lines, requests)
    ]


def _shown(title: str, lines: list[Line], requests: Mapping[str, Mapping[str, float]]) -> TextTable:
    """Return a row per query: times, ratios to the connector, requests per data file."""
    text = TextTable("query", title=title)
    columns = (
        "native s",
        "portable s",
        "JVM s",
        "native/JVM",
        "at most",
        "portable/JVM",
        "at most",
    )
    for column in (*columns, "requests a file: native", "portable", "JVM"):
        text.add_column(column, justify="right")
    for line in lines:
        requests_per_file = requests[line.name]
        ours, portable, jvm = (line.median(w) for w in ("ours", "portable", "jvm"))
        text.add_row(
            line.name,
            *(f"{s:.2f}" for s in (ours, portable, jvm)),
            *(f"{ours / jvm:.2f}", f"{MAX_NATIVE}", f"{portable / jvm:.2f}", f"{MAX_PORTABLE}"),
            *(f"{requests_per_file[w]:.1f}" for w in ("ours", "portable", "jvm")),
        )
    return text


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="tests.bench.store_scan_bench")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=RUNS)
    arguments = parser.parse_args()
    for table in compare(arguments.scale, arguments.runs):
        Console(width=132).print(table)


if __name__ == "__main__":
    main()
