"""`explain()` and `report()` before and after actions, as dictionaries, text and HTML."""

from __future__ import annotations

import json
import re
import threading
from html.parser import HTMLParser

import pyarrow as pa
import pytest

from connectors.measure.status_store import stage_input
from pruning import PruningOptions, explain, pruned_read, report
from pruning.errors import NotPrunedReadError
from tests.oracle.lakes import Layout, data_files, write

pytestmark = pytest.mark.spark

LAYOUT = Layout(file_rows=100, group_rows=50)
# Keys in each part of the span of every row group.
EVEN = list(range(0, 400, 2))
HOSTILE = "<script>alert('x')</script>\n\x1b[31m`&"
PLANNED = {"files_total", "files_kept", "row_groups_total", "row_groups_kept", "bytes_total", "bytes_kept", "reasons"}


def rows() -> pa.Table:
    return pa.table(
        {"id": range(400), "word": [f"w{at:03}" for at in range(400)], "spread": [at * 7 % 400 for at in range(400)]}
    )


@pytest.fixture(params=["delta", "parquet"])
def lake(request, shared_lake):
    return shared_lake("explained", request.param, rows, LAYOUT)


def executions(spark) -> int:
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    return spark._jsparkSession.sharedState().statusStore().executionsList().size()


def tasks_that_read(spark, group: str) -> int:
    """The number of records that tasks of a job group read."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    tracker = spark.sparkContext.statusTracker()
    stages = [stage for job in tracker.getJobIdsForGroup(group) for stage in tracker.getJobInfo(job).stageIds]
    # A skipped stage has no metrics, and it has read nothing.
    inputs = [stage_input(spark, stage) for stage in stages]
    return sum(records for _, records in filter(None, inputs))


def test_planning_and_explaining_scan_no_data(spark, lake):
    group = f"no scan of {lake.format}"
    spark.sparkContext.setJobGroup(group, group)
    try:
        read = pruned_read(spark, lake.source, keys={"id": [5, 250], "word": ["w005", "w250"]})
        planned = explain(read)
        str(planned), planned._repr_html_(), planned.to_dict()
        before = executions(spark)
        report(read)
        explain(read)
        assert before == executions(spark)
        # Spark reads the Delta log: an action per file, and a few for the table. A row group has fifty rows of data.
        metadata = tasks_that_read(spark, group)
        assert metadata <= {"delta": 20, "parquet": 0}[lake.format]
        read.collect()
        # The scan itself is counted, too, which proves that the counter works.
        assert 100 <= tasks_that_read(spark, group) - metadata <= {"delta": 120, "parquet": 100}[lake.format]
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        spark.sparkContext.setLocalProperty("spark.job.description", None)


def test_counts_of_a_plan(spark, lake):
    read = pruned_read(spark, lake.source, keys={"id": [5, 250], "spread": EVEN}, columns=["word"])
    (table,) = explain(read).tables
    assert (4, 2, 8, 2, 400, 100) == (
        table.files_total,
        table.files_kept,
        table.row_groups_total,
        table.row_groups_kept,
        table.rows_total,
        table.rows_kept,
    )
    assert {"statistics": 2} == table.files_skipped_by
    assert {"statistics": 2} == table.row_groups_skipped_by
    by_id, by_spread = table.filters
    assert (2, 2, 4, 8) == (by_id.files_kept, by_id.row_groups_kept, by_spread.files_kept, by_spread.row_groups_kept)
    assert (2, 200) == (by_id.keys, by_spread.keys)
    assert ["UNCLUSTERED"] == [reason.code.name for reason in table.reasons if reason.subject == "spread"]
    sizes = sum(path.stat().st_size for path in data_files(lake))
    assert 0 < table.bytes_kept < table.bytes_total < sizes


def test_bytes_count_only_selected_columns(spark, lake):
    keys = {"id": [5, 250]}
    (every,) = explain(pruned_read(spark, lake.source, keys=keys)).tables
    (some,) = explain(pruned_read(spark, lake.source, keys=keys, columns=["word"])).tables
    (key,) = explain(pruned_read(spark, lake.source, keys=keys, columns=["id"])).tables
    assert key.bytes_kept < some.bytes_kept < every.bytes_kept
    assert key.bytes_total < some.bytes_total < every.bytes_total


def test_to_dict_is_json_with_planned_and_measured_apart(spark, lake):
    read = pruned_read(spark, lake.source, keys={"id": [5, 250], "spread": EVEN}, exact=True)
    (planned,) = json.loads(json.dumps(explain(read).to_dict()))["tables"]
    assert lake.source == planned["table"]
    assert set(planned) >= PLANNED
    assert {"code", "subject", "text", "detail"} == set(planned["reasons"][0])
    (before,) = json.loads(json.dumps(report(read).to_dict()))["tables"]
    assert (planned, None, 0) == (before["planned"], before["measured"], before["actions"])
    read.collect()
    (after,) = json.loads(json.dumps(report(read).to_dict()))["tables"]
    assert (planned, 1) == (after["planned"], after["actions"])
    assert (2, 100) == (after["measured"]["files_read"], after["measured"]["rows_scanned"])
    assert not set(after["measured"]) & PLANNED


def test_actions_are_counted_and_the_latest_is_reported(spark, lake):
    read = pruned_read(spark, lake.source, keys={"id": [5, 250]}, exact=True)
    other = pruned_read(spark, lake.source, keys={"id": [5]}, exact=True)
    assert (None, 0) == (report(read).measured, report(read).tables[0].actions)
    read.collect()
    other.collect()
    assert (2, 1) == (report(read).measured.files_read, report(read).tables[0].actions)
    assert (1, 1) == (report(other).measured.files_read, report(other).tables[0].actions)
    # Actions on derived DataFrames count as actions of the read.
    read.where("word = 'w005'").groupBy("spread").count().collect()
    assert 2 == report(read).tables[0].actions
    spark.range(3).collect()
    assert 2 == report(read).tables[0].actions


def test_read_without_matches_measures_nothing(spark, lake):
    read = pruned_read(spark, lake.source, keys={"id": [1000]}, exact=True)
    assert [] == read.collect()
    (table,) = report(read).tables
    assert (0, 0, 0) == (table.measured.files_read, table.measured.rows_scanned, table.measured.bytes_scanned)
    assert table.planned.bytes_total > table.planned.bytes_kept == 0


def test_two_reads_in_one_action_are_measured_separately(spark, lake):
    first = pruned_read(spark, lake.source, keys={"id": [5, 250]}, exact=True)
    second = pruned_read(spark, lake.source, keys={"id": [5]}, exact=True)
    # The join is by another column, because Spark would push a filter on the join column to both sides.
    assert 1 == first.join(second, "word").count()
    assert (2, 1) == (report(first).measured.files_read, report(second).measured.files_read)


def test_limit_that_stops_early_is_measured(spark, lake):
    read = pruned_read(spark, lake.source, keys={"id": list(range(400))})
    assert 1 == len(read.limit(1).collect())
    (table,) = report(read).tables
    assert table.measured.rows_scanned <= table.planned.rows_kept == 400


def test_reports_from_several_threads_agree(spark, lake):
    read = pruned_read(spark, lake.source, keys={"id": [5, 250]})
    read.collect()
    found = []
    threads = [threading.Thread(target=lambda: found.append(report(read).to_dict())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[0]] * 4 == found


def test_text_has_planned_and_measured_counts(spark, lake):
    read = pruned_read(spark, lake.source, keys={"id": [5, 250], "spread": EVEN}, exact=True)
    plan = str(explain(read))
    assert re.search(r"files\W+4\W+2\W+statistics: 2", plan)
    assert "spread: every container may hold one of the keys" in plan
    assert "no action has read this DataFrame yet" in str(report(read))
    read.collect()
    text = str(report(read))
    assert "planned without filters" in text
    assert "no action" not in text


class Tags(HTMLParser):
    """The tags of a text, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert not attrs

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def hostile(spark, tmp_path_factory):
    # A folder name cannot contain a slash.
    folder = tmp_path_factory.mktemp("hostile") / HOSTILE.replace("/", "_")
    table = pa.table({"id": range(4), HOSTILE: range(4)})
    lake = write(spark, folder, "parquet", table, Layout(file_rows=2, group_rows=2))
    read = pruned_read(spark, lake.source, keys={"`" + HOSTILE.replace("`", "``") + "`": [1, 3]})
    read.collect()
    return read


