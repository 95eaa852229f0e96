"""`ArrowRowFilter`: rows of an Arrow array that pass, equal for lookup tables, ranges and codes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.arrow_scan.row_filter import ArrowRowFilter
from connectors.arrow_values import arrow_of
from pruning.keys.membership import MembershipTest
from pruning.values import encoding as code
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from tests.pruning.samples import ALL_TYPES, Spec
from tests.pruning.strategies import LAW, specs, values

TEXT, BIGINT, DOUBLE = ValueType("string"), ValueType("bigint"), ValueType("double")


def arrow(type_: ValueType, found: list[Any], behind: Any) -> pa.Array:
    """The values in Spark's Arrow type; the slot of a None holds `behind`."""
    filled = arrow_of(type_, code.encode(type_, [behind if each is None else each for each in found]))
    present = pa.array([each is not None for each in found]).buffers()[1]
    return pa.Array.from_buffers(filled.type, len(filled), [present, *filled.buffers()[1:]])


def of_a_type(type_: ValueType) -> st.SearchStrategy[Any]:
    drawn = st.lists(st.one_of(st.none(), values(type_)), min_size=1, max_size=8)
    return st.tuples(specs(type_, max_pairs=12), drawn)


def made(type_: ValueType, domain: Domain) -> ArrowRowFilter:
    return ArrowRowFilter.of(type_, MembershipTest.of(domain))


# 56 to 62, 75, 107: every form of a row filter tests values.
@LAW
@given(st.sampled_from(ALL_TYPES).flatmap(of_a_type), st.data())
def test_row_passes_iff_the_set_has_its_value(drawn, data):
    spec, found = drawn
    ends = [end for pair in spec.pairs for end in pair if end is not None]
    some = found + data.draw(st.lists(st.sampled_from(ends), max_size=6) if ends else st.just([]))
    behind = ends[0] if ends else next((each for each in some if each is not None), code_zero(spec.type))
    array = arrow(spec.type, some, behind)
    expected = [spec.holds(each) for each in some]
    test = made(spec.type, spec.domain())
    assert expected == test.matching(array).tolist()
    assert expected[1:] == test.matching(array.slice(1)).tolist()


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("null", [False, True])
def test_nan_and_null_are_separate_keys(nan, null):
    domain = replace(Domain.of(DOUBLE, 1.0), null=null, nan=nan)
    array = pa.array([1.0, 2.0, float("nan"), None])
    assert [True, False, nan, null] == made(DOUBLE, domain).matching(array).tolist()


def code_zero(type_: ValueType) -> Any:
    return {"string": "", "binary": b"", "boolean": False}.get(type_.name, 0)


@pytest.mark.parametrize(
    ("domain", "is_listed"),
    [
        (Domain.of(TEXT, "a", "b"), True),
        (Domain.between(TEXT, "a", "b"), False),
        (Domain.of(BIGINT, 1, 10**6, 10**12), True),
        (Domain.of(BIGINT, *range(0, 100, 3)), False),
        (Domain.of(BIGINT, 1, 10**12), False),
        (Domain.of(ValueType("decimal", 9, 2), 1, 2, 10**6), True),
        (Domain.of(ValueType("decimal", 38, 0), 1), True),
        (Domain.of(DOUBLE, 0.0, 1.0, 2.0), False),
        (Domain.of(ValueType("date"), 1, 10**6, 10**9), True),
    ],
    ids=str,
)
def test_keys_use_a_lookup_table_if_faster(domain, is_listed):
    assert is_listed is (made(domain.type, domain).keys is not None)


def test_strings_that_are_not_utf8_match_by_bytes():
    keys = pa.array([b"\xff", b"a"]).view(pa.string())
    text = made(TEXT, Domain.of(TEXT, b"\xff", "b"))
    assert [True, False] == text.matching(keys).tolist()


def test_many_string_ranges_are_searched():
    pairs = tuple((f"{at:02}a", f"{at:02}c") for at in range(20))
    found = [f"{at:02}{letter}" for at in (0, 7, 19) for letter in "abd"] + [None]
    spec = Spec(TEXT, pairs)
    expected = [spec.holds(each) for each in found]
    assert expected == made(TEXT, spec.domain()).matching(arrow(TEXT, found, "00b")).tolist()
    assert 6 == sum(expected)
