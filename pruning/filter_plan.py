"""`Feed`s: which key set goes to which scan, in what order, decided from sizes before anything is run.

JoinGraph, sizes --next_feeds--> feeds of one level --build, prune--> smaller sizes --next_feeds--> ...
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pruning.join_graph import Edge, JoinGraph, Source, larger
from pruning.lineage import Target
from pruning.options import PruningOptions
from pruning.query_plan import Filter, Grouped, Join, Node, PlanNames, Relation, conjuncts_at
from pruning.reasons import Reason, ReasonCode
from pruning.zones import zones_of

# Operators whose result is the same whenever they run on the same rows.
_REPEATABLE = frozenset(
    {
        "Aggregate",
        "Expand",
        "Filter",
        "Generate",
        "Join",
        "LocalRelation",
        "LogicalRelation",
        "Project",
        "RebalancePartitions",
        "Repartition",
        "RepartitionByExpression",
        "Sort",
        "SubqueryAlias",
        "Union",
        "Window",
        "WindowGroupLimit",
    }
)
# Two ends seldom skip what a list of keys does, so a build for them may read only this part of what the scan reads.
_LARGEST_SHARE_FOR_BOUND = 8
# Metadata of a fact bounds the keys of another one; of a dimension that all its files use it leaves out nothing.
_LARGEST_SHARE_FOR_METADATA = 16


# What is cached may be lost, and then made again from tables that have changed.
_CACHED = "InMemoryRelation"
# What a source that may not be run still tells without being run.
_HAVE_METADATA = frozenset({ReasonCode.BUILD_TOO_LARGE, ReasonCode.UNREPEATABLE_KEYS})
FeedId: TypeAlias = tuple[int, str, int, int, bool]


@dataclass(frozen=True, slots=True)
class Feed:
    """One key set that filters one column of one scan.

    - `instead`: why the source is not run; then its keys are all values that the statistics of its files allow
    - `needs_rows`: a later run of the source may give other rows, so its keys count only where the query takes the
      rows that the build gave
    """

    source: Source
    target: Target
    instead: Reason | None = None
    needs_rows: bool = False

    @property
    def from_metadata(self) -> bool:
        """True where the source is not run."""
        return self.instead is not None

    @property
    def id(self) -> FeedId:
        """Equal for two feeds that do the same."""
        return *self.source.id, self.target.relation.at, self.target.column, self.from_metadata

    def worded(self, source: str) -> str:
        """What people call its source, and how its keys are known if not by running it."""
        return f"{source} by the statistics of its files" if self.from_metadata else source


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is known of the scans: bytes by `Relation.at`, those whose files are known, and those that are pruned.

    Those `held` are not read any more: a build has their rows. `has_few_keys` says of a source that leaves out no row
    whether metadata counts few rows of it beside the values of a target.
    """

    scanned: Mapping[int, int]
    files: Collection[int]
    pruned: Collection[int]
    held: Collection[int] = ()
    has_few_keys: Callable[[Source, Target], bool] = lambda *_: False

    def below(self, node: Node) -> int:
        """The bytes that a plan reads."""
        return sum(self.scanned.get(each.at, 0) for each in node.walk() if isinstance(each, Relation))


@dataclass(frozen=True, slots=True)
class Unused:
    """An edge that reaches a scan without being a filter of it, or only by some of the tables behind its keys."""

    edge: Edge
    target: Target
    reason: Reason


