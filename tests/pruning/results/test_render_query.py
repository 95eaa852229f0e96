"""The tree of an explained query: its scans, the filters of each, and the reasons against others."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pruning.query.metadata_filters import BY_STATISTICS
from pruning.reasons import Reason, ReasonCode
from pruning.results.explanation import Explanation
from pruning.results.query_lines import BuildLine, EdgeLine, FilterLine, UnusedLine
from pruning.results.table_explanation import KindLine

UNSELECTIVE = Reason(ReasonCode.UNSELECTIVE_BUILD, "i_item")
SMALL = Reason(ReasonCode.NOT_WORTH, "d_day", "the scan reads 9 B")
OUTER = Reason(ReasonCode.OUTER_SIDE, "LeftOuter join", "EqualTo(a, b)")
QUERY = Explanation(
    ran_builds=False,
    scans={"days": 9, "items": 2048, "sales": 4 << 20},
    edges=(EdgeLine("Inner", "sales.s_day", "days.d_day", ("sales.s_day",), ("GlobalLimit: it ends",)),),
    builds=(BuildLine("1", 1, "days.d_day", ("days",), 9), BuildLine("2", 2, "m.day", ("items", "days"), 2057)),
    filters=(FilterLine(1, "1", "days.d_day", "sales", "s_day"), FilterLine(2, "2", "m.day", "sales", "s_day")),
    unused=(
        UnusedLine("Inner", "items.i_item", "sales", "s_item", UNSELECTIVE),
        UnusedLine("Inner", "items.i_item", "sales", "s_item", UNSELECTIVE),
        UnusedLine("Inner", "items.i_other", "sales", "s_item", UNSELECTIVE),
        UnusedLine("Inner", "items.i_color", "sales", "s_color", UNSELECTIVE),
        UnusedLine("Inner", "m.day", "sales", "s_day", UNSELECTIVE),
        UnusedLine("Inner", "sales.s_day", "days", "d_day", SMALL),
        UnusedLine("Inner", "sales.s_week", "days", "d_week", SMALL),
    ),
    tables=(),
    reasons=(UNSELECTIVE, SMALL, OUTER),
)


def test_scans_list_filters_and_reasons_filtered_scans_first():
    text = str(QUERY).partition("Builds that")[0]
    assert text.splitlines() == [
        "keys are still to come: sales.s_day by days.d_day; sales.s_day by m.day",
        "Scans, and the keys that filter them",
        "sales: 4.0 MiB",
        "├── s_day by days.d_day (build 1), m.day (build 2)",
        "└── no filter: nothing on the build side leaves out a row: s_item by items.i_item, items.i_other; s_color by",
        "    items.i_color",
        "days: 9 B",
        "└── no filter: a filter is expected to cost more than it saves (the scan reads 9 B): d_day by sales.s_day;",
        "    d_week by sales.s_week",
        "items: 2.0 KiB",
        "join keys that do not reach every scan",
        "└── sales.s_day by days.d_day (Inner join): GlobalLimit: it ends",
        "  LeftOuter join: rows of this side reach the result without a match (EqualTo(a, b))",
    ]


def test_builds_show_tables_and_bytes():
    assert "2 2 m.day items, days 2.0 KiB" in re.sub(r"(<[^>]+>|\s)+", " ", QUERY._repr_html_())


def test_cached_build_reads_nothing():
    first, second = QUERY.builds
    query = replace(QUERY, builds=(replace(first, from_cache=True), second))
    assert "1 1 days.d_day nothing: the cache has its keys 0 B" in re.sub(r"(<[^>]+>|\s)+", " ", query._repr_html_())
    assert [True, False] == [each["from_cache"] for each in query.to_dict()["builds"]]


def test_query_without_filters_shows_the_reason():
    nothing = Explanation.nothing(Reason(ReasonCode.SWITCHED_OFF, "the query"), ran_builds=True)
    expected = "  the query: pruning is switched off by the option `enabled`\nBuilds\n  none"
    assert expected in str(nothing)


def test_remedies_of_all_reasons_come_last():
    outer, small = "rows of this side reach the result without a match", "expected to cost more than it saves"
    title, *lines = str(QUERY).partition("What to try\n")[1:]
    assert "What to try\n" == title
    assert ["  nothing on the build side leaves out a row: add a condition to the small side"] == "".join(
        lines
    ).splitlines()
    assert outer in str(QUERY)
    assert small in str(QUERY)
    assert "What to try" not in str(replace(QUERY, reasons=(OUTER, SMALL)))


def test_what_stops_keys_of_the_largest_scan_has_a_remedy():
    sampled = Reason(ReasonCode.SAMPLED, "Sample")
    query = replace(QUERY, filters=(), builds=(), causes=(sampled,))
    assert query.verdict.endswith("try: draw the sample after the join, if any rows will do")
    assert f"{sampled.code.value}: draw the sample after the join" in " ".join(str(query).split())
    assert ["SAMPLED"] == [each["code"] for each in query.to_dict()["causes"]]


def test_keys_by_statistics_have_no_remedy():
    by_statistics = Reason(ReasonCode.UNCLUSTERED, "s_day", BY_STATISTICS)
    assert "OPTIMIZE" not in str(replace(QUERY, reasons=(by_statistics, UNSELECTIVE)))


@pytest.mark.parametrize("code", ReasonCode)
def test_each_code_has_a_remedy(code):
    assert Reason(code, "k").remedy


def test_markup_in_names_is_escaped():
    hostile = Explanation(
        ran_builds=False, scans={"[red]<b>&\x1b": 1}, edges=(), builds=(), filters=(), unused=(), tables=(), reasons=()
    )
    assert "[red]<b>&\\x1b: 1 B" in str(hostile)
    assert "<li>[red]&lt;b&gt;&amp;" in hostile._repr_html_()


def test_to_dict_has_reason_codes():
    plain = QUERY.to_dict()
    assert ["UNSELECTIVE_BUILD", "NOT_WORTH"] == list(dict.fromkeys(it["reason"]["code"] for it in plain["unused"]))
    expected = {"level": 2, "build": "2", "keys": "m.day", "scan": "sales", "column": "s_day", "kinds": ()}
    assert {**expected, "benefit": None} == plain["feeds"][1]


def test_kinds_of_filters_are_shown_as_a_table():
    kinds = (KindLine("none", 4, 8, 2048), KindLine("list", None, None, None))
    query = replace(QUERY, filters=(replace(QUERY.filters[0], kinds=kinds), QUERY.filters[1]))
    text = re.sub(r"(<[^>]+>|\s)+", " ", query._repr_html_())
    expected = "filter none list sales.s_day by days.d_day 4 / 8 / 2.0 KiB ? ?: not known before the build runs"
    assert f"bytes that each kind of filter alone keeps, at most {expected}" in text
    assert "each kind of filter" not in str(QUERY)
