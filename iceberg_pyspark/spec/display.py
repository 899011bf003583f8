"""How parts of a table are shown to a person: as plain text, and as HTML in notebooks.

Names, comments and properties come from metadata that somebody else may have written. Plain text
shows characters that a terminal would act on as escapes, HTML escapes everything, and neither shows
a secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from html import escape

from iceberg_pyspark.redaction import redact_text
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def printable(text: str) -> str:
    r"""Text on one line, without secrets, and with control characters as escapes.

    >>> printable("two\nlines")
    'two\\nlines'
    """
    return escaped(redact_text(text))


def escaped(text: str) -> str:
    r"""Text on one line, with control characters as escapes.

    >>> escaped("two\nlines")
    'two\\nlines'
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def utc_text(timestamp_ms: int) -> str:
    """A point in time to the millisecond.

    >>> utc_text(1500)
    '1970-01-01 00:00:01.500 UTC'
    """
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms from 1970"
    return f"{moment.replace(tzinfo=None).isoformat(sep=' ', timespec='milliseconds')} UTC"


def transform_text(transform: Transform, column: str) -> str:
    """A transform of a column in the words of Iceberg's own catalog: `bucket(16, id)`."""
    match transform:
        case IdentityTransform():
            return column
        case BucketTransform(num_buckets=n):
            return f"bucket({n}, {column})"
        case TruncateTransform(width=width):
            return f"truncate({column}, {width})"
        case YearTransform() | MonthTransform() | DayTransform() | HourTransform():
            return f"{transform}s({column})"
        case _:
            return f"{transform}({column})"


def html_table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table for a notebook; every text in it is escaped.

    >>> html_table("a < b", (), [("x", "1")])
    '<table><caption>a &lt; b</caption><tbody><tr><td>x</td><td>1</td></tr></tbody></table>'
    """
    head = f"<thead>{_row(header, 'th')}</thead>" if header else ""
    body = "".join(_row(row, "td") for row in rows)
    caption = escape(printable(caption))
    return f"<table><caption>{caption}</caption>{head}<tbody>{body}</tbody></table>"


def _row(texts: Iterable[str], tag: str) -> str:
    cells = "".join(f"<{tag}>{escape(printable(text))}</{tag}>" for text in texts)
    return f"<tr>{cells}</tr>"
