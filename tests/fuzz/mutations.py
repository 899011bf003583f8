"""Mutated inputs: a valid document, file or text with a few changes.

All choices are drawn from the given `random.Random`, so that a case can be repeated from its seed.
"""

from __future__ import annotations

import copy
import json
import re
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

_NUMBERS = (
    *(0, -1, 1, 2, 3, 127, 999, 1000, 1001, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32),
    *(2**53, 2**62, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30, 2147483645, 2147483447),
)
_TEXTS = (
    *("", " ", "x", "0", "-1", "1.5", "null", "true", "false", "main", "id", "part", "a.b", "é𐍈"),
    *("\x00", "a\x00b", "\ud800", "\n", "`", "'", '"', "..", "/", "\\", "%", "_", "*"),
    *(
        "struct",
        "list",
        "map",
        "int",
        "long",
        "string",
        "unknown",
        "variant",
        "geometry",
        "boolean",
    ),
    *("decimal(0,0)", "decimal(38,99)", "decimal(99999999999,2)", "fixed[0]", "fixed[99999999999]"),
    *("geometry(" + " " * 3000, "geography(" + "a " * 2000, "timestamp_ns", "uuid", "binary"),
    *("identity", "bucket[0]", "bucket[2147483648]", "bucket[" + "9" * 5000 + "]", "truncate[1]"),
    *("truncate[2147483647]", "year", "month", "day", "hour", "void", "zorder[1,2]", "bucket[-1]"),
    *("2020-01-01", "9999-12-31T23:59:59.999999+00:00", "+12345-01-01", "1E+999999999", "NaN"),
    *("append", "branch", "tag", "asc", "DESC", "nulls-first", "deletion-vector-v1", "lz4", "zstd"),
    *("mem://t/none", "file:///etc/passwd", "s3://bucket/x", "9" * 5000, "a" * 10_000, "٣", "²"),
)
_DEPTHS = (5, 60, 120, 400, 900)


def mutate_json(document: Any, choose: Random) -> Any:
    """Return a copy of a JSON document with one to four of its values changed."""
    changed = copy.deepcopy(document)
    for _ in range(choose.choice((1, 1, 1, 2, 4))):
        holder = [changed]
        places = list(_places(holder))
        parent, key = choose.choice(places)
        choose.choice(_JSON_CHANGES)(parent, key, places, choose)
        changed = holder[0] if holder else None
    return changed


def json_bytes(document: Any, choose: Random) -> bytes:
    """Return a JSON document as text, sometimes with changed bytes."""
    data = json.dumps(document).encode()
    if choose.random() < 0.1:
        data = mutate_bytes(data, choose)
    if choose.random() < 0.02:
        data = re.sub(
            rb"\d+", choose.choice((b"NaN", b"-Infinity", b"1e999", b"9" * 5000)), data, count=1
        )
    return data


def _places(root: list[Any]) -> Any:
    """Yield every (container, key) pair of a document, without recursion."""
    waiting: list[Any] = [root]
    while waiting:
        container = waiting.pop()
        keys = range(len(container)) if isinstance(container, list) else list(container)
        for key in keys:
            yield container, key
            if isinstance(container[key], list | dict):
                waiting.append(container[key])


def _replace(parent: Any, key: Any, places: Any, choose: Random) -> None:
    parent[key] = _value(choose)


def _delete(parent: Any, key: Any, places: Any, choose: Random) -> None:
    del parent[key]


def _repeat(parent: Any, key: Any, places: Any, choose: Random) -> None:
    if isinstance(parent, list):
        parent.insert(key, copy.deepcopy(parent[key]))
    else:
        parent[f"{key}{choose.choice(('-', 's', ' '))}"] = copy.deepcopy(parent[key])


def _another(parent: Any, key: Any, places: Any, choose: Random) -> None:
    other, at = choose.choice(places)
    parent[key] = copy.deepcopy(other[at])


def _nudge(parent: Any, key: Any, places: Any, choose: Random) -> None:
    value = parent[key]
    if type(value) is int:
        parent[key] = choose.choice(
            (value + 1, value - 1, -value, value * 2, str(value), value / 2)
        )
    elif isinstance(value, str):
        parent[key] = mutate_text(value, choose, _TEXTS)
    elif isinstance(value, bool):
        parent[key] = choose.choice((not value, int(value), str(value)))
    else:
        parent[key] = [value]


def _nest(parent: Any, key: Any, places: Any, choose: Random) -> None:
    """Wrap the value in many layers of plain JSON or of Iceberg's types."""
    value = parent[key]
    layer = choose.choice(_LAYERS)
    for i in range(choose.choice(_DEPTHS)):
        value = layer(value, 5000 + 2 * i)
    parent[key] = value


_LAYERS: Sequence[Callable[[Any, int], Any]] = (
    lambda value, _: [value],
    lambda value, _: {"x": value},
    lambda value, i: {"type": "list", "element-id": i, "element-required": False, "element": value},
    lambda value, i: {
        "type": "struct",
        "fields": [{"id": i, "name": f"f{i}", "required": False, "type": value}],
    },
    lambda value, i: {
        "type": "map",
        "key-id": i,
        "key": "string",
        "value-id": i + 1,
        "value": value,
        "value-required": False,
    },
    lambda value, _: [{"field-id": 1, "names": ["x"], "fields": value}],
)

_JSON_CHANGES: Sequence[Callable[[Any, Any, Any, Random], None]] = (
    *(_replace, _replace, _replace, _nudge, _nudge),
    *(_delete, _repeat, _another, _nest),
)


