"""Optimized logical plans of Spark, recorded once, so that planner tests replay them without Java.

A recording holds the two texts from which `plan_tree()` reads a plan. `GOLDEN=write make test-all ARGS=tests/golden`
records all plans again; `test_recordings.py` compares the recorded plans with those of the installed Spark.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from connectors.spark.plan_tree import plan_tree
from pruning.query.plan import Node

RECORDINGS = Path(__file__).with_name("plans.json.xz")


@dataclass(frozen=True, slots=True)
class RecordedPlan:
    """The plan of one query: Spark's JSON, and the line of the plan visitor for each node."""

    query: str
    text: str
    described: str

    @property
    def root(self) -> Node:
        """The plan as an engine-free tree."""
        return self.tree[0]

    @property
    def tree(self) -> tuple[Node, frozenset[int]]:
        """The plan, and the columns that the query uses."""
        return plan_tree(self.text, self.described)


def recorded() -> Mapping[str, RecordedPlan]:
    """All recorded plans by query name: `q1` to `q99` of TPC-DS, and the titles of `rules.txt`."""
    plans = json.loads(lzma.decompress(RECORDINGS.read_bytes()))
    return {name: RecordedPlan(**fields) for name, fields in plans.items()}


def record(plans: Mapping[str, RecordedPlan]) -> None:
    """Replaces the recordings."""
    fields = {
        name: {"query": each.query, "text": each.text, "described": each.described} for name, each in plans.items()
    }
    RECORDINGS.write_bytes(lzma.compress(json.dumps(fields).encode(), preset=9))
