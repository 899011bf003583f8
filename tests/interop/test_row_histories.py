"""One random history of changes by four ways leaves the rows that Java's SQL leaves.

The ways are our SQL, the format alone as a client of Spark Connect uses it, the methods of a table
without Spark, and Java's SQL. Each has a table of its own, and Java reads all of them after each
change. At the end a client in another process makes the same changes by a Connect server.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.spark.spark_table import portable_table
from tests.interop.row_history import (
    Change,
    History,
    by_spark,
    in_sql,
    quoted,
    type_in_sql,
    without_spark,
)
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.readings import INTERPRETED, our_table
from tests.support.rows import plain_value
from tests.support.spark_sessions import ROOT, connect_server, run_python
from tests.support.table_integrity import table_problems

pytestmark = pytest.mark.nightly

WAYS = ("java", "sql", "format", "python")
OPERATIONS = ("delete", "update", "merge")


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as native_oracle:
        native_oracle.sql("create namespace if not exists java_hadoop.ways")
        for key, value in INTERPRETED.items():
            native_oracle.spark.conf.set(key, value)
        yield native_oracle
        for key in INTERPRETED:
            native_oracle.spark.conf.unset(key)


@dataclass
class Tables:
    """A table for each way, and one for a Connect client; all begin alike."""

    lake: Oracle
    history: History
    version: int
    name: str = field(default_factory=lambda: f"ways.t{uuid.uuid4().hex}")
    newest: dict[str, tuple[int, int]] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)

    def of(self, way: str, catalog: str = "java_hadoop") -> str:
        """Return the name of the table of a way."""
        return f"{catalog}.{self.name}_{way}"

    def create(self, partitioning: str, properties: dict[str, str]) -> None:
        """Create the tables by Java."""
        columns = ", ".join(f"{quoted(n)} {type_in_sql(t)}" for n, t in self.history.shape.items())
        listed = ", ".join(f"'{k}'='{v}'" for k, v in properties.items())
        by = f"partitioned by ({partitioning}) " if partitioning else ""
        for way in (*WAYS, "connect"):
            text = f"create table {self.of(way)} ({columns}) using iceberg {by}"
            self.lake.sql(f"{text}tblproperties ({listed})")
        note(f"{columns} {by}{listed}")

    def make(self, change: Change) -> None:
        """Make a change by all ways; if one refuses it, all must."""
        shape, spark = self.history.shape, self.lake.spark
        statement = in_sql(shape, change)
        note(statement)
        errors = {
            "java": error_of(lambda: self.lake.sql(statement.replace("{t}", self.of("java")))),
            "sql": error_of(
                lambda: self.lake.sql(statement.replace("{t}", self.of("sql", "lake")))
            ),
            "format": error_of(
                lambda: by_spark(
                    spark, portable_table(spark, self.of("format", "lake")), shape, change
                )
            ),
            "python": error_of(
                lambda: without_spark(our_table(self.lake, self.of("python")), shape, change)
            ),
        }
        if len({error is None for error in errors.values()}) > 1:
            raise AssertionError(f"{statement}\n{json.dumps(errors, indent=1)}")
        rows = self.compare(statement)
        self.steps.append({"change": change, "rows": rows, "refused": errors["java"] is not None})

    def compare(self, statement: str) -> list[str]:
        """Check that all tables have equal rows, and in version 3 equally new ones."""
        columns = list(self.history.shape)
        hidden = ["_row_id", "_last_updated_sequence_number"] if self.version == 3 else []
        listed = ", ".join(map(quoted, [*columns, *hidden]))
        result = self.lake.sql(
            " union all ".join(f"select '{w}' `way `, {listed} from {self.of(w)}" for w in WAYS)
        ).collect()
        found: dict[str, list[Any]] = {way: [] for way in WAYS}
        for row in result:
            way, *values = plain_value(row)
            found[way].append(tuple(values))
        at = len(columns)
        kinds = {}
        for way, rows in found.items():
            kind = [r[:at] for r in rows]
            if hidden:
                ids = [r[at] for r in rows]
                assert len(set(ids)) == len(ids), "two rows have one row id"
                first, last = self.newest.get(way, (0, 0))
                kind = [(*r[:at], r[at] >= first, r[at + 1] > last) for r in rows]
                metadata = our_table(self.lake, self.of(way)).metadata
                self.newest[way] = metadata.next_row_id or 0, metadata.last_sequence_number
            kinds[way] = Counter(map(repr, kind))
        for way in WAYS[1:]:
            if kinds[way] != kinds["java"]:
                raise AssertionError(
                    f"{statement}\nonly by {way}: {kinds[way] - kinds['java']}\n"
                    f"only by Java: {kinds['java'] - kinds[way]}"
                )
        return sorted(repr(r[:at]) for r in found["java"])


def error_of(done: Callable[[], object]) -> str | None:
    try:
        done()
    except (PySparkException, Py4JJavaError, IcebergError) as e:
        return f"{type(e).__name__}: {e}"[:2000]
    return None


CLIENT = """
import json, sys
from pyspark.sql import SparkSession
from pyspark.errors import PySparkException
import iceberg_pyspark as ice
from tests.interop.row_history import by_spark
from tests.support.rows import plain_value

url, file, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
spark = SparkSession.builder.remote(url).getOrCreate()
session = ice.install(spark)
for example in json.load(open(file)):
    table = session.table(example["table"], catalog="lake", **options)
    for number, step in enumerate(example["steps"]):
        try:
            by_spark(spark, table, example["shape"], step["change"])
            error = None
        except (PySparkException, ice.errors.IcebergError) as e:
            error = f"{type(e).__name__}: {e}"[:2000]
        rows = sorted(repr(tuple(plain_value(row))) for row in table.to_df().collect())
        if rows != step["rows"] or (error is None) is step["refused"]:
            wrong = [example["shape"], number, step, error, rows]
            sys.exit("\\n".join(map(str, wrong)))
print("equal")
"""


def test_a_history_leaves_the_same_rows_by_all_ways(lake: Oracle, tmp_path: Path) -> None:
    examples: list[dict[str, Any]] = []

    @settings(
        max_examples=max(settings().max_examples // 20, 2),
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def in_process(data: st.DataObject) -> None:
        draw = data.draw
        version = draw(st.sampled_from([2, 3]))
        history = History.new(draw)
        modes = st.sampled_from(["merge-on-read", "copy-on-write"])
        properties = {f"write.{op}.mode": draw(modes) for op in OPERATIONS}
        tables = Tables(lake, history, version)
        try:
            tables.create(history.partitioning(), {**properties, "format-version": str(version)})
            for change in (history.insert(), *[history.change() for _ in range(6)]):
                tables.make(change)
            for way in WAYS[1:]:
                assert table_problems(our_table(lake, tables.of(way))) == []
            name = tables.of("connect").partition(".")[2]
            examples.append({"table": name, "shape": history.shape, "steps": tables.steps})
        finally:
            for way in WAYS:
                lake.sql(f"drop table if exists {tables.of(way)} purge")

    in_process()
    file, script = tmp_path / "examples.json", tmp_path / "client.py"
    file.write_text(json.dumps(examples), encoding="utf-8")
    script.write_text(f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{CLIENT}", encoding="utf-8")
    options = {"catalog.type": "hadoop", "catalog.warehouse": str(lake.warehouse)}
    with connect_server(tmp_path / "server") as url:
        printed = run_python(script, url, str(file), json.dumps(options))
    assert printed.splitlines()[-1] == "equal"
