"""Executors that read deletion vectors return the same rows and errors as the driver does."""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyroaring import BitMap64
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.errors import IcebergError, LocationRefusedError, StorageError
from iceberg_pyspark.formats.puffin.deletion_vectors import (
    decode_deletion_vector,
    encode_deletion_vector,
)
from iceberg_pyspark.spark.native_read import deleted_rows
from iceberg_pyspark.spark.native_read.deleted_rows import serialized_bitmaps
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.spark.storage.jvm_access import NativeStorage
from tests.amounts import FULL_WORK
from tests.support.changed_rows import append_initial_rows, change_rows
from tests.support.deleted_rows import delete_keys, delete_positions
from tests.support.executor_probe import vector_probe
from tests.support.native_lake import plan_of, sqlite_lake
from tests.support.parameters import cases
from tests.support.spark_settings import NOT_ADAPTIVE, configured
from tests.support.threads import at_once
from tests.unit.formats.test_deletion_vectors import framed, vector_of

MERGE_ON_READ = "'format-version'='3', " + ", ".join(
    f"'write.{op}.mode'='merge-on-read'" for op in ("delete", "update", "merge")
)


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("vectors"), "vectors") as lake:
        yield lake


@pytest.fixture(autouse=True)
def read_by_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deleted_rows, "MAX_VECTOR_BYTES", -1)


def make(session: IcebergSession, name: str, clauses: str = "") -> str:
    session.spark.sql(
        f"create table vectors.db.{name} (id bigint, g int, s string) {clauses} "
        f"tblproperties ({MERGE_ON_READ})"
    )
    append_initial_rows(session.table(f"vectors.db.{name}"))
    return f"vectors.db.{name}"


def sevenths(session: IcebergSession) -> str:
    """Return a table that tests only read, of which every seventh row is deleted."""
    name = "vectors.db.sevenths"
    if not session.spark.catalog.tableExists(name):
        session.spark.sql(f"delete from {make(session, 'sevenths')} where id % 7 = 0")
    return name


def ids(session: IcebergSession, query: str) -> list[int]:
    frame = session.spark.sql(query)
    assert "deletion_vectors(Broadcast(" in plan_of(frame)
    return sorted(row.id for row in frame.collect())


@cases("clauses", fast=[""], nightly=["partitioned by (g)", "partitioned by (bucket(16, id))"])
def test_rows_of_many_files_with_one_puffin_file(
    session: IcebergSession, clauses: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(session, f"many_{len(clauses)}", clauses)
    session.spark.sql(f"delete from {table} where id % 3 = 0")
    session.spark.sql(f"insert into {table} select 3L, 3, 'again'")
    handle = session.table(table)
    vectors = {d.file_path for t in handle.scan().plan_files() for d in t.deletes}
    assert len(vectors) < len([t for t in handle.scan().plan_files() if t.deletes])
    query = f"select id, g, s from {table} where s <> 's7'"
    by_executors = ids(session, query)
    assert by_executors == sorted([i for i in range(4000) if i % 3 and i != 7] + [3])
    monkeypatch.setattr(deleted_rows, "MAX_VECTOR_BYTES", 2**20)
    assert "deletion_vectors" not in plan_of(session.spark.sql(query))
    assert sorted(r.id for r in session.spark.sql(query).collect()) == by_executors


def test_deletion_vector_is_a_filter_in_generated_code(session: IcebergSession) -> None:
    table = sevenths(session)
    spark = session.spark
    with configured(spark, NOT_ADAPTIVE):
        plan = plan_of(spark.sql(f"select sum(id) from {table} where g = 3"))
    assert re.search(r"\*\(1\) Filter .*deletion_vectors.*\n.*\*\(1\) ColumnarToRow", plan), plan


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("setting", "value"),
    [("spark.sql.codegen.wholeStage", "false"), ("spark.sql.codegen.maxFields", "1")],
)
@pytest.mark.parametrize("factory", ["FALLBACK", "NO_CODEGEN"])
def test_plans_that_are_not_compiled_as_a_whole_have_the_same_rows(
    session: IcebergSession, setting: str, value: str, factory: str
) -> None:
    table = sevenths(session)
    settings = {setting: value, "spark.sql.codegen.factoryMode": factory}
    with configured(session.spark, settings):
        rows = ids(session, f"select * from {table} where g > 1")
    assert rows == [i for i in range(4000) if i % 7 and i % 5 > 1]


