"""Filters by the statistics of a build side: what they skip of the files that the query's own conditions leave."""

from __future__ import annotations

import pytest

from pruning.query.build_selection import BuildSelection
from pruning.query.join_graph import JoinGraph
from pruning.query.lineage import ProbeColumn
from pruning.query.metadata_filters import benefit_of_bounds
from pruning.query.plan_statistics import Sizes
from pruning.query.requests import DescribeFiles, answered
from pruning.reasons import Reason, ReasonCode
from pruning.values.types import ValueType
from tests.pruning.plans import Plans, at_least, equal
from tests.pruning.query.test_planner import OPTIONS, files, some_keys

SEVERAL = (0, 9), (10, 19), (20, 29)


def benefit(least: int | None, keys: tuple[int, ...], *, is_typed: bool = True, is_known: bool = True):
    """The benefit of keys for a scan of three files under the condition that its column is at least so great."""
    plans = Plans()
    fact, days = plans.table("day"), plans.table("day")
    side = fact if least is None else plans.filter(fact, at_least(fact.output[0], least))
    root = plans.join(side, days, equal(fact.output[0], days.output[0]))
    sizes = Sizes({fact.id: 5000, days.id: 10}, frozenset({fact.id, days.id}), ())
    selection = BuildSelection.of(JoinGraph.of(root), sizes, OPTIONS)
    asked: list[int | None] = []

    def answer(request):
        assert isinstance(request, DescribeFiles)
        asked.append(request.column)
        if len(asked) > 1 and not is_known:
            return Reason(ReasonCode.STATISTICS_FAILED, "fact")
        return files(*SEVERAL) if len(asked) == 1 or is_typed else files(*SEVERAL, type_=ValueType("int"))

    probe = ProbeColumn(fact, fact.output[0])
    found = answered(benefit_of_bounds(probe, some_keys(*keys), selection), answer)
    return found, len(asked)


@pytest.mark.parametrize(
    ("least", "keys", "share"),
    [
        pytest.param(None, (10, 29), 1 / 3, id="no-condition"),
        pytest.param(10, (10, 29), None, id="same-files"),
        pytest.param(10, (20, 29), 1 / 2, id="fewer-files"),
        pytest.param(10, (15, 25), None, id="all-files"),
        pytest.param(20, (5, 25), None, id="one-file"),
        pytest.param(30, (5, 25), None, id="no-file"),
    ],
)
def test_only_files_that_conditions_leave_count(least, keys, share):
    found, asked = benefit(least, keys)
    assert (1 if least is None else 2) == asked
    if share is None:
        assert (ReasonCode.UNCLUSTERED, "by the statistics of the build side") == (found.code, found.detail)
    else:
        whole, _ = benefit(None, (40, 49))
        assert share == pytest.approx(found.saved.expected / whole.saved.expected)


@pytest.mark.parametrize("unknown", ["type", "reason"])
def test_conditions_of_unknown_statistics_leave_all_files(unknown):
    found, _ = benefit(10, (10, 29), is_typed=unknown != "type", is_known=unknown != "reason")
    without, _ = benefit(None, (10, 29))
    assert without == found
