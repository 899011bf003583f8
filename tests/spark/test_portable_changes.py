"""Random changes of rows by the format alone leave the rows that Spark SQL leaves natively.

Both tables are in one catalog, and begin with the same rows. After each statement they have equal
rows and, from version 3 on, equally new row ids and sequence numbers, or both have refused it.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from iceberg_pyspark.errors import IcebergError, InvalidRequestError, NoSuchTableError
from iceberg_pyspark.spark.portable.format_table import FormatTable
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.spark.session_catalogs import catalog_options
from iceberg_pyspark.spark.spark_table import SparkTable, portable_table
from tests.spark.statements_by_calls import DrawnChange, a_change, change_by_calls
from tests.support import change_statements as changes
from tests.support.frames import create_path_table
from tests.support.native_lake import sqlite_lake
from tests.support.parameters import cases
from tests.support.peak_memory import peak_of_children
from tests.support.rows import plain_value
from tests.support.spark_sessions import QUICK_JVM, ROOT, connect_server, run_python
from tests.support.table_integrity import table_problems

OPERATIONS = ("delete", "update", "merge")


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("lake"), "lake") as session:
        yield session


@dataclass
class Pair:
    """Two tables that must have equal rows: one is changed by SQL, one by the format."""

    lake: IcebergSession
    draw: changes.Draw
    shape: changes.Shape
    version: int
    name: str = field(default_factory=lambda: f"t{uuid.uuid4().hex}")
    newest: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0), (0, 0)])

    @property
    def names(self) -> tuple[str, str]:
        """The names of both tables in SQL."""
        return f"lake.db.{self.name}_sql", f"lake.db.{self.name}_format"

    def by_format(self) -> SparkTable:
        """Return the second table, as a session without Iceberg has it."""
        return portable_table(self.lake.spark, self.names[1])

    def both(self, statement: str) -> None:
        """Run a statement on both tables natively."""
        for name in self.names:
            self.lake.spark.sql(statement.replace("{t}", name))

    def run(self, change: DrawnChange) -> None:
        """Run a change on the first table in SQL, and on the second one by the format."""
        statement = change.statement
        note(statement)
        spark = self.lake.spark
        errors = [
            error_of(lambda: spark.sql(statement.replace("{t}", self.names[0]))),
            error_of(lambda: change_by_calls(spark, self.by_format(), change.call)),
        ]
        if (errors[0] is None) is not (errors[1] is None):
            raise AssertionError(f"{statement}\nin SQL: {errors[0]}\nby the format: {errors[1]}")
        self.compare()

    def compare(self) -> None:
        """Check that both tables have equal rows, and equally new ones."""
        hidden = ["_row_id", "_last_updated_sequence_number"] if self.version == 3 else []
        kinds = []
        for i, name in enumerate(self.names):
            frame = self.lake.spark.table(name).select(*self.shape.columns, *hidden)
            rows = [plain_value(row) for row in frame.collect()]
            at = len(self.shape.columns)
            if hidden:
                ids = [row[at] for row in rows]
                assert len(set(ids)) == len(ids), "two rows have one row id"
                first, last = self.newest[i]
                rows = [(*row[:at], row[at] >= first, row[at + 1] > last) for row in rows]
                metadata = self.lake.table(name).metadata
                self.newest[i] = metadata.next_row_id or 0, metadata.last_sequence_number
            kinds.append(Counter(map(repr, rows)))
        assert kinds[0] == kinds[1], (
            f"only in SQL: {kinds[0] - kinds[1]}\nonly by the format: {kinds[1] - kinds[0]}"
        )


def error_of(done: Callable[[], object]) -> str | None:
    try:
        done()
    except (PySparkException, IcebergError) as e:
        return f"{type(e).__name__}: {e}"[:2000]
    return None


def new_pair(lake: IcebergSession, draw: Any) -> Pair:
    """Return two equal tables of random columns, partitions, modes and rows."""
    version = draw(st.sampled_from([2, 3]))
    pair = Pair(lake, draw, changes.a_shape(draw), version)
    modes = st.sampled_from(["merge-on-read", "copy-on-write"])
    properties = {
        "format-version": str(version),
        **{f"write.{op}.mode": draw(modes) for op in OPERATIONS},
    }
    fields = ", ".join(changes.field_in_sql(*f) for f in pair.shape.fields)
    listed = ", ".join(f"'{k}'='{v}'" for k, v in properties.items())
    partitioned = f"partitioned by ({fields}) " if fields else ""
    pair.both(
        f"create table {{t}} ({pair.shape.columns_in_sql}) using iceberg {partitioned}"
        f"tblproperties ({listed})"
    )
    note(f"{partitioned}{listed}")
    rows = changes.insert(draw, pair.shape)
    # Structs may have other fields than the table's; then the tables stay empty.
    error_of(lambda: pair.both(rows))
    return pair


def a_table(lake: IcebergSession, name: str, **properties: str) -> SparkTable:
    """Return a new table of the columns id, p, v with ten rows in five files, by the format."""
    listed = ", ".join(f"'{k}'='{v}'" for k, v in properties.items())
    lake.spark.sql(
        f"create table lake.db.{name} (id bigint, p int, v string) partitioned by (p) "
        f"tblproperties ({listed})"
    )
    lake.spark.sql(
        f"insert into lake.db.{name} select id, int(id % 5), concat('v', id) from range(10)"
    )
    return portable_table(lake.spark, f"lake.db.{name}")


def rows_of(lake: IcebergSession, name: str) -> list[Any]:
    return sorted(map(tuple, lake.spark.table(f"lake.db.{name}").collect()))


@cases(
    "version, mode",
    fast=[("3", "merge-on-read"), ("2", "copy-on-write")],
    nightly=[("2", "merge-on-read"), ("3", "copy-on-write")],
)
def test_rows_are_changed_by_the_format(lake: IcebergSession, version: str, mode: str) -> None:
    name = f"fixed_{version}_{mode[0]}"
    properties = {f"write.{op}.mode": mode for op in OPERATIONS}
    table = a_table(lake, name, **{"format-version": version, **properties})
    assert table.delete("id < 2").deleted == 2
    source = lake.spark.sql("select id, int(id % 5) p, 'n' v from range(8, 12)")
    changes = table.upsert(source, ["id"], transaction=("app", 7))
    assert (changes.updated, changes.inserted) == (2, 2)
    again = table.upsert(source, ["id"], transaction=("app", 7))
    assert (again.updated, again.inserted, again.snapshot_id) == (0, 0, changes.snapshot_id)
    expected = [(i, i % 5, "n" if i > 7 else f"v{i}") for i in range(2, 12)]
    assert rows_of(lake, name) == expected
    with pytest.raises(InvalidRequestError, match="several rows of the source match one row"):
        table.upsert(source.union(source), ["id"])
    with pytest.raises(InvalidRequestError, match="the table has no column w: drop it"):
        table.upsert(source.withColumnRenamed("v", "w"), ["id"])
    assert rows_of(lake, name) == expected
    assert table.to_df(columns=["v"], filter="id = 9").collect() == [("n",)]


@pytest.mark.parametrize("name", ["lake.db.nope", "sea.db.nope"])
def test_a_missing_table_is_named_with_what_to_check(lake: IcebergSession, name: str) -> None:
    portable = IcebergSession(lake.spark, None)
    for session in (lake, portable):
        with pytest.raises(NoSuchTableError, match=rf"not in catalog .*check the name {name}"):
            session.table(name)


@cases("mode", fast=["copy-on-write"], nightly=["merge-on-read"])
def test_values_of_no_type_of_the_column_are_refused_for_no_row_too(
    lake: IcebergSession, mode: str
) -> None:
    name = f"unmatched_{mode[0]}"
    table = a_table(lake, name, **{"format-version": "2", "write.update.mode": mode})
    for changed in (table, lake.table(f"lake.db.{name}")):
        for value in ("'x'", "array(1)"):
            with pytest.raises(InvalidRequestError, match="INCOMPATIBLE_DATA_FOR_TABLE"):
                changed.update({"p": value}, "id = 99")
        assert changed.update({"p": "id"}, "id = 99").updated == 0


@cases("mode", fast=["merge-on-read"], nightly=["copy-on-write"])
def test_whole_files_are_deleted_unread(lake: IcebergSession, mode: str) -> None:
    """As natively; the files of two partitions are gone before, so that reading them would fail."""
    name = f"whole_{mode[0]}"
    table = a_table(lake, name, **{"format-version": "3", "write.delete.mode": mode})
    native = a_table(lake, f"{name}_native", **{"format-version": "3", "write.delete.mode": mode})
    for changed in (table, native):
        for task in changed.scan("p = 1 OR p = 3").plan_files():
            Path(task.file_path.removeprefix("file:")).unlink()
    changes = table.delete("p = 1 AND id IS NOT NULL")
    assert (changes.deleted, changes.copied) == (2, 0)
    # The file of p = 4 is read: one of its rows stays.
    changes = table.delete((sql.col("p") == 3) | (sql.col("id") >= 9))
    assert (changes.deleted, changes.copied) == (3, 1 if mode == "copy-on-write" else 0)
    for condition in ("p = 1 AND id IS NOT NULL", "p = 3 OR id >= 9"):
        lake.table(f"lake.db.{name}_native").delete(condition)
    assert rows_of(lake, name) == rows_of(lake, f"{name}_native")
    kinds = [[s.operation for s in t.refresh().metadata.snapshots] for t in (table, native)]
    assert kinds[0] == kinds[1]
    assert table.delete("true").deleted == 5
    assert rows_of(lake, name) == []


@cases("key", fast=[9], nightly=[100])
def test_a_concurrent_append_is_a_conflict_within_the_range_of_the_source(
    lake: IcebergSession, monkeypatch: pytest.MonkeyPatch, key: int
) -> None:
    """Rows of other keys do not matter; a row of the key is changed in a second run."""
    name = f"conflict_{key}"
    table = a_table(lake, name, **{"write.merge.mode": "merge-on-read"})
    writes: list[int] = []
    write = FormatTable.write

    def raced(self: FormatTable, frame: DataFrame, options: Mapping[str, str]) -> None:
        if not writes:
            lake.spark.sql(f"insert into lake.db.{name} values ({key}, 0, 'late')")
        writes.append(1)
        write(self, frame, options)

    monkeypatch.setattr(FormatTable, "write", raced)
    source = lake.spark.sql("select 9L id, 4 p, 'n' v")
    merge = table.merge_into(source, "t.id = s.id").whenMatched().update({"v": "s.v"})
    changes = merge.merge()
    assert (len(writes), changes.updated) == ((2, 2) if key == 9 else (1, 1))
    late = [r for r in rows_of(lake, name) if r[2] == "late"]
    assert late == ([] if key == 9 else [(100, 0, "late")])


@pytest.mark.nightly
@settings(
    max_examples=max(settings().max_examples // 20, 2),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_random_changes_by_the_format_are_those_of_sql(
    lake: IcebergSession, data: st.DataObject
) -> None:
    pair = new_pair(lake, data.draw)
    try:
        pair.compare()
        for _ in range(data.draw(st.integers(3, 6))):
            pair.run(a_change(data.draw, pair.shape))
        assert table_problems(pair.by_format()) == []
    finally:
        for name in pair.names:
            lake.spark.sql(f"drop table if exists {name} purge")


CLIENT = """
import json, sys
from collections import Counter
from pyspark.sql import SparkSession
from pyspark.errors import PySparkException
import iceberg_pyspark as ice
from tests.support.rows import plain_value
from tests.support.spark_sessions import ROOT, connect_server, run_python
from tests.spark.statements_by_calls import change_by_calls

