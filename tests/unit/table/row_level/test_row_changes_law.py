"""Any history of row-level changes gives the rows that a plain Python program gives.

The program knows rows as dicts, conditions as functions, and equal keys by the rules of SQL: a null
equals nothing, all NaNs are equal, and -0.0 equals 0.0. Row ids of version 3 stay with their rows.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iceberg_pyspark import Table, load_catalog
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.sql_text.names import quoted_name
from iceberg_pyspark.table.row_level import keyed_merge
from iceberg_pyspark.table.row_level.touched_rows import RowChanges
from tests.amounts import WORK
from tests.support.deleted_rows import delete_keys

Row = dict[str, Any]

KEYS_BYTES = keyed_merge._KEYS_BYTES
FLOATS = [0.0, -0.0, 1.5, -2.0, math.nan, struct.unpack("<d", b"\1\0\0\0\0\0\xf8\x7f")[0]]
KEYS: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "long": ("BIGINT", pa.int64(), [0, 1, 2, -5, 2**40, -(2**63)]),
    "int": ("INT", pa.int32(), [0, 1, 2, -5, 2**31 - 1]),
    "string": ("STRING", pa.string(), ["", "a", "b", "é", "a\0", "a" * 40]),
    "decimal": ("DECIMAL(9,2)", pa.decimal128(9, 2), [Decimal(n).scaleb(-2) for n in range(-2, 3)]),
    "wide": ("DECIMAL(30,3)", pa.decimal128(30, 3), [Decimal(n) for n in (0, 1, -1, 10**20)]),
    "date": ("DATE", pa.date32(), [date(1969, 12, 31), date(2026, 1, 1), date(1, 1, 1)]),
    "timestamp": (
        "TIMESTAMP_NTZ",
        pa.timestamp("us"),
        [datetime(1960, 1, 1, 1, 2, 3, 4), *[datetime(2026, 1, d) for d in (1, 2)]],
    ),
    "binary": ("BINARY", pa.binary(), [b"", b"\0", b"\xff\0", b"a" * 20]),
    "double": ("DOUBLE", pa.float64(), FLOATS),
    "float": ("FLOAT", pa.float32(), FLOATS),
    "boolean": ("BOOLEAN", pa.bool_(), [True, False]),
}
"""Types of keys: in SQL, in Arrow, and values."""

NESTED = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
W = "w`w"
"""A name that is another text in expressions."""

TYPES = {"p": pa.string(), "v": pa.int32(), W: pa.string(), "n": NESTED}
COLUMNS = "p STRING, v INT, `w``w` STRING, n STRUCT<a: INT, b: ARRAY<STRING>>"
LITTLE = [None, 0, 1, 2, 3]
PARTS = [None, "x", "y"]

Test = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Condition:
    """A condition as text, and as a function of the rows `t` and `s`."""

    text: str | None
    test: Test


def compared(a: Any, b: Any) -> bool | None:
    return None if a is None or b is None else a > b


ALWAYS = Condition(None, lambda t, s: True)
FILTERS = [
    Condition("v > 1", lambda t, s: compared(t["v"], 1)),
    Condition("v IS NULL", lambda t, s: t["v"] is None),
    Condition("p = 'x'", lambda t, s: t["p"] == "x"),
    Condition("p IS NULL OR v = 2", lambda t, s: t["p"] is None or t["v"] == 2),
    Condition("NOT (v > 1)", lambda t, s: None if t["v"] is None else t["v"] <= 1),
    Condition("`w``w` <> 'w1'", lambda t, s: None if t[W] is None else t[W] != "w1"),
    Condition("n.a IN (1, 2)", lambda t, s: t["n"] is not None and t["n"]["a"] in (1, 2)),
    Condition("true", lambda t, s: True),
]
OF_W = Condition("t.`w``w` IS NULL", lambda t, s: t[W] is None)
OF_TARGET = [ALWAYS, *FILTERS[:3], OF_W, Condition("t.v < 3", lambda t, s: compared(3, t["v"]))]
OF_SOURCE = [
    ALWAYS,
    Condition("s.v > 1", lambda t, s: compared(s["v"], 1)),
    Condition("flag", lambda t, s: s["flag"]),
]
OF_BOTH = [
    *(ALWAYS, *OF_SOURCE[1:]),
    Condition("t.v > s.v", lambda t, s: compared(t["v"], s["v"])),
    Condition("t.p IS NULL", lambda t, s: t["p"] is None),
    OF_W,
    Condition("s.flag AND t.v IS NOT NULL", lambda t, s: s["flag"] and t["v"] is not None),
]


@dataclass(frozen=True)
class Value:
    """A value to assign: as the program gives it, and as a function."""

    given: Any
    of: Test


def added(a: Any, b: Any) -> Any:
    return None if a is None or b is None else a + b


OF_ROWS: dict[str, list[Value]] = {
    "p": [Value("'z'", lambda t, s: "z"), Value(None, lambda t, s: None)],
    "v": [
        Value(7, lambda t, s: 7),
        Value("v + 1", lambda t, s: added(t["v"], 1)),
        Value("t.v", lambda t, s: t["v"]),
    ],
    W: [Value("coalesce(`w``w`, 'none')", lambda t, s: t[W] if t[W] is not None else "none")],
    "n": [Value({"a": 5, "b": None}, lambda t, s: {"a": 5, "b": None})],
    "n.a": [
        Value(None, lambda t, s: None),
        Value("t.v", lambda t, s: t["v"]),
        Value("t.n['a'] + 1", lambda t, s: added(None if t["n"] is None else t["n"]["a"], 1)),
    ],
    "n.b": [Value(["z"], lambda t, s: ["z"])],
}
FROM_BOTH: dict[str, list[Value]] = {
    "p": [Value("s.p", lambda t, s: s["p"])],
    "v": [
        Value("t.v + s.v", lambda t, s: added(t["v"], s["v"])),
        Value("s.v", lambda t, s: s["v"]),
    ],
    "n": [Value("s.n", lambda t, s: s["n"])],
    "n.a": [Value("s.v", lambda t, s: s["v"])],
}
FROM_SOURCE: dict[str, list[Value]] = {
    "p": [Value("s.p", lambda t, s: s["p"]), Value("'q'", lambda t, s: "q")],
    "v": [Value("v + 10", lambda t, s: added(s["v"], 10))],
    "n": [Value("n", lambda t, s: s["n"])],
}


def plain(value: Any) -> Any:
    """Return a value that is equal for equal values, unlike NaN and unlike -0.0."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    if isinstance(value, Mapping):
        return tuple((k, plain(v)) for k, v in value.items())
    return tuple(map(plain, value)) if isinstance(value, list) else value


