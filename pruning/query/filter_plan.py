"""`Feed`s: which key set goes to which scan, in what order, decided from sizes before anything is run.

JoinGraph, sizes --next_feeds--> feeds of one level --build, prune--> smaller sizes --next_feeds--> ...
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pruning.options import PruningOptions
from pruning.query.build_selection import Gates, Sizes
from pruning.query.join_graph import Edge, JoinGraph, Source
from pruning.query.lineage import Target
from pruning.query.plan import Node, PlanNames
from pruning.query.top_k import TopFilter
from pruning.reasons import Reason, ReasonCode

# What a source that may not be run still tells without being run.
_HAVE_METADATA = frozenset({ReasonCode.BUILD_TOO_LARGE, ReasonCode.UNREPEATABLE_KEYS})
# What keeps some sources of an edge from a scan, and says nothing of those that have fed it.
_OF_OTHERS = frozenset({ReasonCode.PROBE_TOO_SMALL, ReasonCode.RUN_ONCE})
# A build that reads less is not worth a level of its own.
_NEXT_TO_NOTHING = 1 << 20
FeedId: TypeAlias = tuple[int, str, int, int, bool]


@dataclass(frozen=True, slots=True)
class Feed:
    """One key set that filters one column of one scan.

    - `instead`: why the source is not run; then its keys are all values that the statistics of its files allow
    - `needs_rows`: a later run of the source may give other rows, so its keys count only where the query takes the
      rows that the build gave
    - `must_fit`: the source is not run again for its keys where it gives too many rows to be joined as they are
    """

    source: Source
    target: Target
    instead: Reason | None = None
    needs_rows: bool = False
    must_fit: bool = False

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
    tops: tuple[TopFilter, ...] = ()

    @staticmethod
    def before_builds(graph: JoinGraph, sizes: Sizes, options: PruningOptions) -> FilterPlan:
        """What would be tried: every build is taken to leave something out, and no scan shrinks."""
        pruned, done = set(sizes.pruned), set[FeedId]()
        levels: list[tuple[Feed, ...]] = []
        refusals: dict[Reason, None] = {}
        while True:
            last = replace(sizes, pruned=pruned)
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
    so there is always one that waits for none. So does one that could only drop rows, for those that skip files.
    """
    gates = Gates(sizes, options, graph.edges)
    refusals: dict[Reason, None] = {}
    wanted: dict[FeedId, Feed] = {}
    for edge in graph.edges:
        for target in edge.targets:
            for found in _feeds(edge, target, gates):
                if isinstance(found, Reason):
                    refusals[found] = None
                elif found.id not in done:
                    wanted.setdefault(found.id, found)
    left = _together(wanted, done, gates)
    refusals |= dict.fromkeys(_run_once(each) for id_, each in wanted.items() if id_ not in left)
    ordered = sorted(left.values(), key=lambda each: (gates.bytes_read(each.source), each.id))
    ready = [each for at, each in enumerate(ordered) if not _waits(each, ordered[:at])]
    return tuple(each for each in ready if not _may_become_needless(each, ready, gates)), tuple(refusals)


def _together(feeds: Mapping[FeedId, Feed], done: Collection[FeedId], gates: Gates) -> Mapping[FeedId, Feed]:
    """The feeds without those that would have Spark repeat what it runs once; one that is left out may cost others."""
    left = dict(feeds)
    while refused := [id_ for id_, each in left.items() if _would_repeat(each, {*left, *done}, gates)]:
        for id_ in refused:
            del left[id_]
    return left


def _would_repeat(feed: Feed, ids: Collection[FeedId], gates: Gates) -> bool:
    """True for a feed that would have Spark run anew for each of several places what it runs once for all of them.

    That is worth it where it may skip something and each place gets some of `ids`: else one run for all reads no more.
    What a build has kept is not run for the query.
    """
    found = gates.sizes.facts.shared_places(feed.source, feed.target)
    places = [each for each in found if each.at not in gates.sizes.held]
    return bool(places) and (not gates.may_skip(feed.target) or not all(_is_fed(each, feed, ids) for each in places))