url, file, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
spark = SparkSession.builder.remote(url).getOrCreate()
session = ice.install(spark)
for example in json.load(open(file)):
    table = session.table(example["table"], catalog="lake", **options)
    for step in example["steps"]:
        try:
            change_by_calls(spark, table, step["call"])
            error = None
        except (PySparkException, ice.errors.IcebergError) as e:
            error = f"{type(e).__name__}: {e}"[:2000]
        rows = table.to_df(columns=example["columns"]).collect()
        actual = sorted(repr(plain_value(row)) for row in rows)
        if actual != step["rows"] or (error is None) is step["refused"]:
            sys.exit(f"{step['statement']}\\n{error}\\n{actual}\\nand in SQL\\n{step['rows']}")
print("equal")
"""


@pytest.mark.nightly
def test_random_changes_of_a_connect_client_are_those_of_sql(
    lake: IcebergSession, tmp_path: Path
) -> None:
    examples: list[dict[str, Any]] = []

    @settings(
        max_examples=max(settings().max_examples // 20, 2),
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(data=st.data())
    def in_sql(data: st.DataObject) -> None:
        pair = new_pair(lake, data.draw)
        steps = []
        for _ in range(data.draw(st.integers(3, 6))):
            change = a_change(data.draw, pair.shape)
            statement = change.statement.replace("{t}", pair.names[0])
            refused = error_of(partial(lake.spark.sql, statement)) is not None
            rows = lake.spark.table(pair.names[0]).select(*pair.shape.columns).collect()
            steps.append(
                {
                    "statement": statement,
                    "call": change.call,
                    "refused": refused,
                    "rows": sorted(repr(plain_value(row)) for row in rows),
                }
            )
        table = pair.names[1].removeprefix("lake.")
        examples.append({"table": table, "columns": list(pair.shape.columns), "steps": steps})

    in_sql()
    file, script = tmp_path / "examples.json", tmp_path / "client.py"
    file.write_text(json.dumps(examples), encoding="utf-8")
    script.write_text(f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{CLIENT}", encoding="utf-8")
    own = catalog_options(lake.spark, "lake")
    options = json.dumps({f"catalog.{k}": v for k, v in own.items()})
    with connect_server(tmp_path / "server") as url:
        assert run_python(script, url, str(file), options).splitlines()[-1] == "equal"


REWRITES = """
import json, sys
from pyspark.sql import SparkSession
import iceberg_pyspark as ice

