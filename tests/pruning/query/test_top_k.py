"""`TopK`: the rows of scans that a top-k needs, by plan and by metadata."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

from pruning.query.join_graph import JoinGraph
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Expression, Limit, Node, RankLimit, Relation, Sort, SortKey
from pruning.query.top_k import TopK, top_ks, topk_threshold, without_absent
from pruning.reasons import ReasonCode
from pruning.scan.skipping import prune_containers
from pruning.scan.statistics import UNKNOWN, ColumnStatistics, ContainerKind, Containers
from pruning.values.domain import Domain
from pruning.values.functions import FunctionKind
from pruning.values.types import ValueType
from sample_data.rows import Rows
from tests.pruning.plan_interpreter import Lake, Row, rows_of
from tests.pruning.plans import Plans, at_least, call, column, equal, literal
from tests.pruning.random_plans import RandomPlans

LAW = settings(max_examples=settings().max_examples * 5)
NAN = math.nan
# The values of each type ascend in Spark's order, without NULL and NaN. Bounds may be cut to a first letter.
VALUES: dict[str, tuple[Any, ...]] = {
    "int": (-2, -1, 0, 1, 2, 3),
    "double": (-math.inf, -1.5, -0.0, 0.0, 2.0, math.inf),
    "string": ("", "a", "a\0", "ab", "b", "é"),
}


def top(rows: int = 2, *, is_descending: bool = False, nulls_first: bool = False) -> TopK:
    """A top-k over a table of one column."""
    table = Relation(0, 0, "LogicalRelation", (0,), names=("k",), types=("int",))
    return TopK.of(1, table, rows, SortKey(column(0, "int"), is_descending, nulls_first))


def files(*bounds: tuple[Any, Any, int, int | None], sizes: tuple[int, ...] = (), **more: Any) -> Containers:
    """Files of (low, high, rows, NULLs) with 10 bytes each."""
    statistics = ColumnStatistics.of(ValueType("int"), [(low, high, nulls) for low, high, _, nulls in bounds])
    rows = np.array([rows for *_, rows, _ in bounds], np.int64)
    size = np.array(sizes or (10,) * len(bounds), np.int64)
    return Containers(ContainerKind.FILE, [str(at) for at in range(len(bounds))], rows, size, {"k": statistics}, **more)


def from_(value: int) -> Domain:
    return Domain(Domain.between(ValueType("int"), value, None).ranges)


def up_to(value: int) -> Domain:
    return Domain(Domain.between(ValueType("int"), None, value).ranges)


CLUSTERED = files((0, 9, 3, 0), (10, 19, 3, 0), (20, 29, 3, 0))


@pytest.mark.parametrize(
    ("rows", "ascending", "descending"), [(1, 9, 20), (3, 9, 20), (4, 19, 10), (9, 29, 0), (10, None, None)]
)
def test_threshold_is_the_bound_at_which_files_have_enough_rows(rows, ascending, descending):
    """All rows of the files reach the worse bound of the last file."""
    found = topk_threshold(top(rows), CLUSTERED, "k"), topk_threshold(top(rows, is_descending=True), CLUSTERED, "k")
    expected = None if ascending is None else up_to(ascending), None if descending is None else from_(descending)
    assert expected == found


# Failure catalogue 118: rows marked by deletion vectors are in the files and in no result.
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({"deleted": np.array([2, 0, 0])}, up_to(19), id="some-are-gone"),
        pytest.param({"deleted": np.array([np.iinfo(np.int64).max, 0, 0])}, up_to(19), id="any-number-is-gone"),
        pytest.param({"rows": np.array([UNKNOWN, 3, 3])}, up_to(19), id="rows-are-not-counted"),
        pytest.param({"rows": np.array([0, 3, 3])}, up_to(19), id="no-rows"),
    ],
)
def test_deleted_or_uncounted_rows_do_not_count(change, expected):
    assert expected == topk_threshold(top(2), replace(CLUSTERED, **change), "k")


@pytest.mark.parametrize(
    "first",
    [(0, 9, 3, 2), (0, 9, 3, None), (None, 9, 3, 0), (0, None, 3, 0), (9, 0, 3, 0), (None, None, 3, 3)],
    ids=["nulls", "nulls-not-counted", "no-low", "no-high", "contradiction", "all-null"],
)
def test_files_with_unknown_values_do_not_count(first):
    assert up_to(19) == topk_threshold(top(2), files(first, (10, 19, 3, 0)), "k")


def test_nulls_first_are_kept_and_do_not_count():
    found = topk_threshold(top(2, nulls_first=True), files((0, 9, 3, 2), (10, 19, 3, 0)), "k")
    assert Domain(up_to(19).ranges, null=True) == found
    assert up_to(19) == without_absent(found, files((0, 9, 3, 0)), "k")
    assert found == without_absent(found, files((0, 9, 3, None)), "k") == without_absent(found, CLUSTERED, "other")


def test_column_without_statistics_has_no_threshold():
    assert topk_threshold(top(), CLUSTERED, "x") is None


# Failure catalogue 66: no bound holds NaN, which is the greatest of all numbers.
@pytest.mark.parametrize(("may_have_nan", "is_proved"), [(False, True), (True, False)])
def test_files_that_may_hold_nan_prove_no_least_numbers(may_have_nan, is_proved):
    numbers = ColumnStatistics.of(ValueType("double"), [(0.0, 9.0, 0)], may_have_nan=may_have_nan)
    some = Containers(ContainerKind.FILE, ["a"], np.array([3]), np.array([1]), {"k": numbers})
    assert is_proved is (topk_threshold(top(2), some, "k") is not None)
    assert topk_threshold(top(2, is_descending=True), some, "k") is not None


def _position(value: Any, type_: str) -> tuple[int, float]:
    """The position of a value in Spark's ascending order with NULLS FIRST; NaN is the greatest, the zeros are equal."""
    if value is None:
        return (0, 0)
    if isinstance(value, float) and math.isnan(value):
        return (2, 0)
    return (1, value if type_ != "string" else VALUES["string"].index(value))


