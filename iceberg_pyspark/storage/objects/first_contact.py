"""The first request to a store, which is not repeated if the server answers with a redirect.

obstore cannot tell the refusal of a redirect (`redirects.py`) from a broken connection, and repeats
the request for up to three minutes. A wrong endpoint or region redirects every request, so the
first one goes out without retries; any other failure of it is repeated as usual. Afterwards this
store only passes requests on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from iceberg_pyspark.storage.objects.redirects import redirect_error

_REPEATABLE = frozenset(
    ("get", "get_range", "get_ranges", "head", "put", "delete", "list_with_delimiter")
)

_AFTER = "after {0} retries, max_retries: {0}"


def store_of_library(store: Any) -> Any:
    """Return the obstore store itself, which functions of obstore take."""
    return store.patient if isinstance(store, FirstContactStore) else store


class FirstContactStore:
    """An obstore store that has not answered yet.

    `with_retries` makes the store with a number of retries. The number must be at least 2, because
    the first request counts as one of the attempts.
    """

    def __init__(self, with_retries: Callable[[int], Any], retries: int) -> None:
        self._with_retries = with_retries
        self._retries = retries
        self.patient = with_retries(retries)
        self._has_answered = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        attribute = getattr(self.patient, name)
        if self._has_answered or name not in _REPEATABLE:
            return attribute

        def ask(*args: Any, **options: Any) -> Any:
            # The outcome of a put that creates must not be hidden by another put.
            if self._has_answered or options.get("mode") == "create":
                return attribute(*args, **options)
            return self._ask_first(name, args, options)

        return ask

    def _ask_first(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        # a large library, which processes with only local files should not import
        from obstore.exceptions import GenericError  # noqa: PLC0415

        try:
            result = _complete(getattr(self._with_retries(0), name)(*args, **options))
        except GenericError as e:
            if redirect_error(str(e)) is not None:
                raise
        except Exception:
            # an answer too: no such object, no permission
            self._has_answered = True
            raise
        else:
            self._has_answered = True
            return result
        again = self._retries - 1
        try:
            result = getattr(self._with_retries(again), name)(*args, **options)
        except GenericError as e:
            # all attempts, of which obstore knows only its own
            text = str(e).replace(_AFTER.format(again), _AFTER.format(self._retries))
            raise GenericError(text) from None
        self._has_answered = True
        return result


@dataclass(frozen=True)
class _Object:
    """The whole answer to a `get`, with the attributes of obstore's `GetResult` in use here."""

    meta: Any
    content: Any

    def bytes(self) -> Any:
        """Return the object's bytes."""
        return self.content


def _complete(result: Any) -> Any:
    """Return a result that reads nothing more: the client of the first request has no retries."""
    return _Object(result.meta, result.bytes()) if hasattr(result, "stream") else result
