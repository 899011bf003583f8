"""A single writer builds on its own last commit without loading the table first."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.changes.outcomes import Done, Outcome, Refused, Unknown
from iceberg_pyspark.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    InvalidRequestError,
)
from tests.support.commit_tables import IDENTIFIER, CommitTable, commit_table

ROW = pa.table(
    {"id": [1], "part": ["a"]}, schema=pa.schema([("id", pa.int64()), ("part", pa.string())])
)

Answer = Outcome[LoadedTable]
Commit = Callable[[], Answer]


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[TableIdentifier]:
    """Return a list that collects the tables that the catalog loads."""
    identifiers: list[TableIdentifier] = []
    catalog_class = type(commit_table().catalog)
    load_table = catalog_class.load_table

    def counted(catalog: object, identifier: TableIdentifier) -> LoadedTable:
        identifiers.append(identifier)
        return load_table(catalog, identifier)  # type: ignore[arg-type]

    monkeypatch.setattr(catalog_class, "load_table", counted)
    return identifiers


def writer(t: CommitTable) -> Table:
    return Table(t.catalog, t.catalog.load_table(IDENTIFIER), io=t.io, clock=t.clock.clock)


def test_the_next_commit_loads_nothing(loads: list[TableIdentifier]) -> None:
    table = writer(commit_table())
    table.append(ROW)
    loads.clear()
    table.append(ROW)
    table.append(ROW)
    assert not loads
    assert len(table.scan().to_arrow()) == 3


def test_a_later_one_looks_first(loads: list[TableIdentifier]) -> None:
    t = commit_table()
    table = writer(t)
    table.append(ROW)
    t.clock.sleep_ms(1000)
    loads.clear()
    table.append(ROW)
    assert len(loads) == 1


def test_whoever_was_overtaken_begins_with_the_newest(loads: list[TableIdentifier]) -> None:
    t = commit_table()
    one, other = writer(t), writer(t)
    one.append(ROW)
    other.append(ROW)
    one.append(ROW)  # refused once, then loaded
    loads.clear()
    t.clock.sleeps.clear()
    one.append(ROW)
    assert len(loads) == 1
    assert not t.clock.sleeps
    metadata = writer(t).metadata
    assert [s.number("total-records") for s in metadata.snapshots] == [1, 2, 3, 4]
    assert t.metadata_files() == t.referenced()


@pytest.mark.parametrize(
    "lost",
    [
        Refused(CommitConflictError("the repetition was refused")),
        Unknown(CommitStateUnknownError("the reply was lost")),
    ],
)
def test_commit_confirmed_by_another_answer_is_in_the_table_once(lost: Answer) -> None:
    t = commit_table()
    table = writer(t)
    table.append(ROW)

    def applied(commit: Commit) -> Answer:
        assert isinstance(commit(), Done)
        return lost

    t.catalog.faults = [applied]
    table.append(ROW)
    assert len(writer(t).metadata.snapshots) == 2
    assert len(table.scan().to_arrow()) == 2


def test_a_table_that_cannot_be_looked_at_after_a_refusal_is_unknown() -> None:
    t = commit_table()
    table = writer(t)
    table.append(ROW)
    files = t.metadata_files()

    def refused(commit: Commit) -> Answer:
        t.catalog.is_down = True
        return Refused(CommitConflictError("refused"))

    t.catalog.faults = [refused]
    with pytest.raises(CommitStateUnknownError):
        table.append(ROW)
    assert len(t.metadata_files() - files) == 2, "what may be in the table is not removed"


def test_commit_refused_twice_leaves_no_file() -> None:
    t = commit_table()
    table = writer(t)
    table.append(ROW)
    files = set(t.io.list_files("mem://t"))
    t.catalog.faults = [lambda _: Refused(InvalidRequestError("no"))] * 2
    with pytest.raises(InvalidRequestError):
        table.append(ROW)
    assert set(t.io.list_files("mem://t")) == files
