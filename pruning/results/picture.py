"""A filter plan as an SVG picture: builds on the left, level by level, and on the right the scans that they filter.

It brings no style sheet, ids or fonts, so it stands alone or inside of any page; its colours are read on light and on
dark ground.

Where boxes of a picture stand: in columns from left to right, in an order that leaves few arrows crossing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar
from unicodedata import combining, east_asian_width
from xml.sax.saxutils import escape

from pruning.reasons import size
from pruning.results.blocks import plain
from pruning.results.query_lines import BuildLine, FilterLine, QueryPlan

_LINE, _PAD, _GAP, _MARGIN = 17, 8, 14, 12
_BETWEEN_COLUMNS, _MOST_BETWEEN_COLUMNS = 90, 180
_CHARACTER = 7.25
_MOST_CHARACTERS = 40
_LANE = 6
_BAR = 6
_HEAD = 7
# Each is told from white and from black.
_COLOURS = ("#2f81f7", "#d1602a", "#2da44e", "#a371f7", "#c69026", "#db4a8a", "#1b9aaa", "#8a8f98")
_FILL, _EDGE, _INK, _SOFT, _OUTSIDE = "#f6f8fa", "#8a8f98", "#1f2328", "#57606a", "#7d8590"
_KEPT = "#2da44e"


@dataclass(frozen=True, slots=True)
class _Box:
    """A box of lines; `share` of a bar below the lines is filled, without a bar where it is None."""

    kind: str
    lines: tuple[str, ...]
    hint: str
    share: float | None = None
    colour: str = ""

    @property
    def width(self) -> int:
        return round(max(map(_width, self.lines)) * _CHARACTER) + 2 * _PAD + 4

    @property
    def height(self) -> int:
        return len(self.lines) * _LINE + 2 * _PAD + (0 if self.share is None else _BAR + 4)


@dataclass(frozen=True, slots=True)
class _Picture:
    """Boxes and, where an arrow passes a column, lanes, each by a key; `left` is that of each column."""

    boxes: Mapping[str, _Box]
    columns: tuple[tuple[str, ...], ...]
    tops: Mapping[str, int]
    left: tuple[int, ...]
    widths: tuple[int, ...]
    height: int

    def place(self, key: str) -> tuple[int, int, int]:
        """The left and right end of a box or lane, and its top."""
        at = next(at for at, column in enumerate(self.columns) if key in column)
        return self.left[at], self.left[at] + self.widths[at], self.tops[key] + _MARGIN


def filter_picture(query: QueryPlan) -> str:
    """The picture of a query's filters: each build, filtered scan and filter once.

    Arrows lead from the keys of a build to the column of a scan. A scan says how many bytes it reads without filters
    and with them, where that is known.
    """
    builds = {f"build {each.name}": each for each in query.builds}
    scans = tuple(dict.fromkeys(each.scan for each in query.filters))
    colours = {key: _COLOURS[at % len(_COLOURS)] for at, key in enumerate(builds)}
    columns, lanes = _columns(builds, query.filters, scans)
    boxes = {key: _build_box(key, each, query, colours[key]) for key, each in builds.items()}
    ports = {scan: tuple(dict.fromkeys(each.column for each in query.filters if each.scan == scan)) for scan in scans}
    boxes |= {f"scan {scan}": _scan_box(scan, ports[scan], query) for scan in scans}
    picture = _laid_out(boxes, columns, len(query.filters))
    arrows = [
        _arrow(picture, each, lanes[f"build {each.build}"], ports[each.scan], colours[f"build {each.build}"])
        for each in query.filters
    ]
    return _svg(picture, [*arrows, *(_drawn(picture, key) for key in boxes), _footer(picture, query, scans)])


def _columns(
    builds: Mapping[str, BuildLine], filters: Sequence[FilterLine], scans: Sequence[str]
) -> tuple[tuple[tuple[str, ...], ...], dict[str, tuple[str, ...]]]:
    """Builds by level, then scans; the lanes by which the arrows of each build pass the levels after its own."""
    levels = sorted({each.level for each in builds.values()})
    columns: list[list[str]] = [[key for key, each in builds.items() if each.level == level] for level in levels]
    lanes: dict[str, tuple[str, ...]] = {}
    for key, build in builds.items():
        passed = range(levels.index(build.level) + 1, len(levels))
        lanes[key] = tuple(f"lane {at} of {key}" for at in passed)
        for at, lane in zip(passed, lanes[key], strict=True):
            columns[at].append(lane)
    columns.append([f"scan {scan}" for scan in scans])
    links = [link for key in builds for link in pairwise((key, *lanes[key]))]
    links += [((key := f"build {each.build}", *lanes[key])[-1], f"scan {each.scan}") for each in filters]
    return untangled(columns, links), lanes


def _build_box(key: str, build: BuildLine, query: QueryPlan, colour: str) -> _Box:
    filtered = {each.scan for each in query.filters if each.level < build.level}
    reads = [f"{each} (filtered)" if each in filtered else each for each in build.reads]
    does = "in the cache" if build.from_cache else f"reads {size(build.bytes)}"
    lines = [f"{key}, level {build.level}, {does}", build.keys]
    # Mostly the keys are a column of all that is read, and say so by their name.
    if len(reads) != 1 or not build.keys.startswith(f"{reads[0]}."):
        lines.append(f"from {', '.join(reads)}")
    return _Box("build", tuple(map(_short, lines)), "\n".join(lines), colour=colour)


def _scan_box(scan: str, columns: Sequence[str], query: QueryPlan) -> _Box:
    whole, kept, words = _bytes(scan, query)
    share = None if kept is None else kept / whole if whole else 0.0
    read = size(whole) if kept is None else f"{size(whole)} → {words}{size(kept)}"
    lines = (scan, read, *(f"▸ {each}" for each in columns))
    return _Box("scan", tuple(map(_short, lines)), "\n".join(lines), share)


def _bytes(scan: str, query: QueryPlan) -> tuple[int, int | None, str]:
    """What a scan reads without filters and with them, None where that is not known, and how it is known."""
    table = next((each for each in query.tables if each.table == scan), None)
    if table is not None and table.bytes_total is not None and table.bytes_kept is not None:
        return table.bytes_total, table.bytes_kept, ""
    kinds = [line for each in query.filters if each.scan == scan for line in each.kinds]
    known = [each.bytes for each in kinds if each.bytes is not None]
    if not known or min(known) == max(known):
        return query.scans.get(scan, 0), None, ""
    return max(known), min(known), "at most "


def _laid_out(boxes: Mapping[str, _Box], columns: tuple[tuple[str, ...], ...], arrows: int) -> _Picture:
    heights = {key: boxes[key].height if key in boxes else _LANE for column in columns for key in column}
    tops, height = stacked(columns, heights, _GAP)
    widths = tuple(max((boxes[key].width for key in column if key in boxes), default=0) for column in columns)
    left = [_MARGIN]
    for at, width in enumerate(widths[:-1], start=1):
        # Before the scans all arrows go their own ways.
        fan = min(2 * arrows, _MOST_BETWEEN_COLUMNS - _BETWEEN_COLUMNS) if at == len(widths) - 1 else 0
        left.append(left[-1] + width + _BETWEEN_COLUMNS + fan)
    return _Picture(boxes, columns, tops, tuple(left), widths, height)


def _arrow(
    picture: _Picture, runtime_filter: FilterLine, lanes: Sequence[str], ports: Sequence[str], colour: str
) -> str:
    """From the middle of a build by its lanes to the line of a scan that names the column."""
    build, scan = f"build {runtime_filter.build}", f"scan {runtime_filter.scan}"
    _, x, top = picture.place(build)
    y = top + picture.boxes[build].height // 2
    path = [f"M{x},{y}"]
    for lane in lanes:
        left, right, lane_top = picture.place(lane)
        path += [_curve(x, y, left, lane_top + _LANE // 2), f"H{right}"]
        x, y = right, lane_top + _LANE // 2
    left, _, top = picture.place(scan)
    target = top + _PAD + (2 + ports.index(runtime_filter.column)) * _LINE + _LINE // 2 + _bar(picture.boxes[scan])
    path.append(_curve(x, y, left - _HEAD, target))
    head = f"M{left},{target}l-{_HEAD},-4v8z"
    return (
        f'<g class="scanprune-arrow">{_title(f"{runtime_filter.keys} → {runtime_filter.probe}")}'
        f'<path d="{" ".join(path)}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        f'<path d="{head}" fill="{colour}"/></g>'
    )


def _curve(x: int, y: int, to_x: int, to_y: int) -> str:
    middle = (x + to_x) // 2
    return f"C{middle},{y} {middle},{to_y} {to_x},{to_y}"


def _bar(box: _Box) -> int:
    """How far the bar moves the lines below it down."""
    return 0 if box.share is None else _BAR + 4


def _drawn(picture: _Picture, key: str) -> str:
    box = picture.boxes[key]
    left, right, top = picture.place(key)
    frame = f'x="{left}" y="{top}" width="{right - left}" height="{box.height}"'
    parts = [f'<rect {frame} rx="4" fill="{_FILL}" stroke="{_EDGE}"/>']
    if box.colour:
        parts.append(f'<rect x="{left}" y="{top}" width="4" height="{box.height}" rx="2" fill="{box.colour}"/>')
    for at, line in enumerate(box.lines):
        y = top + _PAD + at * _LINE + 13 + (_bar(box) if at > 1 else 0)
        weight = ' font-weight="bold"' if at == (1 if box.kind == "build" else 0) else ""
        colour = _INK if weight or box.kind == "scan" else _SOFT
        parts.append(f'<text x="{left + _PAD + 2}" y="{y}" fill="{colour}"{weight}>{_escaped(line)}</text>')
    if box.share is not None:
        full = right - left - 2 * _PAD
        y = top + _PAD + 2 * _LINE + 2
        parts += [
            f'<rect x="{left + _PAD}" y="{y}" width="{full}" height="{_BAR}" fill="#d0d7de"/>',
            f'<rect x="{left + _PAD}" y="{y}" width="{round(full * box.share, 1)}" height="{_BAR}" fill="{_KEPT}"/>',
        ]
    return f'<g class="scanprune-{box.kind}">{_title(box.hint)}{"".join(parts)}</g>'


def _footer(picture: _Picture, query: QueryPlan, scans: Sequence[str]) -> str:
    others = [count for name, count in query.scans.items() if name not in scans]
    words = f"{len(others)} scan{'' if len(others) == 1 else 's'} without a filter, {size(sum(others))}"
    y = picture.height + (2 * _MARGIN if picture.boxes else _MARGIN) + 10
    return f'<text x="{_MARGIN}" y="{y}" fill="{_OUTSIDE}">{words}</text>'


def _svg(picture: _Picture, parts: Sequence[str]) -> str:
    width = max(picture.left[-1] + picture.widths[-1] + _MARGIN, 360)
    height = picture.height + 3 * _MARGIN + 14
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="monospace" font-size="12" role="img">'
        f"{_title('Builds, and the scans that their keys filter')}{''.join(parts)}</svg>"
    )


def _title(text: str) -> str:
    return f"<title>{_escaped(text)}</title>"


def _escaped(text: str) -> str:
    return escape("\n".join(map(plain, text.split("\n"))))


def _short(text: str) -> str:
    """The text, cut where it is too wide for a box; nothing in it takes a line."""
    text = plain(text)
    if _width(text) <= _MOST_CHARACTERS:
        return text
    kept, wide = "", 0
    for each in text:
        wide += _width(each)
        if wide > _MOST_CHARACTERS - 1:
            break
        kept += each
    return kept + "…"


def _width(text: str) -> int:
    """How many columns of a fixed font the text takes."""
    return sum(_columns_of(each) for each in text)


def _columns_of(character: str) -> int:
    if combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


T = TypeVar("T", bound=Hashable)

_SWEEPS = 6
_WIDEST_GAPS = 3


def untangled(columns: Sequence[Sequence[T]], links: Sequence[tuple[T, T]]) -> tuple[tuple[T, ...], ...]:
    """The items of each column in another order: each near the middle of what it is linked to in the next columns.

    >>> untangled([["a", "b"], ["c", "d"]], [("a", "d"), ("b", "c")])
    (('a', 'b'), ('d', 'c'))
    """
    neighbours: dict[T, list[T]] = {}
    for first, second in links:
        neighbours.setdefault(first, []).append(second)
        neighbours.setdefault(second, []).append(first)
    found = [list(column) for column in columns]
    for sweep in range(_SWEEPS):
        places = range(1, len(found)) if sweep % 2 == 0 else range(len(found) - 2, -1, -1)
        for place in places:
            other = found[place - 1 if sweep % 2 == 0 else place + 1]
            heights = {item: at / max(1, len(other) - 1) for at, item in enumerate(other)}
            found[place].sort(key=lambda item, heights=heights: _middle(item, neighbours, heights))  # type: ignore[misc]
    return tuple(map(tuple, found))


def _middle(item: T, neighbours: Mapping[T, Sequence[T]], heights: Mapping[T, float]) -> float:
    known = [heights[each] for each in neighbours.get(item, ()) if each in heights]
    return sum(known) / len(known) if known else 0.5


def stacked(columns: Sequence[Sequence[T]], heights: Mapping[T, int], gap: int) -> tuple[dict[T, int], int]:
    """The top of each item, and the height of all; shorter columns are centred, with wider gaps.

    >>> stacked([["a", "b"], ["c"]], {"a": 10, "b": 20, "c": 10}, gap=4)
    ({'a': 0, 'b': 14, 'c': 12}, 34)
    """
    totals = [sum(heights[item] for item in column) + gap * (len(column) - 1) for column in columns]
    tallest = max(totals, default=0)
    tops: dict[T, int] = {}
    for column, total in zip(columns, totals, strict=True):
        spread = min((tallest - total) // len(column), _WIDEST_GAPS * gap) if column else 0
        top = (tallest - total - spread * (len(column) - 1)) // 2
        for item in column:
            tops[item] = top
            top += heights[item] + gap + spread
    return tops, tallest
