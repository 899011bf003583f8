"""Executors that read position deletes return the same rows and errors as the driver does."""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import Table
from iceberg_pyspark.arrow.read.position_deletes import _read_positions
from iceberg_pyspark.errors import InvalidMetadataError, LocationRefusedError
from iceberg_pyspark.planning.scan_tasks import DeleteFileRef
from iceberg_pyspark.spark.native_read import deleted_rows
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.spark.storage.jvm_access import NativeStorage
from iceberg_pyspark.spec.manifests import FileContent
from iceberg_pyspark.storage.files.local import LocalFileIO
from tests.amounts import FULL_WORK
from tests.support.changed_rows import append_initial_rows, change_rows
from tests.support.deleted_rows import delete_keys, delete_positions, list_positions
from tests.support.executor_probe import position_probe
from tests.support.native_lake import plan_of, sqlite_lake
from tests.support.parameters import cases
from tests.support.spark_settings import NOT_ADAPTIVE, configured
from tests.support.threads import at_once

SHOWN = "position_deletes(Broadcast("


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("positions"), "positions") as created:
        yield created


@pytest.fixture(autouse=True)
def read_by_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deleted_rows, "MAX_POSITION_BYTES", -1)


def make(
    session: IcebergSession, name: str, clauses: str = "", *, granularity: str = "file"
) -> str:
    properties = {"format-version": "2", "write.delete.granularity": granularity} | {
        f"write.{op}.mode": "merge-on-read" for op in ("delete", "update", "merge")
    }
    options = ", ".join(f"'{k}'='{v}'" for k, v in properties.items())
    session.spark.sql(
        f"create table positions.db.{name} (id bigint, g int, s string) {clauses} "
        f"tblproperties ({options})"
    )
    append_initial_rows(session.table(f"positions.db.{name}"))
    return f"positions.db.{name}"


def sevenths(session: IcebergSession) -> str:
    """Return a table that tests only read, of which every seventh row is deleted."""
    name = "positions.db.sevenths"
    if not session.spark.catalog.tableExists(name):
        session.spark.sql(f"delete from {make(session, 'sevenths')} where id % 7 = 0")
    return name


def ids(session: IcebergSession, query: str) -> list[int]:
    frame = session.spark.sql(query)
    assert SHOWN in plan_of(frame)
    return sorted(row.id for row in frame.collect())


def delete_files(table: Table) -> list[DeleteFileRef]:
    result = {d.file_path: d for t in table.refresh().scan().plan_files() for d in t.deletes}
    return list(result.values())


@cases("granularity", fast=["partition"], nightly=["file"])
@cases("clauses", fast=[""], nightly=["partitioned by (g)", "partitioned by (bucket(16, id))"])
def test_rows_are_those_that_the_driver_reads(
    session: IcebergSession, clauses: str, granularity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(session, f"both_{granularity}_{len(clauses)}", clauses, granularity=granularity)
    session.spark.sql(f"delete from {table} where id % 3 = 0")
    session.spark.sql(f"delete from {table} where id % 11 = 1")
    session.spark.sql(f"insert into {table} select 3L, 3, 'again'")
    query = f"select id, g, s from {table} where s <> 's7'"
    by_executors = ids(session, query)
    live = [i for i in range(4000) if i % 3 and i % 11 != 1 and i != 7]
    assert by_executors == sorted([*live, 3])
    monkeypatch.setattr(deleted_rows, "MAX_POSITION_BYTES", 2**20)
    assert "position_deletes" not in plan_of(session.spark.sql(query))
    assert sorted(r.id for r in session.spark.sql(query).collect()) == by_executors


def test_position_deletes_are_a_filter_in_generated_code(session: IcebergSession) -> None:
    table = sevenths(session)
    spark = session.spark
    with configured(spark, NOT_ADAPTIVE):
        plan = plan_of(spark.sql(f"select sum(id) from {table} where g = 3"))
    assert re.search(r"\*\(1\) Filter .*position_deletes.*\n.*\*\(1\) ColumnarToRow", plan), plan


@pytest.mark.nightly
@pytest.mark.parametrize("factory", ["FALLBACK", "NO_CODEGEN"])
def test_plans_that_are_not_compiled_as_a_whole_have_the_same_rows(
    session: IcebergSession, factory: str
) -> None:
    table = sevenths(session)
    settings = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": factory,
    }
    with configured(session.spark, settings):
        actual = ids(session, f"select * from {table} where g > 1")
    assert actual == [i for i in range(4000) if i % 7 and i % 5 > 1]