def test_a_vector_is_read_once_for_all_tasks_and_queries(session: IcebergSession) -> None:
    spark = session.spark
    table = "vectors.db.once"
    spark.sql(
        f"create table {table} using iceberg "
        f"tblproperties ({MERGE_ON_READ}, 'write.parquet.row-group-size-bytes'='16384') "
        "as select id, uuid() u from range(0, 20000, 1, 1)"
    )
    spark.sql(f"delete from {table} where id % 7 = 0")
    (task,) = session.table(table).scan().plan_files()
    frame = spark.read.option("split-size", 20_000).option("file-open-cost", 0).table(table)
    assert frame.rdd.getNumPartitions() > 8, "a file is read by several tasks"
    live = [i for i in range(20_000) if i % 7]
    assert sorted(r.id for r in frame.collect()) == live
    (vector,) = task.deletes
    Path(vector.file_path).unlink()
    assert ids(session, f"select id from {table} where id > 5") == [i for i in live if i > 5]


@pytest.mark.nightly
@pytest.mark.parametrize("lasting", [True, False])
def test_tasks_at_the_same_time_read_a_vector_once(
    session: IcebergSession, tmp_path: Path, lasting: bool
) -> None:
    """Concurrent tasks share one read, unless the file's content may change under its name."""
    rng = random.Random(1)
    positions = BitMap64(rng.sample(range(10**9), 400_000))
    blob = encode_deletion_vector(positions)
    probe = vector_probe(
        session.spark,
        tmp_path / f"{uuid.uuid4()}.puffin",
        [blob],
        [len(positions)],
        lasting=lasting,
    )
    tasks = [probe.task() for _ in range(8)]
    before = _bytes_read(session.spark)
    assert at_once(8, lambda n: tasks[n].applyAsLong(0, positions[7])) == [1] * 8
    read = (_bytes_read(session.spark) - before) / len(blob)
    assert round(read) == (1 if lasting else 8)


def _bytes_read(spark: SparkSession) -> int:
    jvm: Any = spark._jvm
    every = jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics()
    return sum(s.getBytesRead() for s in every if s.getScheme() == "file")


def test_positions_of_64_bits(session: IcebergSession, tmp_path: Path) -> None:
    positions = [0, 5, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**33 + 7, ((2**31 - 2) << 32) + 9]
    blob = encode_deletion_vector(positions)
    probe = vector_probe(session.spark, tmp_path / "v.puffin", [blob], [len(positions)])
    task = probe.task()
    for p in positions:
        assert [task.applyAsLong(0, q) for q in (p, p + 2)] == [1, 0], p


@pytest.mark.parametrize("whole_stage", ["true", "false"])
def test_broadcast_bitmaps_have_the_rows_in_any_order(
    session: IcebergSession, whole_stage: str
) -> None:
    """Generated code goes forward in a bitmap, and back when a task reads an earlier split."""
    rng = random.Random(5)
    bitmaps = [
        BitMap64(rng.sample(range(200_000), 9_000)),
        BitMap64(),
        BitMap64([*range(50, 70_000), 2**31 - 1]),
        BitMap64([0]),
    ]
    bitmaps[2].run_optimize()
    near = [p + step for b in bitmaps for p in [*b][:300] for step in (0, 1)]
    near += [2**31 - 1, 2**31, 2**32, 2**32 + 60]
    rows = [(rng.randrange(4), p) for p in [*near, *rng.choices(range(210_000), k=3_000)]]
    rows += [*sorted(rows), (0, None)]
    frame = session.spark.createDataFrame(rows, "__ice_ord int, __ice_pos bigint").coalesce(1)
    with configured(session.spark, {"spark.sql.codegen.wholeStage": whole_stage}):
        live = _in_no_bitmap(session, frame, bitmaps)
        assert ("*(1)" in plan_of(live)) == (whole_stage == "true")
        expected = [(o, p) for o, p in rows if p is None or p not in bitmaps[o]]
        assert [tuple(r) for r in live.collect()] == expected


def _in_no_bitmap(session: IcebergSession, frame: DataFrame, bitmaps: list[BitMap64]) -> DataFrame:
    jvm: Any = session.spark._jvm
    assert session.bridge is not None
    plan = frame._jdf.queryExecution().analyzed()
    condition = session.bridge.scans.not_in_bitmaps(plan, *serialized_bitmaps(bitmaps))
    filtered = jvm.org.apache.spark.sql.catalyst.plans.logical.Filter(condition, plan)
    dataset: Any = getattr(getattr(jvm.org.apache.spark.sql.classic, "Dataset$"), "MODULE$")
    return DataFrame(dataset.ofRows(session.spark._jsparkSession, filtered), session.spark)


