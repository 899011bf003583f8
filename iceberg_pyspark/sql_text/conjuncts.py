"""The parts of a condition that can be understood without Spark: filters, and equal columns.

A condition is true only if each of its conjuncts is. So a conjunct alone may skip files, and what
is not understood is left out: the condition itself still decides about the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.predicates import Predicate
from iceberg_pyspark.sql_text.filters import column_name, conjuncts_of, predicate_of
from iceberg_pyspark.sql_text.parser import SqlTextError, parse_statements


@dataclass(frozen=True, slots=True)
class Conjuncts:
    """Filters of one column each, and pairs of columns that are equal; names have dots.

    `left_out` means that the condition has more parts.
    """

    filters: tuple[Predicate, ...] = ()
    equalities: tuple[tuple[str, str], ...] = ()
    left_out: bool = False


def parse_conjuncts(text: str) -> Conjuncts:
    """Return what is understood of a condition; nothing of a text with `\\` or `"`.

    >>> parse_conjuncts("t.id = s.id AND abs(t.v) > 1 AND t.p IS NOT NULL").equalities
    (('t.id', 's.id'),)
    """
    if "\\" in text or '"' in text:
        # Sessions differ on the meaning of the one in a string, and of the other as a quote.
        return Conjuncts(left_out=True)
    try:
        statements = parse_statements(text)
    except SqlTextError:
        return Conjuncts(left_out=True)
    if len(statements) != 1 or not isinstance(statements[0], exp.Expression):
        return Conjuncts(left_out=True)
    filters, equalities, left_out = [], [], False
    for node in conjuncts_of(statements[0]):
        try:
            filters.append(predicate_of(node))
            continue
        except (InvalidRequestError, RecursionError):
            pass
        if type(node) is exp.EQ:
            sides = column_name(node.this), column_name(node.expression)
            if sides[0] is not None and sides[1] is not None:
                equalities.append((sides[0], sides[1]))
                continue
        left_out = True
    return Conjuncts(tuple(filters), tuple(equalities), left_out)
