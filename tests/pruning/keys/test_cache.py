"""`PruningCache`: limits, ownership and counters."""

from __future__ import annotations

import threading

import pytest

from pruning import PruningCache
from pruning.errors import InvalidOptionError

ME, OTHER = "application 1", "application 2"


def cached(cache: PruningCache, *keys: str) -> list[str]:
    """The keys that the cache has; looking them up makes them used in this order."""
    return [key for key in keys if cache.find(ME, key) is not None]


def test_find_counts_hits_and_misses():
    cache = PruningCache()
    assert cache.find(ME, "a") is None
    assert cache.keep(ME, "a", "value", 10)
    assert "value" == cache.find(ME, "a")
    assert (1, 10, 1, 1) == (len(cache), cache.nbytes, cache.hits, cache.misses)
    cache.missed()
    assert (1, 2) == (cache.hits, cache.misses)


def test_empty_cache_is_truthy():
    assert PruningCache()


def test_least_recently_used_entry_is_evicted():
    cache = PruningCache(max_entries=2)
    cache.keep(ME, "a", 1, 1)
    cache.keep(ME, "b", 2, 1)
    cache.find(ME, "a")
    cache.keep(ME, "c", 3, 1)
    assert ["a", "c"] == cached(cache, "a", "b", "c")
    assert 2 == cache.nbytes


def test_bytes_are_limited():
    cache = PruningCache(max_bytes=100)
    for key in "abc":
        cache.keep(ME, key, key, 40)
    assert ["b", "c"] == cached(cache, "a", "b", "c")
    assert 80 == cache.nbytes
    cache.keep(ME, "d", "d", 100)
    assert ["d"] == cached(cache, "b", "c", "d")
    assert 100 == cache.nbytes


def test_entry_over_the_limit_is_not_cached_and_evicts_nothing():
    cache = PruningCache(max_bytes=100)
    cache.keep(ME, "a", 1, 10)
    assert not cache.keep(ME, "b", 2, 101)
    assert ["a"] == cached(cache, "a", "b")
    # The entry of the same key is out of date, so it is removed.
    assert not cache.keep(ME, "a", 3, 101)
    assert ([], 0) == (cached(cache, "a"), cache.nbytes)


def test_value_replaces_an_older_one():
    cache = PruningCache()
    cache.keep(ME, "a", 1, 10)
    cache.keep(ME, "a", 2, 30)
    assert (2, 1, 30) == (cache.find(ME, "a"), len(cache), cache.nbytes)


def test_entries_of_another_owner_are_dropped():
    cache = PruningCache()
    cache.keep(ME, "a", 1, 10)
    assert cache.find(OTHER, "a") is None
    assert (0, 0) == (len(cache), cache.nbytes)


def test_clear_keeps_only_counters():
    cache = PruningCache()
    cache.keep(ME, "a", 1, 10)
    cache.find(ME, "a")
    cache.clear()
    assert (0, 0, 1) == (len(cache), cache.nbytes, cache.hits)
    assert [] == cached(cache, "a")


def test_threads_do_not_exceed_limits():
    cache, begin = PruningCache(max_bytes=50, max_entries=7), threading.Barrier(4)

    def work(seed: int) -> None:
        begin.wait()
        for at in range(2000):
            key = str((at * seed) % 23)
            found = cache.find(ME, key)
            assert found in {None, key}
            cache.keep(ME, key, key, 1 + at % 12)
            if at % 500 == 0:
                cache.clear()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 3, 5, 7)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert 8000 == cache.hits + cache.misses
    assert cache.nbytes <= cache.max_bytes
    assert len(cache) <= cache.max_entries
    cache.clear()
    assert 0 == cache.nbytes


@pytest.mark.parametrize("name", ["max_bytes", "max_entries"])
@pytest.mark.parametrize("value", [0, -1, True, 1.5, "lots", "0"])
def test_limits_must_be_positive_integers(name, value):
    with pytest.raises(InvalidOptionError, match=f"Cannot set '{name}' of a PruningCache"):
        PruningCache(**{name: value})


def test_a_number_of_entries_is_no_text():
    with pytest.raises(InvalidOptionError, match="Cannot set 'max_entries' of a PruningCache to '8': expected a whole"):
        PruningCache(max_entries="8")


def test_repr_shows_contents_and_counters():
    cache = PruningCache(max_bytes=2000)
    cache.keep(ME, "a", 1, 1200)
    cache.find(ME, "a")
    assert "PruningCache(1 builds, 1,200 of 2,000 bytes, 1 hits, 0 misses)" == repr(cache)
