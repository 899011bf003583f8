"""The Java sources have no javac warnings, which Janino and the formatter do not report."""

import re
from pathlib import Path

import pytest

from iceberg_pyspark.spark import bridge

SOURCES = sorted((Path(bridge.__file__).parent / "java").rglob("*.java"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_file_is_one_class_and_imports_what_it_uses(path: Path) -> None:
    text = path.read_text("utf-8")
    imports = re.findall(r"^import [\w.]+\.([\w$]+);$", text, re.MULTILINE)
    body = re.sub(r"^import .*$", "", text, flags=re.MULTILINE)
    assert [n for n in imports if not re.search(rf"\b{re.escape(n)}(?!\w)", body)] == []
    kinds = re.findall(
        r"^(?:public |abstract |final )*(?:class|interface) (\w+)", body, re.MULTILINE
    )
    assert kinds == [path.stem]


def test_there_are_sources() -> None:
    assert len(SOURCES) > 50
