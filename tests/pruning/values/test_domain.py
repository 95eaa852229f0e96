"""Examples of domains; `test_domain_laws` has their laws."""

from __future__ import annotations

import pytest

from pruning.values.domain import Domain
from pruning.values.types import ValueType
from tests.pruning.samples import INF, NAN

BIGINT, DOUBLE, FLOAT, STRING = (ValueType(name) for name in ("bigint", "double", "float", "string"))


@pytest.mark.parametrize(
    ("first", "second", "overlaps"),
    [
        pytest.param(Domain.of(BIGINT, 5), Domain.between(BIGINT, 0, 9), True, id="inside"),
        pytest.param(Domain.of(BIGINT, 5), Domain.between(BIGINT, 6, 9), False, id="below"),
        pytest.param(Domain.of(BIGINT, 5, 70), Domain.between(BIGINT, 6, 69), False, id="in-the-gap"),
        pytest.param(Domain.of(BIGINT, None), Domain.only_null(BIGINT), True, id="null-and-null"),
        pytest.param(Domain.of(BIGINT, None), Domain.between(BIGINT, None, None), False, id="null-and-values"),
        # Failure catalogue 61: NaN sorts above every number, yet no bound covers it.
        pytest.param(Domain.of(DOUBLE, NAN), Domain.between(DOUBLE, 1.0, INF), False, id="nan-and-numbers"),
        pytest.param(Domain.of(DOUBLE, NAN, 2.0), Domain.of(DOUBLE, NAN), True, id="nan-and-nan"),
        pytest.param(Domain.of(DOUBLE, NAN), Domain.all(DOUBLE), True, id="nan-and-all"),
        # Failure catalogue 66: a key of -0.0 matches a row of 0.0, and the reverse.
        pytest.param(Domain.of(DOUBLE, -0.0), Domain.of(DOUBLE, 0.0), True, id="zeros"),
        pytest.param(Domain.of(DOUBLE, 0.0), Domain.between(DOUBLE, -1.0, -0.0), True, id="zero-at-a-bound"),
        pytest.param(Domain.of(STRING, "az"), Domain.between(STRING, "a", "aé"), True, id="unsigned-bytes"),
        pytest.param(Domain.of(STRING, "a\0"), Domain.between(STRING, "a", "a"), False, id="longer-by-a-nul-byte"),
        pytest.param(Domain.of(STRING, ""), Domain.between(STRING, None, "a"), True, id="empty-text"),
        pytest.param(Domain.of(STRING, "\U0010ffff" * 9), Domain.between(STRING, "z", None), True, id="open-above"),
    ],
)
def test_domains_overlap_iff_they_share_a_value(first, second, overlaps):
    assert (overlaps, overlaps) == (first.overlaps(second), second.overlaps(first))


@pytest.mark.parametrize(
    ("domain", "value", "inside"),
    [
        pytest.param(Domain.of(BIGINT, 1, None), None, True, id="null"),
        pytest.param(Domain.of(BIGINT, 1), None, False, id="no-null"),
        pytest.param(Domain.of(DOUBLE, NAN), NAN, True, id="nan"),
        pytest.param(Domain.between(DOUBLE, None, None), NAN, False, id="all-numbers-but-nan"),
        pytest.param(Domain.of(DOUBLE, 0.0), -0.0, True, id="negative-zero"),
        pytest.param(Domain.of(FLOAT, 0.1), 0.1, True, id="single-precision"),
        pytest.param(Domain.between(BIGINT, None, 4), -(1 << 63), True, id="open-below"),
        pytest.param(Domain.between(BIGINT, 4, None), (1 << 63) - 1, True, id="open-above"),
    ],
)
def test_domain_contains_value(domain, value, inside):
    assert inside is domain.contains(value)


@pytest.mark.parametrize("ends", [(NAN, NAN), (1.0, NAN), (NAN, 1.0)], ids=["both", "high", "low"])
def test_nan_is_refused_as_a_bound(ends):
    # A NaN bound would claim to know all values below it.
    with pytest.raises(ValueError, match="Cannot encode NaN as double"):
        Domain.between(DOUBLE, *ends)


def test_nan_is_refused_for_integers():
    with pytest.raises(ValueError, match="Cannot put NaN in a Domain of bigint"):
        Domain(Domain.none(BIGINT).ranges, nan=True)


def test_inverted_range_is_empty():
    assert Domain.none(BIGINT) == Domain.between(BIGINT, 9, 3)


def test_all_nan_payloads_are_one_value():
    # Failure catalogue 67: keys do not differ by NaN payload.
    negative = float("-nan")
    assert Domain.of(DOUBLE, NAN) == Domain.of(DOUBLE, negative, NAN)


def test_domains_of_different_types_are_unequal():
    assert Domain.none(BIGINT) != Domain.none(ValueType("int"))


@pytest.mark.parametrize(
    ("domain", "shown"),
    [
        pytest.param(Domain.all(DOUBLE), "all", id="all"),
        pytest.param(Domain.none(DOUBLE), "{}", id="none"),
        pytest.param(Domain.of(DOUBLE, 1.0, None, NAN), "{1.0} or NULL or NaN", id="flags"),
        pytest.param(Domain.between(DOUBLE, 1.0, 2.0), "{[1.0, 2.0]}", id="range"),
        pytest.param(Domain.only_null(DOUBLE), "{} or NULL", id="only-null"),
    ],
)
def test_text_of_a_domain_shows_its_flags(domain, shown):
    assert shown == str(domain)