def _is_fed(place: Node, feed: Feed, ids: Collection[FeedId]) -> bool:
    """Whether keys from outside of a place come to it, too, as those of a feed do to another one.

    Metadata, which may leave out nothing, stands in for no keys but those of metadata.
    """
    inside = range(place.first, place.at + 1)
    return any(
        at in inside and source not in inside and (feed.from_metadata or not by_metadata)
        for source, _, at, _, by_metadata in ids
    )


def _run_once(feed: Feed) -> Reason:
    return Reason(ReasonCode.RUN_ONCE, feed.target.name)


def _may_become_needless(feed: Feed, ready: Sequence[Feed], gates: Gates) -> bool:
    """True for a feed by which nothing is skipped, where one that may leave little of the same scan is at hand."""
    if feed.from_metadata or gates.bytes_read(feed.source) < _NEXT_TO_NOTHING or gates.may_skip(feed.target):
        return False
    others = (each.target for each in ready if each.target.relation.at == feed.target.relation.at)
    return any(gates.may_skip(each) for each in others)


def unused(
    graph: JoinGraph,
    sizes: Sizes,
    options: PruningOptions,
    whole: Mapping[int, int] | None = None,
    levels: Sequence[Sequence[Feed]] = (),
) -> tuple[Unused, ...]:
    """Every edge that is refused for a scan that it reaches.

    `whole` are the bytes of scans without filters, by `Relation.at`: a scan that other keys have made small is refused
    for what was wrong before, where something was. What `levels` have filtered by an edge was neither too small for it,
    nor would it have been run again.
    """
    fed = {(it.source.join.at, it.target.relation.at, it.target.column) for feeds in levels for it in feeds}
    now = Gates(sizes, options, graph.edges)
    before = now if whole is None else Gates(replace(sizes, scanned=whole), options, graph.edges)
    pairs = [(edge, target) for edge in graph.edges for target in edge.targets]
    done = {each.id for feeds in levels for each in feeds}
    found = {each.id: each for edge, target in pairs for each in _feeds(edge, target, now) if isinstance(each, Feed)}
    ids = {*_together(found, done, now), *done}
    return tuple(
        Unused(edge, target, reason)
        for edge, target in pairs
        if (refused := _refused(edge, target, now, ids))
        for reason in _first_refused(_refused(edge, target, before, ids), refused)
        if reason.code not in _OF_OTHERS or (edge.join.at, target.relation.at, target.column) not in fed
    )


def _first_refused(before: tuple[Reason, ...], now: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """What was wrong before other keys made scans small, if anything was; what is run once was wanted until the end."""
    is_run_once = any(each.code is ReasonCode.RUN_ONCE for each in now)
    return now if is_run_once else before or now


def _refused(edge: Edge, target: Target, gates: Gates, ids: Collection[FeedId]) -> tuple[Reason, ...]:
    found = tuple(_feeds(edge, target, gates))
    refused = (each for each in found if isinstance(each, Reason))
    repeated = (_run_once(each) for each in found if isinstance(each, Feed) and _would_repeat(each, ids, gates))
    return *refused, *repeated


def _waits(feed: Feed, earlier: Sequence[Feed]) -> bool:
    """True where an earlier feed, of another source, makes the build of this one smaller, or keeps rows inside it."""
    inside = range(feed.source.node.first, feed.source.node.at + 1)
    others = [each for each in earlier if each.source != feed.source]
    # Two runs of what is cached may differ: the larger build reads the rows that the smaller one gave.
    is_split = any(each.needs_rows and feed.source.node.at != each.source.node.at in inside for each in others)
    return is_split or any(each.target.relation.at in inside for each in others)


def _feeds(edge: Edge, target: Target, gates: Gates) -> Iterator[Feed | Reason]:
    for found in gates.chosen(edge.source, target):
        if isinstance(found, Source):
            needs_rows, must_fit = gates.needs_rows(found), gates.must_fit(found, target)
            yield Feed(found, target, needs_rows=needs_rows, must_fit=must_fit)
            continue
        yield found.reason
        if found.reason.code in _HAVE_METADATA and gates.is_bounded(found.source, target):
            yield Feed(found.source, target, found.reason)
