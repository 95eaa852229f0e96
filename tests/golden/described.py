"""Golden texts: a query, with the join graph and the filter plan made of its logical plan.

The filter plans of TPC-DS are those of the cost model over `warehouse.json`, each with the benefits that it expects.
Those of `rules.txt` have every sound filter, so that only the shape of the query decides.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pruning import PruningOptions
from pruning.query.filter_plan import FilterPlan
from pruning.query.join_graph import JoinGraph
from pruning.query.known_statistics import KnownStatistics
from pruning.query.plan import Node, PlanNames
from pruning.query.plan_statistics import Sizes
from pruning.query.requests import answered
from tests.golden.warehouse import Answers

HERE = Path(__file__).parent
RULES = HERE / "rules.txt"
DATABASE = "golden"
IS_WRITTEN = os.environ.get("GOLDEN") == "write"
EVERY_FILTER = PruningOptions(always=True)


def described(root: Node, used: frozenset[int], options: PruningOptions = PruningOptions()) -> str:  # noqa: B008 - frozen
    """The join graph and the filter plan of a query over the warehouse."""
    graph = JoinGraph.of(root)
    plan = filter_plan(graph, used, options)
    return f"{graph}\n\n{_text(plan)}\n".replace(f"{DATABASE}.", "")


def filter_plan(graph: JoinGraph, used: frozenset[int], options: PruningOptions) -> FilterPlan:
    """The filters of a query over the warehouse."""
    answers = Answers(graph.root, used)
    facts = answers.facts()
    sizes = Sizes(
        facts.sizes, facts.files, (), statistics=KnownStatistics(graph.root, facts, options), cores=facts.cores
    )
    return answered(FilterPlan.before_builds(graph, sizes, options, facts), answers.answer)


def _text(plan: FilterPlan) -> str:
    """The text of a plan, each build with its benefit above the scans that it filters."""
    names, lines = PlanNames(plan.graph.root), list[str]()
    for number, filters in enumerate(plan.levels, start=1):
        lines.append(f"level {number}")
        for each in filters:
            build = each.described(each.build_side.described(names))
            benefit = "" if each.benefit is None else f" [{each.benefit}{', if few' if each.must_fit else ''}]"
            lines.append(f"  {build} -> {names.column(each.probe.column)}{benefit}")
    return "\n".join([*lines, *(f"no filter: {each}" for each in plan.refusals)])


def tpcds_text(number: int) -> Path:
    """The file with the golden text of a TPC-DS query."""
    return HERE / f"tpcds_q{number:02}.txt"


def rules() -> Iterator[tuple[str, str]]:
    """The title and the query of each block of `RULES`: `# title`, the query, `--`, the golden text."""
    for block in RULES.read_text(encoding="utf-8").split("# ")[1:]:
        title, _, rest = block.partition("\n")
        yield title, rest.partition("\n--\n")[0].strip()


def rule_text(title: str, query: str, text: str) -> str:
    """One block of `RULES`."""
    stripped = text.rstrip("\n")
    return f"# {title}\n{query}\n--\n{stripped}\n"
