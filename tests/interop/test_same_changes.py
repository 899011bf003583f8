"""Equal random changes by this package and by Java, each on its own table, give equal rows.

Java makes some of the changes of our table, so each writer continues from the other's state. The
test runs one in 20 of the profile's examples.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from hypothesis.vendor.pretty import pretty
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as sql

from iceberg_pyspark import Table
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.spark.session import install
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from tests.support import change_statements as changes
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.readings import INTERPRETED, our_frame, our_table
from tests.support.rows import arrow_rows, plain_value, spark_rows
from tests.support.table_integrity import table_problems

pytestmark = pytest.mark.nightly

DYNAMIC = "spark.sql.sources.partitionOverwriteMode"
OPERATIONS = ("delete", "update", "merge")
MAIN, BRANCH = "", ".branch_b"
"""The suffix of the table's name in statements on the branch."""


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as native_oracle:
        native_oracle.sql("create namespace if not exists java_hadoop.same")
        for key, value in INTERPRETED.items():
            native_oracle.spark.conf.set(key, value)
        yield native_oracle
        for key in INTERPRETED:
            native_oracle.spark.conf.unset(key)


@dataclass(frozen=True)
class State:
    """Both tables' snapshot ids after a commit, and the rows of both."""

    ours: int
    java: int
    rows: list[Any]


