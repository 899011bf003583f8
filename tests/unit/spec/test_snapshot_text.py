"""The JSON of a snapshot is made once, and belongs to that snapshot alone."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

from iceberg_pyspark.spec.snapshots import Snapshot, snapshot_to_bytes


def test_replaced_snapshot_has_text_of_its_own() -> None:
    snapshot = Snapshot(snapshot_id=1, timestamp_ms=5, manifest_list="a", summary={"k": "v"})
    text = snapshot_to_bytes(snapshot)
    assert snapshot_to_bytes(snapshot) is text
    assert json.loads(snapshot_to_bytes(replace(snapshot, snapshot_id=2)))["snapshot-id"] == 2
    fresh = Snapshot(snapshot_id=1, timestamp_ms=5, manifest_list="a", summary={"k": "v"})
    assert snapshot == fresh
    assert repr(snapshot) == repr(fresh)
    assert snapshot_to_bytes(pickle.loads(pickle.dumps(snapshot))) == text
