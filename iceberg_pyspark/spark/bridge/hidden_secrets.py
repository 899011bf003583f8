"""Hides secrets of catalogs and options in the output of Spark and py4j.

Spark hides values by its settings: `spark.sql.redaction.options.regex` for properties in plans, in
`SET` and in the SQL tab, `spark.sql.redaction.string.regex` for the text of plans, and
`spark.redaction.regex` for events and the environment page. Their defaults lack many names that
catalogs and stores use, so the names of `redaction.py` are added; nothing else changes. py4j logs,
at DEBUG, everything that is sent to the JVM and received from it.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from iceberg_pyspark.redaction import MASK, SPARK_KEYS_REGEX, SPARK_TEXT_REGEX, is_secret_key
from iceberg_pyspark.spark.bridge.features import HIDDEN_IN_EVENTS
from iceberg_pyspark.storage.library_logs import RedactingFilter, redact_logs_of

if TYPE_CHECKING:
    from iceberg_pyspark.spark.bridge.jvm import Bridge

_log = logging.getLogger(__name__)

_SETTINGS: Mapping[str, str] = {
    "spark.sql.redaction.options.regex": SPARK_KEYS_REGEX,
    "spark.sql.redaction.string.regex": SPARK_TEXT_REGEX,
}


def hide_secrets(bridge: Bridge) -> None:
    """Add this package's patterns to the settings of the session and of the application."""
    redact_logs_of("py4j", by=_COMMANDS)
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


class _Commands(RedactingFilter):
    """A filter for py4j's log: a command has one line per argument; an answer is a separate
    message.
    """

    _LAST = re.compile(r"\ns([\w.\-]+)\ne\n|Answer received: !ys([\w.\-]+)")
    _TEXT_ANSWER = re.compile(r"(Answer received: !ys).*", re.DOTALL)

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.local()

    def redact_message(self, message: str) -> str:
        names_secret = getattr(self._thread, "named_secret", False)
        if message.startswith("Answer received: "):
            self._thread.named_secret = False
            if names_secret:
                return self._TEXT_ANSWER.sub(rf"\1{MASK}", message)
        last = self._LAST.search(message)
        if last is not None and is_secret_key(last[1] or last[2]):
            self._thread.named_secret = True
        return super().redact_message("\n".join(_arguments(message.split("\n"))))


def _arguments(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a command, with the texts after the key of a secret hidden."""
    key = ""
    for line in lines:
        is_value = line.startswith("s") and is_secret_key(key)
        yield f"s{MASK}" if is_value else line
        key = line if line.startswith("s") and not is_value else ""


_COMMANDS = _Commands()
