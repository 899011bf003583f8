"""The page of a health report: well-formed, without network access, with the right figures."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.command_line.health_page import health_page
from iceberg_pyspark.display import printable
from iceberg_pyspark.table.health.health_report import TableHealth
from iceberg_pyspark.table.health.report_text import sections
from tests.services.chromium import shown
from tests.support.deleted_rows import delete_positions
from tests.support.frames import create_path_table
from tests.unit.command_line.conftest import Run

EVIL = "<img src='http://127.0.0.1:1/x' onerror=alert(1)>$\\frac]]>--><script>\x1b[2J 日本"
VOID = {"meta"}


class Page(HTMLParser):
    """A strict reader of a page: every tag is closed, and every id is unique."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert "svg" in self.open, f"<{tag}/> is of SVG alone"
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ice.Table:
    """Create a table whose partition names are HTML markup, with deletes in an older spec."""
    new = create_path_table(
        tmp_path_factory.mktemp("page") / "<b>&t",
        "id BIGINT, p STRING",
        properties={"format-version": "3"},
    )
    schema = to_arrow_schema(new.schema)
    new.append(pa.table({"id": range(100), "p": ["a"] * 100}, schema))
    (task,) = new.scan().plan_files()
    delete_positions(new, {task.file_path: range(7)})
    new.update_spec().add_field("p").commit()
    for number in range(3):
        new.append(pa.table({"id": [number, number], "p": [EVIL, "x" * 90]}, schema))
    return new


@pytest.fixture(scope="module")
def health(table: ice.Table) -> TableHealth:
    return table.health()


@pytest.fixture(scope="module")
def page(health: TableHealth) -> str:
    return health_page(health)


def test_the_page_is_whole(page: str) -> None:
    assert page.startswith("<!DOCTYPE html>\n")
    read = Page(page)
    assert read.tags[:3] == ["html", "head", "meta"]
    assert ("lang", "en") in read.attributes
    assert len(read.ids) == len(set(read.ids))
    label_ids = {
        word
        for name, value in read.attributes
        for word in (value.split() if name in ("aria-labelledby", "aria-describedby") else ())
    }
    linked = {value[1:] for name, value in read.attributes if name == "href"}
    used = set(re.findall(r"url\(#([^)]+)\)", page))
    assert used
    assert label_ids | linked | used <= set(read.ids)
    assert read.tags.count("svg") == 4
    assert read.tags.count("svg") == read.attributes.count(("role", "img"))
    assert read.tags.count("desc") == read.tags.count("details") == 4
    assert read.tags.count("caption") == read.tags.count("table")


def test_nothing_is_asked_of_a_network(page: str) -> None:
    read = Page(page)
    forbidden = {"script", "link", "iframe", "object", "embed", "img", "image", "base", "form", "a"}
    assert not forbidden & set(read.tags)
    for name, value in read.attributes:
        assert not name.startswith("on")
        assert name not in ("src", "srcset", "action", "data", "xlink:href")
        assert name != "href" or value.startswith("#")
        assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", value)
    (style,) = read.texts["style"]
    assert "url(" not in style
    assert "@import" not in style
    assert any("default-src 'none'" in value for name, value in read.attributes)
    # A table's name and values may contain URLs, as text.
    assert set(re.findall(r"\w+://[^/]*", page)) <= {"http://127.0.0.1:1"}


def test_health_page_shows_every_figure_of_the_report(page: str, health: TableHealth) -> None:
    read = Page(page)
    cells = {*read.texts["td"], *read.texts["th"]}
    for section in sections(health):
        for row in section.rows:
            assert set(map(printable, row)) <= cells, section.title
    cards = read.texts["strong"]
    assert cards[0] == str(health.file_sizes.files) == "7"
    assert cards[3] == "1"
    for gain in health.procedures:
        shown = any(gain.command in text for text in read.texts["code"])
        assert shown == gain.is_worthwhile
    svg_texts = read.texts["text"]
    assert "7" in svg_texts
    assert any(text.startswith("p=xxx") and text.endswith("…") for text in svg_texts)


def test_text_of_other_writers_is_escaped(page: str) -> None:
    read = Page(page)
    assert "\x1b" not in page
    assert printable(f"p={EVIL}") in read.texts["td"]
    assert not {"b", "img", "script"} & set(read.tags)
    (title,) = (text for text in read.texts["title"] if text.startswith("Health"))
    assert "<b>&t" in title


def test_a_healthy_table_has_a_page(tmp_path: Path) -> None:
    read = Page(health_page(create_path_table(tmp_path / "t", "id BIGINT").health()))
    assert "svg" not in read.tags
    assert "Nothing: no procedure would gain anything." in read.texts["p"]


def test_the_command_writes_it(run: Run, tmp_path: Path) -> None:
    run("create", "table", "db.t", "--schema", "id INT")
    path = tmp_path / "health.html"
    answer = run("health", "db.t", "--html", str(path))
    assert (answer.code, answer.lines) == (0, [f"wrote {path}"])
    assert path.read_text(encoding="utf-8").endswith("</html>\n")
    both = run("health", "db.t", "--html", str(path), "--json")
    assert both.json["table"] == "db.t"
    refused = run("health", "db.t", "--html", str(tmp_path / "none" / "x.html"))
    assert refused.code == 2
    assert "cannot be written" in refused.errors


def test_without_matplotlib_it_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("create", "table", "db.t", "--schema", "id INT")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refused = run("health", "db.t", "--html", "x.html")
    assert refused.code == 2
    assert "pip install 'iceberg-pyspark[health]'" in refused.errors
    assert not Path("x.html").exists()
    assert run("health", "db.t").code == 0


@pytest.mark.nightly
def test_a_browser_shows_it(page: str, tmp_path: Path) -> None:
    file = tmp_path / "health.html"
    file.write_text(page, encoding="utf-8")
    with shown(file, tmp_path) as in_browser:
        charts = "[...document.querySelectorAll('svg')].map(svg => svg.getBoundingClientRect())"
        sizes = in_browser.evaluate(f"{charts}.map(box => [box.width, box.height])")
        assert len(sizes) == 4
        assert all(width > 100 and height > 50 for width, height in sizes)
        title = in_browser.evaluate("document.title")
        assert title == Page(page).texts["title"][0]
        assert in_browser.messages == []
