"""Text and HTML that show parts of a table to a person: plain text, and HTML in notebooks.

Names, comments and properties come from metadata that another person may have written. Plain text
shows control characters as escapes, so that a terminal does not act on them; HTML escapes every
text; neither form shows a secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone

from iceberg_pyspark.redaction import redact_text

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def printable(text: str) -> str:
    r"""Return the text on one line, without secrets, and with control characters as escapes.

    >>> printable("two\nlines")
    'two\\nlines'
    """
    return escape_text(redact_text(text))


def escape_text(text: str) -> str:
    r"""Return the text on one line, with control characters as escapes.

    >>> escape_text("two\nlines")
    'two\\nlines'
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def quoted(name: str) -> str:
    """Return a name, or one level of a dotted name, in backticks, so that SQL accepts any name.

    >>> quoted("a`b")
    '`a``b`'
    """
    return f"`{name.replace('`', '``')}`"


def cut_off(text: str, length: int = 200) -> str:
    """Return at most the first `length` characters, with `...` if there are more.

    >>> cut_off("id BIGINT", 5)
    'id BI...'
    """
    return text if len(text) <= length else f"{text[:length]}..."


def utc_text(timestamp_ms: int) -> str:
    """Return a timestamp in UTC with millisecond precision.

    >>> utc_text(1500)
    '1970-01-01 00:00:01.500 UTC'
    """
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms from 1970"
    return f"{moment.replace(tzinfo=None).isoformat(sep=' ', timespec='milliseconds')} UTC"


def html_table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table for a notebook; all texts are escaped.

    >>> html_table("a < b", (), [("x", "1")])
    '<table><caption>a &lt; b</caption><tbody><tr><td>x</td><td>1</td></tr></tbody></table>'
    """
    head = f"<thead>{_row(header, 'th')}</thead>" if header else ""
    body = "".join(_row(row, "td") for row in rows)
    return f"<table><caption>{_escaped(caption)}</caption>{head}<tbody>{body}</tbody></table>"


def _row(texts: Iterable[str], tag: str) -> str:
    cells = "".join(f"<{tag}>{_escaped(text)}</{tag}>" for text in texts)
    return f"<tr>{cells}</tr>"


def _escaped(text: str) -> str:
    from html import escape  # noqa: PLC0415 - with the names of all characters

    return escape(printable(text))
