"""The statements that Iceberg adds to Spark SQL's ALTER TABLE, parsed.

    ADD PARTITION FIELD transform [AS name]
    DROP PARTITION FIELD transform | name
    REPLACE PARTITION FIELD transform | name WITH transform [AS name]
    WRITE [LOCALLY] ORDERED BY term [ASC | DESC] [NULLS FIRST | LAST], ...
    WRITE UNORDERED
    WRITE DISTRIBUTED BY PARTITION [[LOCALLY] ORDERED BY ...]
    SET | DROP IDENTIFIER FIELDS column, ...
    CREATE [OR REPLACE] BRANCH | TAG [IF NOT EXISTS] name [AS OF VERSION n] [RETAIN n DAYS] ...
    REPLACE BRANCH | TAG name ...
        of branches besides: [WITH SNAPSHOT RETENTION [n SNAPSHOTS] [n DAYS]]
    DROP BRANCH | TAG [IF EXISTS] name

The grammar is that of Iceberg's own extensions; `table/run_sql_extensions.py` does what they say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from iceberg_pyspark.spec.snapshots import RefType
from iceberg_pyspark.spec.sorting import Direction, NullOrder

_MAX_CHARACTERS = 1_000_000
_MAX_INT32 = 2**31 - 1
_MAX_INT64 = 2**63 - 1
_MS_OF_UNIT = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000}
# each character one way only; what nothing else takes is a mark
_TOKEN = re.compile(
    r"(?P<space>\s+|--[^\n]*|/\*.*?\*/)|(?P<word>\w+)|(?P<quoted>`(?:[^`]|``)*`)|(?P<open>/\*|`)"
    r"|(?P<mark>.)",
    re.DOTALL,
)

DistributionMode: TypeAlias = Literal["none", "hash", "range"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionField:
    """`name` None: Iceberg's name for such a field."""

    term: str
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPartitionField:
    """`term` is a transform or the name of a field."""

    term: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacePartitionField:
    """A field goes, another comes."""

    term: str
    with_term: str
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderTerm:
    """What to sort by, and how."""

    term: str
    direction: Direction
    null_order: NullOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class SetWriteLayout:
    """How rows are written from now on; `distribution` None: as before."""

    distribution: DistributionMode | None
    ordered_by: tuple[OrderTerm, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetIdentifierFields:
    """Columns, as SQL writes their names."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropIdentifierFields:
    """Columns, as SQL writes their names."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRef:
    """Create a branch or tag, replace it, or either; None: the default."""

    type: RefType
    name: str
    create: bool
    replace: bool
    if_not_exists: bool
    snapshot_id: int | None
    max_ref_age_ms: int | None
    min_snapshots_to_keep: int | None
    max_snapshot_age_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropRef:
    """Drop a branch or tag."""

    type: RefType
    name: str
    if_exists: bool


Clause: TypeAlias = (
    AddPartitionField
    | DropPartitionField
    | ReplacePartitionField
    | SetWriteLayout
    | SetIdentifierFields
    | DropIdentifierFields
    | CreateRef
    | DropRef
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionStatement:
    """A statement: the levels of its table's name, and where in the text its clause begins."""

    table: tuple[str, ...]
    offset: int


class ExtensionSyntaxError(Exception):
    """A statement that begins as one of Iceberg's and does not go on as one.

    `position` counts the characters before what is wrong in its line, `line` from 1.
    """

    def __init__(self, text: str, offset: int, near: str, expected: str) -> None:
        self.near = near
        self.expected = expected
        self.line = text.count("\n", 0, offset) + 1
        self.position = offset - (text.rfind("\n", 0, offset) + 1)
        super().__init__(
            f"expected {expected}, not {near} (line {self.line}, position {self.position})"
        )


def extension_statement(text: str) -> ExtensionStatement | None:
    """The statement that a text begins as; None for one that is Spark's to parse.

    Whether it goes on as one tells `parse_clause`.
    """
    if len(text) > _MAX_CHARACTERS:
        return None
    parser = _Parser(text, 0)
    if not (parser.takes("ALTER") and parser.takes("TABLE")):
        return None
    levels = parser.levels()
    if levels is None or not parser.begins_a_clause():
        return None
    return ExtensionStatement(table=levels, offset=parser.offset)


def parse_clause(text: str, offset: int = 0) -> Clause:
    """The clause that begins at an offset of a text; raises `ExtensionSyntaxError`."""
    parser = _Parser(text, offset)
    clause = parser.clause()
    while parser.takes(";"):
        pass
    if parser.token is not None:
        raise parser.error("the end of the statement")
    return clause


@dataclass(frozen=True, slots=True)
class _Token:
    """A piece of the text; a word in capitals too, but for names in backticks."""

    text: str
    word: str
    offset: int
    is_name: bool


def _tokens(text: str, offset: int) -> Iterator[_Token]:
    for m in _TOKEN.finditer(text, offset):
        if m["space"] is not None:
            continue
        plain = m["word"] is not None
        yield _Token(
            text=m[0],
            word=m[0].upper() if plain else m[0],
            offset=m.start(),
            is_name=plain or m["quoted"] is not None,
        )
        if m["open"] is not None:
            # a comment or name that is not closed: what follows is part of it
            return


class _Parser:
    """Takes tokens one after another; it never goes back."""

    def __init__(self, text: str, offset: int) -> None:
        self._text = text
        self._tokens = _tokens(text, offset)
        self.token = next(self._tokens, None)

    @property
    def offset(self) -> int:
        """Where the next token begins."""
        return len(self._text) if self.token is None else self.token.offset

    def error(self, expected: str) -> ExtensionSyntaxError:
        """The next token is not what it must be."""
        near = "the end of the statement" if self.token is None else f"'{self.token.text[:50]}'"
        return ExtensionSyntaxError(self._text, self.offset, near, expected)

    def takes(self, word: str) -> bool:
        """Whether the next token is that word or mark; if so it is taken."""
        if self.token is None or self.token.word != word:
            return False
        self.token = next(self._tokens, None)
        return True

    def _expect(self, *words: str) -> None:
        for word in words:
            if not self.takes(word):
                raise self.error(word)

    def _name(self, what: str) -> str:
        """A name as it is written."""
        if self.token is None or not self.token.is_name:
            raise self.error(what)
        text = self.token.text
        self.token = next(self._tokens, None)
        return text

    def _number(self, what: str, most: int) -> int:
        token = self.token
        if token is None or not (token.text.isascii() and token.text.isdecimal()):
            raise self.error(what)
        number = int(token.text) if len(token.text) < 20 else most + 1
        if number > most:
            raise self.error(f"{what} of at most {most}")
        self.token = next(self._tokens, None)
        return number

    def levels(self) -> tuple[str, ...] | None:
        """A dotted name without its backticks; None where there is none."""
        names = []
        while self.token is not None and self.token.is_name:
            names.append(_unquoted(self._name("a name")))
            if not self.takes("."):
                return tuple(names)
        return None

    def begins_a_clause(self) -> bool:
        """Whether what comes is one of these statements, and none of Spark's.

        Takes nothing.
        """
        words = [t.word for t in _some(_tokens(self._text, self.offset), 3)]
        match words:
            case ["WRITE" | "CREATE", *_]:
                return True
            case ["ADD" | "DROP" | "REPLACE", "PARTITION", "FIELD"]:
                return True
            case ["SET" | "DROP", "IDENTIFIER", *_]:
                return True
            case ["REPLACE" | "DROP", "BRANCH" | "TAG", *_]:
                return True
            case _:
                return False

    def clause(self) -> Clause:
        """The clause."""
        if self.takes("WRITE"):
            return self._write_layout()
        if self.takes("SET"):
            self._expect("IDENTIFIER", "FIELDS")
            return SetIdentifierFields(columns=self._columns())
        if self.takes("ADD"):
            self._expect("PARTITION", "FIELD")
            return AddPartitionField(term=self._term(), name=self._alias())
        if self.takes("CREATE"):
            replaces = self.takes("OR")
            if replaces:
                self._expect("REPLACE")
            return self._create_ref(create=True, replaces=replaces)
        if self.takes("REPLACE"):
            if self.takes("PARTITION"):
                self._expect("FIELD")
                term = self._term()
                self._expect("WITH")
                return ReplacePartitionField(term=term, with_term=self._term(), name=self._alias())
            return self._create_ref(create=False, replaces=True)
        self._expect("DROP")
        if self.takes("PARTITION"):
            self._expect("FIELD")
            return DropPartitionField(term=self._term())
        if self.takes("IDENTIFIER"):
            self._expect("FIELDS")
            return DropIdentifierFields(columns=self._columns())
        type_ = self._ref_type()
        if_exists = self.takes("IF")
        if if_exists:
            self._expect("EXISTS")
        return DropRef(type=type_, name=self._ref_name(type_), if_exists=if_exists)

    def _write_layout(self) -> SetWriteLayout:
        distribution: DistributionMode | None = None
        order: tuple[OrderTerm, ...] = ()
        distributed = ordered = False
        while True:
            if not distributed and self.takes("DISTRIBUTED"):
                self._expect("BY", "PARTITION")
                distributed = True
            elif not ordered and self.takes("UNORDERED"):
                distribution, ordered = "none", True
            elif not ordered and self.takes("LOCALLY"):
                self._expect("ORDERED", "BY")
                order, ordered = self._order(), True
            elif not ordered and self.takes("ORDERED"):
                self._expect("BY")
                distribution, order, ordered = "range", self._order(), True
            else:
                break
        if not (distributed or ordered):
            raise self.error("[LOCALLY] ORDERED BY, UNORDERED or DISTRIBUTED BY PARTITION")
        return SetWriteLayout(
            distribution="hash" if distributed else distribution, ordered_by=order
        )

    def _order(self) -> tuple[OrderTerm, ...]:
        enclosed = self.takes("(")
        terms = [self._order_term()]
        while self.takes(","):
            terms.append(self._order_term())
        if enclosed:
            self._expect(")")
        return tuple(terms)

    def _order_term(self) -> OrderTerm:
        term = self._term()
        direction: Direction = "asc"
        if self.takes("DESC"):
            direction = "desc"
        else:
            self.takes("ASC")
        null_order: NullOrder = "nulls-last" if direction == "desc" else "nulls-first"
        if self.takes("NULLS"):
            null_order = "nulls-last"
            if self.takes("FIRST"):
                null_order = "nulls-first"
            else:
                self._expect("LAST")
        return OrderTerm(term=term, direction=direction, null_order=null_order)

    def _term(self) -> str:
        """A column, or a transform of one, as `ddl_strings` takes it."""
        name = self._name("a column or a transform of one")
        if not self.takes("("):
            return self._rest_of_column(name)
        arguments = [self._column("a column or a number")]
        while self.takes(","):
            arguments.append(self._column("a column or a number"))
        self._expect(")")
        return f"{name}({', '.join(arguments)})"

    def _column(self, what: str) -> str:
        return self._rest_of_column(self._name(what))

    def _rest_of_column(self, name: str) -> str:
        while self.takes("."):
            name += "." + self._name("the name of a field")
        return name

    def _columns(self) -> tuple[str, ...]:
        columns = [self._column("a column")]
        while self.takes(","):
            columns.append(self._column("a column"))
        return tuple(columns)

    def _alias(self) -> str | None:
        return _unquoted(self._name("the field's name")) if self.takes("AS") else None

    def _ref_type(self) -> RefType:
        if self.takes("BRANCH"):
            return "branch"
        if self.takes("TAG"):
            return "tag"
        raise self.error("BRANCH or TAG")

    def _ref_name(self, type_: RefType) -> str:
        return _unquoted(self._name(f"the {type_}'s name"))

    def _create_ref(self, *, create: bool, replaces: bool) -> CreateRef:
        type_ = self._ref_type()
        if_not_exists = not replaces and self.takes("IF")
        if if_not_exists:
            self._expect("NOT", "EXISTS")
        name = self._ref_name(type_)
        snapshot_id = max_ref_age_ms = min_snapshots = max_snapshot_age_ms = None
        if self.takes("AS"):
            self._expect("OF", "VERSION")
            snapshot_id = self._number("a snapshot id", _MAX_INT64)
        if self.takes("RETAIN"):
            max_ref_age_ms = self._age(self._number("a number", _MAX_INT32))
        if type_ == "branch" and self.takes("WITH"):
            self._expect("SNAPSHOT", "RETENTION")
            number = self._number("a number", _MAX_INT32)
            if self.takes("SNAPSHOTS"):
                min_snapshots = number
                if self.token is not None and self.token.text.isdecimal():
                    max_snapshot_age_ms = self._age(self._number("a number", _MAX_INT32))
            else:
                max_snapshot_age_ms = self._age(number)
        return CreateRef(
            type=type_,
            name=name,
            create=create,
            replace=replaces,
            if_not_exists=if_not_exists,
            snapshot_id=snapshot_id,
            max_ref_age_ms=max_ref_age_ms,
            min_snapshots_to_keep=min_snapshots,
            max_snapshot_age_ms=max_snapshot_age_ms,
        )

    def _age(self, number: int) -> int:
        for unit, ms in _MS_OF_UNIT.items():
            if self.takes(unit):
                return number * ms
        raise self.error("DAYS, HOURS or MINUTES")


def _some(tokens: Iterator[_Token], most: int) -> Sequence[_Token]:
    return [token for token, _ in zip(tokens, range(most), strict=False)]


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
