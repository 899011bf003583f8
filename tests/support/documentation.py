"""README.md and the pages of docs/: their text and their code blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = (
    README,
    *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted(DOCS.rglob("*.md")),
)

_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `line` is the number of the first line of its code."""

    page: Path
    line: int
    language: str
    code: str


def name_of(page: Path) -> str:
    """Return the page's path relative to the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> list[Block]:
    """Return all fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, m.start(3)) + 1, m[2], m[3]) for m in _BLOCK.finditer(text)
    ]


def commands_of(page: Path, program: str) -> list[str]:
    """Return the commands of a page's shell blocks that run a program; each is one line."""
    return [
        command
        for block in blocks_of(page)
        if block.language == "bash"
        for command in block.code.replace("\\\n", " ").splitlines()
        if command.split()[:1] == [program]
    ]