def key_value(value: Any) -> Any:
    return plain(value + 0.0) if isinstance(value, float) else value


def with_values(row: Row, values: Row) -> Row:
    """Return a row with new values; as in Spark, a field makes a struct of a null."""
    row = dict(row)
    for name, value in values.items():
        column, _, inner = name.partition(".")
        row[column] = {**(row[column] or {"a": None, "b": None}), inner: value} if inner else value
    return row


@dataclass
class Model:
    """The rows as a plain program changes them; `_row_id` is None until it is known."""

    keys: list[str]
    columns: list[str]
    rows: list[Row] = field(default_factory=list)
    defaults: Row = field(default_factory=dict)

    def has_key_of(self, row: Row, other: Row) -> bool:
        return all(
            row[k] is not None and other[k] is not None and key_value(row[k]) == key_value(other[k])
            for k in self.keys
        )

    def new_row(self, values: Row) -> Row:
        return {**dict.fromkeys(self.columns), **self.defaults, **values, "_row_id": None}

    def delete(self, condition: Condition) -> RowChanges:
        kept = [r for r in self.rows if not condition.test(r, None)]
        deleted = len(self.rows) - len(kept)
        self.rows = kept
        return RowChanges(snapshot_id=None, deleted=deleted)

    def update(self, values: Mapping[str, Value], condition: Condition) -> RowChanges:
        updated = 0
        for row in self.rows:
            if condition.test(row, None):
                updated += 1
                row.update(with_values(row, {n: v.of(row, None) for n, v in values.items()}))
        return RowChanges(snapshot_id=None, updated=updated)

    def merge(self, source: list[Row], clauses: Mapping[str, Sequence[Clause]]) -> RowChanges:
        """Merge; raise `LookupError` if two source rows match one row and that matters."""
        matched, inserted, updated, deleted = clauses["matched"], 0, 0, 0
        only_deletes = len(matched) == 1 and matched[0].op == "delete" and matched[0].is_last
        found: set[int] = set()
        rows: list[Row] = []
        for row in self.rows:
            partners = [i for i, s in enumerate(source) if self.has_key_of(row, s)]
            found.update(partners)
            if len(partners) > 1 and matched and not only_deletes:
                raise LookupError
            partner = source[partners[0]] if partners else None
            kind = "matched" if partners else "not_matched_by_source"
            clause = first(clauses[kind], row, partner)
            if clause is None:
                rows.append(row)
            elif clause.op == "update":
                updated += 1
                values = clause.values_of(row, partner, self.columns)
                rows.append(with_values(row, values))
            else:
                deleted += 1
        for i, s in enumerate(source):
            clause = None if i in found else first(clauses["not_matched"], None, s)
            if clause is not None:
                inserted += 1
                rows.append(self.new_row(clause.values_of(None, s, self.columns)))
        self.rows = rows
        return RowChanges(snapshot_id=None, inserted=inserted, updated=updated, deleted=deleted)