def _ordered(values: list[Any], type_: str, first: SortKey) -> list[Any]:
    present = [each for each in values if each is not None]
    nulls = [None] * (len(values) - len(present))
    ordered = sorted(present, key=lambda each: _position(each, type_), reverse=first.is_descending)
    return nulls + ordered if first.nulls_first else ordered + nulls


def _statistics(contents: list[list[Any]], type_: str, random: Random) -> ColumnStatistics:
    """Statistics as some writer stored them: bounds that may be too wide or missing, counts that may be missing."""
    rows: list[tuple[Any, Any, int | None]] = []
    for content in contents:
        numbers = [VALUES[type_].index(each) for each in content if each is not None and each == each]  # noqa: PLR0124
        low = max(min(numbers) - random.randrange(2), 0) if numbers else None
        high = min(max(numbers) + random.randrange(2), len(VALUES[type_]) - 1) if numbers else None
        nulls = content.count(None)
        rows.append(
            (
                None if low is None or random.random() < 0.1 else VALUES[type_][low],
                None if high is None or random.random() < 0.1 else VALUES[type_][high],
                None if random.random() < 0.1 else nulls,
            )
        )
    return ColumnStatistics.of(ValueType(type_), rows)


# Failure catalogue 56, 66: NaN is the greatest value, and the zeros are equal.
@LAW
@given(st.sampled_from(sorted(VALUES)), st.integers(0, 1 << 40))
def test_top_k_rows_lie_within_the_proved_domain(type_, seed):
    random = Random(seed)  # noqa: S311 - a seed that reproduces the files
    cells = [*VALUES[type_], None, *([NAN] if type_ == "double" else [])]
    contents = [[random.choice(cells) for _ in range(random.randrange(5))] for _ in range(random.randrange(1, 6))]
    gone = [random.randrange(len(each) + 1) if random.random() < 0.3 else 0 for each in contents]
    left = [random.sample(each, len(each) - count) for each, count in zip(contents, gone, strict=True)]
    known = _statistics(contents, type_, random)
    counts = np.array([len(each) if random.random() < 0.9 else UNKNOWN for each in contents], np.int64)
    sizes = np.array([random.randrange(1, 9) for _ in contents], np.int64)
    names = [str(at) for at in range(len(contents))]
    some = Containers(ContainerKind.FILE, names, counts, sizes, {"k": known}, deleted=np.array(gone, np.int64))
    wanted = top(random.randrange(1, 6), is_descending=random.random() < 0.5, nulls_first=random.random() < 0.5)
    note(f"{contents} of which {left} are left: {wanted.rows} by {wanted.sort_key}")
    found = topk_threshold(wanted, some, "k")
    if found is None:
        return
    domain = without_absent(found, some, "k")
    ordered = _ordered([value for each in left for value in each], type_, wanted.sort_key)
    assert len(ordered) >= wanted.rows
    # Rows that tie with the last row are equally good, so every dropped row must be worse than each of the first rows.
    assert all(domain.contains(each) for each in ordered[: wanted.rows])
    kept = prune_containers(some, {"k": domain}).kept
    again = [value for each, is_kept in zip(left, kept, strict=True) if is_kept for value in each]
    through = _ordered([each for each in again if domain.contains(each)], type_, wanted.sort_key)
    places = [_position(each, type_) for each in ordered[: wanted.rows]]
    assert places == [_position(each, type_) for each in through[: wanted.rows]]


