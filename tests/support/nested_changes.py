"""UPDATEs and MERGEs whose values are structs with their fields in another order, or other fields.

Statements name the table {t}. Each column of the table holds a pair of numbers p and q at another
depth; a source has rows for a key with nulls, for a key with values and for a new key.
"""

from __future__ import annotations

from collections.abc import Mapping

COLUMNS = (
    "id int, s struct<p: int, q: double>, l array<struct<p: int, q: double>>, "
    "m map<string, struct<p: int, q: double>>, n struct<r: int, i: struct<p: int, q: double>>"
)
_PAIR = "named_struct('p', 1, 'q', 2D)"
ROWS = (
    f"(1, {_PAIR}, array({_PAIR}), map('a', {_PAIR}), named_struct('r', 3, 'i', {_PAIR})), "
    "(2, null, null, null, null)"
)

PAIRS: Mapping[str, str] = {
    "turned": "named_struct('q', 4.5D, 'p', 3)",
    "in another case": "named_struct('Q', 4.5D, 'P', 3)",
    "null": "cast(null as struct<q: double, p: int>)",
    "of nulls": "named_struct('q', cast(null as double), 'p', cast(null as int))",
    "narrower": "named_struct('q', 4.5F, 'p', 3S)",
    "missing a field": "named_struct('q', 4.5D)",
    "with an unknown field": "named_struct('q', 4.5D, 'p', 3, 'z', 5)",
    "of another type": "named_struct('q', 4.5D, 'p', 'x')",
}
"""A pair to assign, by what is different about it."""

BY_NAME = ("turned", "in another case", "null", "of nulls", "narrower")
"""The pairs that a column stores."""


def _values(pair: str) -> dict[str, str]:
    return {
        "s": pair,
        "l": f"array({pair})",
        "m": f"map('b', {pair})",
        "n": f"named_struct('i', {pair}, 'r', 6)",
    }


def source(pair: str) -> str:
    """Return a query for the rows of a MERGE with this pair, its columns in another order."""
    columns = ", ".join(f"{value} {name}" for name, value in reversed(_values(pair).items()))
    return " union all ".join(f"select {columns}, {key} id" for key in (1, 2, 9))


def statements(pair: str) -> dict[str, str]:
    """Return statements that assign this pair, at every depth, by what they do."""
    values = _values(pair)
    rows = source(pair)
    set_all = ", ".join(f"{name} = u.{name}" for name in values)
    on = f"using ({rows}) u on t.id = u.id"
    return {
        "update": f"update {{t}} set {', '.join(f'{n} = {v}' for n, v in values.items())}",
        "update of a field": f"update {{t}} set n.i = {pair} where id = 1",
        "update set": f"merge into {{t}} t {on} when matched then update set {set_all}",
        "insert": f"merge into {{t}} t {on} when not matched then insert (id, n, l, s, m) "
        "values (u.id, u.n, u.l, u.s, u.m)",
        "update set *, insert *": f"merge into {{t}} t {on} when matched then update set * "
        "when not matched then insert *",
        "by source": f"merge into {{t}} t using (select 1 id) u on t.id = u.id "
        f"when not matched by source then update set s = {pair}",
        "evolving": f"merge with schema evolution into {{t}} t {on} when matched then "
        "update set * when not matched then insert *",
    }
