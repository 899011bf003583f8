"""Values with an end: when they are obtained again, and what happens if they cannot be."""

from __future__ import annotations

import pytest

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.credentials.credential_renewal import Renewed


class Tokens:
    """A source of tokens that live `lifetime_s`, at the time `now_s`."""

    def __init__(self, lifetime_s: float | None) -> None:
        self.lifetime_s = lifetime_s
        self.now_s = 1000.0
        self.count = 0
        self.works = True
        self.renewed = Renewed[str]("token", lambda: self.now_s)

    def obtain(self, old: str | None) -> tuple[str, float | None]:
        self.count += 1
        if not self.works:
            raise StorageError(f"no token after {old}")
        end_s = None if self.lifetime_s is None else self.now_s + self.lifetime_s
        return str(self.count), end_s

    def after(self, seconds: float) -> str:
        self.now_s += seconds
        return self.renewed.get(self.obtain)


def test_a_value_is_renewed_in_the_last_tenth_of_its_life() -> None:
    tokens = Tokens(100)
    assert [tokens.after(s) for s in (0, 89, 2, 89, 2)] == ["1", "1", "2", "2", "3"]


def test_a_long_life_ends_five_minutes_early() -> None:
    tokens = Tokens(36_000)
    assert [tokens.after(s) for s in (0, 35_699, 2)] == ["1", "1", "2"]


def test_a_value_without_an_end_stays() -> None:
    tokens = Tokens(None)
    assert [tokens.after(s) for s in (0, 1e9)] == ["1", "1"]


def test_one_that_is_forgotten_is_obtained_again() -> None:
    tokens = Tokens(None)
    tokens.after(0)
    tokens.renewed.forget()
    assert tokens.after(0) == "2"


def test_the_old_value_is_used_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    tokens = Tokens(100)
    tokens.after(0)
    tokens.works = False
    assert [tokens.after(s) for s in (91, 1, 1)] == ["1"] * 3
    # one attempt, then a pause
    assert tokens.count == 2
    assert caplog.messages == ["expiring token could not be renewed: no token after 1"]
    for seconds in (7, 1):
        with pytest.raises(StorageError, match="no token after 1"):
            tokens.after(seconds)
    tokens.works = True
    assert tokens.after(0) == "5"


def test_a_first_value_that_cannot_be_obtained_is_an_error() -> None:
    tokens = Tokens(100)
    tokens.works = False
    with pytest.raises(StorageError, match="no token after None"):
        tokens.after(0)


def test_the_same_value_again_is_not_asked_for_in_every_call() -> None:
    tokens = Tokens(0)
    assert [tokens.after(s) for s in (0, 0.5, 0.6)] == ["1", "1", "2"]


def test_a_first_value_is_set() -> None:
    tokens = Tokens(100)
    tokens.renewed.set("given", 1005.0)
    assert [tokens.after(s) for s in (0, 4, 1)] == ["given", "given", "1"]
