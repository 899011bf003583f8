"""Paths to the fields of variants: `$.a.b` as people write them, and their normalized form.

Specification, "Bounds for Variant, Geometry, and Geography": the keys of bounds are normalized
paths (RFC 9535, section 2.7), such as `$['a']['b']`; `$` alone is the whole value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.json_fields import short_text

_ESCAPES = {
    "'": "\\'",
    "\\": "\\\\",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}
_STEP = re.compile(r"""\.([^.\[\]'"\s]+)|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")


def normalized_path(names: Sequence[str]) -> str:
    """Return the normalized path of a field.

    >>> normalized_path(["a", "it's"])
    "$['a']['it\\\\'s']"
    """
    return "$" + "".join(f"['{''.join(map(_escaped, name))}']" for name in names)


def _escaped(char: str) -> str:
    return _ESCAPES.get(char) or (f"\\u{ord(char):04x}" if char < " " else char)


def field_path(text: str) -> tuple[str, ...]:
    """Return the names in a path to a field; `InvalidRequestError` for other paths.

    >>> field_path("$.a['b c'].d")
    ('a', 'b c', 'd')
    """
    names = []
    at = 1 if text.startswith("$") else 0
    while at < len(text) or not at:
        step = _STEP.match(text, at)
        if step is None:
            raise InvalidRequestError(
                f"{short_text(text)} is not the path of a field in variants: write $.name or "
                "$['name'], without positions in arrays"
            )
        names.append(next(re.sub(r"\\(.)", r"\1", g) for g in step.groups() if g is not None))
        at = step.end()
    return tuple(names)
