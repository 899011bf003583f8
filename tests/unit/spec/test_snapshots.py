"""Numbers in summaries may have any content, because other writers may write anything."""

import pytest

from iceberg_pyspark.spec.snapshots import Snapshot


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
