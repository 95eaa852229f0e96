"""The join graph and filter plan of each recorded plan are those of its golden file.

`GOLDEN=write make test-fast ARGS=tests/golden` writes what is found; read the difference before you commit it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pruning.query.plan import Node
from tests.golden.described import IS_WRITTEN, RULES, described, rule_text, rules, tpcds_text
from tests.golden.recorded import recorded

NUMBERS = range(1, 100)


@pytest.fixture(scope="module")
def plans():
    return recorded()


def compare(path: Path, found: str) -> None:
    if IS_WRITTEN:
        path.write_text(found, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == found


@pytest.mark.parametrize("number", NUMBERS, ids="q{}".format)
def test_tpcds(plans, number):
    compare(tpcds_text(number), described(plans[f"q{number}"].root))


def test_rules(plans):
    compare(RULES, "\n\n".join(rule_text(title, query, described(plans[title].root)) for title, query in rules()))


def test_recordings_are_of_the_queries_that_stand_in_the_rules(plans):
    assert dict(rules()) == {name: each.query for name, each in plans.items() if name in dict(rules())}


def test_every_operator_of_tpcds_but_two_is_known(plans):
    roots = [plans[f"q{number}"].root for number in NUMBERS]
    # The walk from a join to a scan stops at these.
    assert {"Expand", "OneRowRelation"} == {node.kind for root in roots for node in root.walk() if type(node) is Node}
