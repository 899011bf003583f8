"""Iceberg's ALTER TABLE statements, parsed: content, table name, and place of errors."""

from __future__ import annotations

import pytest

from iceberg_pyspark.sql_text import extensions
from iceberg_pyspark.sql_text.extensions import (
    AddPartitionField,
    Clause,
    CreateRef,
    DropIdentifierFields,
    DropPartitionField,
    DropRef,
    ExtensionSyntaxError,
    OrderTerm,
    ReplacePartitionField,
    SetIdentifierFields,
    SetWriteLayout,
    extension_statement,
    parse_clause,
)
from iceberg_pyspark.sql_text.lazy_parser import ClauseToken, statement_tokens

DAY_MS = 86_400_000


def ref(**attributes: object) -> CreateRef:
    plain: dict[str, object] = {
        "type": "branch",
        "name": "b",
        "create": True,
        "replace": False,
        "if_not_exists": False,
        "snapshot_id": None,
        "max_ref_age_ms": None,
        "min_snapshots_to_keep": None,
        "max_snapshot_age_ms": None,
    }
    return CreateRef(**{**plain, **attributes})  # type: ignore[arg-type]


def by(term: str, direction: str = "asc", null_order: str = "nulls-first") -> OrderTerm:
    return OrderTerm(term=term, direction=direction, null_order=null_order)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("add partition field days(ts)", AddPartitionField(term="days(ts)", name=None)),
        ("ADD PARTITION FIELD n.x as y", AddPartitionField(term="n.x", name="y")),
        (
            "Add Partition Field bucket( 16 /* many */ , `a b`.`c``d` ) AS `the day` ;",
            AddPartitionField(term="bucket(16, `a b`.`c``d`)", name="the day"),
        ),
        ("drop partition field ts_day", DropPartitionField(term="ts_day")),
        ("drop partition field truncate(s, 4)", DropPartitionField(term="truncate(s, 4)")),
        (
            "replace partition field ts_day with hours(ts) as h",
            ReplacePartitionField(term="ts_day", with_term="hours(ts)", name="h"),
        ),
        ("write unordered", SetWriteLayout(distribution="none", ordered_by=())),
        (
            "write ordered by days(ts) desc, bucket(4, id), s asc nulls last, v desc nulls first",
            SetWriteLayout(
                distribution="range",
                ordered_by=(
                    by("days(ts)", "desc", "nulls-last"),
                    by("bucket(4, id)"),
                    by("s", "asc", "nulls-last"),
                    by("v", "desc", "nulls-first"),
                ),
            ),
        ),
        (
            "write locally ordered by (a, b)",
            SetWriteLayout(distribution=None, ordered_by=(by("a"), by("b"))),
        ),
        ("write distributed by partition", SetWriteLayout(distribution="hash", ordered_by=())),
        (
            "write distributed by partition locally ordered by a",
            SetWriteLayout(distribution="hash", ordered_by=(by("a"),)),
        ),
        (
            "write ordered by a distributed by partition",
            SetWriteLayout(distribution="hash", ordered_by=(by("a"),)),
        ),
        ("set identifier fields id, `n`.x", SetIdentifierFields(columns=("id", "`n`.x"))),
        ("drop identifier fields id", DropIdentifierFields(columns=("id",))),
        ("create branch b", ref()),
        ("create branch if not exists b", ref(if_not_exists=True)),
        ("create or replace branch b", ref(replace=True)),
        ("replace branch b as of version 7", ref(create=False, replace=True, snapshot_id=7)),
        (
            "create branch `b-1` as of version 9223372036854775807 retain 3 days "
            "with snapshot retention 2 snapshots 90 minutes",
            ref(
                name="b-1",
                snapshot_id=2**63 - 1,
                max_ref_age_ms=3 * DAY_MS,
                min_snapshots_to_keep=2,
                max_snapshot_age_ms=90 * 60_000,
            ),
        ),
        ("create branch b with snapshot retention 4 snapshots", ref(min_snapshots_to_keep=4)),
        ("create branch b with snapshot retention 4 hours", ref(max_snapshot_age_ms=DAY_MS // 6)),
        ("create tag t retain 1 hours", ref(type="tag", name="t", max_ref_age_ms=DAY_MS // 24)),
        ("create or replace tag t", ref(type="tag", name="t", replace=True)),
        ("drop branch b", DropRef(type="branch", name="b", if_exists=False)),
        ("drop tag if exists t", DropRef(type="tag", name="t", if_exists=True)),
        # Keywords of the grammar can be names too.
        ("add partition field field as field", AddPartitionField(term="field", name="field")),
    ],
)
def test_statement_is_parsed_into_its_fields(text: str, clause: Clause) -> None:
    whole = f"-- why\n /* how */ ALTER table lake.`d b`.t {text}"
    statement = extension_statement(whole)
    assert statement is not None
    assert statement.table == ("lake", "d b", "t")
    assert parse_clause(whole, statement.offset) == clause


@pytest.mark.parametrize(
    ("text", "table", "clause"),
    [
        # Text that looks like a number is a name.
        ("alter table lake.1.t", ("lake", "1", "t"), "create branch 0xyz"),
        ("alter table lake.0x1f.1e5", ("lake", "0x1f", "1e5"), "create branch 5"),
        ("alter table a.5_0.2026_01", ("a", "5_0", "2026_01"), "create branch _1"),
        # Comments do not nest. As Spark and Java read it, a line comment ends at either end of a
        # line, but goes on after a backslash before it.
        ("alter table t /* /* */", ("t",), "create branch b"),
        ("alter table -- a\n t", ("t",), "create branch b"),
        ("alter table -- a\r t\n", ("t",), "create branch b"),
        ("alter table -- a\\\n b\n t", ("t",), "create branch b"),
    ],
)
def test_names_of_digits_and_comments(text: str, table: tuple[str, ...], clause: str) -> None:
    statement = extension_statement(f"{text} {clause}")
    assert statement is not None
    assert statement.table == table
    parsed = parse_clause(f"{text} {clause}", statement.offset)
    assert isinstance(parsed, CreateRef)
    assert parsed.name == clause.rsplit(maxsplit=1)[-1]


@pytest.mark.parametrize("length", [0, 70, 71, 72, 79, 80, 81, 90, 799, 800, 5000])
@pytest.mark.parametrize("begin", ["alter table {}t", "/*{}*/ alter table t", "alter {}\n table t"])
def test_a_statement_is_found_however_far_down_it_begins(length: int, begin: str) -> None:
    filler = {"alter table {}t": "t", "/*{}*/ alter table t": "`", "alter {}\n table t": "-"}[begin]
    padding = filler * (length if filler != "-" else max(length, 2))
    for clause in ("create branch b", "write ordered by id"):
        whole = f"{begin.format(padding)} {clause}"
        statement = extension_statement(whole)
        assert statement is not None
        assert whole[statement.offset :] == clause
    assert extension_statement(f"{begin.format(padding)} add column tag int") is None


@pytest.mark.parametrize(
    "text",
    [
        f"select {'create branch, ' * 60_000} 1",
        f"alter table t add column c int comment '{'create tag ' * 80_000}'",
        f"alter table t set tblproperties ({', '.join(f'{i} = {i}' for i in range(60_000))})",
    ],
    ids=["select", "add column", "set tblproperties"],
)
def test_of_a_long_statement_of_sparks_only_the_first_words_are_taken_apart(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    characters: list[int] = []

    def counted(part: str) -> list[ClauseToken]:
        characters.append(len(part))
        return statement_tokens(part)

    monkeypatch.setattr(extensions, "statement_tokens", counted)
    assert len(text) > 500_000
    assert extension_statement(text) is None
    assert sum(characters) <= 100


@pytest.mark.parametrize(
    "text",
    [
        "",
        "select 1",
        "alter table t",
        "alter table t add column partition int",
        "alter table t add partition (field = 1)",
        "alter table t drop partition (field = 1)",
        "alter table t drop column branch",
        "alter table t set tblproperties ('a' = 'create branch b')",
        "alter table t replace columns (a int)",
        "alter table identifier('t') create branch b",
        "alter table t. create branch b",
        "alter table 't' create branch b",
        "alter table `t create branch b",
        "alter /* table t create branch b",
        "alter view t create branch b",
        "create branch b",
    ],
)
def test_other_statements_are_left_to_spark(text: str) -> None:
    assert extension_statement(text) is None


@pytest.mark.parametrize(
    ("text", "near", "expected", "place"),
    [
        ("alter table t add partition field", "the end of the statement", "a column", (1, 33)),
        ("alter table t add partition field days(ts", "the end of the statement", ")", (1, 41)),
        ("alter table t add partition field days('x')", "'''", "a column or a number", (1, 39)),
        ("alter table t\n  write ordered\n  on x", "'on'", "BY", (3, 2)),
        ("alter table t write", "the end of the statement", "ORDERED BY", (1, 19)),
        ("alter table t write unordered unordered", "'unordered'", "the end", (1, 30)),
        ("alter table t set identifier columns id", "'columns'", "FIELDS", (1, 29)),
        ("alter table t create index i", "'index'", "BRANCH or TAG", (1, 21)),
        ("alter table t create tag g retain 5 weeks", "'weeks'", "DAYS, HOURS", (1, 36)),
        ("alter table t create tag g with snapshot retention 5 days", "'with'", "the end", (1, 27)),
        ("alter table t create tag g as of version x", "'x'", "a snapshot id", (1, 41)),
        (f"alter table t create tag g as of version {2**63}", f"'{2**63}'", "at most", (1, 41)),
        (f"alter table t create tag g as of version {'9' * 9999}", "'999", "at most", (1, 41)),
        ("alter table t create or replace branch if not exists b", "'not'", "the end", (1, 42)),
        ("alter table t drop tag if exists", "the end of the statement", "the tag's", (1, 32)),
        ("alter table t drop branch b /* c", "'/*'", "the end", (1, 28)),
        ("alter table t drop branch `b", "'`'", "the branch's name", (1, 26)),
        ("alter table t drop branch b; select 1", "'select'", "the end", (1, 29)),
    ],
)
def test_syntax_error_has_its_place(
    text: str, near: str, expected: str, place: tuple[int, int]
) -> None:
    statement = extension_statement(text)
    assert statement is not None
    with pytest.raises(ExtensionSyntaxError) as e:
        parse_clause(text, statement.offset)
    assert e.value.near.startswith(near)
    assert e.value.expectation.startswith(expected) or expected in e.value.expectation
    assert (e.value.line, e.value.position) == place
    assert f"line {place[0]}, position {place[1]}" in str(e.value)
