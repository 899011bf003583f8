"""Tables of many nonexistent data files, with metrics of 16 columns and a partition per day."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

from iceberg_pyspark.formats.manifest_lists import write_manifest_list
from iceberg_pyspark.formats.manifest_writer import write_manifest
from iceberg_pyspark.spec.manifests import (
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec, partition_type
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import MAIN, Snapshot, SnapshotRef
from iceberg_pyspark.spec.table_metadata import TableMetadata, metadata_to_bytes
from iceberg_pyspark.spec.transforms import DayTransform
from iceberg_pyspark.spec.types import (
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
)
from iceberg_pyspark.spec.values import value_to_bytes
from iceberg_pyspark.storage.files.file_io import FileIO

_DECIMAL = DecimalType(15, 2)
_COLUMNS: tuple[tuple[str, PrimitiveType], ...] = (
    ("l_orderkey", LongType()),
    ("l_partkey", LongType()),
    ("l_suppkey", LongType()),
    ("l_linenumber", IntegerType()),
    ("l_quantity", _DECIMAL),
    ("l_extendedprice", _DECIMAL),
    ("l_discount", _DECIMAL),
    ("l_tax", _DECIMAL),
    ("l_returnflag", StringType()),
    ("l_linestatus", StringType()),
    ("l_shipdate", DateType()),
    ("l_commitdate", DateType()),
    ("l_receiptdate", DateType()),
    ("l_shipinstruct", StringType()),
    ("l_shipmode", StringType()),
    ("l_comment", StringType()),
)
SCHEMA = Schema(
    fields=tuple(
        NestedField(field_id=i, name=name, type=type_)
        for i, (name, type_) in enumerate(_COLUMNS, 1)
    )
)
SPEC = PartitionSpec(
    spec_id=0,
    fields=(
        PartitionField(
            source_ids=(11,), field_id=1000, name="l_shipdate_day", transform=DayTransform()
        ),
    ),
)
FIRST_DAY = 8000
DAYS = 2500
SNAPSHOT_ID = 4_000_000_000_000_000_001
_TIME_MS = 1_767_225_600_000


def _bounds(type_: PrimitiveType, number: int, day: int) -> tuple[bytes, bytes]:
    low: Any
    high: Any
    match type_:
        case LongType():
            low, high = number * 1000, number * 1000 + 999
        case IntegerType():
            low, high = 1, 7
        case DecimalType():
            low, high = Decimal("1.00"), Decimal("50000.00")
        case DateType():
            low, high = day, day
        case _:
            low, high = f"AAAAAAAAAAAAAAA{number % 100}", f"zzzzzzzzzzzzzzz{number % 100}"
    return value_to_bytes(type_, low), value_to_bytes(type_, high)


def table_entries(
    location: str, numbers: range, random: Random, day_of: Callable[[int], int]
) -> Iterator[ManifestEntry]:
    for number in numbers:
        day = FIRST_DAY + day_of(number)
        bounds = {f.field_id: _bounds(f.type, number, day) for f in SCHEMA.fields}  # type: ignore[arg-type]
        yield ManifestEntry(
            status=EntryStatus.ADDED,
            data_file=DataFile(
                file_path=f"{location}/data/l_shipdate_day={day}/{number % 1000:05d}-{number}-"
                f"0e8f9c7a-1111-4a4a-9b9b-{number:012d}-00001.parquet",
                partition=(day,),
                record_count=100_000,
                file_size_in_bytes=16_000_000,
                column_sizes={i: 1_000_000 + random.randrange(1000) for i in bounds},
                value_counts=dict.fromkeys(bounds, 100_000),
                null_value_counts=dict.fromkeys(bounds, 0),
                lower_bounds={i: low for i, (low, _) in bounds.items()},
                upper_bounds={i: high for i, (_, high) in bounds.items()},
                split_offsets=(4,),
            ),
        )


def make_table(
    file_io: FileIO,
    folder: str,
    location: str,
    files: int,
    per_manifest: int,
    *,
    in_order: bool,
) -> None:
    """Write into a folder the metadata of a table that will be moved to `location`.

    `in_order`: files are sorted by day, so that each manifest covers few days.
    """
    random = Random(1)

    def day_of(number: int) -> int:
        return number * DAYS // files if in_order else number % DAYS

    manifests = [
        _manifest(
            file_io,
            f"{folder}/metadata/bench-m{start // per_manifest}.avro",
            table_entries(location, range(start, min(start + per_manifest, files)), random, day_of),
            SNAPSHOT_ID,
        )
        for start in range(0, files, per_manifest)
    ]
    manifest_list = f"metadata/snap-{SNAPSHOT_ID}-1-bench.avro"
    write_manifest_list(
        file_io,
        f"{folder}/{manifest_list}",
        [
            replace(m, manifest_path=location + m.manifest_path.removeprefix(folder))
            for m in manifests
        ],
        format_version=2,
        snapshot_id=SNAPSHOT_ID,
        parent_snapshot_id=None,
        sequence_number=1,
    )
    snapshot = Snapshot(
        snapshot_id=SNAPSHOT_ID,
        sequence_number=1,
        timestamp_ms=_TIME_MS,
        manifest_list=f"{location}/{manifest_list}",
        summary={"operation": "append"},
        schema_id=0,
    )
    _write_metadata(file_io, folder, location, [snapshot], "00000-bench")


def make_snapshots(file_io: FileIO, folder: str, files: int, snapshots: int) -> None:
    """Write the metadata of a table whose files were appended by many snapshots.

    Only the newest snapshot's manifest list exists. The table is one of a hadoop catalog.
    """
    random, per_snapshot = Random(1), files // snapshots
    manifests = []
    made = []
    for i in range(snapshots):
        numbers = range(i * per_snapshot, (i + 1) * per_snapshot)
        entries = table_entries(folder, numbers, random, lambda number: number % DAYS)
        path = f"{folder}/metadata/bench-m{i}.avro"
        manifest = _manifest(file_io, path, entries, SNAPSHOT_ID + i)
        manifests.append(replace(manifest, sequence_number=i + 1, min_sequence_number=i + 1))
        made.append(
            Snapshot(
                snapshot_id=SNAPSHOT_ID + i,
                parent_snapshot_id=SNAPSHOT_ID + i - 1 if i else None,
                sequence_number=i + 1,
                timestamp_ms=_TIME_MS + i,
                manifest_list=f"{folder}/metadata/snap-{SNAPSHOT_ID + i}-1-bench.avro",
                summary={"operation": "append"},
                schema_id=0,
            )
        )
    write_manifest_list(
        file_io,
        made[-1].manifest_list or "",
        manifests,
        format_version=2,
        snapshot_id=made[-1].snapshot_id,
        parent_snapshot_id=made[-1].parent_snapshot_id,
        sequence_number=snapshots,
    )
    _write_metadata(file_io, folder, folder, made, "v1")


def _manifest(
    file_io: FileIO, path: str, entries: Iterator[ManifestEntry], snapshot_id: int
) -> ManifestFile:
    return write_manifest(
        file_io,
        path,
        entries,
        spec=SPEC,
        schema=SCHEMA,
        partition_type=partition_type(SPEC, [SCHEMA]),
        format_version=2,
        content=ManifestContent.DATA,
        snapshot_id=snapshot_id,
    )


def _write_metadata(
    file_io: FileIO, folder: str, location: str, snapshots: Sequence[Snapshot], name: str
) -> None:
    newest = snapshots[-1]
    metadata = TableMetadata(
        format_version=2,
        table_uuid="7c1bdb4b-7c43-4b0b-8c33-5a4f0fd2f3a1",
        location=location,
        last_sequence_number=newest.sequence_number,
        last_updated_ms=newest.timestamp_ms,
        last_column_id=len(_COLUMNS),
        schemas=(SCHEMA,),
        current_schema_id=0,
        partition_specs=(SPEC,),
        default_spec_id=0,
        last_partition_id=1000,
        current_snapshot_id=newest.snapshot_id,
        snapshots=tuple(snapshots),
        refs={MAIN: SnapshotRef(snapshot_id=newest.snapshot_id)},
        # later commits keep the manifests as they are
        properties={"commit.manifest-merge.enabled": "false"},
    )
    with file_io.open_output(f"{folder}/metadata/{name}.metadata.json") as stream:
        stream.write(metadata_to_bytes(metadata))
