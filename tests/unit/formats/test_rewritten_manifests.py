"""Manifests that are written again without some files: the same entries whichever way is taken."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import iceberg_pyspark
from iceberg_pyspark import Table
from iceberg_pyspark.changes.manifest_changes import FilteredEntries
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.formats import (
    known_manifests,
    manifest_columns,
    manifest_reader,
    manifest_rewriter,
)
from iceberg_pyspark.formats.avro import avro
from iceberg_pyspark.formats.known_manifests import KnownEntries, keep_written
from iceberg_pyspark.formats.manifest_columns import known_entries
from iceberg_pyspark.formats.manifest_reader import read_manifest_entries, read_manifest_header
from iceberg_pyspark.formats.manifest_rewriter import rewrite_manifest
from iceberg_pyspark.formats.manifest_writer import write_manifest
from iceberg_pyspark.spec.manifests import DataFile, ManifestFile
from iceberg_pyspark.table.commits import commit_snapshot


def new_table(schema: str, **options: Any) -> Table:
    catalog = iceberg_pyspark.load_catalog(
        "again", type="memory", warehouse=f"memory://{uuid.uuid4()}"
    )
    catalog.create_namespace("db")
    table: Table = catalog.create_table("db.t", schema, **options)
    return table


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Compare each rewritten manifest with one written from its entries; return what was done."""
    done: list[str] = []

    def rewrite(
        io: Any, location: str, old: ManifestFile, removed: Any, **arguments: Any
    ) -> ManifestFile | None:
        new = rewrite_manifest(io, location, old, removed, **arguments)
        done.append("written anew" if new is None else "copied")
        if new is None:
            return None
        type_, snapshot_id = arguments["partition_type"], arguments["snapshot_id"]
        header = read_manifest_header(io, old.manifest_path, old.key_metadata)
        entries = FilteredEntries(
            manifest=old,
            read_entries=lambda m: read_manifest_entries(io, m, type_),
            removed=frozenset(removed),
            snapshot_id=snapshot_id,
        )
        expected = write_manifest(
            io,
            f"{location}-expected",
            entries,
            spec=header.spec,
            schema=header.schema,
            partition_type=type_,
            format_version=arguments["format_version"],
            content=old.content,
            snapshot_id=snapshot_id,
            codec=arguments["codec"],
        )
        length = new.manifest_length
        assert replace(expected, manifest_path=location, manifest_length=length) == new
        assert read_manifest_header(io, location) == header
        # numbers that the manifest list has not assigned yet must not be inherited
        listed = (replace(m, sequence_number=99, first_row_id=10**9) for m in (expected, new))
        of_expected, of_new = (list(read_manifest_entries(io, m, type_)) for m in listed)
        assert of_new == of_expected
        return new

    def keep(io: Any, known: Mapping[str, KnownEntries], manifests: Sequence[ManifestFile]) -> None:
        keep_written(io, known, manifests)
        for manifest in manifests:
            new = known.get(manifest.manifest_path)
            if new is None:
                continue
            key = new.key
            assert key is not None
            arguments = (io, manifest, key.partition_type)
            kept = known_entries(*arguments, metrics=key.metrics)
            known_manifests._KNOWN._entries.clear()
            decoded = known_entries(*arguments, metrics=key.metrics)
            assert decoded is not kept
            assert kept.table().equals(decoded.table())
            assert kept.dropped.tolist() == decoded.dropped.tolist()
            assert kept.key == decoded.key
            done.append("known")

    # as of large manifests
    monkeypatch.setattr(known_manifests, "_PLAIN_BYTES", 0)
    monkeypatch.setattr(known_manifests, "BLOCK_ENTRIES", 2)
    monkeypatch.setattr(manifest_rewriter, "rewrite_manifest", rewrite)
    monkeypatch.setattr(commit_snapshot, "keep_written", keep)
    return done


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "v": [f"v{i}" for i in ids], "p": [i % 3 for i in ids]}
    ).set_column(2, "p", pa.array([i % 3 for i in ids], pa.int32()))


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_a_history(version: str, mode: str, compared: list[str]) -> None:
    if version == "1" and mode == "merge-on-read":
        pytest.skip("version 1 has no deletes")
    modes = {f"write.{name}.mode": mode for name in ("delete", "update", "merge")}
    merges = {"commit.manifest.min-count-to-merge": "3", "format-version": version}
    table = new_table(
        "id BIGINT, v STRING, p INT", partitioned_by=["p"], properties={**modes, **merges}
    )
    model: dict[int, str] = {}
    for step in range(4):
        ids = range(10 * step, 10 * step + 10)
        table.refresh().append(rows(*ids))
        model |= {i: f"v{i}" for i in ids}
        table.refresh().update({"v": "'new'"}, f"id IN ({step}, {7 + step}, {14 + step})")
        model |= {i: "new" for i in model if i in (step, 7 + step, 14 + step)}
        table.refresh().delete(f"id = {10 * step + 3} OR id = {5 * step}")
        model = {i: v for i, v in model.items() if i not in (10 * step + 3, 5 * step)}
        table.refresh().delete(f"p = {step % 3} AND id < {5 * step}")
        model = {i: v for i, v in model.items() if not (i % 3 == step % 3 and i < 5 * step)}
        assert dict(_pairs(table.refresh())) == model
    table.refresh().maintenance().rewrite_manifests()
    table.refresh().delete("id > 25")
    assert dict(_pairs(table.refresh())) == {i: v for i, v in model.items() if i <= 25}
    assert set(compared) == ({"written anew"} if version == "1" else {"copied", "known"})
    assert not table.verify(check_files=True).findings


