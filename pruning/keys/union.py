"""`united()`: the keys of several builds as one summary, for a scan that is read once for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from types import MappingProxyType

from pruning.keys.bloom import BloomFilter
from pruning.keys.summary import KeyColumn, KeySummary
from pruning.keys.xxhash64 import hash_codes
from pruning.values.domain import Domain


def united(summaries: Sequence[KeySummary]) -> KeySummary:
    """Every key of one-column summaries of the same type; `ValueError` for others.

    It is exact where all of them are. A bloom filter of all keys is dropped where it would pass most rows.
    """
    types = {each.types for each in summaries}
    if len(types) != 1 or len(summaries[0].types) != 1:
        found = ", ".join(sorted(str(each) for of_one in types for each in of_one)) or "no keys"
        msg = f"Cannot unite keys: found {found}, expected one column of one type"
        raise ValueError(msg)
    columns = [each.columns[0] for each in summaries]
    domain = reduce(Domain.union, (each.domain for each in columns))
    bloom = _bloom(summaries)
    return KeySummary(
        columns=(KeyColumn(domain, sum(each.nulls for each in columns), sum(each.nans for each in columns)),),
        rows=sum(each.rows for each in summaries),
        null_rows=sum(each.null_rows for each in summaries),
        distinct=_distinct(domain) if all(each.exact for each in summaries) else None,
        key_rows=None,
        bloom=bloom,
        hashed_as=() if bloom is None else summaries[0].types,
        source=" or ".join(dict.fromkeys(each.source for each in summaries)),
        partitions=sum(each.partitions for each in summaries),
        versions=MappingProxyType({name: version for each in summaries for name, version in each.versions.items()}),
        reasons=tuple(dict.fromkeys(reason for each in summaries for reason in each.reasons)),
    )


def _distinct(domain: Domain) -> int | None:
    points = domain.ranges.point_count()
    return None if points is None else points + domain.nan


def _bloom(summaries: Sequence[KeySummary]) -> BloomFilter | None:
    """A bloom filter of all keys; None where ranges test rows as well, since each key is listed or most rows pass."""
    blooms = [each.bloom for each in summaries if each.bloom is not None]
    listed = [each for each in summaries if each.bloom is None]
    if not blooms or any(not each.exact or each.domains[0].nan for each in listed):
        return None
    words = min(len(each.words) for each in blooms)
    try:
        merged = reduce(BloomFilter.merge, (_folded(each, words) for each in blooms))
    except ValueError:
        return None
    for each in listed:
        merged = merged.adding(hash_codes(each.types[0], each.domains[0].ranges.points()))
    return None if merged.is_useless else merged


def _folded(bloom: BloomFilter, words: int) -> BloomFilter:
    """A filter of the same keys in so many words, or in more if they cannot be halved so often."""
    while len(bloom.words) > words and (half := bloom.halved()) is not None:
        bloom = half
    return bloom


def are_known(keys: KeySummary, known: Sequence[KeySummary]) -> bool:
    """True if there are equal keys, perhaps of an equal build side with another name."""
    return any(replace(keys, source=each.source) == each for each in known)


def fewest(summaries: Sequence[KeySummary]) -> float:
    """The number of values to which key sets restrict a column."""
    return min(float(each.rows if each.distinct is None else each.distinct) for each in summaries)
