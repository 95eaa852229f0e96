"""Join graphs and filter plans of recorded plans, compared with their golden files.

`GOLDEN=write make test-fast ARGS=tests/golden` writes the golden files; review the difference before you commit it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pruning.query.plan import Node
from tests.golden.described import EVERY_FILTER, IS_WRITTEN, RULES, described, rule_text, rules, tpcds_text
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
    compare(tpcds_text(number), described(*plans[f"q{number}"].tree))


def test_rules(plans):
    compare(
        RULES,
        "\n\n".join(rule_text(title, query, described(*plans[title].tree, EVERY_FILTER)) for title, query in rules()),
    )


def test_recordings_match_the_queries_in_rules_txt(plans):
    assert dict(rules()) == {name: each.query for name, each in plans.items() if name in dict(rules())}


def test_all_tpcds_operators_except_two_are_supported(plans):
    roots = [plans[f"q{number}"].root for number in NUMBERS]
    # Tracing a key from a join to a scan stops at these two operators.
    assert {"Expand", "OneRowRelation"} == {node.kind for root in roots for node in root.walk() if type(node) is Node}