@dataclass(frozen=True)
class Clause:
    """A clause of a merge; `values` None: all columns of the source."""

    op: str
    condition: Condition
    values: Mapping[str, Value] | None = None

    @property
    def is_last(self) -> bool:
        return self.condition is ALWAYS

    def values_of(self, t: Row | None, s: Row | None, columns: Sequence[str]) -> Row:
        if self.values is None:
            assert s is not None
            return {name: value for name, value in s.items() if name in columns}
        return {name: value.of(t, s) for name, value in self.values.items()}

    @property
    def given(self) -> Any:
        return None if self.values is None else {n: v.given for n, v in self.values.items()}


def first(clauses: Sequence[Clause], t: Row | None, s: Row | None) -> Clause | None:
    return next((c for c in clauses if c.condition.test(t, s)), None)


class History:
    """A table and a model that get the same changes."""

    def __init__(self, data: st.DataObject, version: int, mode: str) -> None:
        self.draw = data.draw
        self.version = version
        # the keys of a source are joined in one pass, or in several
        keyed_merge._KEYS_BYTES = self.draw(st.sampled_from([KEYS_BYTES, 48]))
        kinds = self.draw(st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=2))
        self.key_kinds = {f"k{i}": KEYS[kind] for i, kind in enumerate(kinds)}
        keys = list(self.key_kinds)
        partition = self.draw(st.sampled_from([["p"], [], ["bucket(3, v)"]]))
        catalog = load_catalog("lake", type="memory", warehouse="memory://law")
        catalog.create_namespace("db")
        declared = ", ".join(f"{k} {sql}" for k, (sql, _, _) in self.key_kinds.items())
        granularity = self.draw(st.sampled_from(["file", "partition"]))
        self.table: Table = catalog.create_table(
            "db.t",
            f"{declared}, {COLUMNS}",
            partitioned_by=partition,
            properties={
                "format-version": str(version),
                "write.delete.granularity": granularity,
                **{f"write.{o}.mode": mode for o in ("delete", "update", "merge")},
            },
        )
        self.types = {**{k: type_ for k, (_, type_, _) in self.key_kinds.items()}, **TYPES}
        self.model = Model(keys, [*keys, *TYPES])

    def of(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def row(self, names: Sequence[str]) -> Row:
        row: Row = {}
        for name in names:
            if name in self.key_kinds:
                _, type_, values = self.key_kinds[name]
                value = self.of([None, *values, *values])
                row[name] = float(np.float32(value)) if type_ == pa.float32() and value else value
            elif name == "n":
                nested = {"a": self.of(LITTLE), "b": self.of([None, [], ["x", None]])}
                row[name] = self.of([None, nested])
            else:
                options: dict[str, list[Any]] = {
                    "p": PARTS,
                    "v": LITTLE,
                    W: [None, "w1", "w2"],
                    "x": ["x1"],
                    "flag": [True, False],
                }
                row[name] = self.of(options[name])
        return row

    def rows(self, names: Sequence[str], most: int = 6) -> list[Row]:
        return [self.row(names) for _ in range(self.draw(st.integers(0, most)))]

    def arrow(self, rows: Sequence[Row], names: Sequence[str]) -> Any:
        """Return the rows in one of the forms that a program may have."""
        types = {**self.types, "flag": pa.bool_()}
        table = pa.table(
            [pa.array([r[n] for r in rows], types[n]) for n in names],
            schema=pa.schema([(n, types[n]) for n in names]),
        )
        batches = table.to_batches(max_chunksize=2)
        forms: list[Callable[[], Any]] = [
            lambda: table,
            lambda: pa.RecordBatchReader.from_batches(table.schema, batches),
            lambda: table.combine_chunks().to_batches()[0] if len(table) else table,
        ]
        if batches:
            forms.append(lambda: iter(batches))
        form: Callable[[], Any] = self.of(forms)
        return form()

    def append(self) -> None:
        names = self.model.columns
        rows = self.rows(names, 8)
        self.table.append(self.arrow(rows, names))
        self.model.rows += [self.model.new_row(r) for r in rows]
        self.check(None, None)

    def delete(self) -> None:
        condition = self.of(FILTERS)
        self.check(self.table.delete(condition.text), self.model.delete(condition))

    def delete_by_equality(self) -> None:
        """Delete rows by an equality delete file, as streaming writers do."""
        if self.version < 2 or any(spec.fields for spec in self.table.metadata.partition_specs):
            return
        number = self.of([0, 1, 2])
        delete_keys(self.table, "v", [number])
        self.model.rows = [r for r in self.model.rows if r["v"] != number]
        self.check(None, None)

    def compact(self) -> None:
        self.table.maintenance().rewrite_data_files(options={"rewrite-all": True})
        self.check(None, None)

    def evolve(self) -> None:
        """Change the partitioning, or rename a column and back, or add one with a default."""
        if len(self.table.metadata.partition_specs) == 1:
            self.table.update_spec().add_field("v", "truncate[2]").commit()
        elif self.version >= 3 and "x" not in self.model.columns:
            self.table.update_schema().add_column("x", "string", default="d").commit()
            self.model.columns.append("x")
            self.types["x"] = pa.string()
            for row in self.model.rows:
                row["x"] = "d"
            self.model.defaults["x"] = "d"
        self.check(None, None)

    def values(self, choices: Mapping[str, list[Value]]) -> dict[str, Value]:
        names = self.draw(st.lists(st.sampled_from(sorted(choices)), min_size=1, unique=True))
        # a struct is set as a whole or by its fields
        chosen = [n for n in names if n in TYPES or n.partition(".")[0] not in names]
        return {name: self.of(choices[name]) for name in chosen}

    def overwrite(self) -> None:
        condition, names = self.of(FILTERS), self.model.columns
        rows = self.rows(names)
        snapshot = self.table.overwrite(self.arrow(rows, names), condition.text)
        assert snapshot == self.table.current_snapshot
        self.model.delete(condition)
        self.model.rows += [self.model.new_row(r) for r in rows]
        self.check(None, None)

    def update(self) -> None:
        condition, values = self.of([ALWAYS, *FILTERS]), self.values(OF_ROWS)
        given = {name: value.given for name, value in values.items()}
        changes = self.table.update(given, condition.text)
        self.check(changes, self.model.update(values, condition))

    def upsert(self) -> None:
        names = self.of([self.model.columns, [*self.model.keys, "v"], self.model.columns[::-1]])
        rows = self.rows(names)
        pairs = ((a, b) for i, a in enumerate(rows) for b in rows[:i])
        given = self.arrow(rows, names)
        if any(self.model.has_key_of(a, b) for a, b in pairs):
            with pytest.raises(InvalidRequestError, match="several rows with the key"):
                self.table.upsert(given, self.model.keys)
            return
        changes = self.table.upsert(given, self.model.keys)
        clauses = {
            "matched": [Clause("update", ALWAYS)],
            "not_matched": [Clause("insert", ALWAYS)],
            "not_matched_by_source": [],
        }
        self.check(changes, self.model.merge(rows, clauses))

    def clauses(self) -> dict[str, list[Clause]]:
        """Return at least one clause; of each kind, only the last has no condition."""

        def of_kind(conditions: list[Condition], clause: Callable[[Condition], Clause]) -> Any:
            chosen = self.draw(st.lists(st.sampled_from(conditions), max_size=2))
            return [
                clause(c) for i, c in enumerate(chosen) if c is not ALWAYS or chosen[i + 1 :] == []
            ]

        def matched(condition: Condition) -> Clause:
            if self.of(["update", "delete"]) == "delete":
                return Clause("delete", condition)
            choices = self.of([None, OF_ROWS | FROM_BOTH, FROM_BOTH])
            if choices is not None and "v" in choices and choices is not FROM_BOTH:
                # in a merge, these names would be columns of both sides
                choices = {**choices, "v": FROM_BOTH["v"], W: [Value("'w9'", lambda t, s: "w9")]}
            return Clause("update", condition, None if choices is None else self.values(choices))

        def insert(condition: Condition) -> Clause:
            return Clause("insert", condition, self.of([None, self.values(FROM_SOURCE)]))

        def by_source(condition: Condition) -> Clause:
            if self.of(["update", "delete"]) == "delete":
                return Clause("delete", condition)
            return Clause("update", condition, self.values(OF_ROWS))

        clauses = {
            "matched": of_kind(OF_BOTH, matched),
            "not_matched": of_kind(OF_SOURCE, insert),
            "not_matched_by_source": of_kind(OF_TARGET, by_source)
            if self.of([True, False])
            else [],
        }
        if not any(clauses.values()):
            clauses["matched"] = [matched(ALWAYS)]
        return clauses

    def merge(self) -> None:
        names = [*self.model.keys, "p", "v", "n", "flag"]
        rows, clauses = self.rows(names), self.clauses()
        merge = self.table.merge(self.arrow(rows, names), self.model.keys)
        for c in clauses["matched"]:
            if c.op == "delete":
                merge.when_matched_delete(c.condition.text)
            else:
                merge.when_matched_update(c.given, c.condition.text)
        for c in clauses["not_matched"]:
            merge.when_not_matched_insert(c.given, c.condition.text)
        for c in clauses["not_matched_by_source"]:
            if c.op == "delete":
                merge.when_not_matched_by_source_delete(c.condition.text)
            else:
                merge.when_not_matched_by_source_update(c.given, c.condition.text)
        try:
            expected = self.model.merge(rows, clauses)
        except LookupError:
            with pytest.raises(InvalidRequestError, match="several rows of the source match"):
                merge.execute()
            return
        self.check(merge.execute(), expected)

    def check(self, changes: RowChanges | None, expected: RowChanges | None) -> None:
        """Compare the counts and the rows; each row that was there keeps its row id."""
        if changes is not None and expected is not None:
            for name in ("inserted", "updated", "deleted"):
                assert getattr(changes, name) == getattr(expected, name), name
        has_ids = self.version >= 3
        columns = [*self.model.columns, *(["_row_id"] if has_ids else [])]
        quoted = [quoted_name([name]) for name in columns]
        read = self.table.scan(columns=quoted).to_arrow().to_pylist()
        ours = self.model.rows
        names = self.model.columns
        assert Counter(map(values_of(names), read)) == Counter(map(values_of(names), ours))
        if not has_ids:
            return
        by_id = {r["_row_id"]: r for r in read}
        assert len(by_id) == len(read)
        for row in ours:
            if row["_row_id"] is not None:
                assert values_of(names)(by_id.pop(row["_row_id"])) == values_of(names)(row)
        new: dict[Any, list[int]] = {}
        for row_id, row in by_id.items():
            new.setdefault(values_of(names)(row), []).append(row_id)
        for row in ours:
            if row["_row_id"] is None:
                row["_row_id"] = new[values_of(names)(row)].pop()


def values_of(names: Sequence[str]) -> Callable[[Row], tuple[Any, ...]]:
    return lambda row: tuple(plain(row[n]) for n in names)


OPERATIONS = [
    *("append", "append", "overwrite", "delete", "update", "upsert", "upsert", "merge", "merge"),
    *("delete_by_equality", "compact", "evolve"),
]


def modes() -> Iterator[tuple[int, str]]:
    for version in (1, 2, 3, 4):
        for mode in ("copy-on-write", "merge-on-read"):
            if version > 1 or mode == "copy-on-write":
                yield version, mode


@pytest.mark.parametrize(("version", "mode"), [*modes()])
@given(data=st.data())
@settings(
    max_examples=12 * WORK,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_rows_are_those_of_a_plain_program(version: int, mode: str, data: st.DataObject) -> None:
    try:
        history = History(data, version, mode)
        history.append()
        for operation in data.draw(st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=6)):
            getattr(history, operation)()
    finally:
        keyed_merge._KEYS_BYTES = KEYS_BYTES
    assert history.table.verify(check_files=True).ok
