"""`condition_share`: the share of rows that a condition lets pass, by bounds or by its kind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.cost.estimate import Estimate
from pruning.query.plan import Expression
from pruning.query.selectivity import around, both, condition_share
from tests.pruning.plans import at_least, call, column, equal, literal
from tests.pruning.plans import both as conjunction

SHARES = st.floats(allow_nan=True, allow_infinity=True)
ESTIMATES = st.tuples(*[st.floats(0, 1)] * 3).map(sorted).map(lambda each: Estimate(*each))
LIKE = call("RLike", column(1, "string"), literal("a"))
TRUE = Expression("Literal", (), None, "boolean", "true")
NOT_NULL = call("IsNotNull", column(0))


def unknown(_column, _domain):
    return None


def unsized(_column):
    return None


def half(_column, _domain):
    return 0.5


def test_no_condition_lets_all_rows_pass():
    assert Estimate.exact(1.0) == condition_share(None, unknown, unsized) == condition_share(NOT_NULL, unknown, unsized)
    assert Estimate.exact(1.0) == condition_share(TRUE, unknown, unsized)


def test_bounds_give_a_share_that_may_be_wrong_by_three():
    assert Estimate(0.5 / 3, 0.5, 1.0) == condition_share(at_least(0, 5), half, unsized)
    assert pytest.approx(0.3) == condition_share(at_least(0, 5), lambda *_: 0.1, unsized).high


def test_conditions_of_one_column_are_one_domain():
    asked = []
    condition_share(
        conjunction(at_least(0, 5), call("LessThan", column(0), literal(9))),
        lambda *it: asked.append(str(it[1])),
        unsized,
    )
    assert ["{[5, 8]}"] == asked


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (equal(0, 1), 0.1),
        (call("EqualNullSafe", column(0), column(1)), 0.1),
        (call("IsNull", column(0)), 0.1),
        (LIKE, 0.33),
        (call("In", column(0, "string"), literal("a"), literal("b")), 0.2),
        (call("In", column(0, "string"), *(literal(str(at)) for at in range(9))), 0.33),
        (call("Not", equal(0, 1)), 0.9),
        (call("Or", equal(0, 1), LIKE), 0.43),
        (call("Or", LIKE, call("Or", LIKE, call("Or", LIKE, LIKE))), 1.0),
    ],
    ids=lambda each: each.kind if hasattr(each, "kind") else "",
)
def test_conditions_without_bounds_have_the_share_of_their_kind(condition, expected):
    found = condition_share(condition, unknown, unsized)
    assert pytest.approx(expected) == found.expected
    assert 0.0 <= found.low <= found.expected <= found.high <= 1.0


@pytest.mark.parametrize(
    ("kind", "pattern", "expected"),
    [
        ("StartsWith", "", 0.33),
        ("StartsWith", "a", 0.2),
        ("EndsWith", "abc", 0.008),
        ("Contains", "abc", 0.008),
        ("Contains", "Hana 1234", 0.0001),
        ("Like", "%", 0.33),
        ("Like", "a_c%", 0.04),
        ("Like", r"\%\\%", 0.04),
    ],
)
def test_a_pattern_has_a_share_by_its_characters(kind, pattern, expected):
    found = condition_share(call(kind, column(0, "string"), literal(pattern)), unknown, unsized)
    assert pytest.approx(expected) == found.expected
    # All texts may begin alike.
    assert found.low == min(0.033, found.expected / 10)
    assert found.high == 1.0
    # One of six values is like the pattern, if any is.
    one = condition_share(call(kind, column(0, "string"), literal(pattern)), unknown, lambda _: around(1 / 6, 3.0))
    assert pytest.approx(max(expected, 1 / 6)) == one.expected
    compared = condition_share(call(kind, column(0, "string"), column(1, "string")), unknown, unsized)
    assert pytest.approx(0.33) == compared.expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (call("EqualTo", column(0, "string"), literal("a")), 1 / 50),
        (call("In", column(0, "string"), *(literal(str(at)) for at in range(9))), 9 / 50),
        (call("In", column(0, "string"), *(literal(str(at)) for at in range(99))), 1.0),
        # Nothing tells of the values of another column.
        (call("In", column(1, "string"), literal("a"), literal("b")), 0.2),
    ],
)
def test_values_of_a_column_tell_the_share_of_an_equality_and_of_a_list(condition, expected):
    one = Estimate(0.001, 1 / 50, 0.05)
    found = condition_share(condition, unknown, {0: one}.get)
    assert pytest.approx(expected) == found.expected
    if expected in {1 / 50, 9 / 50}:
        count = round(50 * expected)
        assert (count * one.low, count * one.high) == pytest.approx((found.low, found.high))


def test_independent_conditions_multiply():
    found = condition_share(conjunction(at_least(0, 5), LIKE), half, unsized)
    assert pytest.approx(0.165) == found.expected
    # If the rows of one condition are among those of the other, the smaller share passes.
    assert (0.5 / 3 * 0.033, 1.0) == pytest.approx((found.low, found.high))


@given(ESTIMATES, ESTIMATES)
def test_both_is_no_more_than_either(first, second):
    found = both(first, second)
    assert 0.0 <= found.low <= found.expected <= found.high <= 1.0
    assert found.expected <= min(first.expected, second.expected)


@given(SHARES, st.floats(1, 1e6))
def test_share_stays_between_none_and_all(share, factor):
    found = around(share, factor)
    assert 0.0 <= found.low <= found.expected <= found.high <= 1.0


LEAVES = st.sampled_from([at_least(0, 5), equal(0, 1), LIKE, NOT_NULL, call("IsNull", column(1)), call("Literal")])
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["And", "Or"]), inner, inner).map(lambda it: call(*it)),
        inner.map(lambda it: call("Not", it)),
    ),
    max_leaves=8,
)


@given(CONDITIONS, st.one_of(st.none(), SHARES))
def test_any_condition_has_a_share(condition, share):
    found = condition_share(condition, lambda *_: share, unsized)
    assert 0.0 <= found.low <= found.expected <= found.high <= 1.0


def test_equality_with_a_value_that_is_not_known_lets_one_of_all_values_pass():
    equality = call("EqualTo", column(0), call("ScalarSubquery"))
    one = Estimate(0.01 / 3, 0.01, 0.03)
    assert one == condition_share(equality, unknown, lambda _: one)
    assert 1.0 == condition_share(equality, unknown, unsized).high
