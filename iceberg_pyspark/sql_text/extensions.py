"""Parses the statements that Iceberg adds to Spark SQL's ALTER TABLE.

    ADD PARTITION FIELD transform [AS name]
    DROP PARTITION FIELD transform | name
    REPLACE PARTITION FIELD transform | name WITH transform [AS name]
    WRITE [LOCALLY] ORDERED BY term [ASC | DESC] [NULLS FIRST | LAST], ...
    WRITE UNORDERED
    WRITE DISTRIBUTED BY PARTITION [[LOCALLY] ORDERED BY ...]
    SET | DROP IDENTIFIER FIELDS column, ...
    CREATE [OR REPLACE] BRANCH | TAG [IF NOT EXISTS] name [AS OF VERSION n] [RETAIN n DAYS] ...
    REPLACE BRANCH | TAG name ...
        for a branch also: [WITH SNAPSHOT RETENTION [n SNAPSHOTS] [n DAYS]]
    DROP BRANCH | TAG [IF EXISTS] name

The grammar is that of Iceberg's own extensions. `table/run_sql_extensions.py` runs the parsed
statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from iceberg_pyspark.spec.snapshots import RefType
from iceberg_pyspark.spec.sorting import Direction, NullOrder
from iceberg_pyspark.sql_text.lazy_parser import ClauseToken, statement_tokens
from iceberg_pyspark.sql_text.names import unquote

_MAX_CHARACTERS = 1_000_000
_MAX_INT32 = 2**31 - 1
_MAX_INT64 = 2**63 - 1
_MS_OF_UNIT = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000}
# each of the statements contains at least one of these words
_OWN_WORDS = ("WRITE", "CREATE", "FIELD", "IDENTIFIER", "BRANCH", "TAG")
# the first words of nearly all statements are within this many characters
_HEAD_CHARACTERS = 80
# in a longer text, searching for words takes longer than tokenizing the beginning
_SEARCHED_CHARACTERS = 10_000
_CLAUSE_WORDS = 3

DistributionMode: TypeAlias = Literal["none", "hash", "range"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionField:
    """ADD PARTITION FIELD; `name` None: Iceberg's default name for such a field."""

    term: str
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPartitionField:
    """DROP PARTITION FIELD; `term` is a transform or the name of a field."""

    term: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacePartitionField:
    """REPLACE PARTITION FIELD: drop a field and add another one."""

    term: str
    with_term: str
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderTerm:
    """One term of a sort order."""

    term: str
    direction: Direction
    null_order: NullOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class SetWriteLayout:
    """WRITE: distribution and sort order of later writes; `distribution` None: unchanged."""

    distribution: DistributionMode | None
    ordered_by: tuple[OrderTerm, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetIdentifierFields:
    """SET IDENTIFIER FIELDS; the column names are as in the SQL text."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropIdentifierFields:
    """DROP IDENTIFIER FIELDS; the column names are as in the SQL text."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRef:
    """CREATE or REPLACE BRANCH or TAG; None means the default."""

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
    """DROP BRANCH or TAG."""

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
    """A statement: the levels of its table's name, and the offset of its clause in the text."""

    table: tuple[str, ...]
    offset: int


class ExtensionSyntaxError(Exception):
    """A statement that begins like one of Iceberg's statements, but breaks the grammar.

    `line` counts from 1; `position` is the number of characters before the error in its line.
    """

    def __init__(self, text: str, offset: int, near: str, expected: str) -> None:
        self.near = near
        self.expectation = expected
        self.line = text.count("\n", 0, offset) + 1
        self.position = offset - (text.rfind("\n", 0, offset) + 1)
        super().__init__(
            f"expected {expected}, not {near} (line {self.line}, position {self.position})"
        )


def extension_statement(text: str) -> ExtensionStatement | None:
    """Return the Iceberg statement that a text begins with, or None for a text that Spark parses.

    Only the first words are examined; `parse_clause` checks the rest.
    """
    if len(text) > _MAX_CHARACTERS or not _may_be_one(text):
        return None
    characters = _HEAD_CHARACTERS
    while characters < len(text):
        # the last token may be incomplete
        parser = _Parser(text, statement_tokens(text[:characters])[:-1])
        statement = parser.statement()
        if parser.has(_CLAUSE_WORDS):
            return statement
        characters *= 10
    return _Parser(text, statement_tokens(text)).statement()


def _may_be_one(text: str) -> bool:
    """Return whether a text must be tokenized; this check of its words is cheaper than tokens."""
    start = text[:_HEAD_CHARACTERS].lstrip().upper()
    if start and not start.startswith(("ALTER", "--", "/*")):
        return False
    if len(text) > _SEARCHED_CHARACTERS:
        return True
    capitals = text.upper()
    return any(word in capitals for word in _OWN_WORDS)


def parse_clause(text: str, offset: int = 0) -> Clause:
    """Return the clause at an offset of a text; raise `ExtensionSyntaxError`."""
    tokens = statement_tokens(text[offset:])
    parser = _Parser(text, [ClauseToken(t.text, t.start + offset) for t in tokens])
    clause = parser.clause()
    while parser.takes(";"):
        pass
    if parser.has(1):
        raise parser.error("the end of the statement")
    return clause


class _Parser:
    """A parser that consumes tokens from left to right, without backtracking."""

    def __init__(self, text: str, tokens: Sequence[ClauseToken]) -> None:
        self._text = text
        self._tokens = tokens
        # an empty token, which no grammar expects
        self._end = ClauseToken("", len(text))
        self._at = 0

    @property
    def _next(self) -> ClauseToken:
        return self._tokens[self._at] if self.has(1) else self._end

    def has(self, number: int) -> bool:
        """Return whether at least `number` tokens remain."""
        return self._at + number <= len(self._tokens)

    def error(self, expected: str) -> ExtensionSyntaxError:
        """Return an error: something other than the next token was expected."""
        near = f"'{self._next.text[:50]}'" if self.has(1) else "the end of the statement"
        return ExtensionSyntaxError(self._text, self._next.start, near, expected)

    def takes(self, word: str) -> bool:
        """Consume the next token if it is that word or mark, and return whether it is."""
        is_next = self._next.word == word
        self._at += is_next
        return is_next

    def _expect(self, *words: str) -> None:
        for word in words:
            if not self.takes(word):
                raise self.error(word)

    def _name(self, expected: str) -> str:
        """Consume a name and return it as written."""
        token = self._next
        if not token.is_name:
            raise self.error(expected)
        self._at += 1
        return token.text

    def _number(self, expected: str, most: int) -> int:
        text = self._next.text
        if not (text.isascii() and text.isdecimal()):
            raise self.error(expected)
        number = int(text) if len(text) < 20 else most + 1
        if number > most:
            raise self.error(f"{expected} of at most {most}")
        self._at += 1
        return number

    def statement(self) -> ExtensionStatement | None:
        """Return the Iceberg statement that the text begins with, or None."""
        if not (self.takes("ALTER") and self.takes("TABLE")):
            return None
        levels = []
        while self._next.is_name:
            levels.append(unquote(self._name("a name")))
            if not self.takes("."):
                if not self._begins_a_clause():
                    return None
                return ExtensionStatement(table=tuple(levels), offset=self._next.start)
        return None

    def _begins_a_clause(self) -> bool:
        """Return whether the next tokens begin one of Iceberg's clauses; consume no token."""
        match [t.word for t in self._tokens[self._at : self._at + _CLAUSE_WORDS]]:
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
        """Consume and return the clause."""
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
        has_distribution = has_order = False
        while True:
            if not has_distribution and self.takes("DISTRIBUTED"):
                self._expect("BY", "PARTITION")
                has_distribution = True
            elif not has_order and self.takes("UNORDERED"):
                distribution, has_order = "none", True
            elif not has_order and self.takes("LOCALLY"):
                self._expect("ORDERED", "BY")
                order, has_order = self._order(), True
            elif not has_order and self.takes("ORDERED"):
                self._expect("BY")
                distribution, order, has_order = "range", self._order(), True
            else:
                break
        if not (has_distribution or has_order):
            raise self.error("[LOCALLY] ORDERED BY, UNORDERED or DISTRIBUTED BY PARTITION")
        return SetWriteLayout(
            distribution="hash" if has_distribution else distribution, ordered_by=order
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
        """Consume a column or a transform of one, in the form that `sql_text/ddl.py` parses."""
        name = self._name("a column or a transform of one")
        if not self.takes("("):
            return self._rest_of_column(name)
        arguments = [self._column("a column or a number")]
        while self.takes(","):
            arguments.append(self._column("a column or a number"))
        self._expect(")")
        return f"{name}({', '.join(arguments)})"

    def _column(self, expected: str) -> str:
        return self._rest_of_column(self._name(expected))

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
        return unquote(self._name("the field's name")) if self.takes("AS") else None

    def _ref_type(self) -> RefType:
        if self.takes("BRANCH"):
            return "branch"
        if self.takes("TAG"):
            return "tag"
        raise self.error("BRANCH or TAG")

    def _ref_name(self, type_: RefType) -> str:
        return unquote(self._name(f"the {type_}'s name"))

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
                if self._next.text.isdecimal():
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
