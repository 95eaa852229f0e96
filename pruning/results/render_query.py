"""Blocks of a query's explanation: a tree of scans and filters, builds, kinds of filters, tables."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from pruning.reasons import ReasonCode, size
from pruning.results.blocks import Block, Branch
from pruning.results.prune_report import table_blocks
from pruning.results.query_lines import BuildLine, FilterLine, QueryPlan, TopLine, UnusedLine
from pruning.results.table_explanation import FilterExplanation, KindLine, TableExplanation
from pruning.scan.key_filter import FIRST_ROWS

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# Reasons against any filter of a scan.
_OF_SCANS = {ReasonCode.NOT_FILES, ReasonCode.READ_BY_BUILD}


def query_blocks(query: QueryPlan) -> list[Block]:
    """The scans as a tree with their filters, then builds, kinds of filters and tables."""
    shown = {*(each.reason for each in query.unused), *(each.reason for each in query.tops)}
    notes = tuple(str(each) for each in query.reasons if each not in shown)
    return [
        Block(query.verdict, (), ()),
        Block(
            "Scans, and the keys that filter them",
            (),
            (),
            notes,
            (*_scan_branches(query), *_stop_branches(query), *_top_stop_branches(query)),
        ),
        _builds_block(query),
        *_kinds_blocks(query),
        *table_blocks(query.tables),
    ]


def _builds_block(query: QueryPlan) -> Block:
    title = (
        "Builds" if query.ran_builds else "Builds that prune() would run; their filters are used if they skip anything"
    )
    rows = tuple(_build_row(each) for each in query.builds)
    if not rows:
        return Block(title, (), (), ("none",))
    return Block(title, ("build", "level", "keys", "reads", "bytes"), rows)


def _kinds_blocks(query: QueryPlan) -> Iterator[Block]:
    """The containers that each kind of filter alone keeps: exact if builds ran, else an upper bound from metadata."""
    lines = [(f"{each.probe} by {each.keys}", each.kinds) for each in query.filters]
    limit, unknown = ", at most", "?: not known before the build runs"
    if query.ran_builds:
        filters = [(table.table, each) for table in query.tables for each in table.filters]
        lines = [(f"{scan}.{', '.join(each.columns)} by {_keys(each)}", each.kinds) for scan, each in filters]
        limit, unknown = "", "?: not known, because there are too many keys or files"
    known = [(name, kinds) for name, kinds in lines if kinds]
    if known:
        rows = tuple((name, *map(_kept, kinds)) for name, kinds in known)
        title = f"Files / row groups / bytes that each kind of filter alone keeps{limit}"
        notes = (unknown,) if any("?" in row[1:] for row in rows) else ()
        yield Block(title, ("filter", *(each.kind for each in known[0][1])), rows, notes)


def _keys(each: FilterExplanation) -> str:
    if each.kind == FIRST_ROWS:
        return each.source
    return "too many keys to count" if each.keys is None else f"{each.keys:,} key{'' if each.keys == 1 else 's'}"


def _kept(line: KindLine) -> str:
    if line.files is None:
        return "?"
    groups = "" if line.row_groups is None else f"{line.row_groups:,} / "
    return f"{line.files:,} / {groups}{size(line.bytes)}"


def _build_row(build: BuildLine) -> tuple[str, ...]:
    reads = "nothing: the cache has its keys" if build.from_cache else ", ".join(build.reads)
    return (build.name, str(build.level), build.keys, reads, size(0 if build.from_cache else build.bytes))


def _scan_branches(query: QueryPlan) -> Iterator[Branch]:
    """A branch for each scan, filtered ones first."""
    tables = {each.table: each for each in query.tables}
    filters = {name: [each for each in query.filters if each.scan == name] for name in query.scans}
    unused = {name: [each for each in query.unused if each.scan == name] for name in query.scans}
    tops = {name: [each for each in query.tops if each.scan == name] for name in query.scans}
    for name in sorted(query.scans, key=lambda each: not (filters[each] or any(top.benefit for top in tops[each]))):
        # Keys of a fallback build are used, although the whole build side was refused.
        used = {(each.column, each.keys) for each in filters[name]}
        remaining = [each for each in unused[name] if (each.column, each.keys) not in used]
        below = (
            *_filter_branches(filters[name], query.builds),
            *_top_branches(tops[name], remaining),
            *_unused_branches(remaining),
        )
        yield Branch(_scan_line(name, query.scans[name], tables.get(name)), below)


def _scan_line(name: str, count: int, table: TableExplanation | None) -> str:
    if table is None or table.files_total is None or table.files_kept is None:
        return f"{name}: {size(count)}"
    kept = f"{table.files_kept:,} of {table.files_total:,} files, {size(table.bytes_kept)} of {size(table.bytes_total)}"
    return f"{name}: {kept}"


def _filter_branches(filters: Sequence[FilterLine], builds: Sequence[BuildLine]) -> Iterator[Branch]:
    """A line for each filtered column, with the keys of its filters, and what their builds cost and save."""
    of_builds = {each.name: each.benefit for each in builds}
    told = ((each, each.benefit or of_builds[each.build]) for each in filters)
    by_column = _grouped(
        (each.column, f"{each.keys} (build {each.build}" + (f": {benefit})" if benefit else ")"))
        for each, benefit in told
    )
    yield from (Branch(f"{column} by {', '.join(keys)}") for column, keys in by_column.items())


def _top_branches(tops: Sequence[TopLine], unused: Sequence[UnusedLine]) -> Iterator[Branch]:
    """A line for each limit; a reason against the whole scan is left out if unused keys show it already."""
    said = {each.reason for each in unused}
    for each in tops:
        if each.reason is None:
            yield Branch(f"{each.column} by {each.top}, by the statistics of its files ({each.benefit})")
        elif each.reason.code in _OF_SCANS and said.isdisjoint([each.reason]):
            yield Branch(
                f"no filter: {each.reason.code.value}" + (f" ({each.reason.detail})" * bool(each.reason.detail))
            )
        elif each.reason.code not in _OF_SCANS:
            detail = f" ({each.reason.detail})" * bool(each.reason.detail)
            yield Branch(f"no filter: {each.reason.code.value}{detail}: {each.column} by {each.top}")


def _unused_branches(unused: Sequence[UnusedLine]) -> Iterator[Branch]:
    """A line for each reason, with the unused keys that it concerns."""
    by_reason = _grouped(((each.reason.code, each.reason.detail), each) for each in unused)
    for (code, detail), lines in by_reason.items():
        columns = _grouped((each.column, each.keys) for each in lines)
        about = "; ".join(f"{column} by {', '.join(keys)}" for column, keys in columns.items())
        words = f"no filter: {code.value}" + (f" ({detail})" if detail else "")
        yield Branch(words if code in _OF_SCANS else f"{words}: {about}")


def _grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The distinct values of each key, in the order of `pairs`."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        values = groups.setdefault(key, [])
        if value not in values:
            values.append(value)
    return groups


def _top_stop_branches(query: QueryPlan) -> Iterator[Branch]:
    """The operators at which the walk from a sort key to scans ended."""
    stops = tuple(Branch(f"{each.top}: {each.reason}") for each in query.tops if not each.scan)
    if stops:
        yield Branch("limits whose sort key does not reach every scan", stops)


def _stop_branches(query: QueryPlan) -> Iterator[Branch]:
    """The operators at which the walk from a join key to scans ended."""
    stops: dict[str, None] = {}
    for edge in query.edges:
        for stop in edge.stops:
            stops[f"{edge.probe} by {edge.keys} ({edge.join} join): {stop}"] = None
    if stops:
        yield Branch("join keys that do not reach every scan", tuple(map(Branch, stops)))