def test_a_probe_goes_back_to_earlier_positions(session: IcebergSession, tmp_path: Path) -> None:
    rng = random.Random(6)
    positions = BitMap64([*rng.sample(range(100_000), 30_000), 2**32 + 5])
    blob = encode_deletion_vector(positions)
    probe = vector_probe(session.spark, tmp_path / "v.puffin", [blob], [len(positions)])
    task = probe.task()
    for p in [*rng.choices(range(100_100), k=400), 2**32 + 5, 7, 2**32 + 6, 2**33 + 5, 8]:
        assert bool(task.applyAsLong(0, p)) == (p in positions), p


def test_java_decodes_and_refuses_vectors_as_python(
    session: IcebergSession, tmp_path: Path
) -> None:
    """Flip bits inside and outside the checksummed part, and truncate blobs."""
    rng = random.Random(7)
    good = BitMap64(
        [*range(100), *range(70_000, 90_000, 2), *range(200_000, 300_000), 2**32 + 3, 2**33]
    )
    good.run_optimize()
    vector = good.serialize()
    blobs = [encode_deletion_vector(good), framed(vector_of()), framed(vector + b"\0")]
    flips, cuts = (400, 50) if FULL_WORK else (80, 8)
    for _ in range(flips):
        damaged = bytearray(vector)
        near = rng.random() < 0.7
        damaged[rng.randrange(200 if near else len(vector))] ^= 1 << rng.randrange(8)
        blobs.append(framed(bytes(damaged)))
    blobs += [framed(vector[: rng.randrange(len(vector))]) for _ in range(cuts)]
    blobs += [blobs[0][: rng.randrange(1, len(blobs[0]))] for _ in range(cuts)]
    for _ in range(20 if FULL_WORK else 8):
        damaged = bytearray(blobs[0])
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        blobs.append(bytes(damaged))
    expected: list[BitMap64 | None] = []
    for blob in blobs:
        try:
            expected.append(decode_deletion_vector(blob, "v"))
        except IcebergError:
            expected.append(None)
    assert sum(e is not None for e in expected) > 10
    counts = [0 if e is None else len(e) for e in expected]
    task = vector_probe(session.spark, tmp_path / "v.puffin", blobs, counts).task()
    for i, positions in enumerate(expected):
        if positions is None:
            with pytest.raises(
                PySparkException, match=r"(?s)table t: deletion.*InvalidMetadataError"
            ):
                task.applyAsLong(i, 5)
            continue
        for p in (5, 70_002, 70_003, 250_000, 2**33):
            assert bool(task.applyAsLong(i, p)) == (p in positions), i


def test_a_blob_of_few_bytes_takes_little_memory(session: IcebergSession, tmp_path: Path) -> None:
    """Run containers that cover all positions of 64 keys would take 32 GiB as bitsets."""
    every = b"\x3b\x30\xff\xff" + b"\xff" * 8192
    every += b"".join(i.to_bytes(2, "little") + b"\xff\xff" for i in range(2**16))
    every += b"\0" * 4 * 2**16 + b"\x01\x00\x00\x00\xff\xff" * 2**16
    vector = vector_of(*((key, every) for key in range(4)))
    task = vector_probe(session.spark, tmp_path / "v.puffin", [framed(vector)], [2**34]).task()
    assert task.applyAsLong(0, 3 * 2**32 + 12345) == 1
    # The header claims more bitmaps than memory could hold.
    claims = framed((2**62).to_bytes(8, "little") + vector_of((0, every))[8:])
    task = vector_probe(session.spark, tmp_path / "w.puffin", [claims], [2**32]).task()
    with pytest.raises(PySparkException, match="damaged deletion vector"):
        task.applyAsLong(0, 1)


def test_vector_size_beyond_the_file_is_refused_before_memory_is_taken(
    session: IcebergSession, tmp_path: Path
) -> None:
    blob = encode_deletion_vector([1])
    probe = vector_probe(session.spark, tmp_path / "v.puffin", [blob], [1], sizes=[2**31 - 1])
    with pytest.raises(PySparkException, match=r"(?s)outside the file.*StorageError"):
        probe.task().applyAsLong(0, 1)


