from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.catalogs.catalog import check_folder_name, split_catalog
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.sql_text.names import is_path, parse_levels


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("events", ("events",)),
        ("db.events", ("db", "events")),
        ("a.b.c.d", ("a", "b", "c", "d")),
        ("`a.b`.c", ("a.b", "c")),
        ("`a``b`", ("a`b",)),
        ("db.`a b`", ("db", "a b")),
        ("db.ev ents", ("db", "ev ents")),
        ("db.`x/y`", ("db", "x/y")),
        ("häß.日本", ("häß", "日本")),
    ],
)
def test_levels_of_a_name(text: str, levels: tuple[str, ...]) -> None:
    assert parse_levels(text) == levels


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "a.", ".a", "a..b", "`a", "a`b`", "`a`b", "`a`.", "``", "a.`..`"),
        *("a\nb", "a\0", "a\x85", "x" * 256),
    ],
)
def test_invalid_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="name"):
        parse_levels(text)


@given(
    st.lists(
        st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=20).filter(
            lambda level: level not in (".", "..")
        ),
        min_size=1,
        max_size=4,
    )
)
def test_quoted_levels_are_read_as_they_were(levels: list[str]) -> None:
    text = ".".join(f"`{level.replace('`', '``')}`" for level in levels)
    assert parse_levels(text) == tuple(levels)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/a/b", True),
        ("a/b", True),
        ("./a", True),
        ("s3://bucket/t", True),
        ("file:/a", True),
        ("db.events", False),
        ("`a/b`.c", False),
        ("`a`/b", True),
    ],
)
def test_a_slash_makes_a_path(text: str, expected: bool) -> None:
    assert is_path(text) is expected


def test_a_known_catalog_is_split_off() -> None:
    assert split_catalog(("lake", "db", "t"), ("lake",)) == ("lake", ("db", "t"))
    assert split_catalog(("db", "t"), ("lake",)) == (None, ("db", "t"))
    assert split_catalog(("lake",), ("lake",)) == (None, ("lake",))


@pytest.mark.parametrize("name", ["a/b", "a\\b", ".hidden", "..", "é" * 128])
def test_name_that_cannot_be_a_folder_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequestError):
        check_folder_name(name)
