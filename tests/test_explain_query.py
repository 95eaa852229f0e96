"""`explain()` of a query: the filters that `prune()` would add, before and after its builds run."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from connectors.builds import query_builds
from connectors.measure.status_store import finished_executions, last_execution
from connectors.pipeline import pruned_query
from connectors.spark.plan_tree import UnreadablePlanError
from pruning import explain, prune, report
from pruning.errors import InvalidDataFrameError, InvalidOptionError
from sample_data.confs import conf
from tests.costs import FREE_BUILDS

pytestmark = pytest.mark.spark

FILES, DAYS_PER_FILE, ROWS_PER_DAY, ITEMS = 8, 20, 25, 50
# Test tables are smaller than the default minimum of a probe side.
OPTIONS = FREE_BUILDS
MARCH = """
    SELECT name, sum(amount) FROM {sales} s JOIN {days} d ON s.day = d.day JOIN {items} i ON s.item = i.item
    WHERE month = 2 GROUP BY name"""


@pytest.fixture(scope="module", params=["delta", "parquet"])
def star(spark, request, tmp_path_factory):
    """Returns a query over sales clustered by day and the dimensions `days` and `items`."""
    folder, format_ = tmp_path_factory.mktemp(request.param), request.param
    days = FILES * DAYS_PER_FILE
    tables = {
        "sales": spark.range(0, days * ROWS_PER_DAY, 1, FILES).selectExpr(
            f"cast(id div {ROWS_PER_DAY} AS int) AS day", f"cast(id % {ITEMS} AS int) AS item", "id AS amount"
        ),
        "days": spark.range(0, days, 1, 1).selectExpr("cast(id AS int) AS day", "cast(id div 30 AS int) AS month"),
        # A copy of `days` in four files.
        "calendar": spark.range(0, days, 1, 4).selectExpr("cast(id AS int) AS day", "cast(id div 30 AS int) AS month"),
        "items": spark.range(0, ITEMS, 1, 1).selectExpr("cast(id AS int) AS item", "concat('n', id) AS name"),
    }
    for name, df in tables.items():
        df.write.format(format_).save(str(folder / name))

    def query(text: str):
        return spark.sql(text.format(**{name: f"{format_}.`{folder / name}`" for name in tables}))

    return query


@pytest.fixture
def jobs(spark):
    """The result of a call, and the number of Spark jobs that it ran."""
    tracker = spark.sparkContext.statusTracker()

    def count(call):
        before = set(tracker.getJobIdsForGroup(None))
        result = call()
        return result, len(set(tracker.getJobIdsForGroup(None)) - before)

    return count


@pytest.fixture
def no_builds(spark, monkeypatch):
    """Fails where a call runs a build or reads a data file; jobs alone prove neither, since Delta reads its log
    by jobs.
    """

    def no_build(_self, _builds) -> None:
        pytest.fail("a build was run")

    monkeypatch.setattr(query_builds.QueryBuilds, "run", no_build)
    after = last_execution(spark)
    yield
    plans = [str(each.physicalPlanDescription()) for each in finished_executions(spark, after)]
    assert not [text for text in plans if "FileScan" in text or "Scan parquet" in text]


@pytest.mark.usefixtures("no_builds")
def test_dry_run_lists_planned_filters_and_runs_nothing(star):
    found = explain(star(MARCH), options=OPTIONS)
    assert (False, ()) == (found.ran_builds, found.tables)
    assert [(1, "days.day", "sales.day")] == [(it.level, it.keys, it.probe) for it in found.filters]
    assert {"sales", "days", "items"} == set(found.scans)
    assert ("Inner", "sales.day", "days.day", ("sales.day",)) in [
        (it.join, it.probe, it.keys, it.reaches) for it in found.edges
    ]
    assert "UNSELECTIVE_BUILD" in {it.code.name for it in found.reasons}
    assert [("1", 1, "days.day", ("days",))] == [(it.name, it.level, it.keys, it.reads) for it in found.builds]
    assert {("sales", "item"), ("days", "day"), ("items", "item")} == {(it.scan, it.column) for it in found.unused}
    assert ["days.day"] == [it["keys"] for it in json.loads(json.dumps(found.to_dict()))["feeds"]]
    for text in (str(found), found._repr_html_()):
        assert "nothing on the build side leaves out a row" in text
        assert "day by days.day (build 1: costs 0 s" in text


def without_seconds(found):
    """An explanation without the seconds that its builds took."""
    return replace(found, builds=tuple(replace(each, seconds=None) for each in found.builds))


def test_explain_with_builds_equals_the_pruned_query(star):
    df = star(MARCH)
    found = explain(df, run_builds=True, options=OPTIONS)
    assert without_seconds(found) == without_seconds(explain(prune(df, options=OPTIONS)))
    assert found.ran_builds
    assert [("sales", 2, FILES)] == [(it.table, it.files_kept, it.files_total) for it in found.tables]
    assert [("day",)] == [each.columns for each in found.tables[0].filters]
    refused = {(it.scan, it.column, it.reason.code.name) for it in found.unused}
    assert {("sales", "item", "UNSELECTIVE_BUILD"), ("days", "day", "READ_BY_BUILD")} < refused
    assert "sales: 2 of 8 files, " in str(found)


def test_build_is_not_told_of_as_if_it_had_run(star):
    df = star(MARCH)
    line = "no filter: the scan is read by a build, whose rows take its place in the query"
    for found in (explain(df, options=OPTIONS), explain(df, run_builds=True, options=OPTIONS)):
        assert "READ_BY_BUILD" in {each.reason.code.name for each in found.unused}
        assert line in " ".join(str(found).split())


def test_explain_with_builds_does_not_read_probe_tables(spark, star):
    df, after = star(MARCH), last_execution(spark)
    # A build without a job leaves no execution.
    explain(df, run_builds=True, options=OPTIONS.with_limits(driver_scan_files=0))
    plans = "".join(each.physicalPlanDescription() for each in finished_executions(spark, after))
    read = set(re.findall(r"(\w+):", "".join(re.findall("ReadSchema: struct<[^>]*>", plans))))
    assert ({"month"}, set()) == (read & {"month"}, read & {"amount"})


SEASONS = "SELECT sum(amount) FROM {sales} s JOIN {calendar} d ON s.day = d.day WHERE month IN (0, 5)"


def of_sales(found):
    """The only filter of the scan of sales."""
    (runtime_filter,) = (each for each in found.filters if each.scan == "sales")
    return runtime_filter


def kinds(lines) -> list[tuple[str, int | None]]:
    return [(each.kind, each.files) for each in lines]


@pytest.mark.usefixtures("no_builds")
def test_dry_run_estimates_filter_kinds_by_build_files(star):
    runtime_filter = of_sales(explain(star(SEASONS), options=OPTIONS))
    # The months lie in the first and the last file of the calendar: days 0 to 39 and 120 to 159.
    assert [("none", FILES), ("min-max", None), ("ranges", 4), ("list", None)] == kinds(runtime_filter.kinds)
    assert runtime_filter.kinds[0].bytes > runtime_filter.kinds[2].bytes > 0
    assert FILES == runtime_filter.kinds[0].row_groups
    text = str(explain(star(SEASONS), options=OPTIONS))
    assert "each kind of filter alone keeps, at most" in text
    assert "not known" in text


@pytest.mark.usefixtures("no_builds")
def test_every_filter_kind_includes_static_filters(star):
    df = star(SEASONS.replace("WHERE", "WHERE amount < 999 AND"))
    runtime_filter = of_sales(explain(df, options=OPTIONS))
    assert [("none", 2), ("min-max", None), ("ranges", None), ("list", None)] == kinds(runtime_filter.kinds)


@pytest.mark.usefixtures("no_builds")
def test_build_of_one_file_has_no_estimate(star):
    runtime_filter = of_sales(explain(star(MARCH), options=OPTIONS))
    assert [("none", FILES), ("min-max", None), ("ranges", None), ("list", None)] == kinds(runtime_filter.kinds)


def test_explain_with_builds_has_exact_filter_kinds(star):
    found = explain(star(SEASONS), run_builds=True, options=OPTIONS)
    (table,) = (each for each in found.tables if each.table == "sales")
    (filter_,) = table.filters
    assert [("none", FILES), ("min-max", FILES), ("ranges", 3), ("list", 3)] == kinds(filter_.kinds)
    assert "sales.day by 40 keys" in found._repr_html_()


def test_filter_kinds_keep_different_files(star):
    """Days 30 to 59 and 90 to 119 lie in files two, three, five and six, with one row group each."""
    df = star("SELECT sum(amount) FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month IN (1, 3)")
    found = explain(df, run_builds=True, options=OPTIONS)
    (table,) = found.tables
    (filter_,) = table.filters
    assert [("none", FILES), ("min-max", 5), ("ranges", 4), ("list", 4)] == kinds(filter_.kinds)
    assert [FILES, 5, 4, 4] == [each.row_groups for each in filter_.kinds]
    none, span, ranges, listed = (each.bytes for each in filter_.kinds)
    assert none > span > ranges == listed > 0
    # All files have nearly the same size.
    assert [5, 4] == [round(FILES * each / none) for each in (span, ranges)]
    assert (4, 4) == (table.files_kept, table.row_groups_kept)


def test_running_builds_does_not_change_the_dataframe(star):
    df = star(MARCH)
    explain(df, run_builds=True, options=OPTIONS)
    assert not explain(df, options=OPTIONS).ran_builds


def test_builds_of_a_pruned_query_do_not_run_again(star, jobs):
    pruned = prune(star(MARCH), options=OPTIONS)
    plain, again = explain(pruned), jobs(lambda: explain(pruned, run_builds=True))
    assert (plain, 0) == again


@pytest.mark.parametrize("run_builds", [False, True], ids=["dry", "with builds"])
def test_options_default_to_session_confs(spark, star, run_builds):
    df = star(MARCH)
    assert () == explain(df, run_builds=run_builds).filters
    assert "NOT_WORTH" in {it.code.name for it in explain(df, run_builds=run_builds).reasons}
    with conf(spark, {"spark.pruning.limits.costs": str(OPTIONS.limits.costs)}):
        assert 1 == len(explain(df, run_builds=run_builds).filters)


@pytest.mark.parametrize("run_builds", [False, True], ids=["dry", "with builds"])
def test_disabled_pruning_plans_no_filter(star, run_builds):
    found = explain(star(MARCH), run_builds=run_builds, options=replace(FREE_BUILDS, enabled=False))
    assert ((), (), ["SWITCHED_OFF"]) == (found.filters, found.tables, [it.code.name for it in found.reasons])


def test_failure_is_a_reason(star, monkeypatch):
    def fails(*_: object) -> None:
        raise UnreadablePlanError

    monkeypatch.setattr(pruned_query.SparkPlan, "of", fails)
    found = explain(star(MARCH), options=OPTIONS)
    assert ["the query: pruning failed (UnreadablePlanError)"] == list(map(str, found.reasons))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"run_builds": "yes"}, InvalidOptionError, "Cannot set 'run_builds' to 'yes': expected True or False"),
        ({"options": {"enabled": True}}, InvalidOptionError, "expected a PruningOptions, found a dict"),
    ],
    ids=["switch", "options"],
)
def test_arguments_of_wrong_types_are_refused(spark, arguments, error, message):
    with pytest.raises(error, match=message):
        explain(spark.range(3), **arguments)


def test_explain_refuses_objects_other_than_dataframes():
    with pytest.raises(InvalidDataFrameError, match="Cannot explain 'SELECT 1': expected a DataFrame, found str"):
        explain("SELECT 1", run_builds=True)


@pytest.mark.parametrize(
    ("query", "begins"),
    [
        ("SELECT * FROM {sales} WHERE day > 5", "nothing to prune: no join, and no limit over an order"),
        ("SELECT item, count(*) FROM {sales} GROUP BY item", "nothing to prune: no join, and no limit over an order"),
        (
            "SELECT * FROM {sales} ORDER BY day + 1 LIMIT 5",
            "nothing was pruned, since day + 1: the key is computed",
        ),
        ("SELECT count(*) FROM {days} CROSS JOIN {items}", "nothing was pruned, since no comparison of a join"),
    ],
    ids=["scan", "group", "sort", "cross"],
)
def test_a_query_without_a_filter_says_why(star, query, begins):
    df = star(query)
    pruned = prune(df, options=OPTIONS)
    pruned.collect()
    for told in (explain(df, options=OPTIONS), explain(pruned), report(pruned)):
        assert told.verdict.startswith(begins)
        assert told.verdict == str(told).splitlines()[0]


def test_a_sorted_limit_says_by_which_column(star):
    df = star("SELECT * FROM {sales} ORDER BY amount DESC LIMIT 5")
    pruned = prune(df, options=OPTIONS)
    assert [row.amount for row in df.collect()] == [row.amount for row in pruned.collect()]
    column = "amount by top 5 by "
    assert column in explain(df, options=OPTIONS).verdict
    assert report(pruned).verdict.startswith(f"read 1 of {FILES} files")
    assert column in report(pruned).verdict