def _pairs(table: Table) -> Iterator[tuple[int, str]]:
    found = table.scan().to_arrow()
    return zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)


def test_a_manifest_of_an_older_version_is_written_anew(compared: list[str]) -> None:
    table = new_table("id BIGINT", properties={"format-version": "2"})
    table.append(pa.table({"id": [1, 2]}))
    table.append(pa.table({"id": [3]}))
    table.refresh().update_properties().set({"format-version": "3"}).commit()
    copy_on_write = {"write.delete.mode": "copy-on-write"}
    table.refresh().update_properties().set(copy_on_write).commit()
    table.refresh().delete("id = 1")
    assert compared == ["written anew"]
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [2, 3]


@pytest.mark.parametrize("codec", ["gzip", "zstd", "snappy", "none"])
def test_another_decoder_reads_what_is_copied(codec: str, compared: list[str]) -> None:
    properties = {"write.manifest.compression-codec": codec}
    table = new_table("id BIGINT, p INT", partitioned_by=["p"], properties=properties)
    with table.transaction() as transaction:
        transaction.add_snapshot(AppendFiles(data_files=tuple(_files(table, 500))))
    for p in (3, 499):
        table.refresh().delete(f"p = {p}")
        [path] = table.refresh().inspect.manifests()["path"].to_pylist()
        entries: list[Any] = list(fastavro.reader(BytesIO(table.io.read_bytes(path))))
        live = [e["data_file"]["partition"]["p"] for e in entries if e["status"] == 0]
        assert live == [i for i in range(500) if i not in (3, p)]
        assert [e["data_file"]["partition"]["p"] for e in entries if e["status"] == 2] == [p]
        assert {e["sequence_number"] for e in entries} == {1}
    assert compared == ["copied", "copied", "known"]


def test_what_a_removal_makes_anew(monkeypatch: pytest.MonkeyPatch, compared: list[str]) -> None:
    """Only the first removal from a manifest writes all entries; others a block, and no objects."""
    counts = []
    for files in (1000, 2000):
        table = new_table("id BIGINT, p INT", partitioned_by=["p"])
        with table.transaction() as transaction:
            transaction.add_snapshot(AppendFiles(data_files=tuple(_files(table, files))))
        table.refresh().delete("p = 10")
        compared.clear()
        with monkeypatch.context() as patch:
            patch.setattr(manifest_rewriter, "rewrite_manifest", rewrite_manifest)
            patch.setattr(commit_snapshot, "keep_written", keep_written)
            work = _counted(patch)
            table.refresh().delete("p = 20")
            assert work["decoded"] == 1
            counts.append(dict(work))
            # the entries that the last commit left are known
            table.refresh().delete("p = 30")
            assert work["decoded"] == 1
        assert len(list(table.refresh().scan().plan_files())) == files - 3
    assert counts[0]["objects"] == counts[1]["objects"] == 1
    assert 0 < counts[0]["records"] < 500
    assert abs(counts[1]["records"] - counts[0]["records"]) < 50


def _files(table: Table, count: int) -> Iterator[DataFile]:
    for i in range(count):
        yield DataFile(
            file_path=f"{table.location}/data/{uuid.uuid4()}.parquet",
            record_count=1,
            file_size_in_bytes=1000,
            spec_id=table.spec.spec_id,
            partition=(i,),
        )


def _counted(patch: pytest.MonkeyPatch) -> dict[str, int]:
    work = {"objects": 0, "records": 0, "decoded": 0}
    decode = manifest_columns._raw_entries
    make, write = manifest_reader._manifest_entry, avro._changed_records

    def making(*arguments: Any) -> Any:
        work["objects"] += 1
        return make(*arguments)

    def writing(*arguments: Any) -> list[bytes]:
        records = write(*arguments)
        work["records"] += len(records)
        return records

    def decoding(*arguments: Any) -> Any:
        work["decoded"] += 1
        return decode(*arguments)

    patch.setattr(manifest_columns, "_raw_entries", decoding)
    patch.setattr(manifest_reader, "_manifest_entry", making)
    patch.setattr(avro, "_changed_records", writing)
    return work
