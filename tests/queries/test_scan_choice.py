"""AUTO choice of the reader: equal rows by either, both estimates in the explanation, and a bounded wrong guess."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from connectors.pipeline import table_scan as pipeline
from pruning import explain, pruned_read
from pruning.options import ARROW, PREDICATE
from tests.costs import NO_FIXED_COSTS
from tests.oracle.lakes import Layout, write
from tests.queries.arrow import counts, is_by_arrow, refusals
from tests.queries.star import DAYS_PER_FILE, OPTIONS, ROWS_PER_DAY, files

pytestmark = pytest.mark.spark

PER_FILE = DAYS_PER_FILE * ROWS_PER_DAY
# Costs by which Spark's reader, or pyarrow, is far too expensive.
COSTLY_SPARK = replace(NO_FIXED_COSTS, spark_value=1e6, arrow_task=0.0, arrow_scan=0.0)
COSTLY_ARROW = replace(NO_FIXED_COSTS, arrow_task=1e12)
AUTO = replace(OPTIONS, scan="AUTO")
JOIN = "SELECT s.* FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2"


@pytest.fixture(scope="module")
def skewed(spark, ways, tmp_path_factory) -> str:
    """The folder of ten row groups of 20 rows: all but the first and the last row of each have the same `k`."""
    ks = [0 if at % 20 == 0 else 10_000 if at % 20 == 19 else 7 for at in range(200)]
    rows = pa.table({"k": pa.array(ks, pa.int32()), "v": pa.array(range(200), pa.int64())})
    lake = write(spark, tmp_path_factory.mktemp("skewed") / "t", "parquet", rows, Layout(100, 20))
    ways.view("skewed", lake.whole())
    return lake.source


def choices(df):
    return [each.choice for each in explain(df).tables]


@pytest.mark.parametrize(
    ("costs", "scan"), [(COSTLY_SPARK, ARROW), (COSTLY_ARROW, PREDICATE)], ids=["arrow", "predicate"]
)
def test_cheaper_reader_makes_the_scan(pruned, costs, scan):
    _, result = pruned(JOIN, AUTO.with_limits(costs=costs))
    (choice,) = choices(result)
    assert scan == choice.scan
    assert (scan == ARROW) is ("keys, in the scan" in {each.row_test for each in explain(result).tables[0].filters})
    assert [] == refusals(result)
    if scan == ARROW:
        assert {"sales": (2, 2, 2 * PER_FILE)} == counts(result)
    else:
        assert {"sales": (2, 2, 8)} == files(result)
    assert "".join(str(choice).split()) in "".join(str(explain(result)).split())
    assert choice.predicate.bytes == choice.arrow.bytes == explain(result).tables[0].bytes_kept


def test_reader_is_chosen_and_scan_is_decided_once(pruned, monkeypatch):
    """Estimates need sizes of key columns from footers; both readers share the decision."""
    calls = []
    for name in ("reader_case", "decide"):
        made = getattr(pipeline, name)
        monkeypatch.setattr(pipeline, name, lambda *given, name=name, made=made: calls.append(name) or made(*given))
    _, result = pruned(JOIN, AUTO.with_limits(costs=COSTLY_SPARK))
    assert is_by_arrow(result)
    assert ["decide", "reader_case"] == calls


def test_pruned_read_uses_pyarrow_only_on_request(spark, skewed):
    """A later query may use input_file_name() on its rows."""
    for options, is_own in ((AUTO.with_limits(costs=COSTLY_SPARK), False), (replace(AUTO, scan=ARROW), True)):
        df = pruned_read(spark, skewed, keys={"k": [10_000]}, options=options)
        assert [19 + 20 * at for at in range(10)] == sorted(row.v for row in df.collect())
        assert [None] == choices(df)
        assert is_own is ("keys, in the scan" == explain(df).tables[0].filters[0].row_test)


@pytest.mark.usefixtures("skewed")
@pytest.mark.parametrize(("key", "passing"), [(7, "90.00%"), (0, "")])
def test_row_group_is_sampled_before_a_pyarrow_scan(ways, key, passing):
    """By its bounds, one value of ten thousand is rare, but nearly every row may have it."""
    costs = replace(NO_FIXED_COSTS, spark_value=100.0, arrow_task=0.0, arrow_scan=0.0, arrow_handed=1000.0)
    query = f"SELECT DISTINCT s.v FROM skewed s JOIN (VALUES ({key}), (-1)) AS t(k) ON s.k = t.k"
    df, result = ways.agreed(query, AUTO.with_limits(costs=costs))
    assert (180 if passing else 10) == len(df.collect())
    assert [ARROW] == [each.scan for each in choices(result)]
    assert is_by_arrow(result) is not bool(passing)
    assert (f"{passing} of the rows of a row group pass" in "".join(refusals(result))) is bool(passing)


@pytest.mark.parametrize(
    ("scan", "costs"),
    [("AUTO", replace(COSTLY_SPARK, driver_build=20_000.0)), (PREDICATE, COSTLY_SPARK)],
    ids=["little is read", "asked for"],
)
def test_no_choice_without_an_alternative(pruned, scan, costs):
    _, result = pruned(JOIN, replace(OPTIONS, scan=scan).with_limits(costs=costs))
    assert ([None], []) == (choices(result), refusals(result))
    assert {"sales": (2, 2, 8)} == files(result)


def test_table_read_twice_keeps_spark_reader_for_reuse(pruned):
    _, result = pruned(f"SELECT * FROM ({JOIN}) UNION ALL SELECT * FROM ({JOIN})", AUTO.with_limits(costs=COSTLY_SPARK))
    assert [None, None] == choices(result)
    assert {(2, 2, 8)} == {*files(result).values()}


@pytest.mark.usefixtures("skewed")
def test_input_file_name_keeps_spark_reader(ways):
    query = (
        "SELECT v, instr(input_file_name(), '.parquet') > 0 AS f FROM skewed JOIN VALUES (0), (-1) AS t(key) ON k = key"
    )
    _, result = ways.agreed(query, AUTO.with_limits(costs=COSTLY_SPARK), by_duck=False)
    assert {True} == {row.f for row in result.collect()}
    assert ([None], []) == (choices(result), refusals(result))


def test_refused_pyarrow_scan_has_a_reason(pruned, conf):
    conf("spark.sql.files.ignoreMissingFiles", "true")
    _, result = pruned(JOIN, AUTO.with_limits(costs=COSTLY_SPARK))
    assert not is_by_arrow(result)
    assert "ignoreMissingFiles is set" in "".join(refusals(result))
