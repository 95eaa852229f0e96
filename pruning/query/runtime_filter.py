"""`RuntimeFilter`: one key set that filters one column of one scan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pruning.query.benefit import Benefit
from pruning.query.join_condition import BuildSide
from pruning.query.lineage import ProbeColumn
from pruning.reasons import Reason
from pruning.values.functions import functions_sql


@dataclass(frozen=True, slots=True, order=True)
class FilterId:
    """The identity of a filter: equal for two that do the same.

    - `build_node`, `key`: the build side's node and its key; `join`: the join or filter that compares them
    - `relation`, `column`, `functions`: the probed scan, its column, and what makes a key of it
    - `union`: the build nodes and keys of all filters that are united with this one, and of itself
    """

    build_node: int
    key: str
    relation: int
    column: int
    from_metadata: bool
    join: int = field(compare=False)
    functions: str = ""
    union: frozenset[tuple[int, str]] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True)
class RuntimeFilter:
    """One key set that filters one column of one scan.

    - `instead`: why the build side is not run; then its keys are all values that the statistics of its files allow
    - `needs_rows`: a later run of the build side may give other rows, so its keys count only where the query takes the
      rows that the build gave; `runs_once`: it must not run a second time at all
    - `brings_rows`: the rows of the build come to the driver, to be joined as a local relation if they are few enough;
      `must_fit`: the build yields keys only when they are; `on_driver`: the driver is expected to need no job
    - `united`: filters of equal scans in the other places of a shared exchange, by `SharedExchange`: the keys of all of
      them filter each of the scans, so that the exchange stays shared
    - `other_operands`: the filters of the other operands of an OR: a row has to pass one of them or this one, and the
      benefit is that of all; `dropped_by`: the id of the filter with the OR
    - `benefit`: the seconds that the build is expected to cost and all its keys to save; None where nothing was weighed
    - `id`: equal for two filters that do the same
    """

    build_side: BuildSide
    probe: ProbeColumn
    instead: Reason | None = None
    needs_rows: bool = False
    runs_once: bool = False
    brings_rows: bool = False
    must_fit: bool = False
    on_driver: bool = False
    benefit: Benefit | None = None
    united: tuple[FilterId, ...] = ()
    other_operands: tuple[FilterId, ...] = ()
    dropped_by: int | None = None
    id: FilterId = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # A choice of filters looks at their ids again and again.
        object.__setattr__(self, "id", self._id())

    @property
    def from_metadata(self) -> bool:
        """True where statistics of files give the keys, and the build side is not run."""
        return self.instead is not None

    @property
    def gain(self) -> float:
        """Seconds that its build is expected to gain; 0 where nothing was weighed."""
        return 0.0 if self.benefit is None else self.benefit.gain

    @property
    def top(self) -> int:
        """The id of the node that drops rows without a key."""
        return self.build_side.join.id if self.dropped_by is None else self.dropped_by

    def _id(self) -> FilterId:
        node, key = self.build_side.id
        probe, join = self.probe, self.build_side.join.id
        union = frozenset({(node, key), *((each.build_node, each.key) for each in self.united)} if self.united else ())
        functions = functions_sql(probe.functions, "")
        return FilterId(node, key, probe.relation.id, probe.column, self.from_metadata, join, functions, union)

    def described(self, build_name: str) -> str:
        """The name `build_name` of the build side, with the origin of keys that are not those of its run alone."""
        if self.from_metadata:
            return f"{build_name} by the statistics of its files"
        if self.other_operands:
            return f"{build_name}, or another key of the OR"
        others = len(self.id.union) - 1
        return f"{build_name} and the keys for {others} equal scan{'s' * (others > 1)}" if others > 0 else build_name


def one_by_build(union: Sequence[RuntimeFilter]) -> Iterable[RuntimeFilter]:
    """The first of the filters by the keys of each build: a build has the same keys for all places of a union."""
    return {each.build_side.id: each for each in reversed(union)}.values()
