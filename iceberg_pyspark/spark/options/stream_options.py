"""Options of streaming reads: names and defaults are Iceberg's, some are new.

An option that chooses rows of a batch read is refused for a stream, with what to use instead: the
JVM connector ignores it, so a query would silently begin elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.options.option_values import (
    choice_option,
    flag_option,
    lower_names,
    meant_option,
    number_option,
)
from iceberg_pyspark.spec.property_types import INT_MAX
from iceberg_pyspark.table.reading.stream_rules import BatchLimits, OverwriteMode, StreamRules

_FROM_TIMESTAMP = number_option("stream-from-timestamp")
_FROM_SNAPSHOT = "stream-from-snapshot"
_MAX_FILES = number_option("streaming-max-files-per-micro-batch", 1, INT_MAX)
_MAX_ROWS = number_option("streaming-max-rows-per-micro-batch", 1)
_MAX_BYTES = number_option("streaming-max-bytes-per-micro-batch", 1)
_SKIP_DELETES = flag_option("streaming-skip-delete-snapshots", False)
_SKIP_OVERWRITES = flag_option("streaming-skip-overwrite-snapshots", False)
_OVERWRITE_MODE = choice_option("streaming-overwrite-mode", "fail", "skip", "added-files-only")
_WITHOUT_EFFECT = (
    flag_option("async-micro-batch-planning-enabled", False),
    number_option("streaming-snapshot-polling-interval-ms", 0),
    number_option("async-queue-preload-file-limit", 0),
    number_option("async-queue-preload-row-limit", 0),
)

STREAM_OPTIONS = frozenset(
    {
        *(_FROM_TIMESTAMP.name, _FROM_SNAPSHOT, _MAX_FILES.name, _MAX_ROWS.name, _MAX_BYTES.name),
        *(_SKIP_DELETES.name, _SKIP_OVERWRITES.name, _OVERWRITE_MODE.name),
    }
)
STREAM_OPTIONS_WITHOUT_EFFECT = frozenset(option.name for option in _WITHOUT_EFFECT)
_PREFIXES = ("stream-", "streaming-", "async-")

_FOLLOWS = f"{_FROM_SNAPSHOT}, which reads what follows a snapshot, or all rows and what follows"
_NO_END = "Trigger.AvailableNow, which ends at the newest snapshot, or spark.read"
_INSTEAD = {
    "snapshot-id": _FOLLOWS,
    "tag": _FOLLOWS,
    "versionasof": _FOLLOWS,
    "start-snapshot-id": _FOLLOWS,
    "as-of-timestamp": _FROM_TIMESTAMP.name,
    "timestampasof": _FROM_TIMESTAMP.name,
    "start-timestamp": _FROM_TIMESTAMP.name,
    "end-snapshot-id": _NO_END,
    "end-timestamp": _NO_END,
    "columns": "select(...)",
    "filter": "where(...)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """The options of a stream."""

    rules: StreamRules
    limits: BatchLimits
    branch: str | None


def parse_stream_options(options: Mapping[str, str]) -> StreamOptions:
    """Return the options of a stream; raise `InvalidRequestError` for those that are none."""
    values = lower_names(options)
    for name in sorted(values):
        if name in _INSTEAD:
            raise InvalidRequestError(
                f"the option {name} has no meaning for a stream: use {_INSTEAD[name]}"
            )
        if name in STREAM_OPTIONS or name in STREAM_OPTIONS_WITHOUT_EFFECT:
            continue
        hint = meant_option(name, STREAM_OPTIONS)
        if hint or name.startswith(_PREFIXES):
            raise InvalidRequestError(
                f"unknown option of a stream '{name}'; known: "
                f"{', '.join(sorted(STREAM_OPTIONS))}{hint}"
            )
    for option in _WITHOUT_EFFECT:
        option.of(values)
    from_snapshot = values.get(_FROM_SNAPSHOT)
    if from_snapshot is not None and _FROM_TIMESTAMP.name in values:
        raise InvalidRequestError(
            f"{_FROM_SNAPSHOT} and {_FROM_TIMESTAMP.name} are both given; keep one"
        )
    return StreamOptions(
        rules=StreamRules(
            from_timestamp_ms=_FROM_TIMESTAMP.of(values),
            from_snapshot=from_snapshot,
            skips_deletes=_SKIP_DELETES.of(values),
            overwrites=_overwrites(values),
        ),
        limits=BatchLimits(
            max_files=_MAX_FILES.of(values),
            max_rows=_MAX_ROWS.of(values),
            max_bytes=_MAX_BYTES.of(values),
        ),
        branch=values.get("branch"),
    )


def check_options_of_changes(options: Mapping[str, str]) -> None:
    """Raise `InvalidRequestError` for options about what a stream of changes shows anyway."""
    for option in (_SKIP_DELETES, _SKIP_OVERWRITES, _OVERWRITE_MODE):
        if option.name in lower_names(options):
            raise InvalidRequestError(
                f"the option {option.name} has no meaning for a stream of changes, which shows "
                "deleted and overwritten rows; leave it out"
            )


def _overwrites(values: Mapping[str, str]) -> OverwriteMode:
    mode = _OVERWRITE_MODE.of(values)
    if mode is not None and _SKIP_OVERWRITES.name in values:
        raise InvalidRequestError(
            f"{_SKIP_OVERWRITES.name} and {_OVERWRITE_MODE.name} are both given; keep the latter"
        )
    if mode == "added-files-only":
        return "added-files-only"
    return "skip" if mode == "skip" or _SKIP_OVERWRITES.of(values) else "fail"