def _value(choose: Random) -> Any:
    kind = choose.randrange(10)
    if kind < 4:
        return choose.choice(_NUMBERS)
    if kind < 7:
        return choose.choice(_TEXTS)
    return choose.choice(
        (None, True, False, 1.5, -0.0, 1e308, [], {}, [[]], [None], {"": None}, [0, 0], ["a", "a"])
    )


def mutate_bytes(data: bytes, choose: Random, *, end: int = 0) -> bytes:
    """Change bytes at a few places; half of the changes hit the last `end` bytes, if any."""
    changed = bytearray(data)
    for _ in range(choose.choice((1, 1, 2, 3, 6))):
        if not changed:
            break
        start = max(0, len(changed) - end) if end and choose.random() < 0.5 else 0
        at = choose.randrange(start, len(changed))
        match choose.randrange(9):
            case 0 | 1 | 2:
                changed[at] ^= 1 << choose.randrange(8)
            case 3:
                changed[at] = choose.choice((0, 1, 0x7F, 0x80, 0xFF, choose.randrange(256)))
            case 4:
                number = _extreme(choose)
                changed[at : at + len(number)] = number
            case 5:
                del changed[at:]
            case 6:
                del changed[at : at + choose.randrange(1, 40)]
            case 7:
                source = choose.randrange(len(changed))
                changed[at:at] = changed[source : source + choose.randrange(1, 40)]
            case _:
                source = choose.randrange(len(changed))
                piece = changed[source : source + choose.randrange(1, 40)]
                changed[at : at + len(piece)] = piece
    return bytes(changed)


def _extreme(choose: Random) -> bytes:
    """Return an extreme length or count, as a fixed number of either byte order or as a varint."""
    number = choose.choice((0, -1, 1, 2**15, 2**24, 2**31 - 1, -(2**31), 2**40, 2**62, -(2**63)))
    match choose.randrange(4):
        case 0:
            return struct.pack("<i", max(-(2**31), min(number, 2**31 - 1)))
        case 1:
            return struct.pack(">i", max(-(2**31), min(number, 2**31 - 1)))
        case 2:
            return struct.pack("<q", number)
        case _:
            zigzag = (number << 1) ^ (number >> 63)
            out = bytearray()
            while zigzag > 0x7F:
                out.append(zigzag & 0x7F | 0x80)
                zigzag >>= 7
            return bytes([*out, zigzag])


_LONGEST_TEXT = 40_000
_TOKEN = re.compile(r"\w+|\s+|'[^']*'|`[^`]*`|.", re.DOTALL)


def mutate_text(text: str, choose: Random, words: Sequence[str]) -> str:
    """Return the text with a few tokens changed; `words` is the vocabulary of its language."""
    changed = text
    for _ in range(choose.choice((1, 1, 2, 3, 5))):
        tokens = _TOKEN.findall(changed) or [""]
        at = choose.randrange(len(tokens))
        match choose.randrange(13):
            case 0:
                del tokens[at]
            case 1:
                tokens.insert(at, tokens[choose.randrange(len(tokens))])
            case 2:
                other = choose.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3 | 4:
                tokens[at] = choose.choice(words)
            case 5:
                tokens.insert(at, choose.choice(words))
            case 6:
                tokens[at] = choose.choice(_PIECES)
            case 7:
                tokens.insert(at, choose.choice(_PIECES))
            case 8:
                tokens[at] = tokens[at][:100] * choose.choice((2, 10, 1000, 20_000))
            case 9:
                opening, closing = choose.choice(_BRACKETS)
                depth = choose.choice((3, 60, 300, 2000, 20_000))
                tokens = [opening * depth, *tokens, closing * depth]
            case 10:
                opening, closing = choose.choice(_BRACKETS)
                depth = choose.choice((3, 60, 300, 2000))
                tokens[at] = opening * depth + tokens[at] + closing * depth
            case 11:
                changed = changed[: choose.randrange(len(changed) + 1)]
                continue
            case _:
                place = choose.randrange(len(changed) + 1)
                character = choose.choice(
                    ("\x00", "\ud800", "\u200b", "é", "'", '"', "`", "\\", "\n")
                )
                changed = changed[:place] + character + changed[place:]
                continue
        changed = "".join(tokens)[:_LONGEST_TEXT]
    return changed[:_LONGEST_TEXT]


_BRACKETS = (
    *(("(", ")"), ("NOT ", ""), ("not(", ")"), ("ARRAY<", ">"), ("STRUCT<a:", ">"), ("[", "]")),
    *(("-", ""), ("CASE WHEN ", " END"), ("CAST(", " AS INT)"), ("a.", ""), ("{", "}"), ("- ", "")),
    *(
        ("MAP<STRING,", ">"),
        ("struct<`x y`: ", ">"),
        ("1 = 1 AND ", ""),
        ("a OR (", ")"),
        ("", ";"),
    ),
)
_PIECES = (
    *(
        "9" * 20,
        "9" * 5000,
        "0x" + "f" * 4999,
        "1e999999999",
        "1E+99999999999999",
        "-0",
        "5L",
        "1.5BD",
    ),
    *(
        "٣",
        "²",
        "DATE'9999-99-99'",
        "TIMESTAMP'1'",
        "X'0'",
        "X'zz'",
        "''",
        "``",
        "`",
        "'",
        '"',
        "--",
    ),
    *(
        "/*",
        "*/",
        ";",
        "\\",
        "\x00",
        "\ud800",
        "NULL",
        "NaN",
        ":",
        "::",
        "?",
        "@x",
        "${a}",
        "{{",
        "%s",
    ),
    *(" " * 3000, "\t\n" * 1000, "a" * 10_000, "é" * 300, "1_000", "+5", "1e5", ".5", "5.", "0b1"),
)
