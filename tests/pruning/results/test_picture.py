"""The picture of a filter plan: well-formed, everything in it once, nothing over anything else."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from unicodedata import combining, east_asian_width
from xml.etree import ElementTree as ET

import pytest

from pruning.reasons import Reason, ReasonCode
from pruning.results.explanation import FILE_SIZES, KindLine, TableExplanation
from pruning.results.query_explanation import QueryExplanation
from pruning.results.query_lines import BuildLine, FilterLine

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    '<b>"&\'', "]]>", "line\nbreak\ttab", "\x00\x1b[31m", "\uffff", "\ud800", "a" * 300, "表" * 30, "e\u0301",
    "👩\u200d👩\u200d👧\u200d👦 family",
]  # fmt: skip


def query(filters: int, levels: int = 2, name: str = "") -> QueryExplanation:
    """So many filters: three a scan, from builds of so many levels."""
    builds = tuple(
        BuildLine(str(at), 1 + at % levels, f"d{name}{at}.k", (f"d{name}{at}",), 1000 * at)
        for at in range(filters // 2 + 1)
    )
    filters = tuple(
        FilterLine(build.level, build.name, build.keys, f"s{name}{at // 3}", f"c{name}{at % 3}")
        for at in range(filters)
        for build in [builds[at * 7 % len(builds)]]
    )
    scans = dict.fromkeys((*(each.scan for each in filters), *(each.reads[0] for each in builds)), 4096)
    return QueryExplanation(
        ran_builds=False, scans=scans, edges=(), builds=builds, filters=filters, unused=(), tables=(), reasons=()
    )


def table(name: str, total: int, kept: int) -> TableExplanation:
    return TableExplanation(
        table=name, format="delta", version=0, files_total=2, files_kept=1, row_groups_total=None,
        row_groups_kept=None, rows_total=None, rows_kept=None, bytes_total=total, bytes_kept=kept,
        bytes_basis=FILE_SIZES, files_skipped_by={}, row_groups_skipped_by={}, filters=(), reasons=(),
    )  # fmt: skip


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 - it is our own


def groups(svg: str, kind: str) -> list[ET.Element]:
    return [each for each in parsed(svg).iter(f"{SVG}g") if each.get("class") == f"scanprune-{kind}"]


def frame(group: ET.Element) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a box."""
    box = group.find(f"{SVG}rect")
    x, y, width, height = (float(box.get(each)) for each in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def words(element: ET.Element) -> list[str]:
    return [each.text for each in element.iter(f"{SVG}text")]


@pytest.mark.parametrize("levels", [1, 2, 4])
@pytest.mark.parametrize("filters", [1, 2, 7, 20, 60])
def test_each_build_scan_and_filter_is_there_once_and_no_box_is_over_another(filters, levels):
    explained = query(filters, levels)
    svg = explained.to_svg()
    builds, scans = groups(svg, "build"), groups(svg, "scan")
    assert [each.keys for each in explained.builds] == [words(each)[1] for each in builds]
    assert list(dict.fromkeys(each.scan for each in explained.filters)) == [words(each)[0] for each in scans]
    arrows = [each.findtext(f"{SVG}title") for each in groups(svg, "arrow")]
    assert sorted(f"{each.keys} → {each.probe}" for each in explained.filters) == sorted(arrows)
    frames = [frame(each) for each in (*builds, *scans)]
    for (x1, y1, right1, bottom1), (x2, y2, right2, bottom2) in combinations(frames, 2):
        assert right1 < x2 or right2 < x1 or bottom1 < y2 or bottom2 < y1
    _, _, width, height = map(float, parsed(svg).get("viewBox").split())
    assert all(0 <= x and 0 <= y and right <= width and bottom <= height for x, y, right, bottom in frames)


def test_levels_go_from_left_to_right_and_scans_come_last():
    svg = query(20, levels=3).to_svg()
    lefts = {words(each)[0].split(",")[1]: frame(each)[0] for each in groups(svg, "build")}
    assert [" level 1", " level 2", " level 3"] == sorted(lefts, key=lefts.get)
    assert max(lefts.values()) < min(frame(each)[0] for each in groups(svg, "scan"))


def test_an_arrow_ends_at_the_line_of_its_column():
    svg = query(7).to_svg()
    left, top, _, bottom = next(frame(each) for each in groups(svg, "scan") if words(each)[0] == "s1")
    for each in groups(svg, "arrow"):
        if "→ s1." in each.findtext(f"{SVG}title"):
            x, y = map(float, each.findall(f"{SVG}path")[1].get("d")[1:].split("l")[0].split(","))
            assert left == x
            assert top < y < bottom


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_are_only_text(name):
    svg = query(5, name=name).to_svg()
    assert 5 == len(groups(svg, "arrow"))
    for each in (*groups(svg, "build"), *groups(svg, "scan")):
        left, _, right, _ = frame(each)
        assert max(map(columns, words(each))) * 7.2 < right - left < 340


def columns(text: str) -> int:
    """What the text takes of a fixed font."""
    return sum(2 if east_asian_width(each) in "WF" else not combining(each) for each in text)


def test_a_scan_says_how_many_bytes_are_left_where_builds_ran():
    explained = query(2)
    ran = replace(explained, ran_builds=True, tables=(table("s0", 4096, 1024),))
    (scan,) = groups(ran.to_svg(), "scan")
    assert "4.0 KiB → 1.0 KiB" == words(scan)[1]
    _, full, kept = scan.findall(f"{SVG}rect")
    assert float(full.get("width")) / 4 == pytest.approx(float(kept.get("width")), abs=0.1)
    assert "4.0 KiB" in words(groups(explained.to_svg(), "scan")[0])


def test_before_builds_ran_a_scan_says_what_metadata_leaves_of_it():
    explained = query(2)
    kinds = (KindLine("none", 4, None, 4096), KindLine("ranges", 1, None, 512), KindLine("list", None, None, None))
    known = replace(explained, filters=(replace(explained.filters[0], kinds=kinds), explained.filters[1]))
    assert "4.0 KiB → at most 512 B" in words(groups(known.to_svg(), "scan")[0])


def test_scans_without_a_filter_are_counted():
    assert "2 scans without a filter, 8.0 KiB" in query(2).to_svg()
    assert "1 scan without a filter" in query(1).to_svg()


def test_without_a_filter_the_picture_is_a_line():
    nothing = QueryExplanation.nothing(Reason(ReasonCode.SWITCHED_OFF, "the query"), ran_builds=True)
    assert ["0 scans without a filter, 0 B"] == words(parsed(nothing.to_svg()))
    assert "<svg" not in nothing._repr_html_()


def test_html_holds_the_picture():
    explained = query(3)
    assert explained.to_svg() in explained._repr_html_()
