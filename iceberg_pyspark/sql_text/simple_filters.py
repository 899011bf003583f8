"""Parses the filters that most programs have, without the parser of all of SQL.

Importing sqlglot takes longer than many reads. What is not understood here is no error: sqlglot
parses it then, and `sql_text/filters.py` decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import InvalidOperation
from typing import Any

from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    Comparison,
    LiteralPredicate,
    Predicate,
    SetPredicate,
    UnaryPredicate,
)
from iceberg_pyspark.expressions.rewriting import and_, not_, or_
from iceberg_pyspark.sql_text.literal_values import negated, number_of, typed_value

_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
        (?P<type>(?:DATE|TIMESTAMP)(?=\s*'))
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)(?![\w'"`.$@:])
      | (?P<number>[0-9]+(?:\.[0-9]+)?)(?![\w'"`.$@])
      | (?P<text>'[^'\\]*'(?!\s*['"])|"[^"\\]*"(?!\s*['"]))
      | (?P<mark><=(?!>)|>=|<>|!=|==|=|<|>|\(|\)|,|-(?!-))
    )""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_END = ("end", "")

_COMPARISONS: Mapping[str, tuple[Comparison, Comparison]] = {
    # the operator, and its counterpart for exchanged sides
    "=": ("eq", "eq"),
    "==": ("eq", "eq"),
    "<>": ("not_eq", "not_eq"),
    "!=": ("not_eq", "not_eq"),
    "<": ("lt", "gt"),
    "<=": ("lt_eq", "gt_eq"),
    ">": ("gt", "lt"),
    ">=": ("gt_eq", "lt_eq"),
}
_KEYWORDS = frozenset(
    {"AND", "OR", "NOT", "IN", "IS", "NULL", "BETWEEN", "LIKE", "TRUE", "FALSE", "ESCAPE"}
)
_NO_NAMES = frozenset(
    {
        *("ALTER", "ANALYZE", "ANY", "AS", "BEGIN", "CACHE", "CALL", "CASE", "COMMENT"),
        *("COMMIT", "CONNECT_BY_ROOT", "COPY", "CREATE", "CROSS", "CURRENT_DATE"),
        *("CURRENT_TIMESTAMP", "CURRENT_USER", "DECLARE", "DELETE", "DESC", "DESCRIBE"),
        *("DISTINCT", "DROP", "ELSE", "EXCEPT", "EXECUTE", "EXPLAIN", "FETCH", "FOR", "FROM"),
        *("GLOB", "GRANT", "HAVING", "IF", "ILIKE", "INNER", "INSERT", "INTERSECT", "INTERVAL"),
        *("INTO", "JOIN", "KILL", "LATERAL", "LOAD", "MERGE", "MINUS", "NOTNULL", "ON"),
        *("OPTIMIZE", "OUT", "OUTER", "PARTITIONED_BY", "PIVOT", "PRAGMA", "PREPARE", "QUALIFY"),
        *("REFRESH", "REGEXP", "RENAME", "RETURNING", "REVOKE", "RLIKE", "ROLLBACK", "SELECT"),
        *("SERDEPROPERTIES", "SESSION_USER", "SET", "SHOW", "TABLESAMPLE", "THEN", "TRUNCATE"),
        *("UNCACHE", "UNION", "UNPIVOT", "UPDATE", "USE", "USING", "VACUUM", "VALUES", "WHEN"),
        *("WHERE", "WITH", "XOR"),
    }
)
"""Words that sqlglot reads as something else than a name, at least at some places."""


def parse_simple_filter(text: str) -> Predicate | None:
    """Return the unbound predicate of a text, or None if the text needs the whole parser."""
    tokens = _tokens(text)
    if tokens is None:
        return None
    try:
        parser = _Parser(tokens)
        predicate = parser.disjunction()
        return predicate if parser.next_kind == "end" else None
    except (_NotSimpleError, ValueError, InvalidOperation, OverflowError, RecursionError):
        return None


class _NotSimpleError(Exception):
    """The text has something that this parser does not know."""


def _tokens(text: str) -> list[tuple[str, str]] | None:
    tokens, at, end = [], 0, len(text.rstrip(" \t\r\n"))
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            return None
        tokens.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return [*tokens, _END]


class _Parser:
    """A recursive descent over the tokens."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def next_kind(self) -> str:
        """The kind of the next token."""
        return self._tokens[self._at][0]

    def disjunction(self) -> Predicate:
        """Parse operands of OR."""
        return self._operands("OR", self._conjunction, or_)

    def _conjunction(self) -> Predicate:
        return self._operands("AND", self._condition, and_)

    def _operands(
        self, word: str, operand: Callable[[], Predicate], joined: Callable[..., Predicate]
    ) -> Predicate:
        operands = [operand()]
        while self._takes(word):
            operands.append(operand())
        return operands[0] if len(operands) == 1 else joined(*operands)

    def _condition(self) -> Predicate:
        if self._takes("NOT"):
            return not_(self._condition())
        kind, text = self._tokens[self._at]
        if (kind, text) == ("mark", "("):
            self._at += 1
            predicate = self.disjunction()
            self._expect(")")
            return predicate
        if kind != "word":
            literal = self._literal()
            operator = self._take("mark")
            name = self._name()
            return LiteralPredicate(_comparison(operator)[1], name, literal)
        if text.upper() in ("TRUE", "FALSE"):
            self._at += 1
            return AlwaysTrue() if text.upper() == "TRUE" else AlwaysFalse()
        return self._condition_of(self._name())

    def _condition_of(self, name: str) -> Predicate:
        """Parse what follows the name of a column."""
        kind, text = self._tokens[self._at]
        if kind == "mark" and text in _COMPARISONS:
            self._at += 1
            return LiteralPredicate(_COMPARISONS[text][0], name, self._literal())
        if self._takes("IS"):
            is_not = self._takes("NOT")
            self._expect("NULL")
            is_null = UnaryPredicate("is_null", name)
            return not_(is_null) if is_not else is_null
        is_not = self._takes("NOT")
        predicate: Predicate
        if self._takes("IN"):
            self._expect("(")
            literals = [self._literal()]
            while self._takes(","):
                literals.append(self._literal())
            self._expect(")")
            predicate = SetPredicate("in", name, tuple(literals))
        elif self._takes("BETWEEN"):
            low = LiteralPredicate("gt_eq", name, self._literal())
            self._expect("AND")
            predicate = and_(low, LiteralPredicate("lt_eq", name, self._literal()))
        elif self._takes("LIKE"):
            pattern = self._take("text")[1:-1]
            prefix = pattern[:-1]
            if not pattern.endswith("%") or "%" in prefix or "_" in prefix:
                raise _NotSimpleError
            predicate = LiteralPredicate("starts_with", name, prefix)
        elif is_not:
            raise _NotSimpleError
        else:
            return LiteralPredicate("eq", name, True)
        return not_(predicate) if is_not else predicate

    def _literal(self) -> Any:
        if self._takes("-"):
            return negated(number_of(self._take("number")))
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            return number_of(text)
        if kind == "text":
            return text[1:-1]
        if kind == "type":
            return typed_value(text.upper(), self._take("text")[1:-1])
        if kind == "word" and text.upper() in ("TRUE", "FALSE"):
            return text.upper() == "TRUE"
        raise _NotSimpleError

    def _name(self) -> str:
        name = self._take("word")
        if any(part in _KEYWORDS or part in _NO_NAMES for part in name.upper().split(".")):
            raise _NotSimpleError
        return name

    def _takes(self, text: str) -> bool:
        """Pass a keyword or mark if it is next."""
        kind, found = self._tokens[self._at]
        if kind in ("word", "mark") and found.upper() == text:
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            raise _NotSimpleError

    def _take(self, kind: str) -> str:
        found, text = self._tokens[self._at]
        if found != kind:
            raise _NotSimpleError
        self._at += 1
        return text


def _comparison(operator: str) -> tuple[Comparison, Comparison]:
    if operator not in _COMPARISONS:
        raise _NotSimpleError
    return _COMPARISONS[operator]
