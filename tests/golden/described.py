"""Golden texts: a query, with the join graph and the filter plan made of its logical plan."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pruning import PruningOptions
from pruning.query.filter_plan import FilterPlan
from pruning.query.join_graph import JoinGraph
from pruning.query.plan import Node
from pruning.query.plan_statistics import Sizes
from pruning.query.requests import answered
from sample_data.layout import FACTS
from tests.pruning.plans import never_asked

HERE = Path(__file__).parent
RULES = HERE / "rules.txt"
DATABASE = "golden"
IS_WRITTEN = os.environ.get("GOLDEN") == "write"
# Sizes of warehouse tables, so that every cost rule passes and only the shape of the query decides.
FACT_BYTES, DIMENSION_BYTES = 10 << 30, 10 << 20


def described(root: Node) -> str:
    """The join graph and the filter plan of a query, with sizes that do not change between runs."""
    graph = JoinGraph.of(root)
    sizes = {each.id: _bytes(each.table) for each in graph.relations}
    options = PruningOptions().with_limits(max_build_scan_bytes=1 << 30)
    filters = answered(FilterPlan.before_builds(graph, Sizes(sizes, sizes, ()), options), never_asked)
    return f"{graph}\n\n{filters}\n".replace(f"{DATABASE}.", "")


def _bytes(table: str) -> int:
    return FACT_BYTES if table.rpartition(".")[2] in FACTS else DIMENSION_BYTES


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
