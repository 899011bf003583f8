"""Hides secrets of catalogs and options in the output of Spark.

Spark hides values by its settings: `spark.sql.redaction.options.regex` for properties in plans, in
`SET` and in the SQL tab, `spark.sql.redaction.string.regex` for the text of plans, and
`spark.redaction.regex` for events and the environment page. Their defaults lack many names that
catalogs and stores use, so the names of `redaction.py` are added; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from iceberg_pyspark.redaction import SPARK_KEYS_REGEX, SPARK_TEXT_REGEX, get_logger
from iceberg_pyspark.spark.bridge.features import HIDDEN_IN_EVENTS

if TYPE_CHECKING:
    from iceberg_pyspark.spark.bridge.jvm import Bridge

_log = get_logger(__name__)

_SETTINGS: Mapping[str, str] = {
    "spark.sql.redaction.options.regex": SPARK_KEYS_REGEX,
    "spark.sql.redaction.string.regex": SPARK_TEXT_REGEX,
}


def hide_secrets(bridge: Bridge) -> None:
    """Add this package's patterns to the settings of the session and of the application."""
    bridge.hide_in_settings(_SETTINGS)
    failure = bridge.hide_in_events(SPARK_KEYS_REGEX)
    # The log already named the missing features when Iceberg was installed.
    if failure is not None and bridge.has(HIDDEN_IN_EVENTS):
        _log.warning(
            "secrets are not hidden in the event log (%s): %s", failure, HIDDEN_IN_EVENTS.otherwise
        )


def show_as_before(spark: SparkSession) -> None:
    """Remove this package's patterns from the session's settings; the application keeps them."""
    for name, pattern in _SETTINGS.items():
        pattern_list = spark.conf.get(name)
        if pattern_list and pattern_list.endswith(pattern):
            spark.conf.unset(name)
            before = pattern_list.removesuffix(pattern).removesuffix("|")
            if (spark.conf.get(name) or "") != before:
                spark.conf.set(name, before)