def test_metadata_proves_a_threshold_for_clustered_files():
    """Files that are clustered and fully counted have a threshold in either order, so that the law tests thresholds,
    not refusals.
    """
    found = [
        topk_threshold(top(rows, is_descending=each), CLUSTERED, "k") for rows in (1, 5, 9) for each in (True, False)
    ]
    assert None not in found


def limited(plans: Plans, node: Node, *between: str, rows: int = 3, key: Expression | None = None) -> Node:
    """A limit above a sort, with other nodes between the two, listed from the sort upwards."""
    order = (SortKey(column(node.output[0]) if key is None else key, is_descending=False, nulls_first=True),)
    node = Sort(*plans.place((node,)), "Sort", node.output, (node,), order=order, is_global="local" not in between)
    for kind in between:
        if kind == "Project":
            node = plans.project(node, *node.output)
        elif kind in {"Offset", "LocalLimit"}:
            node = Limit(*plans.place((node,)), kind, node.output, (node,), count=2)
        elif kind == "Filter":
            node = plans.filter(node, at_least(node.output[0], 1))
    return Limit(*plans.place((node,)), "GlobalLimit", node.output, (node,), count=rows)


@pytest.mark.parametrize(
    ("between", "rows"),
    [
        (("LocalLimit",), 3),
        (("Project", "LocalLimit"), 3),
        (("Project", "LocalLimit", "Offset"), 5),
        (("Offset", "Offset"), 7),
        (("Filter",), None),
        (("local",), None),
    ],
)
def test_limit_finds_its_sort(between, rows):
    plans = Plans()
    found = list(top_ks(JoinGraph.of(limited(plans, plans.table("a"), *between))))
    assert ([] if rows is None else [rows]) == [each.rows for each in found]


# Failure catalogue 1: the rows above a limit depend on all rows below it; only the limit's own sort tells which rows it
# drops.
def test_inner_limit_stops_the_outer_top_k():
    plans = Plans()
    outer, inner = top_ks(JoinGraph.of(limited(plans, limited(plans, plans.table("a")))))
    assert ((), [ReasonCode.LIMITED], 1) == (outer.probes, [each.code for each in outer.stops], len(inner.probes))


@pytest.mark.parametrize(
    ("make", "probes", "sure", "stop"),
    [
        pytest.param(lambda p, t: p.project(t, *t.output), 1, 1, None, id="projection"),
        pytest.param(lambda p, t: p.passing("Repartition", t), 1, 1, None, id="repartition"),
        pytest.param(lambda p, t: p.filter(t, call("IsNotNull", column(t.output[0]))), 1, 1, None, id="has-a-value"),
        pytest.param(lambda p, t: p.filter(t, call("IsNotNull", column(t.output[1]))), 1, 0, None, id="other-value"),
        pytest.param(lambda p, t: p.filter(t, at_least(t.output[0], 1)), 1, 0, None, id="filter"),
        pytest.param(lambda p, t: p.union(t, p.table("a", "b")), 2, 2, None, id="union"),
        pytest.param(lambda p, t: p.aggregate(t, t.output[0]), 1, 0, None, id="group"),
        pytest.param(lambda p, t: p.generate(t), 1, 0, None, id="generator"),
        pytest.param(lambda p, t: p.aggregate(t, values=2), 0, 0, ReasonCode.NOT_GROUPED, id="aggregate"),
        pytest.param(
            lambda p, t: p.filter(t, at_least(t.output[0], 1), random=True), *(0, 0, ReasonCode.NONDETERMINISTIC)
        ),
        pytest.param(lambda p, t: p.other("Sample", t), 0, 0, ReasonCode.SAMPLED, id="sample"),
    ],
)
def test_sort_key_is_traced_to_scans(make, probes, sure, stop):
    plans = Plans()
    (found,) = top_ks(JoinGraph.of(limited(plans, make(plans, plans.table("a", "b")))))
    stops = [] if stop is None else [stop]
    assert (probes, sure, stops) == (len(found.probes), len(found.proving), [each.code for each in found.stops])


@pytest.mark.parametrize(("type_", "probes", "sure"), [("Inner", 2, 0), ("LeftOuter", 2, 1), ("FullOuter", 0, 1)])
def test_sort_key_is_traced_through_joins(type_, probes, sure):
    plans = Plans()
    left, right = plans.table("a"), plans.table("b")
    joined = plans.join(left, right, equal(left.output[0], right.output[0]), type_=type_)
    (found,) = top_ks(JoinGraph.of(limited(plans, joined)))
    assert (probes, sure) == (len(found.probes), len(found.proving))


def test_computed_sort_key_reaches_no_scan():
    plans = Plans()
    table = plans.table("a")
    root = limited(plans, table, key=call("Add", column(table.output[0]), column(table.output[0])))
    (found,) = top_ks(JoinGraph.of(root))
    assert ((), [ReasonCode.COMPUTED]) == (found.probes, [each.code for each in found.stops])