@dataclass(frozen=True, slots=True)
class FilterPlan:
    """Feeds level by level, each of which waits for those before it, and why there are no others."""

    graph: JoinGraph
    levels: tuple[tuple[Feed, ...], ...]
    refusals: tuple[Reason, ...]
    unused: tuple[Unused, ...] = ()

    @staticmethod
    def before_builds(graph: JoinGraph, sizes: Sizes, options: PruningOptions) -> FilterPlan:
        """What would be tried: every build is taken to leave something out, and no scan shrinks."""
        pruned, done = set(sizes.pruned), set[FeedId]()
        levels: list[tuple[Feed, ...]] = []
        refusals: dict[Reason, None] = {}
        while True:
            last = Sizes(sizes.scanned, sizes.files, pruned)
            feeds, refused = next_feeds(graph, last, done, options)
            refusals = dict.fromkeys(refused)
            if not feeds:
                return FilterPlan(graph, tuple(levels), tuple(refusals), unused(graph, last, options))
            levels.append(feeds)
            done |= {each.id for each in feeds}
            # Whether metadata leaves out anything is known only when it is looked at.
            pruned |= {each.target.relation.at for each in feeds if not each.from_metadata}

    def __str__(self) -> str:
        """A line for each feed below its level, then the refusals."""
        names = PlanNames(self.graph.root)
        lines = []
        for number, feeds in enumerate(self.levels, start=1):
            lines.append(f"level {number}")
            lines += sorted(
                f"  {each.worded(each.source.described(names))} -> {names.column(each.target.column)}" for each in feeds
            )
        return "\n".join([*lines, *(f"no filter: {each}" for each in self.refusals)])


def next_feeds(
    graph: JoinGraph, sizes: Sizes, done: Collection[FeedId], options: PruningOptions
) -> tuple[tuple[Feed, ...], tuple[Reason, ...]]:
    """The feeds that wait for no other, without those that are `done`, and why others are left out.

    A build that another feed makes smaller waits for it; of two that would wait for each other the smaller is first,
    so there is always one that waits for none.
    """
    refusals: dict[Reason, None] = {}
    wanted: dict[FeedId, Feed] = {}
    for edge in graph.edges:
        for target in edge.targets:
            for found in _feeds(edge, target, sizes, options):
                if isinstance(found, Reason):
                    refusals[found] = None
                elif found.id not in done:
                    wanted.setdefault(found.id, found)
    ordered = sorted(wanted.values(), key=lambda each: (sizes.below(each.source.node), each.id))
    ready = [each for at, each in enumerate(ordered) if not _waits(each, ordered[:at])]
    return tuple(ready), tuple(refusals)


def unused(
    graph: JoinGraph, sizes: Sizes, options: PruningOptions, whole: Mapping[int, int] | None = None
) -> tuple[Unused, ...]:
    """Every edge that is refused for a scan that it reaches.

    `whole` are the bytes of scans without filters, by `Relation.at`: a scan that other keys have made small is refused
    for what was wrong before, where something was.
    """
    before = sizes if whole is None else replace(sizes, scanned=whole)
    return tuple(
        Unused(edge, target, reason)
        for edge in graph.edges
        for target in edge.targets
        if (refused := _refused(edge, target, sizes, options))
        for reason in (_refused(edge, target, before, options) or refused)
    )


def _refused(edge: Edge, target: Target, sizes: Sizes, options: PruningOptions) -> tuple[Reason, ...]:
    return tuple(found for found in _feeds(edge, target, sizes, options) if isinstance(found, Reason))


def _waits(feed: Feed, earlier: Sequence[Feed]) -> bool:
    """True where an earlier feed, of another source, makes the build of this one smaller, or keeps rows inside it."""
    inside = range(feed.source.node.first, feed.source.node.at + 1)
    others = [each for each in earlier if each.source != feed.source]
    # Two runs of what is cached may differ: the larger build reads the rows that the smaller one gave.
    is_split = any(each.needs_rows and feed.source.node.at != each.source.node.at in inside for each in others)
    return is_split or any(each.target.relation.at in inside for each in others)


def _feeds(edge: Edge, target: Target, sizes: Sizes, options: PruningOptions) -> Iterator[Feed | Reason]:
    name = target.name
    if target.relation.at in sizes.held:
        yield Reason(ReasonCode.READ_BY_BUILD, name)
    elif target.relation.at not in sizes.files:
        yield Reason(ReasonCode.NOT_FILES, name)
    elif sizes.scanned[target.relation.at] < options.min_probe_bytes:
        yield Reason(ReasonCode.PROBE_TOO_SMALL, name, f"{sizes.scanned[target.relation.at]:,} bytes")
    else:
        worth = sizes.scanned[target.relation.at] // (1 if edge.source.bound is None else _LARGEST_SHARE_FOR_BOUND)
        gates = _Gates(sizes, target, min(options.max_build_scan_bytes, worth))
        for found in _chosen(edge.source, gates):
            if isinstance(found, Source):
                yield Feed(found, target, needs_rows=any(each.kind == _CACHED for each in found.node.walk()))
                continue
            yield found.reason
            if found.reason.code in _HAVE_METADATA and is_bounded(found.source, target, sizes):
                yield Feed(found.source, target, found.reason)


