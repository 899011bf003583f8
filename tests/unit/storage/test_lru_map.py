"""The map of the most recently used entries, against its definition."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.storage.lru_map import LruMap

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 5), st.integers(0, 12)),
        st.tuples(st.sampled_from(("get", "pop")), st.integers(0, 5), st.just(0)),
    )
)


@given(STEPS)
def test_lru_map_keeps_the_most_recently_used_entries_that_fit(
    steps: list[tuple[str, int, int]],
) -> None:
    lru: LruMap[int, int] = LruMap(10, lambda size: size)
    expected: dict[int, int] = {}
    for step, key, size in steps:
        value = expected.pop(key, None)
        match step:
            case "put":
                lru.put(key, size)
                if size <= 10:
                    expected[key] = size
                    while sum(expected.values()) > 10:
                        del expected[next(iter(expected))]
            case "get":
                assert lru.get(key) == value
                if value is not None:
                    expected[key] = value
            case _:
                lru.pop(key)
    for key in range(6):
        assert lru.get(key) == expected.get(key)
    lru.clear()
    assert [lru.get(key) for key in range(6)] == [None] * 6


def test_a_lower_bound_holds_from_the_next_entry_on() -> None:
    lru: LruMap[str, int] = LruMap(3)
    for key in "abc":
        lru.put(key, 1)
    lru.max_size = 2
    lru.put("d", 1)
    assert [key for key in "abcd" if lru.get(key)] == ["c", "d"]


def test_threads_do_not_exceed_the_bound() -> None:
    lru: LruMap[int, int] = LruMap(50, lambda _: 7)

    def use(start: int) -> None:
        for i in range(start, start + 300):
            lru.put(i % 40, i)
            lru.get((i + 1) % 40)
            lru.pop((i + 2) % 40)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(8)))
    for i in range(7):
        lru.put(100 + i, i)
    assert [lru.get(100 + i) for i in range(7)] == list(range(7))
    assert all(lru.get(i) is None for i in range(40))
