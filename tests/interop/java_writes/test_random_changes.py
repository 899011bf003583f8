"""A table after each of a random sequence of changes and maintenance by Java and by this package.

Each third step is maintenance: a procedure by Java and one by us, the next of each side's list, and
no row may change. The seed fixes the sequence. From 21 steps on each side runs all of its
procedures, and filters and native reads are checked after every step, not only after maintenance.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

import pytest
from pyspark.errors import IllegalArgumentException

from iceberg_pyspark.errors import UnsupportedFeatureError
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.parameters import cases
from tests.support.readings import (
    assert_read_alike,
    our_rows,
    our_table,
    rows_selected,
)
from tests.support.rows import PlainRow

OURS = "lake"
EVERY_PROCEDURE = 21
"""The number of steps after which each side has run all of its procedures."""
# The first four of each list are together all six procedures, and an expiry by each side.
JAVA_PROCEDURES = (
    "rewrite_data_files",
    "rewrite_position_delete_files",
    "rewrite_manifests",
    "expire_snapshots",
    "rewrite_data_files by sort",
)
OUR_PROCEDURES = (
    "rewrite_equality_deletes",
    "rewrite_data_files by sort",
    "rewrite_position_delete_files",
    "expire_snapshots",
    "rewrite_manifests",
    "rewrite_data_files",
    "remove_orphan_files",
)

NEW_ROWS = (
    "SELECT /*+ COALESCE(1) */ id + {start}, if(id % 7 = 0, null, CAST(id % 3 AS INT)), "
    "if(id % 5 = 0, null, concat('s', id % 11)), "
    "if(id % 6 = 0, null, TIMESTAMP '1969-12-30 12:00:00' + make_interval(0, 0, 0, 0, id)), "
    "if(id % 4 = 0, null, named_struct({children})), "
    "if(id % 9 = 0, double('NaN'), id / 8) FROM range({count})"
)
CONDITIONS = (
    "id % 10 = {n}",
    "p = {n} % 3 AND id % 2 = 0",
    "s = 's{n}'",
    "ts >= TIMESTAMP '1970-01-01 0{n}:00:00' AND id % 3 = 0",
    "st.a > 10{n} AND p IS NOT NULL",
    "p IS NULL AND id % 4 = 1",
    "d > {n} AND d < {n} + 4",
    "id BETWEEN {n}0 AND {n}9",
)
FILTERS = (
    "p = 1",
    "p IS NULL",
    "s >= 's5'",
    "NOT startswith(s, 's1')",
    "ts < TIMESTAMP '1970-01-01 00:00:00'",
    "st.a IN (5, 9, 101)",
    "d >= 1.5",
    "id > 50 OR p = 2",
)


class Changes:
    """The possible changes of a table; each method is one step."""

    def __init__(self, oracle: Oracle, name: str, choose: random.Random) -> None:
        self._oracle = oracle
        self._name = name
        self._choose = choose
        self._rows = 0
        self._fields: set[str] = set()
        self._columns = 0
        self._children = ["'a', CAST(id AS INT)", "'b', 'x'"]
        self._pending = ["id TYPE BIGINT", "d TYPE DOUBLE"]
        self._version = our_table(oracle, name).metadata.format_version

    def steps(self) -> list[Callable[[], object]]:
        return [
            *[self.insert, self.delete, self.update, self.merge] * 3,
            *[self.equality_delete, self.partitioning] * 2,
            *[self.column, self.modes, self.file_format],
        ]

    def condition(self) -> str:
        return self._choose.choice(CONDITIONS).format(n=self._choose.randrange(1, 8))

    def sql(self, text: str) -> str:
        self._oracle.sql(text)
        return text

    def by_either(self, text: str) -> str:
        """Run a statement on {t}, by Java or by us; we do not change Java's tables of version 4."""
        if self._version == 4 or self._choose.random() < 0.5:
            return self.sql(text.format(t=self._name))
        done = self.sql(text.format(t=f"{OURS}{self._name.removeprefix('java_hadoop')}"))
        self.sql(f"REFRESH TABLE {self._name}")
        return done

    def insert(self) -> str:
        count = self._choose.randrange(1, 60)
        children = ", ".join(self._children)
        values = NEW_ROWS.format(start=self._rows, count=count, children=children)
        self._rows += count
        return self.by_either("INSERT INTO {t} (id, p, s, ts, st, d) " + values)

    def delete(self) -> str:
        return self.by_either("DELETE FROM {t} WHERE " + self.condition())

    def update(self) -> str:
        change = self._choose.choice(["p = p + 1", "s = 'upd'", "st.a = id, d = null", "ts = null"])
        return self.by_either(f"UPDATE {{t}} SET {change} WHERE {self.condition()}")

    def merge(self) -> str:
        start, self._rows = self._rows, self._rows + 10
        return self.by_either(
            f"MERGE INTO {{t}} t USING (SELECT id + {start - 10} AS id FROM range(20)) u "
            "ON t.id = u.id WHEN MATCHED AND t.id % 2 = 0 THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET s = 'merged' "
            "WHEN NOT MATCHED THEN INSERT (id, p) VALUES (u.id, 2)"
        )

    def equality_delete(self) -> str:
        """Write global equality deletes: under the first spec, which has no fields."""
        keys = [(self._choose.randrange(self._rows + 1),) for _ in range(8)]
        self._oracle.write_equality_deletes(self._name, ["id"], keys, spec_id=0)
        return f"equality deletes {keys}"

    def partitioning(self) -> str:
        field = self._choose.choice(["p", "bucket(3, id)", "days(ts)", "truncate(2, s)"])
        action = "DROP" if field in self._fields else "ADD"
        self._fields ^= {field}
        return self.sql(f"ALTER TABLE {self._name} {action} PARTITION FIELD {field}")

    def column(self) -> str:
        if self._pending and self._choose.random() < 0.5:
            return self.sql(f"ALTER TABLE {self._name} ALTER COLUMN {self._pending.pop()}")
        self._columns += 1
        where = self._choose.choice(["", " FIRST", " AFTER s"])
        column = self._choose.choice([f"c{self._columns}", f"st.c{self._columns}"])
        if column.startswith("st."):
            where = "" if where == " AFTER s" else where
            # Spark's INSERT needs a value for each child of a struct, in the struct's order.
            at = 0 if where else len(self._children)
            self._children.insert(at, f"'c{self._columns}', CAST(id AS INT)")
        return self.sql(f"ALTER TABLE {self._name} ADD COLUMN {column} INT{where}")

    def modes(self) -> str:
        mode = self._choose.choice(["merge-on-read", "copy-on-write"])
        granularity = self._choose.choice(["file", "partition"])
        properties = ", ".join(
            f"'write.{kind}.mode' = '{mode}'" for kind in ("delete", "update", "merge")
        )
        return self.sql(
            f"ALTER TABLE {self._name} SET TBLPROPERTIES ({properties}, "
            f"'write.delete.granularity' = '{granularity}')"
        )

    def has_equality_deletes(self) -> bool:
        kinds = self._oracle.sql(f"SELECT 1 FROM {self._name}.delete_files WHERE content = 2")
        return bool(kinds.take(1))

    def file_format(self) -> str:
        file_format = self._choose.choice(["parquet", "parquet", "avro", "orc"])
        return self.sql(
            f"ALTER TABLE {self._name} SET TBLPROPERTIES ('write.format.default' = '{file_format}')"
        )