@pytest.mark.nightly
def test_equal_scans_are_shuffled_once(session: IcebergSession) -> None:
    table = sevenths(session)
    spark = session.spark
    with configured(spark, NOT_ADAPTIVE):
        frame = spark.sql(
            f"with grouped as (select g, count(s) n from {table} group by g) "
            "select a.g, b.n from grouped a join grouped b on a.n = b.n"
        )
        plan = plan_of(frame)
    assert "ReusedExchange" in plan
    assert "deletion_vectors" in plan
    assert len(frame.collect()) >= 5


def test_vectors_are_changed_by_changes(session: IcebergSession) -> None:
    table = make(session, "changed", "partitioned by (g)")
    expected = change_rows(session.spark, table)
    frame = session.spark.sql(f"select id, s from {table} where s is not null")
    assert "deletion_vectors" in plan_of(frame)
    assert {r.id: r.s for r in frame.collect()} == expected


def test_files_with_deleted_keys_too(session: IcebergSession) -> None:
    table = make(session, "keyed")
    session.spark.sql(f"delete from {table} where id % 7 = 0")
    delete_keys(session.table(table), "id", [1, 2, 3])
    expected = [i for i in range(4000) if i % 7 and i > 3]
    assert ids(session, f"select id from {table} where s <> ''") == expected


@cases(
    ("changed", "message"),
    fast=[
        ({"record_count": 9}, "deletes 2 rows, its manifest entry says 9"),
        ({"content_size_in_bytes": 2**40}, "no file has a vector of 1099511627776 bytes"),
    ],
    nightly=[
        ({"content_offset": 5}, "deletion vector at 5 of"),
        ({"content_offset": -1}, "deletion vector at -1 of"),
        ({"content_size_in_bytes": 10**6}, "1000000 bytes from there are outside the file"),
        ({"file_path": "s3://elsewhere/v.puffin"}, "may only read files of its own store"),
    ],
)
def test_wrong_vector_entry_is_refused_by_name(
    session: IcebergSession, changed: dict[str, Any], message: str
) -> None:
    name = f"wrong{uuid.uuid4().hex[:8]}"
    table = session.table(make(session, name))
    path = next(table.scan().plan_files()).file_path
    delete_positions(table, {path: [1, 5]}, **changed)
    with pytest.raises(Exception, match=message) as caught:
        session.spark.sql(f"select max(s) from vectors.db.{name} where id > 1").collect()
    assert f"db.{name}" in str(caught.value) or isinstance(caught.value, LocationRefusedError)


def test_a_file_that_is_gone_is_named(session: IcebergSession) -> None:
    table = session.table(make(session, "gone"))
    path = next(table.scan().plan_files()).file_path
    delete_positions(table, {path: [1, 5]})
    (vector,) = (d for t in table.scan().plan_files() for d in t.deletes)
    Path(vector.file_path).unlink()
    with pytest.raises(Exception, match=re.escape(vector.file_path)) as caught:
        session.spark.sql("select max(s) from vectors.db.gone where id > 1").collect()
    assert StorageError.__name__ in str(caught.value)


@pytest.mark.nightly
def test_few_vectors_are_broadcast_and_many_are_not(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = sevenths(session)
    size = sum(
        d.content_size_in_bytes or 0
        for t in session.table(table).scan().plan_files()
        for d in t.deletes
    )
    query = f"select id from {table} where s is not null"
    monkeypatch.setattr(deleted_rows, "MAX_VECTOR_BYTES", size)
    assert "deletion_vectors" not in plan_of(session.spark.sql(query))
    monkeypatch.setattr(deleted_rows, "MAX_VECTOR_BYTES", size - 1)
    monkeypatch.setattr(deleted_rows, "read_bitmaps", None)
    assert ids(session, query) == [i for i in range(4000) if i % 7]


@pytest.mark.nightly
def test_driver_reads_deletes_that_executors_cannot_reach(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = sevenths(session)
    real = NativeStorage.location
    monkeypatch.setattr(
        NativeStorage,
        "location",
        lambda self, path: None if path.endswith(".puffin") else real(self, path),
    )
    frame = session.spark.sql(f"select id from {table} where s is not null")
    assert "deletion_vectors" not in plan_of(frame)
    assert "IcebergPyParquetScan" in plan_of(frame)
    assert sorted(r.id for r in frame.collect()) == [i for i in range(4000) if i % 7]