@dataclass
class Pair:
    """Two tables that must have equal rows, and the state that the test tracks for them."""

    lake: Oracle
    draw: changes.Draw
    shape: changes.Shape
    version: int
    name: str = field(default_factory=lambda: f"same.t{uuid.uuid4().hex}")
    states: list[State] = field(default_factory=list)
    places: list[str] = field(default_factory=lambda: [MAIN])
    lineage: dict[str, dict[int, tuple[Any, ...]]] = field(default_factory=dict)
    """For each branch of our table: key, row and last sequence number by row id."""

    newest: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))
    """The next row id and the last sequence number of each table at the last comparison."""

    @property
    def ours(self) -> str:
        """The name of our table in our catalog."""
        return f"lake.{self.name}_ours"

    @property
    def in_java(self) -> tuple[str, str]:
        """The names of our table and of Java's table, in Java's catalog."""
        return f"java_hadoop.{self.name}_ours", f"java_hadoop.{self.name}_java"

    def tables(self) -> tuple[Table, Table]:
        """Load both tables in their current state."""
        return our_table(self.lake, self.in_java[0]), our_table(self.lake, self.in_java[1])

    def run(self, statement: str, *, by_java: bool = False, at: str = MAIN) -> bool:
        """Run a statement on both tables, at a branch; return whether it succeeded."""
        names = (self.in_java[0] if by_java else self.ours, self.in_java[1])
        text = statement.replace("{t}", f"{{t}}{at}")
        return self.do(
            ("java on both: " if by_java else "") + text,
            *(partial(self.lake.sql, text.replace("{t}", name)) for name in names),
        )

    def do(self, description: str, ours: Callable[[], object], javas: Callable[[], object]) -> bool:
        """Do an action on both tables; return whether it succeeded. If one refuses, both must."""
        note(description)
        errors = [error_of(ours), error_of(javas)]
        if (errors[0] is None) is not (errors[1] is None):
            raise AssertionError(f"{description}\nours: {errors[0]}\nJava's: {errors[1]}")
        if errors[0] is not None:
            note("    refused by both")
        return errors[0] is None

    def compare(self) -> None:
        """Check that both tables have equal rows and, in version 3, equal new and changed rows."""
        columns = list(self.shape.columns)
        assert self.lake.spark.table(self.ours).columns == columns
        hidden = ["_row_id", "_last_updated_sequence_number"] if self.version == 3 else []
        listed = ", ".join([*columns, *hidden])
        read = [(place, name) for place in self.places for name in self.in_java]
        result = self.lake.sql(
            " union all ".join(
                f"select {i} side, {listed} from {name}{place}"
                for i, (place, name) in enumerate(read)
            )
        ).collect()
        rows: list[list[Any]] = [[] for _ in read]
        for row in result:
            side, *values = plain_value(row)
            rows[side].append(tuple(values))
        at = len(columns)
        for i, place in enumerate(self.places):
            both = rows[2 * i : 2 * i + 2]
            assert_alike(*(counted(r[:at] for r in side) for side in both))
            if hidden:
                kinds = [
                    counted((*r[:at], *is_new(r[at:], newest)) for r in side)
                    for side, newest in zip(both, self.newest, strict=True)
                ]
                assert_alike(*kinds)
                self._follow(
                    place, [(r[:at], *r[at:]) for r in both[0]], columns.index(changes.KEY)
                )
        tables = self.tables()
        first, second = (
            (t.metadata.next_row_id or 0, t.metadata.last_sequence_number) for t in tables
        )
        self.newest = (first, second)
        heads = [t.metadata.current_snapshot_id for t in tables]
        if heads[0] and heads[1] and [heads[0]] != [s.ours for s in self.states[-1:]]:
            self.states.append(State(heads[0], heads[1], sorted_rows(rows[0], at)))

    def _follow(self, place: str, rows: list[tuple[Any, ...]], key: int) -> None:
        """Check that no row id moves to another row, and that only a change of the row changes its
        sequence number.
        """
        last, lineage = self.newest[0][1], self.lineage.setdefault(place, {})
        ids = [row_id for _, row_id, _ in rows if row_id is not None]
        assert len(set(ids)) == len(ids), "two rows have one row id"
        now = {row_id: (row, seq) for row, row_id, seq in rows if row_id is not None}
        for row_id, (row, seq) in now.items():
            before = lineage.get(row_id)
            if before is not None:
                assert before[0][before[2]] == row[key], f"row {row_id} is another row now"
                if seq <= last:
                    assert before[1] == seq, f"row {row_id} was of {before[1]}, is of {seq}"
        lineage |= {row_id: (row, seq, key) for row_id, (row, seq) in now.items()}

    def roll_back(self) -> None:
        """Roll both tables back to an earlier state."""
        if len(self.states) < 2:
            return
        to = self.draw(st.integers(0, len(self.states) - 2))
        state = self.states[to]
        note(f"roll back to state {to}")
        ours, _ = self.tables()
        ours.manage_snapshots().rollback_to(state.ours).commit()
        catalog, _, name = self.in_java[1].partition(".")
        self.lake.sql(f"call {catalog}.system.rollback_to_snapshot('{name}', {state.java})")
        del self.states[to + 1 :]
        # Restored rows have their old row ids and sequence numbers.
        self.newest = ((0, 0), (0, 0))
        self.lineage = {}

    def branch(self) -> None:
        """Create a branch at main's snapshot, or reset the branch to it."""
        ours, _ = self.tables()
        branching = ours.manage_snapshots()
        if self.do(
            "create or replace branch b",
            lambda: branching.create_branch("b", replace=BRANCH in self.places).commit(),
            lambda: self.lake.sql(f"alter table {self.in_java[1]} create or replace branch b"),
        ):
            self.places = [MAIN, BRANCH]
            self.lineage[BRANCH] = dict(self.lineage.get(MAIN, {}))

    def fast_forward(self) -> None:
        """Fast-forward main to the branch, if possible."""
        if BRANCH not in self.places:
            return
        ours, _ = self.tables()
        catalog, _, name = self.in_java[1].partition(".")
        forward = f"call {catalog}.system.fast_forward('{name}', 'main', 'b')"
        if self.do(
            "fast-forward main to b",
            lambda: ours.manage_snapshots().fast_forward("main", "b").commit(),
            lambda: self.lake.sql(forward),
        ):
            self.lineage[MAIN] = dict(self.lineage.get(BRANCH, {}))

    def sort(self) -> None:
        """Set a sort order, on our table through our Python API."""
        fields = changes.sort_fields(self.draw, self.shape)
        ours, _ = self.tables()
        order = ours.replace_sort_order()
        texts = []
        for source, transform, falls in fields:
            (order.desc if falls else order.asc)(source, transform)
            direction = "desc nulls last" if falls else "asc nulls first"
            texts.append(f"{changes.field_in_sql(source, transform)} {direction}")
        text = f"ordered by {', '.join(texts)}" if texts else "unordered"
        self.do(
            f"write {text}",
            order.commit,
            lambda: self.lake.sql(f"alter table {self.in_java[1]} write {text}"),
        )

    def evolve_by_merge(self) -> None:
        """Run a merge that also evolves the schema; Java's table gives the resulting columns."""
        before = self.shape.copy()
        text = changes.evolving_merge(self.draw, self.shape)
        self._follow_merge(before, self.run(text, at=self.draw(st.sampled_from(self.places))))

    def _follow_merge(self, before: changes.Shape, succeeded: bool) -> None:
        """Take over the columns that a merge leaves: Spark evolves the schema before it runs it, so
        that they stay if it is refused then.
        """
        if not succeeded:
            before.next_name = self.shape.next_name
            self.shape = before
        self.shape.read_columns(self.lake.spark.table(self.in_java[1]).schema)

    def append_frame(self) -> None:
        """Append a DataFrame, whose columns and fields Spark finds by name."""
        before, rows = self.shape.copy(), changes.new_rows(self.draw, self.shape)
        frame = self.lake.spark.sql
        names = self.ours, self.in_java[1]
        appends = (partial(lambda n: frame(rows).writeTo(n).append(), name) for name in names)
        if not self.do(f"append {rows}", *appends):
            self.shape = before

    def merge_frame(self) -> None:
        """Merge a DataFrame, sometimes with schema evolution."""
        before, rows = self.shape.copy(), changes.merge_source(self.draw, self.shape)
        evolves = self.draw(st.booleans())

        def merge(name: str) -> None:
            table = name.rpartition(".")[2]
            source = self.lake.spark.sql(rows).alias("u")
            merging = source.mergeInto(name, sql.expr(f"{table}.k = u.k"))
            merging = merging.whenMatched().updateAll().whenNotMatched().insertAll()
            (merging.withSchemaEvolution() if evolves else merging).merge()

        names = self.ours, self.in_java[1]
        self._follow_merge(
            before, self.do(f"merge {rows}", *(partial(merge, name) for name in names))
        )

    def update_by_call(self) -> None:
        """Update our table through our Python API, and Java's by a statement."""
        values, condition = changes.update_by_call(self.draw, self.shape)
        text = ", ".join(f"{name} = {value}" for name, value in values.items())
        table = install(self.lake.spark).table(self.ours)
        self.do(
            f"update {text} where {condition}",
            lambda: table.update(values, condition),
            lambda: self.lake.sql(f"update {self.in_java[1]} set {text} where {condition}"),
        )

    def change_partitioning(self) -> None:
        """Add or drop a partition field, on our table through our Python API."""
        draw, shape = self.draw, self.shape
        ours, _ = self.tables()
        if shape.fields and draw(st.booleans()):
            source, transform = draw(st.sampled_from(shape.fields))
            shape.fields.remove((source, transform))
            ours.update_spec().remove_source(source, transform).commit()
            action = "drop"
        else:
            result = changes.new_field(draw, shape)
            if result is None:
                return
            source, transform = result
            changes.add_field(shape, source, transform)
            ours.update_spec().add_field(source, transform).commit()
            action = "add"
        text = changes.field_in_sql(source, transform)
        note(f"{action} partition field {text}")
        self.lake.sql(f"alter table {self.in_java[1]} {action} partition field {text}")

    def upgrade(self) -> None:
        """Upgrade both tables to the next format version."""
        if self.version < 3:
            self.version += 1
            self.shape.is_version_1 = False
            self.run(f"alter table {{t}} set tblproperties ('format-version'='{self.version}')")
            # Rows get ids with the next snapshot, and only Java commits an insert of no rows, so
            # insert rows.
            for place in self.places:
                self.run(changes.insert(self.draw, self.shape), at=place)

    def compact(self) -> None:
        """Rewrite all files of both tables: Java its own, and we or Java ours."""
        by_us = self.draw(st.booleans())
        note(f"{'we compact ours' if by_us else 'Java compacts ours'}, and Java its own")
        for table in (self.ours if by_us else self.in_java[0], self.in_java[1]):
            catalog, _, name = table.partition(".")
            self.lake.sql(
                f"call {catalog}.system.rewrite_data_files(table => '{name}', "
                "options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true'))"
            )

    def add_default(self) -> None:
        """Add a column with a default value, which older rows have too."""
        if self.version < 3:
            return
        name = self.shape.name()
        type_, value = self.draw(st.sampled_from([("int", 5), ("string", "given")]))
        self.shape.columns[name] = type_
        note(f"add column {name} {type_} default {value}")
        ours, _ = self.tables()
        ours.update_schema().add_column(name, type_, default=value).commit()
        table = self.lake.load_java_table(self.in_java[1])
        java_type = self.lake.jvm.org.apache.iceberg.types.Types.fromPrimitiveString(type_)
        literal = self.lake.jvm.org.apache.iceberg.expressions.Expressions.lit(value)
        table.updateSchema().addColumn(name, java_type, literal.to(java_type)).commit()

    def delete_keys(self) -> None:
        """Java writes equality deletes to both tables, since Spark never writes them."""
        if self.version == 1 or self.shape.fields or not self.states:
            return
        number = st.integers(0, self.shape.next_key)
        keys = self.draw(st.lists(number, min_size=1, max_size=3, unique=True))
        note(f"equality deletes of {keys}")
        for table in self.in_java:
            self.lake.write_equality_deletes(table, [changes.KEY], [(key,) for key in keys])

    def check_every_reader(self) -> None:
        """Check that all our read paths agree with Java, for branches and earlier snapshots."""
        table, _ = self.tables()
        assert table_problems(table) == []
        for place in self.places:
            expected = spark_rows(self.lake.spark.table(f"{self.in_java[1]}{place}").collect())
            options = {} if place == MAIN else {"branch": "b"}
            selector = SnapshotSelector() if place == MAIN else SnapshotSelector(branch="b")
            assert spark_rows(self.lake.spark.table(f"{self.ours}{place}").collect()) == expected
            assert (
                spark_rows(our_frame(self.lake, self.in_java[0], **options).collect()) == expected
            )
            scan = table.scan(selector=selector)
            assert arrow_rows(scan.to_arrow()) == expected
        for state in self.states:
            scan = table.scan(selector=SnapshotSelector(snapshot_id=state.ours))
            assert [repr(r) for r in arrow_rows(scan.to_arrow())] == state.rows


