"""Compiled classes are kept for the next session, and used only if they are unchanged."""

import io
import logging
import os
import stat
import time
import zipfile
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

import pytest

from iceberg_pyspark.spark.bridge import java_classes as module
from iceberg_pyspark.spark.bridge.java_classes import MAX_JARS, class_jar
from iceberg_pyspark.spark.bridge.java_modules import CORE, classes_of

ONE = {"A.class": b"1", "B.class": b"2" * 1000}


def jar_of(parent: Path, made_of: str, classes: Mapping[str, bytes] = ONE) -> Path:
    """Return the kept jar of a session that compiles the classes if necessary."""
    jar = class_jar(str(parent), made_of, lambda: classes)
    assert classes_in(jar) == classes
    (path,) = parent.glob(f"{sha256(made_of.encode()).hexdigest()}-*.jar")
    assert path.read_bytes() == jar
    return path


def cached_jar_of(parent: Path, made_of: str, classes: Mapping[str, bytes] = ONE) -> Path:
    """Return the jar of a session that must not compile."""
    class_jar(str(parent), made_of, lambda: pytest.fail("compiled again"))
    return jar_of(parent, made_of, classes)


def classes_in(jar: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(jar)) as file:
        return {n: file.read(n) for n in file.namelist()}


def test_equal_sources_are_compiled_once(tmp_path: Path) -> None:
    first = jar_of(tmp_path, "a")
    assert cached_jar_of(tmp_path, "a") == first
    other = jar_of(tmp_path, "b", {"A.class": b"other"})
    assert other != first
    assert cached_jar_of(tmp_path, "b", {"A.class": b"other"}) == other
    assert cached_jar_of(tmp_path, "a") == first
    assert stat.S_IMODE(first.stat().st_mode) == 0o600


def cut(jar: Path) -> None:
    os.truncate(jar, jar.stat().st_size // 2)


def empty(jar: Path) -> None:
    jar.write_bytes(b"")


def flip(jar: Path) -> None:
    content = bytearray(jar.read_bytes())
    content[content.index(b"2" * 1000) + 500] ^= 1
    jar.write_bytes(content)


def add(jar: Path) -> None:
    with zipfile.ZipFile(jar, "a") as file:
        file.writestr("Added.class", b"3")


def exchange(jar: Path) -> None:
    with zipfile.ZipFile(jar, "w") as file:
        file.writestr("A.class", b"of somebody else")


def take_the_name(jar: Path) -> None:
    """Overwrite the jar with an intact jar that was made from something else."""
    other = jar_of(jar.parent, "something else", {"A.class": b"of something else"})
    jar.write_bytes(other.read_bytes())


def let_others_write(jar: Path) -> None:
    jar.chmod(0o622)


def link(jar: Path) -> None:
    elsewhere = jar.parent / "elsewhere"
    jar.rename(elsewhere)
    jar.symlink_to(elsewhere)


@pytest.mark.parametrize(
    "change", [cut, empty, flip, add, exchange, take_the_name, let_others_write, link]
)
def test_changed_jar_is_compiled_again(tmp_path: Path, change: Callable[[Path], None]) -> None:
    change(jar_of(tmp_path, "a"))
    compiled = 0

    def count() -> dict[str, bytes]:
        nonlocal compiled
        compiled += 1
        return dict(ONE)

    assert classes_in(class_jar(str(tmp_path), "a", count)) == ONE
    assert compiled == 1
    assert not cached_jar_of(tmp_path, "a").is_symlink()


def test_jar_of_another_user_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar_of(tmp_path, "a")
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    compiled: list[bool] = []

    def compile_classes() -> Mapping[str, bytes]:
        compiled.append(True)
        return ONE

    class_jar(str(tmp_path), "a", compile_classes)
    assert compiled == [True]


def test_failed_compilation_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> dict[str, bytes]:
        raise ValueError("no Janino")

    with pytest.raises(ValueError, match="no Janino"):
        class_jar(str(tmp_path), "a", fails)
    assert not list(tmp_path.iterdir())

    def no_space(_file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    assert classes_in(class_jar(str(tmp_path), "a", lambda: ONE)) == ONE
    assert not list(tmp_path.iterdir())


def test_a_jar_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    synced, renamed = os.fsync, os.replace

    def fsync(file: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "file")
        synced(file)

    def replace(source: str, target: Path) -> None:
        steps.append("name")
        renamed(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    jar_of(tmp_path, "a")
    assert steps == ["file", "name", "folder"]


def test_two_sessions_that_compile_at_once_make_one_jar(tmp_path: Path) -> None:
    def slower() -> dict[str, bytes]:
        jar_of(tmp_path, "a")
        return dict(ONE)

    class_jar(str(tmp_path), "a", slower)
    assert os.listdir(tmp_path) == [cached_jar_of(tmp_path, "a").name]


def test_jars_unused_for_longest_are_removed(tmp_path: Path) -> None:
    first, second = jar_of(tmp_path, "first"), jar_of(tmp_path, "second")
    os.utime(first, (1000, 1000))
    os.utime(second, (2000, 2000))
    cached_jar_of(tmp_path, "first")
    for i in range(MAX_JARS - 2):
        jar_of(tmp_path, str(i))
    jar_of(tmp_path, "one more")
    assert not second.exists()
    assert len(os.listdir(tmp_path)) == MAX_JARS
    cached_jar_of(tmp_path, "first")
    jar_of(tmp_path, "second")


def test_environments_used_in_turns_keep_their_jars(tmp_path: Path) -> None:
    """Each release of Spark, of Java and of this package has a jar of its own."""
    sources = [f"environment {i}" for i in range(8)]
    for text in sources:
        jar_of(tmp_path, text)
    for text in sources:
        cached_jar_of(tmp_path, text)


def test_unfinished_jar_of_a_killed_session_is_removed_later(tmp_path: Path) -> None:
    unfinished_jar = tmp_path / f"x{module._UNFINISHED_SUFFIX}"
    unfinished_jar.write_bytes(b"half")
    jar_of(tmp_path, "a")
    assert unfinished_jar.exists()
    long_ago = time.time() - 2 * module._UNFINISHED_SECONDS
    os.utime(unfinished_jar, (long_ago, long_ago))
    jar_of(tmp_path, "b")
    assert not unfinished_jar.exists()


def test_without_a_folder_of_the_user_a_jar_is_not_kept() -> None:
    assert classes_in(class_jar(None, "a", lambda: ONE)) == ONE


def test_a_damaged_file_of_the_wheel_is_compiled_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wheel_file = tmp_path / "compiled.zip"
    monkeypatch.setattr(module, "COMPILED", str(wheel_file))
    monkeypatch.setattr(module, "_build_digest", lambda _jvm: "build")
    classes = {f"{name}.class": name.encode() * 9 for name in classes_of(CORE)[:3]}
    whole = module.packed_classes({"build": classes})

    def jar(content: bytes) -> bytes | None:
        wheel_file.write_bytes(content)
        return module._jar_of_wheel(None, [CORE])

    expected = jar(whole)
    assert expected is not None
    assert not caplog.records
    caplog.set_level(logging.ERROR, module.__name__)
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        assert jar(bytes(flipped)) in (None, expected)
    caplog.set_level(logging.WARNING, module.__name__)
    assert jar(whole[: len(whole) // 2]) is None
    assert f"{wheel_file} is damaged" in caplog.text
    assert "reinstall iceberg-pyspark" in caplog.text
