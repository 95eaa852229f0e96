"""Stand-ins for the parts of a contest: the engine's module, the place of tables, and a judge."""

from __future__ import annotations

from benchmarks.contest.judge import TIES
from benchmarks.contest.place import Place
from benchmarks.contest.site import Site

STAND_IN = "benchmarks.tests.stand_in_engine"
HERE = Site(Place(""))


class RightIfAsked:
    """A judge for whom every contender is right but DataFusion."""

    def verdict(self, query, contender, answer, *, strict):  # noqa: ARG002 - the protocol of a judge
        return f"{contender} is wrong" if contender == "datafusion" else TIES if not strict else ""
