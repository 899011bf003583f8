"""A target for the answers of a scan planning server: files and deletes as JSON."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from iceberg_pyspark.catalogs.catalog import ScanToPlan
from iceberg_pyspark.catalogs.rest.planned_files import PlannedFilesReader
from iceberg_pyspark.planning.scan_plan import tasks_of
from iceberg_pyspark.planning.split_pack import Splitter
from iceberg_pyspark.spec.json_fields import JsonObject
from iceberg_pyspark.spec.values import value_to_json
from tests.fuzz.mutations import json_bytes, mutate_json
from tests.fuzz.seeds import seed_tables
from tests.fuzz.targets import Target

_METRICS: dict[str, Any] = {
    "value-counts": {"keys": [1], "values": [3]},
    "null-value-counts": {"keys": [1], "values": [0]},
    "lower-bounds": {"keys": [1], "values": [0]},
    "upper-bounds": {"keys": [1], "values": ["0A00000000000000"]},
}


@cache
def _scan_and_answer() -> tuple[ScanToPlan, dict[str, Any]]:
    seed = seed_tables()[0]
    table = seed.opened(json_bytes(seed.metadata_json, Random(0)))
    scan = table.scan(filter="id > 3 AND part = 'p1'")
    assert scan.snapshot is not None
    files: list[dict[str, Any]] = []
    deletes: list[dict[str, Any]] = []
    for planned in table.scan().plan().files():
        types = [f.type for f in planned.partition_type.fields]
        for task in tasks_of(planned):
            common: dict[str, Any] = {
                "file-path": task.file_path,
                "file-format": task.file_format,
                "spec-id": task.spec_id,
                "partition": [
                    value_to_json(t, v) for t, v in zip(types, task.partition, strict=True)
                ],
                "file-size-in-bytes": task.file_size_in_bytes,
                "record-count": task.record_count,
            }
            more: dict[str, Any] = {
                "content": "data",
                "split-offsets": [4],
                "sort-order-id": 0,
                "first-row-id": 7,
            }
            files.append(
                {
                    "data-file": {**common, **more, **_METRICS},
                    "delete-file-references": [len(deletes)],
                    "residual-filter": {"type": "gt", "term": "id", "value": 3},
                }
            )
            vector: dict[str, Any] = {
                "file-format": "puffin",
                "content-offset": 4,
                "content-size-in-bytes": 9,
            }
            keys: dict[str, Any] = {"content": "equality-deletes", "equality-ids": [1]}
            kind = keys if len(deletes) % 2 else {"content": "position-deletes", **vector}
            deletes.append({**common, **kind})
    request = ScanToPlan(
        metadata=scan.metadata,
        snapshot_id=scan.snapshot.snapshot_id,
        schema=scan.context.schemas[0],
        projection=scan.context.projection,
        predicate=scan.context.predicate,
        metrics=frozenset((1, 2)),
        take_credentials=lambda _: None,
    )
    return request, {"file-scan-tasks": files, "delete-files": deletes}


def _mutated(choose: Random) -> Any:
    return mutate_json(_scan_and_answer()[1], choose)


def _parse(arguments: Any) -> None:
    for files in PlannedFilesReader(_scan_and_answer()[0]).read(JsonObject(arguments)):
        files.min_live_rows()
        assert len(tasks_of(files, Splitter(1000))) >= files.entries.num_rows


PLANNED_TARGETS = (Target(name="planned-files", mutate=_mutated, parse=_parse),)