def error_of(done: Callable[[], object]) -> str | None:
    try:
        done()
    except (PySparkException, Py4JJavaError, IcebergError) as e:
        return str(e)[:2000]
    return None


def assert_alike(ours: Counter[str], java: Counter[str]) -> None:
    assert ours == java, f"only ours: {ours - java}\nonly Java's: {java - ours}"


def counted(rows: Iterator[Any]) -> Counter[str]:
    return Counter(map(repr, rows))


def sorted_rows(rows: list[Any], columns: int) -> list[str]:
    return [repr(r) for r in spark_rows(r[:columns] for r in rows)]


def is_new(lineage: tuple[Any, Any], newest: tuple[int, int]) -> tuple[Any, ...]:
    """Return, for a row id and a sequence number, whether the last commit assigned each."""
    row_id, number = lineage
    return (
        None if row_id is None else row_id >= newest[0],
        None if number is None else number > newest[1],
    )


def create(lake: Oracle, draw: changes.Draw) -> Pair:
    version = draw(st.sampled_from([1, 2, 2, 3, 3, 3]))
    shape = changes.a_shape(draw)
    shape.is_version_1 = version == 1
    pair = Pair(lake, draw, shape, version)
    modes = ["merge-on-read", "merge-on-read", "copy-on-write"][0 if version > 1 else 2 :]
    properties = {
        "format-version": str(version),
        **{
            # In version 1 Java refuses merge-on-read deletes; we rewrite the files instead.
            f"write.{op}.mode": draw(st.sampled_from(modes))
            for op in OPERATIONS
        },
        "commit.manifest.min-count-to-merge": draw(st.sampled_from(["3", "100"])),
    }
    fields = ", ".join(changes.field_in_sql(*f) for f in shape.fields)
    properties_sql = ", ".join(f"'{k}'='{v}'" for k, v in properties.items())
    pair.run(
        f"create table {{t}} ({shape.columns_in_sql}) using iceberg "
        f"{f'partitioned by ({fields}) ' if fields else ''}tblproperties ({properties_sql})"
    )
    return pair


