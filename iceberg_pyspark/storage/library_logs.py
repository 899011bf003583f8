"""Redact the log records of other libraries, some of which log all requests at DEBUG.

A filter of a logger applies only to records of that logger, so each logger of a package gets one.
Records are redacted only if their level is enabled.
"""

from __future__ import annotations

import logging

from iceberg_pyspark.redaction import redact_text


class RedactingFilter(logging.Filter):
    """Redacts messages and tracebacks, and lets every record pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact a record; the logger calls this method."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):
            return True  # invalid arguments; the handler reports them
        text = self.redact_message(message)
        if text != message:
            record.msg, record.args = text, ()
        if record.exc_info:
            traceback = logging.Formatter().formatException(record.exc_info)
            text = redact_text(traceback)
            if text != traceback:
                record.exc_text, record.exc_info = text, None
        return True

    def redact_message(self, message: str) -> str:
        """Return the message without secrets."""
        return redact_text(message)


_EVERY = RedactingFilter()
_logger_counts: dict[tuple[str, ...], int] = {}


def redact_logs_of(*packages: str, by: logging.Filter = _EVERY) -> None:
    """Add a redacting filter to all loggers that the packages have created so far."""
    loggers = logging.root.manager.loggerDict
    # this runs for every file; loggers are added and never removed, so the count detects changes
    if not packages or _logger_counts.get(packages) == len(loggers):
        return
    names = list(loggers)
    prefixes = tuple(f"{package}." for package in packages)
    for name in names:
        if name in packages or name.startswith(prefixes):
            logging.getLogger(name).addFilter(by)
    # set last: another thread takes this entry as proof that the loggers have their filters
    _logger_counts[packages] = len(names)
