"""SQL text taken apart by its parser, within bounds: every way it fails is a `SqlTextError`.

What the parsed text means is the business of whoever asked (`sql_text/filters.py`,
`sql_text/schemas.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Dialect, Token, TokenType, exp
from sqlglot.errors import SqlglotError

from iceberg_pyspark.spec.json_fields import is_text

_MAX_CHARACTERS = 1_000_000
_MAX_BRACKETS = 200
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
# a `<` behind one of these opens a type, elsewhere it compares
_OF_TYPES = frozenset({"ARRAY", "MAP", "STRUCT"})


class SqlTextError(Exception):
    """A text that is no SQL; the message is one line about the text alone."""


def parse_statements(text: str) -> list[exp.Expr | None]:
    """The statements of a text in Spark's dialect."""
    tokens = tokens_of(text)
    _check_depth(tokens)
    try:
        return list(Dialect.get_or_raise("spark").parser().parse(tokens, text))
    except RecursionError as e:
        raise SqlTextError("it is nested too deeply") from e
    # some texts it does not know make the parser fail with errors that are not its own
    except (SqlglotError, AttributeError, LookupError, TypeError, ValueError) as e:
        raise SqlTextError(_first_line(e)) from e


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text."""
    if len(text) > _MAX_CHARACTERS:
        raise SqlTextError(f"it is longer than {_MAX_CHARACTERS:,} characters")
    if not is_text(text):
        raise SqlTextError("it holds half of a surrogate pair, which no string can")
    try:
        return list(Dialect.get_or_raise("spark").tokenize(text))
    except (SqlglotError, LookupError, ValueError) as e:
        raise SqlTextError(_first_line(e)) from e


def _check_depth(tokens: Sequence[Token]) -> None:
    """Refuse what would exhaust the stack: a parser that is compiled may not survive it."""
    brackets = types = 0
    before = ""
    for token in tokens:
        if token.token_type in _OPENING:
            brackets += 1
        elif token.token_type in _CLOSING:
            brackets = max(brackets - 1, 0)
        elif token.token_type is TokenType.LT and before in _OF_TYPES:
            types += 1
        elif not token.text.strip(">"):
            types = max(types - len(token.text), 0)
        if brackets + types > _MAX_BRACKETS:
            raise SqlTextError(f"brackets are nested deeper than {_MAX_BRACKETS} levels")
        before = token.text.upper()


def _first_line(e: Exception) -> str:
    return (str(e).splitlines() or [type(e).__name__])[0]
