"""Snapshots and their JSON."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import pytest

from iceberg_pyspark.spec.snapshots import Snapshot, snapshot_to_bytes


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("12", 12),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        ("9" * 5000, None),
        ("-1", None),
        ("1.5", None),
        ("many", None),
        ("", None),
    ],
)
def test_summary_value_that_is_not_a_count_is_unknown(text: str, number: int | None) -> None:
    snapshot = Snapshot(snapshot_id=1, timestamp_ms=0, summary={"total-records": text})
    assert snapshot.number("total-records") == number
    assert snapshot.number("total-data-files") is None


def test_replaced_snapshot_has_text_of_its_own() -> None:
    snapshot = Snapshot(snapshot_id=1, timestamp_ms=5, manifest_list="a", summary={"k": "v"})
    text = snapshot_to_bytes(snapshot)
    assert snapshot_to_bytes(snapshot) is text
    assert json.loads(snapshot_to_bytes(replace(snapshot, snapshot_id=2)))["snapshot-id"] == 2
    fresh = Snapshot(snapshot_id=1, timestamp_ms=5, manifest_list="a", summary={"k": "v"})
    assert snapshot == fresh
    assert repr(snapshot) == repr(fresh)
    assert snapshot_to_bytes(pickle.loads(pickle.dumps(snapshot))) == text
