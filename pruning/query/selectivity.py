"""The share of rows that conditions let pass, by the bounds of columns where known, else by the kind of condition.

Bounds count where the values of a type have a distance (integers, dates, decimals, ...): values are taken to be spread
evenly, which `share_error` widens to a low and a high share. Other conditions get a share by their kind, as optimisers
have done since System R, and wide bounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from typing import TypeAlias

from pruning.cost.estimate import Estimate
from pruning.limits import LIMITS, Limits
from pruning.query.expressions import static_domains
from pruning.query.plan import Expression, conjuncts_at
from pruning.values.domain import Domain

ShareOf: TypeAlias = Callable[[int, Domain], float | None]
ShareOfOne: TypeAlias = Callable[[int], Estimate | None]

ALL = Estimate.exact(1.0)
# Spark makes the first three of `LIKE 'a%'`, `'%a'` and `'%a%'`.
_PATTERNS = frozenset({"StartsWith", "EndsWith", "Contains", "Like"})
_ESCAPES_AND_WILDCARDS = re.compile(r"\\(.)|[%_]", re.DOTALL)
# PostgreSQL's share of rows that one more character of a pattern lets pass, and the least share that it believes.
_CHARACTER_SHARE, _LEAST_PATTERN_SHARE = 0.2, 1e-4


def condition_share(
    condition: Expression | None, share_of: ShareOf, share_of_one: ShareOfOne, limits: Limits = LIMITS
) -> Estimate:
    """The share, 0 to 1, of rows for which a condition holds.

    `share_of` gives the share of rows whose value of a column lies in a domain, `share_of_one` that of rows with one
    value of a column; None where they are not known.
    """
    parts = [part for _, part in conjuncts_at(condition)]
    found: list[Estimate] = []
    unknown = [each for each in parts if each.kind != "IsNotNull"]
    for column, domain in static_domains(parts).items():
        about = [each for each in unknown if each.columns == {column} and column in static_domains([each])]
        share = share_of(column, domain) if about else None
        if share is not None:
            found.append(around(share, limits.share_error))
            unknown = [each for each in unknown if each not in about]
    return reduce(both, (*found, *(_by_kind(each, share_of, share_of_one, limits) for each in unknown)), ALL)


def both(first: Estimate, second: Estimate) -> Estimate:
    """The share of rows for which two independent conditions hold; dependent ones may let the smaller share pass."""
    expected = first.expected * second.expected
    return Estimate(first.low * second.low, expected, max(expected, min(first.high, second.high)))


def around(share: float, factor: float) -> Estimate:
    """A share that may be wrong by a factor."""
    share = min(1.0, max(0.0, share))
    return Estimate(share / factor, share, min(1.0, share * factor))


def _by_kind(condition: Expression, share_of: ShareOf, share_of_one: ShareOfOne, limits: Limits) -> Estimate:
    match condition.kind:
        case "Or":
            first, second = (condition_share(each, share_of, share_of_one, limits) for each in condition.children)
            most = min(1.0, first.expected + second.expected), min(1.0, first.high + second.high)
            return Estimate.around(max(first.low, second.low), *most)
        case "Not":
            inner = condition_share(condition.children[0], share_of, share_of_one, limits)
            return Estimate(1 - inner.high, 1 - inner.expected, 1 - inner.low)
        case "EqualTo" | "EqualNullSafe" if shares := _shares_of_one(condition, share_of_one):
            return min(shares, key=lambda each: each.expected)
        case "EqualTo" | "EqualNullSafe" | "IsNull":
            return around(limits.equal_share, limits.guess_error)
        case "In" if shares := _shares_of_one(condition, share_of_one):
            return _of_several(shares[0], len(condition.children) - 1)
        case "In":
            listed = limits.equal_share * (len(condition.children) - 1)
            return around(min(limits.other_share, listed), limits.guess_error)
        case "Literal" if condition.text == "true":
            return ALL
        case kind if kind in _PATTERNS:
            return _of_pattern(condition, share_of_one, limits)
        case _:
            return around(limits.other_share, limits.guess_error)


def _shares_of_one(condition: Expression, share_of_one: ShareOfOne) -> list[Estimate]:
    """The shares of rows with one value of each column that an equality or a list compares."""
    found = (None if each.column is None else share_of_one(each.column) for each in condition.children)
    return [each for each in found if each is not None]


def _of_pattern(condition: Expression, share_of_one: ShareOfOne, limits: Limits) -> Estimate:
    """The share of rows with a text like a pattern, which are at least those with one value of the column.

    It may be that of any condition, as all texts may begin alike.
    """
    other = around(limits.other_share, limits.guess_error)
    pattern = condition.children[1]
    if pattern.kind != "Literal":
        return other
    text = _ESCAPES_AND_WILDCARDS.sub(r"\1", pattern.text) if condition.kind == "Like" else pattern.text
    ones = (each.expected for each in _shares_of_one(condition, share_of_one))
    share = max(_LEAST_PATTERN_SHARE, _CHARACTER_SHARE ** len(text), *ones)
    return Estimate(min(other.low, share / limits.guess_error), min(other.expected, share), other.high)


def _of_several(one: Estimate, count: int) -> Estimate:
    """The share of rows with one of several values."""
    return Estimate(*(min(1.0, count * each) for each in (one.low, one.expected, one.high)))
