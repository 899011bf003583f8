"""An error has the same message with and without Spark, and the message is the first line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.errors.exceptions import captured
from pyspark.sql import SparkSession

from iceberg_pyspark import Table, TableCatalog, install, load_catalog
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.spark.bridge.jvm_errors import say_errors_as_before
from iceberg_pyspark.spark.error_text import iceberg_error_in
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from tests.support.parameters import cases

PREFIX = "spark.sql.catalog.said"
ROWS = pa.table({"id": pa.array([4], pa.int64()), "v": ["d"], "p": pa.array([1], pa.int32())})
EXTRA = ROWS.append_column("nope", pa.array([1]))
NULLS = ROWS.set_column(0, "id", pa.array([None], pa.int64()))
PARTIAL = ROWS.drop_columns(["id"])


@dataclass(frozen=True)
class Lake:
    """Tables, some of them damaged, and the Spark session and catalog to read them."""

    spark: SparkSession
    catalog: TableCatalog
    settings: dict[str, str]

    def table(self, name: str) -> Table:
        return self.catalog.load_table(f"db.{name}")


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    folder = tmp_path_factory.mktemp("said")
    settings = {
        "type": "sql",
        "uri": f"sqlite:///{folder / 'catalog.db'}",
        "warehouse": str(folder / "warehouse"),
    }
    new_lake = Lake(spark, load_catalog("said", **settings), settings)
    new_lake.catalog.create_namespace("db")
    for name, damage in (
        ("t", lambda _: None),
        ("metadata", lambda t: Path(t.loaded.metadata_location).write_text('{"format')),
        ("no_list", lambda t: Path(t.current_snapshot.manifest_list).unlink()),
        ("list", lambda t: Path(t.current_snapshot.manifest_list).write_bytes(b"xx")),
        ("no_file", lambda t: data_file(t).unlink()),
        ("file", lambda t: data_file(t).write_bytes(b"nothing")),
    ):
        table = new_lake.catalog.create_table(
            f"db.{name}", schema="id BIGINT NOT NULL, v STRING, p INT", partitioned_by=["p"]
        )
        table.append(ROWS)
        damage(new_lake.table(name))
    return new_lake


def data_file(table: Table) -> Path:
    (task,) = table.scan().plan_files()
    return Path(task.file_path)


@pytest.fixture(scope="module")
def installed(lake: Lake) -> Iterator[IcebergSession]:
    settings = {PREFIX: "iceberg_pyspark"} | {f"{PREFIX}.{k}": v for k, v in lake.settings.items()}
    for key, value in settings.items():
        lake.spark.conf.set(key, value)
    session = install(lake.spark)
    yield session
    session.uninstall()
    for key in settings:
        lake.spark.conf.unset(key)


@dataclass(frozen=True)
class Failure:
    """One failing operation in each form: without Spark, by the format, in SQL or on a
    `SparkTable`.
    """

    plain: Callable[[Lake], object]
    table: str = "t"
    rows: pa.Table | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    mode: str = "append"
    in_task: bool = False
    format: bool = True
    native: Callable[[Lake, IcebergSession], object] | None = None

    def portable(self, lake: Lake, **more: str) -> None:
        options = {"catalog": "said", **{f"catalog.{k}": v for k, v in lake.settings.items()}}
        options |= {**self.options, **more}
        name = f"db.{self.table}"
        if self.rows is None:
            lake.spark.read.format("iceberg-py").options(**options).load(name).collect()
            return
        frame = lake.spark.createDataFrame(self.rows)
        frame.write.format("iceberg-py").mode(self.mode).options(**options).save(name)


def sql(statement: str) -> Callable[[Lake, IcebergSession], object]:
    return lambda lake, _: lake.spark.sql(statement).collect()


def read(name: str, **scan: object) -> Callable[[Lake], object]:
    return lambda lake: lake.table(name).scan(**scan).to_arrow()  # type: ignore[arg-type]


FAILURES = {
    "no such table": Failure(lambda lake: lake.table("missing"), table="missing"),
    "no such snapshot": Failure(
        read("t", selector=SnapshotSelector(snapshot_id=42)),
        options={"snapshot-id": "42"},
        native=sql("select * from said.db.t version as of 42"),
    ),
    "filter that is none": Failure(read("t", filter="id >"), options={"filter": "id >"}),
    "filter of no column": Failure(read("t", filter="x = 1"), options={"filter": "x = 1"}),
    "no such column": Failure(read("t", columns=["x"]), options={"columns": "x"}),
    "damaged metadata": Failure(
        read("metadata"), table="metadata", native=sql("select * from said.db.metadata")
    ),
    "manifest list gone": Failure(
        read("no_list"), table="no_list", native=sql("select id from said.db.no_list")
    ),
    "damaged manifest list": Failure(
        read("list"), table="list", native=sql("delete from said.db.list where id = 4")
    ),
    "manifest list gone under delete()": Failure(
        read("no_list"),
        format=False,
        native=lambda _, session: session.table("said.db.no_list").delete("id = 4"),
    ),
    "manifest list gone under merge": Failure(
        read("no_list"),
        format=False,
        native=sql(
            "merge into said.db.no_list t using said.db.t s on t.id = s.id "
            "when matched then update set v = 'x'"
        ),
    ),
    "data file gone": Failure(read("no_file"), table="no_file", in_task=True),
    "damaged data file": Failure(read("file"), table="file", in_task=True),
    "a column too many": Failure(lambda lake: lake.table("t").append(EXTRA), rows=EXTRA),
    "a column too few": Failure(lambda lake: lake.table("t").append(PARTIAL), rows=PARTIAL),
    "nulls in a required column": Failure(
        lambda lake: lake.table("t").append(NULLS), rows=NULLS, in_task=True
    ),
    "overwrite by no column": Failure(
        lambda lake: lake.table("t").overwrite(ROWS, "x = 1"),
        rows=ROWS,
        mode="overwrite",
        options={"overwrite-filter": "x = 1"},
    ),
    "no such branch": Failure(
        lambda lake: lake.table("t").append(ROWS, branch="b"),
        rows=ROWS,
        options={"branch": "b"},
        native=lambda lake, _: (
            lake.spark.createDataFrame(ROWS).writeTo("said.db.t").option("branch", "b").append()
        ),
    ),
    "format version unknown": Failure(
        lambda lake: lake.table("t").update_properties().set({"format-version": "9"}).commit(),
        format=False,
        native=sql("alter table said.db.t set tblproperties ('format-version' = '9')"),
    ),
}
AS_FORMAT = [name for name, failure in FAILURES.items() if failure.format]
OF_EVERY_STEP = [
    "no such table",
    "manifest list gone",
    "data file gone",
    "a column too few",
    "nulls in a required column",
]
IN_SQL = [name for name, failure in FAILURES.items() if failure.native is not None]


def error_of(action: Callable[[], object]) -> tuple[str, str]:
    """Return class name and message of the `IcebergError` that the action raises."""
    with pytest.raises(IcebergError) as caught:
        action()
    return type(caught.value).__name__, str(caught.value)


def text_of(action: Callable[[], object]) -> str:
    with pytest.raises((PySparkException, IcebergError)) as caught:
        action()
    return str(caught.value)


@cases("name", fast=OF_EVERY_STEP, nightly=[n for n in AS_FORMAT if n not in OF_EVERY_STEP])
def test_error_without_install_is_in_the_first_line_of_spark(lake: Lake, name: str) -> None:
    """Spark puts a prefix before the message, and one more line before it if a task failed."""
    # Cloned sessions, which cache tables for other tests, still have Iceberg installed.
    say_errors_as_before()
    failure = FAILURES[name]
    error, message = error_of(lambda: failure.plain(lake))
    text = text_of(lambda: failure.portable(lake))
    assert iceberg_error_in(text) == (error, message)
    lines = text.splitlines()
    first_line = f"iceberg_pyspark.errors.{error}: {message.splitlines()[0]}"
    if failure.in_task:
        assert first_line in lines[:3]
    else:
        assert lines[0].endswith(first_line)
    assert "Traceback" not in text


@pytest.mark.nightly
@pytest.mark.parametrize("name", OF_EVERY_STEP)
def test_error_of_the_portable_path_begins_with_the_message(
    lake: Lake, installed: IcebergSession, name: str
) -> None:
    failure = FAILURES[name]
    error, message = error_of(lambda: failure.plain(lake))
    text = text_of(lambda: failure.portable(lake, native="false"))
    assert text.splitlines()[0] == message.splitlines()[0]
    assert iceberg_error_in(text) == (error, message)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [n for n in AS_FORMAT if FAILURES[n].rows is not None])
def test_error_of_a_native_write_begins_with_the_message(
    lake: Lake, installed: IcebergSession, name: str
) -> None:
    failure = FAILURES[name]
    _, message = error_of(lambda: failure.plain(lake))
    text = text_of(lambda: failure.portable(lake))
    assert text.splitlines()[0] == message.splitlines()[0]


@pytest.mark.parametrize("name", IN_SQL)
def test_error_in_sql_begins_with_the_message(
    lake: Lake, installed: IcebergSession, name: str
) -> None:
    failure = FAILURES[name]
    _, message = error_of(lambda: failure.plain(lake))
    native = failure.native
    assert native is not None
    text = text_of(lambda: native(lake, installed))
    assert text.splitlines()[0] == message.splitlines()[0]
    assert "py4j" not in text


def test_spark_s_own_errors_stay_as_they_are(lake: Lake, installed: IcebergSession) -> None:
    """Spark's own errors keep their condition, class and text."""
    with pytest.raises(captured.AnalysisException) as caught:
        lake.spark.sql("select * from said.db.missing").collect()
    assert caught.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    with pytest.raises(captured.ParseException):
        lake.spark.sql("selec 1")


@pytest.mark.nightly
def test_unexpected_error_is_shown_with_its_class_and_no_stack(
    lake: Lake, installed: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a bug of ours")

    monkeypatch.setattr(installed.catalogs, "catalog", broken)
    text = text_of(lambda: lake.spark.sql("show tables in said.db").collect())
    assert text.splitlines()[0] == "KeyError: 'a bug of ours'"


def test_uninstalling_leaves_pyspark_s_conversion_as_it_was(spark: SparkSession) -> None:
    before = captured.convert_exception
    session = install(spark.newSession())
    session.uninstall()
    assert captured.convert_exception is before