class Maintenance:
    """The procedures of both sides, in turns; none may change a row or its lineage."""

    def __init__(self, oracle: Oracle, name: str, choose: random.Random) -> None:
        self._oracle = oracle
        self._name = name
        self._choose = choose
        self._version = our_table(oracle, name).metadata.format_version
        self._java = list(JAVA_PROCEDURES)
        self._ours = list(OUR_PROCEDURES)
        self._calls: set[tuple[str, str]] = set()

    def java_step(self) -> str:
        procedure = self._java.pop(0)
        self._java.append(procedure)
        catalog, _, table = self._name.partition(".")
        every = "options => map('rewrite-all', 'true')"
        arguments = {
            "rewrite_data_files": every,
            "rewrite_data_files by sort": f"strategy => 'sort', sort_order => 'd, s', {every}",
            "rewrite_position_delete_files": every,
            "expire_snapshots": "retain_last => 2, older_than => TIMESTAMP'2100-01-01'",
        }.get(procedure)
        call = f"{procedure.partition(' ')[0]}(table => '{table}'"
        call += f", {arguments})" if arguments else ")"
        before = self._rows()
        try:
            [result] = self._oracle.sql(f"CALL {catalog}.system.{call}").collect()
        except IllegalArgumentException as refusal:
            # Delete files of two specs whose partitions have equal values: test_rewrite_deletes.py.
            if "expected to have same spec id" not in str(refusal):
                raise
            return f"Java refuses {call}"
        assert self._rows() == before, f"Java's {procedure}"
        self._calls.add(("java", procedure))
        return f"Java's {call}: {result}"

    def our_step(self) -> str:
        """Run our maintenance on files that Java wrote too."""
        maintenance = our_table(self._oracle, self._name).maintenance()
        if self._version == 4:
            with pytest.raises(UnsupportedFeatureError, match="format version 4"):
                maintenance.rewrite_manifests()
            return "our rewrite_manifests is refused"
        procedure = self._ours.pop(0)
        self._ours.append(procedure)
        all_files: dict[str, object] = {"rewrite-all": True}
        order = self._choose.choice(["d DESC, s", "zorder(id, ts)", "hilbert(id, p, d)"])
        calls: dict[str, Callable[[], object]] = {
            "rewrite_data_files": lambda: maintenance.rewrite_data_files(options=all_files),
            "rewrite_data_files by sort": lambda: maintenance.rewrite_data_files(
                sort_order=order, options=all_files
            ),
            "rewrite_manifests": maintenance.rewrite_manifests,
            "rewrite_position_delete_files": lambda: maintenance.rewrite_position_delete_files(
                options=all_files
            ),
            "rewrite_equality_deletes": maintenance.rewrite_equality_deletes,
            "expire_snapshots": lambda: maintenance.expire_snapshots(
                older_than=time.time_ns() // 10**6, retain_last=2
            ),
            # No other writer is active, so unreferenced files are safe to delete.
            "remove_orphan_files": lambda: maintenance.remove_orphan_files(
                older_than=time.time_ns() // 10**6 + 1000, force=True
            ),
        }
        before = self._rows()
        result = calls[procedure]()
        self._oracle.sql(f"REFRESH TABLE {self._name}")
        assert self._rows() == before, f"our {procedure}"
        self._calls.add(("ours", procedure))
        return f"our {procedure}: {result}"[:500]

    def assert_complete(self, steps: int) -> None:
        """Assert that each procedure ran, and from EVERY_PROCEDURE steps on each of both sides."""
        procedures = {procedure for _, procedure in self._calls}
        assert procedures >= {*JAVA_PROCEDURES, "rewrite_equality_deletes"}
        assert self._calls >= {("java", "expire_snapshots"), ("ours", "expire_snapshots")}
        if steps >= EVERY_PROCEDURE:
            # Java may refuse rewrite_position_delete_files.
            assert len(self._calls) >= len(JAVA_PROCEDURES) + len(OUR_PROCEDURES) - 1

    def _rows(self) -> list[PlainRow]:
        lineage = ", _row_id, _last_updated_sequence_number" if self._version == 3 else ""
        return our_rows(self._oracle, self._name, columns=f"id, p, s, ts, st, d{lineage}")


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    # With its cache of delete files, Java 1.12 returns rows that equality deletes removed, if the
    # column became a BIGINT after the cache had read the deletes.
    cache = "spark.sql.iceberg.executor-cache.delete-files.enabled"
    oracle.spark.conf.set(cache, "false")
    try:
        with native_lake(oracle) as native_oracle:
            yield native_oracle
    finally:
        oracle.spark.conf.unset(cache)


