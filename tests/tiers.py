"""Tiers of the test suite: the part of all tests that one run takes.

- `all`: every test; the default, so that a file named on the command line runs whole
- `quick`: every test without Spark, and one case of each Spark test function, or as many as its mark `quick` says; no
  test marked `full`
- `rest`: a share of the tests that `quick` leaves out, drawn by a key such as a commit, so that runs differ
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


class Tier(Enum):
    """The part of all tests that runs."""

    ALL = "all"
    QUICK = "quick"
    REST = "rest"


@dataclass(frozen=True, slots=True)
class Case:
    """The id of a test, its function, and the number of cases of that function in the quick tier.

    `quick` is None where the tier takes all of them.
    """

    id: str
    function: str
    quick: int | None = 1

    @property
    def file(self) -> str:
        """The file of the test."""
        return self.function.partition("::")[0]


def quick_cases(cases: Iterable[Case]) -> frozenset[str]:
    """The ids of the quick tier.

    A digest of the ids chooses the cases of a function. The functions of a folder together thus cover every kind of
    parameter, and a run can be repeated.
    """
    by_function: defaultdict[str, list[Case]] = defaultdict(list)
    for case in cases:
        by_function[case.function].append(case)
    chosen = set[str]()
    for function in by_function.values():
        ordered = sorted(function, key=lambda each: _digest(each.id))
        chosen.update(each.id for each in ordered[: function[0].quick])
    return frozenset(chosen)


def drawn_cases(cases: Sequence[Case], share: float, key: str) -> frozenset[str]:
    """The ids of about a `share`, from 0 to 1, of the cases outside the quick tier, drawn by `key`.

    Whole files are drawn, since the tests of a file share their tables.
    """
    quick = quick_cases(cases)
    by_file: defaultdict[str, list[str]] = defaultdict(list)
    for case in cases:
        if case.id not in quick:
            by_file[case.file].append(case.id)
    wanted = share * sum(map(len, by_file.values()))
    drawn = set[str]()
    for file in sorted(by_file, key=lambda each: _digest(key + each)):
        if len(drawn) >= wanted:
            break
        drawn.update(by_file[file])
    return frozenset(drawn)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def case_of(item: pytest.Item) -> Case:
    """The case of a collected test, whose `spark` mark must be set already."""
    function = item.nodeid.partition("[")[0]
    if item.get_closest_marker("full") is not None:
        return Case(item.nodeid, function, 0)
    if item.get_closest_marker("spark") is None:
        return Case(item.nodeid, function, None)
    mark = item.get_closest_marker("quick")
    return Case(item.nodeid, function, 1 if mark is None else mark.args[0])


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Removes from `items` the tests outside the tier of the command line."""
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
    """Adds the options by which a command line selects its tier."""
    group = parser.getgroup("tiers")
    group.addoption("--tier", choices=[each.value for each in Tier], default=Tier.ALL.value, help="tests to run")
    group.addoption("--share", type=float, default=0.1, help="share of the tests of `--tier rest`, from 0 to 1")
    group.addoption("--draw", default="", help="key by which the tests of `--tier rest` are drawn, such as a commit")


def header(config: pytest.Config) -> str:
    """The line of the report header that says how to repeat the run."""
    tier = config.getoption("--tier")
    drawn = f" --share {config.getoption('--share'):g} --draw {config.getoption('--draw')}" if tier == "rest" else ""
    return f"tier: {tier}{drawn}"