url, name, settings = sys.argv[1:]
settings = json.loads(settings)
spark = SparkSession.builder.remote(url).getOrCreate()
table = ice.install(spark).table(name, catalog="lake", **settings["options"])
done = table.maintenance().rewrite_data_files(**settings["arguments"])
again = table.maintenance().rewrite_data_files(dry_run=True)
print(json.dumps([done.rewritten_data_files_count, done.added_data_files_count,
    done.failed_data_files_count, done.removed_delete_files_count, again.file_group_count]))
"""


@pytest.mark.nightly
def test_rewrites_of_a_client_are_those_of_the_procedure(
    lake: IcebergSession, tmp_path: Path
) -> None:
    """The tasks of a server in another process write as many files, and keep rows and row ids."""
    spark = lake.spark
    script = tmp_path / "client.py"
    script.write_text(REWRITES, encoding="utf-8")
    options = {f"catalog.{k}": v for k, v in catalog_options(spark, "lake").items()}
    hidden = "_row_id, _last_updated_sequence_number"
    with connect_server(tmp_path / "server") as url:
        for number, (arguments, called) in enumerate(
            [
                ({}, ""),
                ({"sort_order": "v DESC"}, "strategy => 'sort', sort_order => 'v DESC', "),
                ({"where": "p = 3"}, "where => 'p = 3', "),
            ]
        ):
            texts = {"min-input-files": "2", "delete-file-threshold": "1"}
            tables = [f"lake.db.rewrite_{number}_{kind}" for kind in ("native", "format")]
            for name in tables:
                spark.sql(
                    f"create table {name} (id bigint, p int, v string) partitioned by (p) "
                    "tblproperties ('format-version'='3', 'write.delete.mode'='merge-on-read')"
                )
                for i in range(3):
                    spark.sql(
                        f"insert into {name} select id, int(id % 5), concat('v', id % 7) "
                        f"from range({1000 * i}, {1000 * i + 1000})"
                    )
                spark.sql(f"delete from {name} where id % 10 = 3")
            (row,) = spark.sql(
                f"call lake.system.rewrite_data_files(table => '{tables[0]}', {called}"
                "options => map('min-input-files', '2', 'delete-file-threshold', '1'))"
            ).collect()
            settings = {"options": options, "arguments": {**arguments, "options": texts}}
            name = tables[1].removeprefix("lake.")
            printed = run_python(script, url, name, json.dumps(settings))
            assert json.loads(printed.splitlines()[-1]) == [
                row.rewritten_data_files_count,
                row.added_data_files_count,
                row.failed_data_files_count,
                row.removed_delete_files_count,
                0,
            ]
            assert row.added_data_files_count > 0
            rows = []
            for name in tables:
                spark.catalog.refreshTable(name)
                read = spark.sql(f"select id, p, v, {hidden} from {name} order by id")
                rows.append(read.collect())
            assert rows[0] == rows[1]
            assert table_problems(lake.table(tables[1])) == []


MANY = """
import json, sys
from pyspark.sql import SparkSession
import iceberg_pyspark as ice