@cases(
    ("version", "seed", "steps"),
    fast=[(3, 1, 12)],
    nightly=[
        (2, 1, 12),
        (4, 1, 6),
        *((v, seed, EVERY_PROCEDURE) for seed in range(2, 7) for v in (2, 3)),
    ],
)
def test_every_state_is_read_as_java_reads_it(
    lake: Oracle, version: int, seed: int, steps: int
) -> None:
    oracle = lake
    # A path catalog fixes the location, and since version 4 Java requires a location with a scheme.
    catalog, table, location = "java_hadoop", f"table_{version}_{seed}", ""
    if version == 4:
        catalog, location = "java_sql", f"LOCATION 'file:{oracle.sql_warehouse}/random/{table}' "
    name = f"{catalog}.random.{table}"
    oracle.sql(
        f"CREATE TABLE {name} (id INT, p INT, s STRING, ts TIMESTAMP, "
        "st STRUCT<a: INT, b: STRING>, d FLOAT) USING iceberg "
        f"{location}TBLPROPERTIES ('format-version' = '{version}', "
        "'write.delete.mode' = 'merge-on-read', "
        "'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read', "
        "'commit.manifest.min-count-to-merge' = '4')"
    )
    choose = random.Random(f"{seed} {version}")
    changes = Changes(oracle, name, choose)
    maintenance = Maintenance(oracle, name, choose)
    done = [changes.insert(), changes.insert()]
    lineage = ", _row_id, _last_updated_sequence_number" if version >= 3 else ""
    try:
        for step in range(1, steps + 1):
            if step % 3:
                done.append(str(choose.choice(changes.steps())()))
            else:
                if not changes.has_equality_deletes():
                    done.append(changes.equality_delete())
                done += [maintenance.java_step(), maintenance.our_step()]
            if step % 3 and steps < EVERY_PROCEDURE:
                assert our_rows(oracle, name) == oracle.table_rows(name)
                continue
            rows = assert_read_alike(oracle, name)
            columns = f"id, p, st, _pos, _file{lineage}"
            selected = rows_selected(oracle, name, FILTERS, columns) if rows else {}
            for text, expected in selected.items():
                assert our_rows(oracle, name, columns=columns, filter=text) == expected, text
    except AssertionError as error:
        raise AssertionError("\n".join([*done, "", str(error)[:3000]])) from error
    if version < 4:
        maintenance.assert_complete(steps)