def test_a_file_is_read_once_for_all_data_files_and_queries(session: IcebergSession) -> None:
    table = make(session, "once", granularity="partition")
    session.spark.sql(f"delete from {table} where id % 7 = 0")
    actual = session.table(table)
    (file,) = delete_files(actual)
    assert len([t for t in actual.scan().plan_files() if t.deletes]) == 4
    live = [i for i in range(4000) if i % 7]
    assert ids(session, f"select id from {table} where s <> ''") == live
    Path(file.file_path).unlink()
    assert ids(session, f"select id from {table} where id > 5") == [i for i in live if i > 5]


PATHS = [f"/db/t/data/{i}.parquet" for i in range(4)]
Delete: TypeAlias = tuple[str, int]
FILE_PATH, POS = 2147483546, 2147483545


def rows_of(
    deletes: Sequence[Delete] | Sequence[tuple[str | None, int | None]],
    *,
    ids: tuple[int | None, int | None] = (FILE_PATH, POS),
    names: tuple[str, str] = ("file_path", "pos"),
    kinds: tuple[pa.DataType, pa.DataType] = (pa.string(), pa.int64()),
) -> pa.Table:
    """Return rows of a position delete file, whose columns may violate the specification."""
    fields = [
        pa.field(name, kind, metadata=None if i is None else {"PARQUET:field_id": str(i)})
        for name, kind, i in zip(names, kinds, ids, strict=True)
    ]
    columns = [pa.array([d[i] for d in deletes], kinds[i]) for i in range(2)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def many(count: int = 20_000, seed: int = 1) -> list[Delete]:
    """Return deletes in 4 data files, sorted by path and position."""
    rng = random.Random(seed)
    each = [sorted(rng.sample(range(10 * count), count // 4)) for _ in PATHS]
    return [(path, p) for path, of_file in zip(PATHS, each, strict=True) for p in of_file]


def _bytes_read(spark: SparkSession) -> int:
    jvm: Any = spark._jvm
    every = jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics()
    return sum(s.getBytesRead() for s in every if s.getScheme() == "file")


def read_at_the_same_time(
    tasks: Sequence[Any], request: Sequence[tuple[int, int]]
) -> list[list[int]]:
    def run(number: int) -> list[int]:
        return [tasks[number].applyAsLong(file, position) for file, position in request]

    return at_once(len(tasks), run)


@pytest.mark.nightly
@pytest.mark.parametrize("lasting", [True, False])
def test_tasks_at_the_same_time_read_a_file_once_for_all_data_files(
    session: IcebergSession, tmp_path: Path, lasting: bool
) -> None:
    """Concurrent tasks share one read, unless the file's content may change under its name."""
    file = tmp_path / f"{uuid.uuid4()}.parquet"
    deletes = many(80_000)
    pq.write_table(rows_of(deletes), file)
    probe = position_probe(session.spark, [file], PATHS, lasting=lasting, records=len(deletes))
    requests = [(i, dict(reversed(deletes))[path]) for i, path in enumerate(PATHS)]
    before = _bytes_read(session.spark)
    actual = read_at_the_same_time([probe.task() for _ in range(4)], requests)
    assert actual == [[1] * 4] * 4
    read = (_bytes_read(session.spark) - before) / file.stat().st_size
    assert round(read) == (1 if lasting else 16)


def test_a_file_too_large_to_hold_is_read_for_one_data_file_at_a_time(
    session: IcebergSession, tmp_path: Path
) -> None:
    """Each row takes 74 bytes of memory, because the positions are far apart."""
    file = tmp_path / f"{uuid.uuid4()}.parquet"
    jvm: Any = session.spark._jvm
    heap = jvm.java.lang.Runtime.getRuntime().maxMemory()
    count = min(128 * 2**20, heap // 8) // 2 // 74 // 2
    positions = pa.array(range(0, count << 16, 1 << 16), pa.int64())
    schema = rows_of([]).schema
    with pq.ParquetWriter(file, schema) as writer:
        for path in PATHS:
            paths = pa.array([path]).take(pa.array([0] * count))
            writer.write_table(pa.Table.from_arrays([paths, positions], schema=schema))
    probe = position_probe(session.spark, [file], PATHS, lasting=True, records=4 * count)
    before = _bytes_read(session.spark)
    tasks = [probe.task() for _ in range(2)]
    requests = [(3, 5 << 16), (3, (5 << 16) + 1), (3, (count - 1) << 16)]
    assert read_at_the_same_time(tasks, requests) == [[1, 0, 1]] * 2
    read = (_bytes_read(session.spark) - before) / file.stat().st_size
    # The first read stops once the file is known to be too large; the second reads a quarter.
    assert 0.5 < read < 1.3, read
    before = _bytes_read(session.spark)
    assert probe.task().applyAsLong(3, 5 << 16) == 1
    assert _bytes_read(session.spark) == before


@pytest.mark.nightly
def test_files_of_more_records_than_can_be_held_are_read_by_data_file(
    session: IcebergSession, tmp_path: Path
) -> None:
    file = tmp_path / f"{uuid.uuid4()}.parquet"
    deletes = many(80_000)
    pq.write_table(rows_of(deletes), file, row_group_size=20_000)
    probe = position_probe(session.spark, [file], PATHS, lasting=True, records=10**9)
    before = _bytes_read(session.spark)
    assert probe.task().applyAsLong(0, deletes[0][1]) == 1
    assert (_bytes_read(session.spark) - before) / file.stat().st_size < 0.5


def test_positions_of_64_bits_and_of_several_files(session: IcebergSession, tmp_path: Path) -> None:
    positions = [0, 5, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**33 + 7, ((2**31 - 2) << 32) + 9]
    files = [tmp_path / f"{uuid.uuid4()}.parquet" for _ in range(3)]
    for i, file in enumerate(files):
        pq.write_table(rows_of([(PATHS[0], p) for p in positions[i::3]]), file)
    pq.write_table(rows_of([(PATHS[1], 1), (PATHS[2], 2)]), files[2])
    for lasting in (True, False):
        task = position_probe(session.spark, files, PATHS, lasting=lasting).task()
        for i, p in enumerate(positions):
            expected = [int(i % 3 < 2), 0]
            assert [task.applyAsLong(0, q) for q in (p, p + 2)] == expected, p
        assert [task.applyAsLong(1, q) for q in (0, 1, 2)] == [0, 1, 0]
        assert [task.applyAsLong(3, q) for q in (0, 1, 2)] == [0, 0, 0]


def in_turns(*cases: tuple[Any, ...]) -> list[Any]:
    """Return each case with few and with many records claimed, one of which runs nightly.

    A file that claims few is read at once, the other for one data file at a time.
    """
    return [
        pytest.param(records, *case, marks=pytest.mark.nightly if (i + n) % 2 else ())
        for i, case in enumerate(cases)
        for n, records in enumerate((1, 10**9))
    ]


SHUFFLED = random.Random(3).sample(many(), 20_000)
NESTED = pa.struct([pa.field("x", pa.int32(), metadata={"PARQUET:field_id": "9"})])


@pytest.mark.parametrize(
    ("records", "rows", "layout"),
    in_turns(
        (rows_of(many()), {}),
        (rows_of(SHUFFLED), {}),
        (rows_of([*many(), *many()]), {"row_group_size": 777}),
        (rows_of(many()), {"use_dictionary": False, "data_page_size": 5000}),
        (rows_of(SHUFFLED), {"dictionary_pagesize_limit": 30, "data_page_size": 5000}),
        (
            rows_of(SHUFFLED),
            {
                "use_dictionary": False,
                "column_encoding": {"file_path": "DELTA_BYTE_ARRAY", "pos": "DELTA_BINARY_PACKED"},
                "data_page_version": "2.0",
            },
        ),
        (rows_of(many()), {"write_page_index": True, "data_page_size": 1000}),
        (rows_of(many()), {"write_page_checksum": True, "compression": "zstd"}),
        (rows_of(many(), ids=(None, None)), {}),
        (rows_of(many(), names=("one", "two")), {}),
        (rows_of(many(), names=("a.file_path", "pos")), {}),
        (rows_of(many(), kinds=(pa.large_string(), pa.int32())), {}),
        (rows_of(many(), kinds=(pa.binary(), pa.int64())), {}),
        (rows_of([]), {}),
        (rows_of([(PATHS[1], 2**62)]), {}),
        (rows_of(many()).append_column("row", pa.array([{"x": 1}] * 20_000, NESTED)), {}),
    ),
)
def test_java_reads_position_deletes_as_python(
    session: IcebergSession,
    tmp_path: Path,
    rows: pa.Table,
    layout: Mapping[str, Any],
    records: int,
) -> None:
    """Compare whole files, and single data files where the delete file claims many records."""
    file = tmp_path / f"{uuid.uuid4()}.parquet"
    pq.write_table(rows, file, **layout)
    actual = _read_positions(LocalFileIO(), ref_of(file), None, True)
    task = position_probe(session.spark, [file], PATHS, lasting=True, records=records).task()
    for i, path in enumerate(PATHS):
        positions = BitMap64(actual.get(path, []))
        picked = [*positions[:: max(len(positions) // 20, 1)], *positions[-1:]]
        for p in {5, *(q for near in picked for q in (near, near + 1))}:
            assert bool(task.applyAsLong(i, p)) == (p in positions), (path, p)


def ref_of(file: Path) -> DeleteFileRef:
    return DeleteFileRef(
        content=FileContent.POSITION_DELETES,
        file_path=str(file),
        file_format="parquet",
        file_size_in_bytes=1,
        record_count=1,
        data_sequence_number=1,
    )


WITHOUT_ROW = pa.table({"file_path": pa.array([], pa.string()), "pos": pa.array([], pa.int64())})


@pytest.mark.parametrize(
    ("records", "rows", "message"),
    in_turns(
        (rows_of([*many(), (PATHS[0], -1)]), "position -1 is negative"),
        (rows_of([*many(), (PATHS[0], None)]), "a row has no pos, which every row must have"),
        (rows_of([*many(), (None, 5)]), "a row has no file_path, which every row must have"),
        (
            rows_of(many(), names=("one", "two"), ids=(None, None)),
            r"lacks the required column 'file_path' \(field id 2147483546\)",
        ),
        (
            rows_of(many(), ids=(FILE_PATH, None)),
            r"lacks the required column 'pos' \(field id 2147483545\)",
        ),
        (rows_of(many(), ids=(None, POS)), "lacks the required column 'file_path'"),
        (
            WITHOUT_ROW.append_column("row", pa.array([], NESTED)),
            "lacks the required column 'file_path'",
        ),
        (rows_of(many(), ids=(POS, POS)), "'file_path' and 'pos' both have field id 2147483545"),
        (rows_of(many(), ids=(POS, FILE_PATH)), "stored as .*, which cannot be read as string"),
        (
            rows_of([(PATHS[0], 1)], kinds=(pa.string(), pa.float64())),
            "column 'pos'.*stored as .*, which cannot be read as long",
        ),
        (
            rows_of([(PATHS[0], 1)], kinds=(pa.string(), pa.timestamp("us"))),
            "column 'pos'.*stored as .*, which cannot be read as long",
        ),
        (
            rows_of([], kinds=(pa.list_(pa.string()), pa.int64())),
            "column 'file_path'.*stored as (.|\n)*, which cannot be read as string",
        ),
    ),
)
def test_java_refuses_position_deletes_as_python(
    session: IcebergSession, tmp_path: Path, rows: pa.Table, message: str, records: int
) -> None:
    file = tmp_path / f"{uuid.uuid4()}.parquet"
    pq.write_table(rows, file)
    with pytest.raises(InvalidMetadataError, match=message) as refused:
        _read_positions(LocalFileIO(), ref_of(file), None, True)
    assert str(file) in str(refused.value)
    task = position_probe(session.spark, [file], PATHS, lasting=True, records=records).task()
    with pytest.raises(PySparkException, match=message) as failed:
        task.applyAsLong(0, 5)
    assert f"table t: position delete file {file}" in str(failed.value)
    assert InvalidMetadataError.__name__ in str(failed.value)


def test_damaged_files_are_named_or_read_as_they_were(
    session: IcebergSession, tmp_path: Path
) -> None:
    """Flip bits anywhere and truncate files: an error names the file, or the rows are correct."""
    rng = random.Random(7)
    deletes = many(4000)
    whole = tmp_path / "whole.parquet"
    pq.write_table(rows_of(deletes), whole, write_page_checksum=True)
    data = whole.read_bytes()
    by_path = {path: BitMap64(p for q, p in deletes if q == path) for path in PATHS}
    messages: list[str] = []
    path_mentions = 0
    count, least = (150, 40) if FULL_WORK else (30, 20)
    for i in range(count):
        damaged = bytearray(data)
        if i % 3:
            damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        else:
            damaged = damaged[: rng.randrange(len(data))]
        file = tmp_path / f"{i}.parquet"
        file.write_bytes(damaged)
        task = position_probe(session.spark, [file], PATHS).task()
        try:
            actual = [task.applyAsLong(0, p) for p in by_path[PATHS[0]][:20]]
        except PySparkException as e:
            messages.append(str(e))
            path_mentions += str(file) in str(e)
        else:
            assert actual == [1] * 20, i
    assert path_mentions == len(messages), messages
    assert path_mentions > least


def test_files_with_deleted_keys_too(session: IcebergSession) -> None:
    table = make(session, "keyed")
    session.spark.sql(f"delete from {table} where id % 7 = 0")
    delete_keys(session.table(table), "id", [1, 2, 3])
    expected = [i for i in range(4000) if i % 7 and i > 3]
    assert ids(session, f"select id from {table} where s <> ''") == expected


@pytest.mark.nightly
@pytest.mark.parametrize("vectors", ["by the driver", "by executors"])
def test_a_vector_counts_alone_and_others_beside_it(
    session: IcebergSession, vectors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an upgrade from version 2, some files have vectors and others old delete files."""
    if vectors == "by executors":
        monkeypatch.setattr(deleted_rows, "MAX_VECTOR_BYTES", -1)
    table = make(session, f"upgraded_{vectors[3]}", granularity="partition")
    session.spark.sql(f"delete from {table} where id % 7 = 0")
    session.spark.sql(f"alter table {table} set tblproperties ('format-version'='3')")
    actual = session.table(table)
    first = min(t.file_path for t in actual.scan().plan_files())
    delete_positions(actual, {first: [1, 5]})
    of_first = [
        r.id
        for r in session.spark.sql(
            f"select id from {table} where _file = '{first}' order by id"
        ).collect()
    ]
    start = of_first[0] // 1000 * 1000
    assert of_first == [i for i in range(start, start + 1000) if i - start not in (1, 5)]
    rest = ids(session, f"select id from {table} where _file <> '{first}'")
    assert rest == [i for i in range(4000) if i // 1000 * 1000 != start and i % 7]


@pytest.mark.nightly
def test_deletes_are_changed_by_changes(session: IcebergSession) -> None:
    table = make(session, "changed", "partitioned by (g)")
    expected = change_rows(session.spark, table)
    frame = session.spark.sql(f"select id, s from {table} where s is not null")
    assert SHOWN in plan_of(frame)
    assert {r.id: r.s for r in frame.collect()} == expected


@cases(
    ("deletes", "message"),
    fast=[([-5], "position -5 is negative")],
    nightly=[([None], "a row has no pos, which every row must have")],
)
@pytest.mark.parametrize("read_by", ["driver", "executors"])
def test_wrong_position_delete_file_is_refused_by_name(
    session: IcebergSession,
    deletes: list[int | None],
    message: str,
    read_by: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if read_by == "driver":
        monkeypatch.setattr(deleted_rows, "MAX_POSITION_BYTES", 2**20)
    name = f"wrong{uuid.uuid4().hex[:8]}"
    table = session.table(make(session, name))
    path = next(table.scan().plan_files()).file_path
    file = list_positions(table, rows_of([(path, p) for p in deletes]), {})
    with pytest.raises(Exception, match=message) as caught:
        session.spark.sql(f"select max(s) from positions.db.{name} where id > 1").collect()
    assert str(file) in str(caught.value)
    assert InvalidMetadataError.__name__ in str(caught.value)


def test_a_file_that_the_table_may_not_read_is_refused(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = session.table(make(session, "elsewhere"))
    path = next(table.scan().plan_files()).file_path
    list_positions(table, rows_of([(path, 1)]), {}, file_path="s3://elsewhere/p.parquet")
    # Pretend that the JVM can reach the store.
    monkeypatch.setattr(NativeStorage, "location", lambda _, path: path)
    with pytest.raises(Exception, match=r"s3://elsewhere/p.parquet: refused") as caught:
        session.spark.sql("select max(s) from positions.db.elsewhere where id > 1").collect()
    assert LocationRefusedError.__name__ in f"{caught.value!r} {caught.value}"


@pytest.mark.nightly
def test_wrong_record_count_has_no_effect(session: IcebergSession) -> None:
    """As in Python, the rows in the file count, not the number in the manifest."""
    table = session.table(make(session, "miscounted"))
    path = next(table.scan().plan_files()).file_path
    list_positions(table, rows_of([(path, 1), (path, 5)]), {}, record_count=77)
    actual = ids(session, "select id from positions.db.miscounted where s <> ''")
    assert len(actual) == 3998


def test_a_file_that_is_gone_is_named(session: IcebergSession) -> None:
    table = session.table(make(session, "gone"))
    path = next(table.scan().plan_files()).file_path
    file = list_positions(table, rows_of([(path, 1)]), {})
    file.unlink()
    with pytest.raises(Exception, match=re.escape(str(file))) as caught:
        session.spark.sql("select max(s) from positions.db.gone where id > 1").collect()
    assert "StorageError" in str(caught.value)


@pytest.mark.nightly
def test_few_deletes_are_broadcast_and_many_are_not(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A delete file that refers to many data files counts once."""
    table = make(session, "some", granularity="partition")
    session.spark.sql(f"delete from {table} where id % 7 = 0")
    size = sum(d.file_size_in_bytes for d in delete_files(session.table(table)))
    query = f"select id from {table} where s is not null"
    monkeypatch.setattr(deleted_rows, "MAX_POSITION_BYTES", size)
    assert "position_deletes" not in plan_of(session.spark.sql(query))
    monkeypatch.setattr(deleted_rows, "MAX_POSITION_BYTES", size - 1)
    monkeypatch.setattr(deleted_rows, "read_bitmaps", lambda *_: iter(()))
    assert ids(session, query) == [i for i in range(4000) if i % 7]


@pytest.mark.nightly
@pytest.mark.parametrize("reached", ["none", "some"])
def test_driver_reads_deletes_that_executors_cannot_reach(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch, reached: str
) -> None:
    table = sevenths(session)
    files = {d.file_path for d in delete_files(session.table(table))}
    assert len(files) == 4
    unreached = files if reached == "none" else {min(files)}
    real = NativeStorage.location
    monkeypatch.setattr(
        NativeStorage,
        "location",
        lambda self, path: None if path in unreached else real(self, path),
    )
    frame = session.spark.sql(f"select id from {table} where s is not null")
    assert ("position_deletes" in plan_of(frame)) == (reached == "some")
    assert "IcebergPyParquetScan" in plan_of(frame)
    assert "MapInArrow" not in plan_of(frame)
    assert sorted(r.id for r in frame.collect()) == [i for i in range(4000) if i % 7]
