"""The names of the top package, and the findings of a type checker for programs that use them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import iceberg_pyspark as ice

ROOT = Path(__file__).parents[2]

PROGRAM = (ROOT / "tests/unit/users_program.py").read_text(encoding="utf-8")


def check(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run `mypy --strict` on a user's program with the package installed.

    Errors inside installed packages do not concern users, so errors in this checkout are silenced
    too.
    """
    file = folder / "program.py"
    file.write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    cache = os.environ.get("MYPY_CACHE_DIR", str(ROOT / ".mypy_cache"))
    return subprocess.run(
        [*command, "--config-file=", f"--cache-dir={cache}", str(file)],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_exported_name_is_there() -> None:
    assert sorted(ice.__all__) == ice.__all__
    for name in ice.__all__:
        assert getattr(ice, name).__name__ in (name, f"iceberg_pyspark.{name}")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ice.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_errors_are_there_without_another_import() -> None:
    program = (
        "import iceberg_pyspark as ice\n"
        "try: raise ice.errors.CommitConflictError('x')\n"
        "except ice.errors.CommitError as e: print(isinstance(e, ice.IcebergError))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


@pytest.mark.nightly
def test_a_users_program_passes_mypy_strict(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    done = check(tmp_path, PROGRAM)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly
def test_type_checker_finds_wrong_uses(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    wrong = "import iceberg_pyspark as ice\n\nice.load_tabel('a')\nice.load_table(1).schema.x\n"
    done = check(tmp_path, wrong)
    assert 'Module has no attribute "load_tabel"' in done.stdout
    assert 'has incompatible type "int"; expected "str"' in done.stdout
    assert '"Schema" has no attribute "x"' in done.stdout
