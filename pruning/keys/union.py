"""`united()`: the keys of several builds as one summary, for a scan that is read once for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from types import MappingProxyType

from pruning.keys.bloom import BloomFilter
from pruning.keys.summary import KeyColumn, KeySummary
from pruning.values.domain import Domain


def united(summaries: Sequence[KeySummary]) -> KeySummary:
    """Every key of one-column summaries of the same type; `ValueError` for others.

    It is exact where all of them are, and has a bloom filter where all have one of the same shape.
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
    """The bloom filter of all keys; without one, ranges alone are tested."""
    blooms = [each.bloom for each in summaries]
    hashed = {each.hashed_as for each in summaries}
    if len(hashed) != 1 or any(each is None for each in blooms):
        return None
    try:
        return reduce(BloomFilter.merge, (each for each in blooms if each is not None))
    except ValueError:
        return None
