"""Tiers of the test suite: the part of all tests that one run takes.

- `all`: every test; the default, so that a file named on the command line runs whole
- `quick`: every test without Spark, and of each Spark test function a few of its cases; no test marked `full`
- `rest`: a share of the tests that `quick` leaves out, drawn by a key such as a commit, so that it differs each time
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


class Tier(Enum):
    """The part of all tests that is run."""

    ALL = "all"
    QUICK = "quick"
    REST = "rest"


@dataclass(frozen=True, slots=True)
class Case:
    """One test as a tier sees it: its id, its function, and the marks that count."""

    id: str
    function: str
    is_spark: bool
    is_full: bool


def quick_cases(cases: Iterable[Case]) -> frozenset[str]:
    """The ids of the quick tier.

    Of `n` cases of a Spark test function, the square root of `n` rounded up: parameters of one function repeat each
    other more, the more there are. Which ones is decided by a digest of their ids, so that a folder's functions
    together meet every kind of parameter, and a run can be repeated.
    """
    by_function: defaultdict[str, list[Case]] = defaultdict(list)
    chosen = set[str]()
    for case in cases:
        if case.is_full:
            continue
        if case.is_spark:
            by_function[case.function].append(case)
        else:
            chosen.add(case.id)
    for function in by_function.values():
        ordered = sorted(function, key=lambda each: _digest(each.id))
        chosen.update(each.id for each in ordered[: math.ceil(math.sqrt(len(ordered)))])
    return frozenset(chosen)


def drawn_cases(cases: Sequence[Case], share: float, key: str) -> frozenset[str]:
    """The ids of a `share`, from 0 to 1, of the cases that the quick tier leaves out, drawn by `key`."""
    quick = quick_cases(cases)
    left = sorted((each.id for each in cases if each.id not in quick), key=lambda id_: _digest(key + id_))
    return frozenset(left[: math.ceil(len(left) * share)])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def case_of(item: pytest.Item) -> Case:
    """The case of a collected test; `spark` marks must have been set."""
    function = item.nodeid.partition("[")[0]
    is_spark = item.get_closest_marker("spark") is not None
    return Case(item.nodeid, function, is_spark, item.get_closest_marker("full") is not None)


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the tests of the tier that the command line names in `items`."""
    tier = Tier(config.getoption("--tier"))
    if tier is Tier.ALL:
        return
    cases = [case_of(each) for each in items]
    if tier is Tier.QUICK:
        chosen = quick_cases(cases)
    else:
        chosen = drawn_cases(cases, config.getoption("--share"), config.getoption("--draw"))
    config.hook.pytest_deselected(items=[each for each in items if each.nodeid not in chosen])
    items[:] = [each for each in items if each.nodeid in chosen]


def add_options(parser: pytest.Parser) -> None:
    """The options by which a command names its tier."""
    group = parser.getgroup("tiers")
    group.addoption("--tier", choices=[each.value for each in Tier], default=Tier.ALL.value, help="tests to run")
    group.addoption("--share", type=float, default=0.1, help="share of the tests of `--tier rest`, from 0 to 1")
    group.addoption("--draw", default="", help="key by which the tests of `--tier rest` are drawn, such as a commit")


def header(config: pytest.Config) -> str:
    """The line that tells how to repeat the run."""
    tier = config.getoption("--tier")
    drawn = f" --share {config.getoption('--share'):g} --draw {config.getoption('--draw')}" if tier == "rest" else ""
    return f"tier: {tier}{drawn}"
