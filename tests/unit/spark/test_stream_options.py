"""Options of streams: Java's names and meanings, and no option that would have no effect."""

from __future__ import annotations

import pytest

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.options.stream_options import StreamOptions, parse_stream_options
from iceberg_pyspark.table.reading.stream_rules import BatchLimits, StreamRules


def test_options_are_read_whatever_their_case() -> None:
    assert parse_stream_options(
        {
            "Stream-From-Timestamp": "5",
            "streaming-max-files-per-micro-batch": "1",
            "streaming-max-rows-per-micro-batch": "2",
            "streaming-max-bytes-per-micro-batch": "3",
            "streaming-skip-delete-snapshots": "true",
            "streaming-skip-overwrite-snapshots": "TRUE",
            "branch": "b",
            "split-size": "7",
        }
    ) == StreamOptions(
        rules=StreamRules(from_timestamp_ms=5, skips_deletes=True, overwrites="skip"),
        limits=BatchLimits(max_files=1, max_rows=2, max_bytes=3),
        branch="b",
    )
    assert parse_stream_options({}) == StreamOptions(
        rules=StreamRules(), limits=BatchLimits(), branch=None
    )


@pytest.mark.parametrize("mode", ["fail", "skip", "added-files-only"])
def test_overwrites_are_read_by_their_mode(mode: str) -> None:
    options = parse_stream_options({"streaming-overwrite-mode": mode})
    assert options.rules.overwrites == mode


def test_options_of_the_connector_without_effect_are_accepted() -> None:
    parse_stream_options({"async-micro-batch-planning-enabled": "true"})
    parse_stream_options({"streaming-snapshot-polling-interval-ms": "10"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start-snapshot-id": "1"}, "start-snapshot-id has no meaning .* use stream-from-snaps"),
        ({"snapshot-id": "1"}, "use stream-from-snapshot"),
        ({"versionAsOf": "1"}, "use stream-from-snapshot"),
        ({"start-timestamp": "1"}, "use stream-from-timestamp"),
        ({"end-snapshot-id": "1"}, r"Trigger\.AvailableNow"),
        ({"filter": "id = 1"}, r"use where\(\.\.\.\)"),
        ({"columns": "id"}, r"use select\(\.\.\.\)"),
        ({"stream-from": "latest"}, "unknown option of a stream 'stream-from'; known: .*-snapsho"),
        ({"streamFromSnapshot": "latest"}, "did you mean stream-from-snapshot\\?"),
        ({"steaming-skip-delete-snapshot": "1"}, "did you mean streaming-skip-delete-snapshots"),
        ({"max_rows_per_micro_batch": "1"}, "did you mean streaming-max-rows-per-micro-batch"),
        ({"streaming-max-files-per-micro-batch": "0"}, "whole number of at least 1"),
        ({"streaming-overwrite-mode": "drop"}, "fail or skip or added-files-only, got 'drop'"),
        ({"streaming-skip-delete-snapshots": "yes"}, "true or false"),
        ({"async-queue-preload-row-limit": "x"}, "whole number"),
        ({"stream-from-snapshot": "latest", "stream-from-timestamp": "1"}, "both given"),
        (
            {"streaming-overwrite-mode": "skip", "streaming-skip-overwrite-snapshots": "true"},
            "both given",
        ),
    ],
)
def test_options_that_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        parse_stream_options(options)