def changed_by(
    statement: Callable[[changes.Draw, changes.Shape], str], *, of_the_table: bool = False
) -> Callable[[Pair], None]:
    """Return a step that runs the statement, on our table sometimes by Java.

    The statement applies to a random branch, or with `of_the_table` to the table as a whole.
    """

    def step(pair: Pair) -> None:
        before = pair.shape.copy()
        text = statement(pair.draw, pair.shape)
        by_java = pair.draw(st.integers(0, 5)) == 0
        place = MAIN if of_the_table else pair.draw(st.sampled_from(pair.places))
        if not pair.run(text, by_java=by_java, at=place):
            pair.shape = before

    return step


STEPS: list[Callable[[Pair], None]] = [
    *[changed_by(changes.insert)] * 3,
    changed_by(changes.overwrite),
    *[changed_by(changes.delete), changed_by(changes.update)] * 3,
    *[changed_by(changes.merge)] * 4,
    changed_by(changes.change_columns, of_the_table=True),
    changed_by(changes.change_properties, of_the_table=True),
    Pair.evolve_by_merge,
    Pair.append_frame,
    *[Pair.merge_frame, Pair.update_by_call] * 2,
    *[Pair.branch] * 2,
    Pair.fast_forward,
    *[Pair.sort] * 2,
    *[Pair.change_partitioning] * 2,
    Pair.roll_back,
    Pair.upgrade,
    Pair.compact,
    Pair.delete_keys,
    Pair.add_default,
]


def test_hypothesis_can_print_the_oracle_of_a_failed_example(lake: Oracle) -> None:
    assert pretty(lake) == repr(lake)


@settings(
    max_examples=max(settings().max_examples // 20, 2),
    # Shrinking a failing example would take an hour.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_the_same_changes_leave_the_same_rows(lake: Oracle, data: st.DataObject) -> None:
    draw = data.draw
    pair = create(lake, draw)
    dynamically = draw(st.booleans())
    lake.spark.conf.set(DYNAMIC, "dynamic" if dynamically else "static")
    note(f"{DYNAMIC}={'dynamic' if dynamically else 'static'}")
    try:
        pair.run(changes.insert(draw, pair.shape))
        pair.compare()
        for step in draw(st.lists(st.sampled_from(STEPS), min_size=3, max_size=7)):
            step(pair)
            pair.compare()
        pair.check_every_reader()
    finally:
        lake.spark.conf.unset(DYNAMIC)
        for table in pair.in_java:
            lake.sql(f"drop table if exists {table} purge")
