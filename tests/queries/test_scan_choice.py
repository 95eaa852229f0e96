"""Who makes a scan where its costs decide: the same rows by either, the numbers told, and a wrong guess bounded."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from connectors.cli import calibrate
from connectors.pipeline import table_scan as pipeline
from pruning import explain, pruned_read
from pruning.options import ARROW, PREDICATE
from pruning.scan_costs import ScanCosts
from tests.oracle.lakes import Layout, write
from tests.queries.arrow import counts, is_by_arrow, refusals
from tests.queries.star import DAYS_PER_FILE, OPTIONS, ROWS_PER_DAY, files

pytestmark = pytest.mark.spark

PER_FILE = DAYS_PER_FILE * ROWS_PER_DAY
# As if Spark's reader, or pyarrow, took for ever.
DEAR_SPARK = ScanCosts.parse("spark_value=1e6,arrow_task=0,arrow_scan=0")
DEAR_ARROW = ScanCosts.parse("arrow_task=1e12")
AUTO = replace(OPTIONS, scan="AUTO", min_probe_bytes=0)
JOIN = "SELECT s.* FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2"


@pytest.fixture(scope="module")
def skewed(spark, ways, tmp_path_factory) -> str:
    """Ten row groups of 20 rows: all but one of each hold the same `k` between two that lie far from it."""
    ks = [0 if at % 20 == 0 else 10_000 if at % 20 == 19 else 7 for at in range(200)]
    rows = pa.table({"k": pa.array(ks, pa.int32()), "v": pa.array(range(200), pa.int64())})
    lake = write(spark, tmp_path_factory.mktemp("skewed") / "t", "parquet", rows, Layout(100, 20))
    ways.view("skewed", lake.whole())
    return lake.source


def choices(df):
    return [each.choice for each in explain(df).tables]


@pytest.mark.parametrize(("costs", "scan"), [(DEAR_SPARK, ARROW), (DEAR_ARROW, PREDICATE)], ids=["arrow", "predicate"])
def test_the_cheaper_reader_makes_the_scan(pruned, costs, scan):
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


def test_a_scan_is_weighed_and_decided_once(pruned, monkeypatch):
    """Sizes of key columns are asked of footers for it; what was decided for Spark's reader is so for the other."""
    calls = []
    for name in ("scan_case", "decide"):
        made = getattr(pipeline, name)
        monkeypatch.setattr(pipeline, name, lambda *given, name=name, made=made: calls.append(name) or made(*given))
    _, result = pruned(JOIN, AUTO.with_limits(costs=DEAR_SPARK))
    assert is_by_arrow(result)
    assert ["decide", "scan_case"] == calls


def test_a_read_by_keys_is_left_to_spark_unless_asked_for(spark, skewed):
    """Its rows may be asked for their file afterwards."""
    for options, is_own in ((AUTO.with_limits(costs=DEAR_SPARK), False), (replace(AUTO, scan=ARROW), True)):
        df = pruned_read(spark, skewed, keys={"k": [10_000]}, options=options)
        assert [19 + 20 * at for at in range(10)] == sorted(row.v for row in df.collect())
        assert [None] == choices(df)
        assert is_own is ("keys, in the scan" == explain(df).tables[0].filters[0].row_test)


@pytest.mark.usefixtures("skewed")
@pytest.mark.parametrize(("key", "passing"), [(7, "90.00%"), (0, "")])
def test_a_row_group_is_read_before_a_scan_is_left_to_pyarrow(ways, key, passing):
    """Its bounds promise that one value of ten thousand is rare, and nearly every row may have it."""
    costs = ScanCosts.parse("spark_value=100,arrow_task=0,arrow_scan=0,arrow_handed=1000")
    query = f"SELECT DISTINCT s.v FROM skewed s JOIN (VALUES ({key}), (-1)) AS t(k) ON s.k = t.k"
    df, result = ways.agreed(query, AUTO.with_limits(costs=costs))
    assert (180 if passing else 10) == len(df.collect())
    assert [ARROW] == [each.scan for each in choices(result)]
    assert is_by_arrow(result) is not bool(passing)
    assert (f"{passing} of the rows of a row group pass" in "".join(refusals(result))) is bool(passing)


@pytest.mark.parametrize(
    "options", [replace(AUTO, min_probe_bytes=6000), replace(AUTO, scan=PREDICATE)], ids=["little is read", "asked for"]
)
def test_nothing_is_weighed_where_nothing_is_to_be_chosen(pruned, options):
    _, result = pruned(JOIN, options.with_limits(costs=DEAR_SPARK))
    assert ([None], []) == (choices(result), refusals(result))
    assert {"sales": (2, 2, 8)} == files(result)


def test_a_table_that_is_read_twice_is_left_to_spark_which_may_read_it_once(pruned):
    _, result = pruned(f"SELECT * FROM ({JOIN}) UNION ALL SELECT * FROM ({JOIN})", AUTO.with_limits(costs=DEAR_SPARK))
    assert [None, None] == choices(result)
    assert {(2, 2, 8)} == {*files(result).values()}


@pytest.mark.usefixtures("skewed")
def test_who_asks_for_the_file_of_a_row_gets_sparks_reader_without_a_word(ways):
    query = (
        "SELECT v, instr(input_file_name(), '.parquet') > 0 AS f FROM skewed JOIN VALUES (0), (-1) AS t(key) ON k = key"
    )
    _, result = ways.agreed(query, AUTO.with_limits(costs=DEAR_SPARK), by_duck=False)
    assert {True} == {row.f for row in result.collect()}
    assert ([None], []) == (choices(result), refusals(result))


def test_who_would_have_been_chosen_says_why_it_stands_aside(pruned, conf):
    conf("spark.sql.files.ignoreMissingFiles", "true")
    _, result = pruned(JOIN, AUTO.with_limits(costs=DEAR_SPARK))
    assert not is_by_arrow(result)
    assert "ignoreMissingFiles is set" in "".join(refusals(result))


def test_costs_are_measured_and_nothing_is_left(spark, tmp_path):
    told, trials = [], calibrate.Trials(rows=20_000, warm=0, runs=1, rounds=2)
    costs = calibrate.calibrated(spark, tmp_path, lambda name, _: told.append(name), trials)
    assert set(told) == set(ScanCosts.__dataclass_fields__) - {"remote_byte"}
    assert costs.arrow_value > 0 < costs.byte
    assert [] == list(tmp_path.iterdir())