@pytest.mark.parametrize("show", [explain, report])
def test_hostile_names_are_escaped_in_html(hostile, show):
    html = Tags(show(hostile)._repr_html_())
    assert html.tags <= {"div", "h4", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert "<script>alert('x')</script>" in html.text


@pytest.mark.parametrize("show", [explain, report])
def test_hostile_names_send_no_escape_codes_to_the_terminal(hostile, show):
    text = str(show(hostile))
    assert "alert('x')" in text.replace("\n", "")
    assert "\x1b" not in text


def test_report_of_other_dataframes_is_refused(spark, lake):
    read = pruned_read(spark, lake.source, keys={"id": [5]})
    for stranger in (spark.range(3), read.select("id"), read.where("id = 5"), lake.whole()):
        with pytest.raises(
            NotPrunedReadError, match=r"Cannot report a DataFrame that prune\(\) or pruned_read\(\) did"
        ):
            report(stranger)


def test_bytes_without_footers_are_file_sizes(spark, lake):
    read = pruned_read(spark, lake.source, keys={"id": [5]}, options=PruningOptions().with_limits(max_footers=0))
    (table,) = explain(read).tables
    assert (None, None, "file sizes") == (table.row_groups_total, table.row_groups_kept, table.bytes_basis)
    assert sum(path.stat().st_size for path in data_files(lake)) == table.bytes_total
    assert "unknown" in str(explain(read))