def test_sort_key_of_a_function_that_keeps_order_reaches_the_scan():
    plans = Plans()
    table = plans.table("a")
    following = call("Add", column(table.output[0]), literal(1))
    (found,) = top_ks(JoinGraph.of(limited(plans, table, key=following)))
    (below,) = top_ks(JoinGraph.of(limited(plans, plans.project(table, following))))
    for each in (found, below):
        assert ["ADD"] == [it.kind.name for probe in each.probes for it in probe.functions]
        assert each.probes == each.proving
        assert () == each.stops


def test_sort_key_of_a_function_without_an_order_reaches_no_scan():
    plans = Plans()
    table = plans.table("a")
    root = limited(plans, table, key=call("Coalesce", column(table.output[0]), literal(1)))
    (found,) = top_ks(JoinGraph.of(root))
    assert ((), (), [ReasonCode.COMPUTED]) == (found.probes, found.proving, [each.code for each in found.stops])


def test_rank_limit_is_a_top_k():
    plans = Plans()
    table = plans.table("a")
    order = (SortKey(column(table.output[0]), is_descending=True, nulls_first=False),)
    place = plans.place((table,))
    ranked = RankLimit(*place, "WindowGroupLimit", table.output, (table,), (), True, {}, True, order=order, count=4)  # noqa: FBT003
    assert [(4, 1)] == [(each.rows, len(each.probes)) for each in top_ks(JoinGraph.of(ranked))]


def _as_good(value: Any, bound: Any, first: SortKey) -> bool:
    if value is None:
        return first.nulls_first
    return bound is not None and bool(value >= bound if first.is_descending else value <= bound)


def _key(row: Row, probe: ProbeColumn) -> Any:
    """The key that functions make of a value of a scan."""
    assert {FunctionKind.ADD} >= {each.kind for each in probe.functions}
    value = row[probe.relation.output.index(probe.column)]
    return None if value is None else value + sum(int(each.number) for each in probe.functions)


def _passes(row: Row, probe: ProbeColumn, bound: Any, first: SortKey) -> bool:
    return _as_good(_key(row, probe), bound, first)


# Failure catalogue 1, 46: for any operators between a sort and its scans, later rows do not change the first rows.
@LAW
@given(st.integers(0, 1 << 40))
def test_later_rows_do_not_change_the_first_rows(seed):
    random = Random(seed)  # noqa: S311 - a seed that reproduces the plan
    made = RandomPlans.of(random, repeatable=False)
    root = made.tree(random.choice((1, 2, 2, 3)))
    at = random.choice(root.output)
    first = SortKey(column(at), random.random() < 0.5, random.random() < 0.5)
    found = TopK.of(root.id + 1, root, 1, first)
    assume(found.probes)
    relations = [each for each in root.walk() if isinstance(each, Relation)]
    lake = Lake({each.id: made.rows(each) for each in relations})
    rows = rows_of(root, lake)
    assume(len(rows) < 500)
    bound = random.choice((0, 1, 2, None))
    note(f"{root}\n{lake.tables}\n{first} up to {bound}")
    place = root.output.index(at)
    expected = Rows(row for row in rows if _as_good(row[place], bound, first))
    for each in found.probes:
        if random.random() < 0.8:
            test = partial(_passes, probe=each, bound=bound, first=first)
            lake.tests.setdefault(each.relation.id, []).append(test)
    assert expected == Rows(row for row in rows_of(root, lake) if _as_good(row[place], bound, first))


@LAW
@given(st.integers(0, 1 << 40))
def test_each_key_of_a_sure_scan_is_in_the_result(seed):
    random = Random(seed)  # noqa: S311 - a seed that reproduces the plan
    made = RandomPlans.of(random, repeatable=False)
    node: Node = made.plans.table("a", "b")
    for _ in range(random.randrange(4)):
        other = made.plans.table("c")
        joined = partial(made.plans.join, node, other, equal(random.choice(node.output), other.output[0]))
        node = joined(type_=random.choice(("LeftOuter", "Inner"))) if random.random() < 0.4 else made._above(node)
    at = random.choice(node.output)
    found = TopK.of(node.id + 1, node, 1, SortKey(column(at), is_descending=False, nulls_first=True))
    lake = Lake({each.id: made.rows(each) for each in node.walk() if isinstance(each, Relation)})
    keys = Counter(row[node.output.index(at)] for row in rows_of(node, lake))
    for each in found.proving:
        own = Counter(key for row in lake.tables[each.relation.id] if (key := _key(row, each)) is not None)
        note(f"{node}\n{lake.tables}\n{each}: {own} and {keys}")
        assert own <= keys
