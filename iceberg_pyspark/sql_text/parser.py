"""Wraps sqlglot with limits; every failure is a `SqlTextError`.

Conditions and column lists are parsed with Spark's grammar. Names, terms and Iceberg's own
statements are only split into tokens: words, names in backticks and marks, which the calling
modules interpret.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from decimal import Decimal
from typing import ClassVar

from sqlglot import Dialect, Token, TokenType, exp
from sqlglot.errors import SqlglotError, TokenError
from sqlglot.tokens import Tokenizer

from iceberg_pyspark.spec.json_fields import is_text

_MAX_CHARACTERS = 1_000_000
_MAX_BRACKETS = 200
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
# a string, a name, a comment: in Spark a line comment goes on after a backslash and a line feed
_OPAQUE = re.compile(
    r"""(?<!\w)r'[^']*'|(?<!\w)r"[^"]*"|'(?:\\.|[^\\'])*'|"(?:\\.|[^\\"])*"|`[^`]*`|/\*.*?\*/"""
    r"|--(?:\\\n|[^\r\n])*",
    re.DOTALL | re.IGNORECASE,
)
# what stands for one character in a string; `\\%` and `\\_` are kept for LIKE
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|([^%_]))", re.DOTALL)
_CONTROLS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
# after one of these words, `<` opens a type; elsewhere `<` compares
_OF_TYPES = frozenset({"ARRAY", "MAP", "STRUCT"})


class SqlTextError(Exception):
    """A text that is not valid SQL; the message is one line about the text."""


class _TermTokenizer(Tokenizer):
    """A tokenizer of dotted names and terms: no keywords, strings, fractions or comments."""

    IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`"]
    # sqlglot skips {# #} as a comment if one of these characters is a mark
    SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = dict.fromkeys("`.,()", TokenType.UNKNOWN)
    # a name may begin like a hexadecimal number; it must be one token, not two
    HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("0x", "")]
    NUMBERS_CAN_HAVE_DECIMALS: ClassVar[bool] = False
    QUOTES: ClassVar[list[tuple[str, str] | str]] = []
    KEYWORDS: ClassVar[dict[str, TokenType]] = {}
    COMMANDS: ClassVar[set[TokenType]] = set()
    COMMENTS: ClassVar[list[str | tuple[str, str]]] = []


class _StatementTokenizer(_TermTokenizer):
    """A tokenizer of Iceberg's statements: terms, and comments, which do not nest."""

    SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {
        mark: TokenType.UNKNOWN for mark in string.punctuation if mark not in "_{#"
    }
    COMMENTS: ClassVar[list[str | tuple[str, str]]] = ["--", ("/*", "*/")]
    NESTED_COMMENTS: ClassVar[bool] = False


def parse_statements(text: str) -> list[exp.Expr | None]:
    """Return the statements of a text in Spark's dialect."""
    tokens = spark_tokens(text)
    _check_depth(tokens)
    try:
        return list(Dialect.get_or_raise("spark").parser().parse(_exact(tokens, text), text))
    except RecursionError as e:
        raise SqlTextError("it is nested too deeply") from e
    # for some unknown texts, sqlglot's parser fails with errors that are not its own
    except (SqlglotError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as e:
        raise SqlTextError(_first_line(e)) from e


def _exact(tokens: Sequence[Token], text: str) -> list[Token]:
    """Return the tokens with the strings and decimals that Spark reads.

    Older releases of sqlglot keep the backslashes of most escapes. They take `1.50BD`, whose tokens
    are those of `1.50::BD`, for a cast to DECIMAL(10, 0): it becomes `1.50::BD(3, 2)`. They take
    `0BD` for a number and a name.
    """
    exact: list[Token] = []
    for token in tokens:
        if token.token_type is TokenType.STRING and "\\" in text[token.start : token.end]:
            value = _ESCAPE.sub(_unescaped, text[token.start + 1 : token.end])
            # two escapes may be one character; half of a pair is an error
            value = value.encode("utf-16", "surrogatepass").decode("utf-16")
            place = (token.line, token.col, token.start, token.end)
            token = Token(TokenType.STRING, value, *place, token.comments)
        if (token.token_type is TokenType.VAR and token.text.upper() == "BD") and (
            exact and exact[-1].text == "0" and exact[-1].end + 1 == token.start
        ):
            exact.append(Token(TokenType.DCOLON, "::"))
            token = Token(TokenType.DECIMAL, token.text)
        exact.append(token)
        if token.token_type is TokenType.DECIMAL and token.text.upper() == "BD":
            point = "." if len(exact) > 3 and exact[-4].token_type is TokenType.DOT else ""
            _, digits, exponent = Decimal(point + exact[-3].text).as_tuple()
            scale = max(-int(exponent), 0)
            precision = max(len(digits) + max(int(exponent), 0), scale)
            exact += [
                Token(TokenType.L_PAREN, "("),
                Token.number(precision),
                Token(TokenType.COMMA, ","),
                Token.number(scale),
                Token(TokenType.R_PAREN, ")"),
            ]
    return exact


def _unescaped(escape: re.Match[str]) -> str:
    short, long, octal, other = escape.groups()
    if other:
        return _CONTROLS.get(other, other)
    return chr(int(octal, 8) if octal else int(short or long, 16))


def spark_tokens(text: str) -> list[Token]:
    """Return the tokens of a text in Spark's dialect."""
    _check_length(text)
    if not is_text(text):
        raise SqlTextError("it holds half of a surrogate pair, which no string can")
    try:
        return list(Dialect.get_or_raise("spark").tokenize(_joined_comments(text)))
    except (SqlglotError, LookupError, ValueError) as e:
        raise SqlTextError(_first_line(e)) from e


def semicolons(text: str) -> list[int]:
    """Return the offsets of the semicolons between the statements of a text."""
    return [t.start for t in spark_tokens(text) if t.token_type is TokenType.SEMICOLON]


def term_spans(text: str) -> list[tuple[int, int]]:
    """Return start and end of each token of a name or a term."""
    _check_length(text)
    try:
        return _spans(_TermTokenizer("spark").tokenize(text))
    except TokenError as e:
        raise SqlTextError("a backtick is not closed") from e


def statement_spans(text: str) -> list[tuple[int, int]]:
    """Return start and end of each token of one of Iceberg's statements.

    The last token is the opening `/*` or backtick if a comment or name is not closed.
    """
    _check_length(text)
    text = _joined_comments(text)
    try:
        return _spans(_StatementTokenizer("spark").tokenize(text))
    except TokenError:
        pass
    try:
        tokens = _StatementTokenizer("spark").tokenize(f"{text}*/")
    except TokenError:
        *spans, (opening, _) = _spans(_StatementTokenizer("spark").tokenize(f"{text}`"))
        return [*spans, (opening, opening + 1)]
    if not tokens:
        return []
    opening = len(text) - len(tokens[-1].comments[-1]) - 2
    return [*_spans(tokens), (opening, opening + 2)]


def _joined_comments(text: str) -> str:
    """Return the text, as long, with each line comment in one line."""
    if "\\\n" not in text:
        return text
    return _OPAQUE.sub(
        lambda m: m[0].replace("\\\n", "  ") if m[0].startswith("--") else m[0], text
    )


def _spans(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    return [(token.start, token.end + 1) for token in tokens]


def _check_length(text: str) -> None:
    if len(text) > _MAX_CHARACTERS:
        raise SqlTextError(f"it is longer than {_MAX_CHARACTERS:,} characters")


def _check_depth(tokens: Sequence[Token]) -> None:
    """Refuse a text that would exhaust the stack: a compiled parser may crash the process."""
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
