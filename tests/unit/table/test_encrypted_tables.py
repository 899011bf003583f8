"""Encrypted tables without Spark: what is written, read, refused, and found out."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.arrow.read.read_task import read_task
from iceberg_pyspark.errors import (
    IcebergError,
    InvalidRequestError,
    StorageError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.encryption.key_management import KeyManagement
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.restricted_io import RestrictedFileIO
from tests.support.deleted_rows import delete_rows
from tests.support.encrypted_tables import files_with, key_properties

ENCRYPTED = {"format-version": "3", "encryption.key-id": "keyA"}
ROWS = {"id": list(range(10)), "v": [f"secret{i}" for i in range(10)]}


def open_catalog(folder: Path, **properties: str) -> ice.TableCatalog:
    return ice.load_catalog("c", type="hadoop", warehouse=str(folder / "wh"), **properties)


@pytest.fixture
def catalog(tmp_path: Path) -> ice.TableCatalog:
    return open_catalog(tmp_path, **key_properties(tmp_path))


def written(catalog: ice.TableCatalog, **properties: str) -> ice.Table:
    """Return a table with 20 rows in two files."""
    table = catalog.create_table(
        "d.t", "id BIGINT, v STRING", properties={**ENCRYPTED, **properties}
    )
    table.append(pa.table(ROWS))
    table.append(pa.table(ROWS))
    return catalog.load_table("d.t")


@pytest.fixture(params=["parquet", "avro"])
def table(catalog: ice.TableCatalog, request: pytest.FixtureRequest) -> ice.Table:
    return written(catalog, **{"write.format.default": request.param})


def test_a_table_is_written_and_read(table: ice.Table, tmp_path: Path) -> None:
    rows = table.scan(filter="v = 'secret3'").to_arrow().to_pylist()
    assert rows == [{"id": 3, "v": "secret3"}] * 2
    metadata = table.metadata
    assert len(metadata.encryption_keys) == 3, "one key-encryption key, and one of each snapshot"
    assert files_with(tmp_path / "wh", ["secret", "PAR1", "Obj\x01", "iceberg.schema"]) == []
    wrapped = open_catalog(tmp_path).load_table("d.t")
    with pytest.raises(IcebergError, match=r"encrypted, .*encryption\.kms-type"):
        wrapped.scan().to_arrow()


def test_maintenance_keeps_a_table_encrypted(table: ice.Table, tmp_path: Path) -> None:
    table.maintenance().rewrite_data_files(options={"rewrite-all": "true"})
    table.maintenance().rewrite_manifests()
    table.maintenance().compute_table_stats()
    again = table.maintenance().compute_table_stats()
    assert table.scan().to_arrow().num_rows == 20
    assert again.distinct_counts == {"id": 10, "v": 10}
    assert table.metadata.statistics[0].key_metadata is not None
    assert files_with(tmp_path / "wh", ["secret", "PAR1", "PFA1", "Obj\x01"]) == []
    assert table.verify(check_files=True).findings == ()
    table.maintenance().expire_snapshots(
        older_than=datetime(2200, 1, 1, tzinfo=timezone.utc), retain_last=1
    )
    assert table.scan().to_arrow().num_rows == 20


def test_the_tables_that_metadata_make_up(table: ice.Table) -> None:
    for name in ("files", "all_files", "entries", "manifests", "partitions", "position_deletes"):
        table.metadata_table(name).to_arrow()


def files_of(table: ice.Table) -> Iterator[str]:
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    yield str(snapshot.manifest_list)
    for m in read_snapshot_manifests(table.io, snapshot):
        yield m.manifest_path
        yield from read_entries(table.io, m, StructType(()))["file_path"].to_pylist()


def test_a_changed_or_missing_byte_is_an_error(table: ice.Table) -> None:
    right = table.scan().to_arrow()
    for location in list(files_of(table)):
        file = Path(location.removeprefix("file:"))
        content = file.read_bytes()
        size = len(content)
        changed = [bytearray(content) for _ in range(8)]
        for number, copy in enumerate(changed):
            copy[(0, 5, 30, size // 3, size // 2, size - 30, size - 9, size - 1)[number]] ^= 4
        errors = 0
        for wrong in (*changed, content[: size // 2], content[:-1], b""):
            file.write_bytes(bytes(wrong))
            try:
                # another store, so that nothing is in a cache
                assert replace_cache(table).scan().to_arrow().equals(right)
            except IcebergError:
                errors += 1
        # a scan does not read the first bytes and the page index of a Parquet file
        assert errors >= (9 if location.endswith(".parquet") else 11)
        file.write_bytes(content)
    assert replace_cache(table).scan().to_arrow().equals(right)


def replace_cache(table: ice.Table) -> ice.Table:
    """Return the table with a store that equals no other, so that no cache has its files."""
    global _number
    _number += 1
    io: Any = table.io
    return ice.Table(table._catalog, table._loaded_table, io=replace(io, hint=f"t{_number}"))


_number = 0


def test_files_of_two_tables_cannot_be_exchanged(catalog: ice.TableCatalog) -> None:
    table = written(catalog)
    first, second = (f for f in files_of(table) if f.endswith(".parquet"))
    shutil.copy(first, second)
    with pytest.raises(StorageError, match=r"\.parquet"):
        replace_cache(table).scan().to_arrow()


def test_another_key_reads_nothing(table: ice.Table, tmp_path: Path) -> None:
    keys = tmp_path / "other.json"
    keys.write_text('{"keyA": "MTEyMzQ1Njc4OTAxMjM0NQ=="}')
    properties = {"encryption.kms-type": "file", "encryption.kms-file": str(keys)}
    other = open_catalog(tmp_path, **properties).load_table("d.t")
    with pytest.raises(StorageError, match=r"table d\.t: .*cannot be decrypted"):
        other.scan().to_arrow()


def test_tasks_get_the_keys_and_not_the_service(
    table: ice.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = table.scan()
    tasks = list(scan.plan().tasks())
    pickled = pickle.dumps((scan.context, tasks, table.io))
    assert b"keys.json" not in pickled

    def no_service(*_: object) -> None:
        raise AssertionError("a task asked the service")

    monkeypatch.setattr(KeyManagement, "_call", no_service)
    monkeypatch.setattr("iceberg_pyspark.storage.encryption.key_management._UNWRAPPED", {})
    context, tasks, io = pickle.loads(pickled)
    assert sum(b.num_rows for t in tasks for b in read_task(context, t, io)) == 20
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    assert read_snapshot_manifests(io, snapshot)
    assert not any("encryption_key" in repr(t) or "key_metadata" in repr(t) for t in tasks)


@pytest.mark.parametrize("version", ["1", "2", "4"])
def test_only_version_3_is_encrypted(catalog: ice.TableCatalog, version: str) -> None:
    properties = {"encryption.key-id": "keyA", "format-version": version}
    with pytest.raises(InvalidRequestError, match=f"version {version} cannot be encrypted"):
        catalog.create_table("d.t", "id BIGINT", properties=properties)


def test_the_key_of_a_table_never_changes(catalog: ice.TableCatalog) -> None:
    plain = catalog.create_table("d.p", "id BIGINT", properties={"format-version": "3"})
    with pytest.raises(InvalidRequestError, match="set when a table is created"):
        plain.update_properties().set({"encryption.key-id": "keyA"}).commit()
    table = written(catalog)
    for change in (
        table.update_properties().set({"encryption.key-id": "keyB"}),
        table.update_properties().remove("encryption.key-id"),
        table.update_properties().set({"format-version": "4"}),
    ):
        with pytest.raises(InvalidRequestError):
            change.commit()
    table.update_properties().set({"encryption.data-key-length": "32"}).commit()
    table.append(pa.table(ROWS))
    assert table.scan().to_arrow().num_rows == 30
    with pytest.raises(InvalidRequestError, match="16, 24, 32"):
        table.update_properties().set({"encryption.data-key-length": "20"}).commit()


def test_plaintext_files_are_refused(catalog: ice.TableCatalog, tmp_path: Path) -> None:
    table = written(catalog)
    plain = catalog.create_table("d.p", "id BIGINT, v STRING")
    plain.append(pa.table(ROWS))
    with pytest.raises(InvalidRequestError, match=r"is not encrypted.*INSERT"):
        table.add_files(str(tmp_path / "wh/d/p/data"), file_format="parquet")
    properties = {**ENCRYPTED, "write.format.default": "orc"}
    orc = catalog.create_table("d.o", "id BIGINT", properties=properties)
    with pytest.raises(UnsupportedFeatureError, match="ORC"):
        orc.append(pa.table({"id": [1]}))
    assert not list((tmp_path / "wh/d/o").rglob("*.orc"))


def test_what_the_format_has_no_key_for_is_refused(table: ice.Table) -> None:
    with pytest.raises(UnsupportedFeatureError, match="encrypted"):
        table.maintenance().compute_partition_stats()
    with pytest.raises(UnsupportedFeatureError, match="encrypted"):
        table.maintenance().rewrite_table_path(source_prefix="/a", target_prefix="/b")


def test_a_transaction_of_two_snapshots(catalog: ice.TableCatalog) -> None:
    table = written(catalog)
    with table.transaction() as transaction:
        transaction.append(pa.table(ROWS))
        transaction.append(pa.table(ROWS))
    table.refresh()
    assert table.scan().to_arrow().num_rows == 40


def test_a_purge_finds_all_files(table: ice.Table, tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    with pytest.raises(IcebergError, match="was not dropped"):
        catalog.drop_table("d.t", purge=True)
    open_catalog(tmp_path, **key_properties(tmp_path)).drop_table("d.t", purge=True)
    assert not [f for f in (tmp_path / "wh/d").rglob("*") if f.is_file()]


def test_a_store_without_keys_reads_no_encrypted_list(table: ice.Table) -> None:
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    io: FileIO = table.io.io  # type: ignore[attr-defined]
    with pytest.raises(IcebergError, match="it is encrypted"):
        read_snapshot_manifests(io, snapshot)


def test_changes_are_read_from_encrypted_files(table: ice.Table) -> None:
    first, second = (s.snapshot_id for s in table.snapshots)
    changes = table.changes(first, second).to_arrow()
    assert changes["v"].to_pylist() == ROWS["v"]
    table.overwrite(pa.table({"id": [1], "v": ["secret other"]}))
    changes = table.changes(second).to_arrow()
    assert sorted(changes["_change_type"].to_pylist()) == ["DELETE"] * 20 + ["INSERT"]


def test_deletion_vectors_are_encrypted(table: ice.Table, tmp_path: Path) -> None:
    delete_rows(table, "id", [2])
    assert table.scan().to_arrow().num_rows == 18
    positions = table.metadata_table("position_deletes").to_arrow()
    assert positions["pos"].to_pylist() == [2, 2]
    table.maintenance().rewrite_data_files(options={"rewrite-all": "true"})
    assert table.refresh().scan().to_arrow().num_rows == 18
    assert files_with(tmp_path / "wh", ["secret", "PAR1", "PFA1", "Obj\x01"]) == []


class Refusing:
    """A key management service that can be told to refuse."""

    refuses = False

    def initialize(self, properties: Mapping[str, str]) -> None:
        pass

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        if Refusing.refuses:
            raise PermissionError("not today")
        return key[::-1]

    def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
        return self.wrap_key(wrapped_key, wrapping_key_id)


@pytest.mark.parametrize("has_snapshot", [False, True])
def test_a_service_that_refuses_is_noticed_before_a_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_snapshot: bool
) -> None:
    properties = {"encryption.kms-impl": f"{__name__}.Refusing", "kms.test": str(tmp_path)}
    catalog = open_catalog(tmp_path, **properties)
    # older pyarrow encrypts no Parquet
    in_avro = {**ENCRYPTED, "write.format.default": "avro"}
    table = catalog.create_table("d.t", "id BIGINT, v STRING", properties=in_avro)
    if has_snapshot:
        table.append(pa.table(ROWS))
    written_files: list[str] = []
    open_output = RestrictedFileIO.open_output

    def open_and_count(io: RestrictedFileIO, location: str) -> BinaryIO:
        written_files.append(location)
        return open_output(io, location)

    monkeypatch.setattr(RestrictedFileIO, "open_output", open_and_count)
    monkeypatch.setattr("iceberg_pyspark.storage.encryption.key_management._UNWRAPPED", {})
    monkeypatch.setattr(Refusing, "refuses", True)
    changes: list[Callable[[ice.Table], object]] = [
        lambda t: t.append(pa.table(ROWS)),
        lambda t: t.overwrite(pa.table(ROWS)),
        lambda t: t.append(pa.table(ROWS).to_reader()),
    ]
    for change in changes:
        with pytest.raises(StorageError, match=r"refused key 'keyA'.*not today"):
            change(catalog.load_table("d.t"))
    assert written_files == []
    monkeypatch.setattr(Refusing, "refuses", False)
    catalog.load_table("d.t").append(pa.table(ROWS))
    again = catalog.load_table("d.t")
    assert again.scan().to_arrow().num_rows == 10 * (1 + has_snapshot)
    assert len(again.metadata.encryption_keys) == 2 + has_snapshot, "one key-encryption key"
