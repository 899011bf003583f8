"""The JVM reads the state of a data source from its pickle without executing the pickle."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import CaseInsensitiveDict

from iceberg_pyspark import install
from iceberg_pyspark.spark.data_source.pinned_table import PinnedTable
from iceberg_pyspark.spark.data_source.source import MARK, IcebergDataSource

dumps: Callable[[object], bytes] = cloudpickle.dumps
OPTIONS = CaseInsensitiveDict({"path": "/w/t", "Filter": "a = 'é\u2028'", "s3.secret": "hush"})
PINNED = PinnedTable(("a", "b.c"), "t", "/w/t/metadata/v3.json", {"token": "x"}, "snapshots")


StateIn = Callable[[bytes], str | None]


@pytest.fixture(scope="module")
def state_in(spark: SparkSession) -> Iterator[StateIn]:
    session = install(spark)
    assert session.bridge is not None
    yield session.bridge._java.instance("IcebergPyPickle").state
    session.uninstall()


class Harmful:
    """An object whose pickle runs a command when loaded."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (self.command,)


LONG = PinnedTable(("a" * 70_000,), "t", "/w/t/metadata/v3.json", {}, None)


@pytest.mark.parametrize("pinned_table", [None, PINNED, LONG])
@pytest.mark.parametrize("pickled_by", [dumps, pickle.dumps])
def test_a_state_is_read_from_a_pickle_as_it_was(
    state_in: StateIn, pinned_table: PinnedTable | None, pickled_by: Callable[[object], bytes]
) -> None:
    source = IcebergDataSource(OPTIONS)
    source._pinned_table = pinned_table
    state = state_in(pickled_by(source))
    assert state is not None
    for again in (IcebergDataSource.of_state(state), pickle.loads(pickled_by(source))):
        assert type(again) is IcebergDataSource
        assert again._pinned_table == pinned_table
        assert dict(again.options) == dict(OPTIONS)
        assert again.options["FILTER"] == OPTIONS["filter"]


def test_nothing_of_a_pickle_is_run(state_in: StateIn, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    harmful = pickle.dumps((Harmful(f"touch {touched}"), MARK + "{}"))
    assert state_in(harmful) == MARK + "{}"
    assert state_in(pickle.dumps(Harmful(f"touch {touched}"))) is None
    assert not touched.exists()
    pickle.Unpickler(io.BytesIO(harmful)).load()
    assert touched.exists(), "the pickle does what it was made for"


@pytest.mark.parametrize(
    "pickled", [b"", b"no pickle", dumps({"path": "/w/t"}), dumps(IcebergDataSource({}))[:40]]
)
def test_other_bytes_have_no_state(state_in: StateIn, pickled: bytes) -> None:
    assert state_in(pickled) is None
