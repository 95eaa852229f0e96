"""`Edge`: one comparison of a join in the direction from the build side to the scans whose rows it filters."""

from __future__ import annotations

from dataclasses import dataclass

from pruning.keys.summary import Bound
from pruning.query.join_condition import BuildSide, JoinCondition
from pruning.query.key_functions import key_path
from pruning.query.lineage import ProbeColumn, computed, trace_key
from pruning.query.plan import Expression, Filter, Join, Node
from pruning.reasons import Reason, ReasonCode
from pruning.values.functions import functions_sql


@dataclass(frozen=True, slots=True)
class Edge:
    """One comparison of a join, in the direction from build to probe.

    `probes` are the scans that the walk from the probe key reached, `stops` the reasons where it ended above a scan.
    """

    join: Join | Filter
    build_side: BuildSide
    probe: Node
    probe_key: Expression
    probes: tuple[ProbeColumn, ...]
    stops: tuple[Reason, ...]

    @property
    def type(self) -> str:
        """The type of the join, `Scalar` for a filter by a subquery."""
        return self.join.type if isinstance(self.join, Join) else "Scalar"


@dataclass(frozen=True, slots=True)
class RefusedComparison:
    """The reason against a comparison that is not an edge, and the node whose scans it could have filtered."""

    probe: Node
    reason: Reason


def build_side_of(join: Join, part: Expression, path: tuple[int, ...], build: int, bound: Bound | None) -> BuildSide:
    """The build side of a comparison of a join whose child number `build` is the build key."""
    key = part.children[build]
    side = join.left if key.columns <= set(join.left.output) else join.right
    return BuildSide(side, key, JoinCondition(join, (*path, build), bound, part.kind == "EqualNullSafe"))


def edge_to(
    build_side: BuildSide, probe_side: Node, probe_key: Expression, *, equivalence: bool, raises: str = ""
) -> Edge:
    """The edge from a build side to the scans that the walk from a key of `probe_side` reaches.

    `raises` is the first expression above the join that may raise on rows without a key; by default that of the join.
    """
    path, key = key_path(probe_key), build_side.key
    found: list[ProbeColumn | Reason]
    if path is None or (build_side.condition.is_scalar and key.column is None):
        found = [computed(probe_key if path is None else key)]
    else:
        found = list(trace_key(probe_side, path, equivalence=equivalence, raises=raises or build_side.join.may_raise))
    if build_side.condition.bound is not None:
        found = [if_ordered(each) for each in found]
    probes = tuple(each for each in found if isinstance(each, ProbeColumn))
    stops = tuple(each for each in found if isinstance(each, Reason))
    return Edge(build_side.join, build_side, probe_side, probe_key, probes, stops)


def if_ordered(found: ProbeColumn | Reason) -> ProbeColumn | Reason:
    """The column where the functions of its key keep order, so that a bound of keys is one of values."""
    if isinstance(found, Reason) or all(each.maps_ranges for each in found.functions):
        return found
    return Reason(ReasonCode.COMPUTED, functions_sql(found.functions, found.name))