url, path = sys.argv[1:]
spark = SparkSession.builder.remote(url).getOrCreate()
table = ice.install(spark).table(path)
deleted = table.delete("pmod(xxhash64(id), 2) = 0").deleted
changed = spark.range(22_000_000).selectExpr("id", "-1L AS v")
changed = changed.where("pmod(xxhash64(id), 3) = 0")
merged = table.merge_into(changed, "t.id = s.id").whenMatched().updateAll().merge().updated
print(json.dumps([deleted, merged, table.to_df(filter="v = -1", columns=["id"]).count()]))
"""


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_many_changed_rows_need_little_memory_of_the_driver(tmp_path: Path) -> None:
    """Some 11 million deleted and 4 million updated rows; the JVM and each Python have 1 GiB."""
    path, script = tmp_path / "t", tmp_path / "client.py"
    script.write_text(MANY, encoding="utf-8")
    modes = {f"write.{operation}.mode": "merge-on-read" for operation in OPERATIONS}
    table = create_path_table(
        path, "id BIGINT, v BIGINT", properties={"format-version": "3", **modes}
    )
    for i in range(11):
        ids = pa.array(range(2_000_000 * i, 2_000_000 * (i + 1)), pa.int64())
        table.append(pa.table({"id": ids, "v": ids}))
    settings = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": QUICK_JVM}
    with connect_server(tmp_path / "server", settings) as url, peak_of_children() as peaks:
        printed = run_python(script, url, str(path))
    deleted, merged, found = json.loads(printed.splitlines()[-1])
    assert deleted > 10_000_000
    assert merged > 3_000_000
    assert found == merged
    python = {name: size >> 20 for name, size in peaks.items() if name.startswith("python")}
    assert max(python.values()) < 1024