def is_bounded(source: Source, target: Target, sizes: Sizes) -> bool:
    """True where the statistics of files may bound the keys of a source, and the target is worth a look at them.

    A `null_safe` source may have NULLs of an outer join, which no file holds. Beyond the ends of a type that is made
    wider to be compared lie values of the wider one, which a bound in the narrower one would leave out.
    """
    is_widened = source.bound is not None and source.key.column is None
    if source.null_safe or is_widened or not any(_leaves_out(each, sizes) for each in source.node.walk()):
        return False
    places = {each.relation.at for each in zones_of(source.node, source.key)}
    described = sum(sizes.scanned.get(at, 0) for at in places)
    is_worth_it = sizes.scanned.get(target.relation.at, 0) >= described // _LARGEST_SHARE_FOR_METADATA
    return bool(places) and places <= set(sizes.files) and is_worth_it


@dataclass(frozen=True, slots=True)
class _Gates:
    """What a build for a target may be; it reads at most `most_bytes`."""

    sizes: Sizes
    target: Target
    most_bytes: int


@dataclass(frozen=True, slots=True)
class _Refused:
    source: Source
    reason: Reason


def _chosen(source: Source, gates: _Gates) -> Iterator[Source | _Refused]:
    """The source where it may be run; else those of its parts that may."""
    refused = _why_not_run(source, gates)
    if refused is None:
        yield source
        return
    parts = larger(source) if refused.code is not ReasonCode.UNSELECTIVE_BUILD else ()
    if not parts:
        yield _Refused(source, refused)
    for each in parts:
        yield from _chosen(each, gates)


def _why_not_run(source: Source, gates: _Gates) -> Reason | None:
    subject, sizes = str(source.key), gates.sizes
    nodes = list(source.node.walk())
    unrepeatable = next((each for each in nodes if not _is_repeatable(each, sizes)), None)
    if unrepeatable is not None:
        return Reason(ReasonCode.UNREPEATABLE_KEYS, subject, unrepeatable.kind)
    size, most = sizes.below(source.node), gates.most_bytes
    # A table may have few values on one side of a column's even where nothing leaves out a row of it.
    is_selective = source.bound is not None or source.is_one_row or any(_leaves_out(each, sizes) for each in nodes)
    if not is_selective and not (size <= most and sizes.has_few_keys(source, gates.target)):
        return Reason(ReasonCode.UNSELECTIVE_BUILD, subject)
    if size > most:
        return Reason(ReasonCode.BUILD_TOO_LARGE, subject, f"{size:,} bytes, at most {most:,} here")
    return None


def _is_repeatable(node: Node, sizes: Sizes) -> bool:
    """True where a node gives the query the rows that it gave a build, or is not run again for the query."""
    if node.kind == _CACHED:
        return True
    if node.kind not in _REPEATABLE or not node.is_deterministic:
        return False
    match node:
        case Relation():
            # Only of files is it known that both read the same.
            return node.at in sizes.files
        case Grouped(groups=groups):
            # Rows arrive in another order in every run; columns that are equal in all rows of a group do not see it.
            return node.order_free or (groups is not None and groups.keys() >= set(node.output))
        case _:
            return True


def _leaves_out(node: Node, sizes: Sizes) -> bool:
    """True where a node may give fewer keys than the tables below it hold."""
    match node:
        case Filter(condition=condition):
            return any(part.kind != "IsNotNull" for _, part in conjuncts_at(condition))
        case Join(type="LeftSemi" | "LeftAnti"):
            return True
        case Relation():
            return node.at in sizes.pruned
        case _:
            return node.kind in ("LocalRelation", _CACHED)
