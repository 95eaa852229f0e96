"""Tests of planned against actual seconds: errors, fitted rates, the chart, the command, and one run by Spark."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pytest
import typer

from benchmarks import model, model_chart
from benchmarks.fit_rates import bounded_least_squares, expected, features, fit, fit_text
from benchmarks.model import Settings, main
from benchmarks.model_error import builds, errors, errors_text
from benchmarks.workload_runs import WAYS, merged
from pruning.cost.rates import CostRates
from sample_data.tpcds_queries import Query
from sample_data.workload import TPCDS


def build(planned, seconds, where="job"):
    return {"keys": "k", "planned": planned, "seconds": seconds, "where": where}


def row(query, planned=1.0, stock=1.0, saving=0.0, actual=0.0, **others):
    return {
        "query": query,
        "planned_stock": planned,
        "seconds_stock": stock,
        "seconds_pruned": stock - actual,
        "saving": actual,
        "planned_saving": saving,
        "planned_saving_low": saving - 0.5,
        "planned_saving_high": saving + 0.5,
        "builds": [build(0.1, 0.2)],
        "features": {},
        "rows_equal": True,
        **others,
    }


# Errors.

ROWS = [
    row("q1", 1.0, 2.0, saving=1.0, actual=0.5),
    row("q2", 3.0, 2.0, saving=0.5, actual=-0.4),
    # Less is at stake.
    row("q3", 2.0, 2.0, saving=0.5, actual=-0.2, builds=[build(0.3, 0.2), build(0.02, 0.01, "driver")]),
    row("q4", 2.0, 2.0, saving=0.0, actual=-0.9, builds=[], rows_equal=False),
    {"query": "q5", "failed": "no memory"},
]


def test_errors_are_medians_by_kind_and_name_the_queries_with_a_wrong_sign():
    found = errors(ROWS)
    assert [pytest.approx(0.5), 4] == [*found.builds]
    assert (0.25, 4) == found.queries
    # 0.5 / 0.5, 0.9 / 0.4, 0.7 / 0.2.
    assert [pytest.approx(2.25), 3] == [*found.savings]
    assert pytest.approx(1 / 3) == found.within
    assert ("q2",) == found.wrong
    assert ("q4",) == found.unplanned == found.differing
    assert ("q5",) == found.failed


def test_a_saving_near_zero_is_compared_with_the_least_saving():
    assert [pytest.approx(0.4), 1] == [*errors([row("q1", saving=0.05, actual=0.01)]).savings]


def test_what_was_not_planned_counts_nowhere():
    always = row("q1", builds=[build(None, 0.2)]) | {"planned_saving": None, "planned_saving_low": None}
    nothing = row("q2", planned=None, builds=[])
    cached = row("q3", builds=[build(0.1, 0.0)])
    found = errors([always, nothing, cached])
    assert (None, 0) == found.builds
    assert 2 == found.queries[1]
    assert 1 == found.savings[1]
    assert [] == builds([always, cached])


def test_the_table_names_errors_and_queries():
    text = errors_text(ROWS)
    assert "sign of the gain wrong with more than 0.3 s at stake: 1 (q2)" in text
    assert "rows differ: 1 (q4)" in text
    assert "savings between their planned bounds: 33%" in text
    lines = {line.split("  ")[0]: line.split() for line in text.splitlines()}
    assert ["25%", "4"] == lines["stock queries"][-2:]
    assert "on the driver" in text
    assert errors_text([]).splitlines()[1].split() == ["builds", "-", "0"]


# Fitted rates.

NAMES = ("byte", "decoded_byte", "exchanged_row", "row")


def recorded_rows(truth, fixed=0.0, count=60, noise=0.0):
    """Rows of queries whose seconds follow from rates; `byte` and `decoded_byte` always come together."""
    random = np.random.default_rng(5)
    found = []
    for at in range(count):
        size = 10 ** random.uniform(-2, 1)
        read = size * random.uniform(0.05, 0.2)
        known = {
            "byte": read,
            "decoded_byte": read,
            "exchanged_row": size * random.uniform(0, 0.003),
            "row": size * random.uniform(0, 0.1),
        }
        seconds = (expected(known, truth) + fixed) * float(np.exp(noise * random.normal()))
        found.append(row(f"q{at}", stock=seconds, features=known))
    return found


def test_features_are_the_seconds_of_each_rate_alone():
    def seconds(rates):
        return 0.5 * rates.byte + 2.0 * rates.row

    known = features(seconds)
    assert {"byte": 0.5, "row": 2.0} == known
    rates = CostRates(byte=3.0, row=0.25)
    assert seconds(rates) == expected(known, rates)
    assert {} == features(lambda _: None)


def test_fit_finds_the_rates_by_which_seconds_were_made():
    truth = CostRates(byte=1.6, decoded_byte=2.4, exchanged_row=125.0, row=12.0)
    found = fit(recorded_rows(truth, fixed=0.3))
    assert 60 == found.queries
    assert NAMES == tuple(sorted(found.names))
    for name in NAMES:
        assert pytest.approx(getattr(truth, name), rel=0.05) == getattr(found.rates, name)
    assert pytest.approx(0.3, rel=0.05) == found.fixed
    assert found.after < 0.02 < found.before
    others = [each.name for each in fields(CostRates) if each.name not in NAMES]
    assert all(getattr(found.rates, name) == getattr(CostRates(), name) for name in others)


def test_a_few_queries_that_the_model_cannot_explain_do_not_move_the_rates():
    truth = CostRates(exchanged_row=1000.0)
    rows = recorded_rows(truth, noise=0.1)
    for each in rows[::10]:
        each["seconds_stock"] *= 20
    found = fit(rows)
    assert pytest.approx(1000.0, rel=0.2) == found.rates.exchanged_row
    assert found.after < 0.2


def test_rates_stay_within_a_factor_of_the_defaults_and_rates_of_zero_stay():
    found = fit(recorded_rows(CostRates(byte=300.0, decoded_byte=1500.0)))
    assert pytest.approx(10 * CostRates().decoded_byte) == found.rates.decoded_byte
    assert 4 == fit_text(found).count("at its bound")
    assert 0.0 == fit(recorded_rows(CostRates()), CostRates(row=0.0)).rates.row


def test_rows_without_features_or_seconds_are_no_queries_of_a_fit():
    rows = [*recorded_rows(CostRates(), count=3), row("q98"), {"query": "q99", "failed": "no memory"}]
    assert 3 == fit(rows).queries
    with pytest.raises(ValueError, match="no recorded query has features and seconds"):
        fit(rows[3:])


def test_bounded_least_squares_ends_at_bounds_and_stays_where_nothing_is_told():
    matrix = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    found = bounded_least_squares(matrix, np.array([3.0, 0.5]), np.ones(3), np.full(3, 0.1), np.full(3, 2.0))
    assert [2.0, pytest.approx(0.5, abs=0.01), 1.0] == found.tolist()


def test_fitted_rates_are_told_so_that_they_can_be_parsed():
    found = fit(recorded_rows(CostRates(row=10.0)))
    last = fit_text(found).splitlines()[-1].strip()
    assert pytest.approx(10.0, rel=0.05) == CostRates.parse(last).row


# The chart and the command.


def test_the_chart_has_a_panel_of_each_kind_names_far_points_and_is_reproducible():
    pytest.importorskip("matplotlib")
    svg = model_chart.picture(ROWS)
    assert svg == model_chart.picture(ROWS)
    for text in ("seconds of stock queries", "seconds saved", "seconds of builds", "on the driver", "as a job", "q2"):
        assert f">{text}<" in svg
    assert ">q1<" not in svg
    assert model_chart.picture([])


def test_charts_match_the_recorded_results():
    for results in model_chart.RESULTS.glob(f"{model_chart.PREFIX}*.json"):
        assert results.with_suffix(".svg").exists(), "run `make readme`"


def test_rows_of_earlier_slices_stay_in_the_order_of_the_workload():
    found = merged(TPCDS, [row("q10"), row("q2", stock=9.0)], [row("q2"), row("q1")])
    assert [("q1", 1.0), ("q2", 1.0), ("q10", 1.0)] == [(each["query"], each["seconds_stock"]) for each in found]


def test_slices_of_one_workload_share_results_and_resume_apart():
    first, second = (Settings("ssb", 5.0, (each,)) for each in ("q1.1", "q1.2"))
    assert "model-ssb-sf5" == first.results == second.results
    assert first.name != second.name
    assert {"workload": "ssb", "scale": 5.0} == first.head


def test_the_command_measures_a_slice_and_fits_rates_from_its_file_alone(monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    rows = {each["query"]: each for each in recorded_rows(CostRates(row=10.0), count=12) if each["query"] != "q0"}
    monkeypatch.setattr(model, "run", lambda settings, _: [rows[name] for name in settings.queries])
    for query in ("q1-q5", "q4-q11"):
        main(query=[query], results=tmp_path, scale=1.0)
    found = json.loads((tmp_path / "model-tpcds-sf1.json").read_text())["rows"]
    assert [f"q{number}" for number in range(1, 12)] == [each["query"] for each in found]
    assert (tmp_path / "model-tpcds-sf1.svg").exists()
    monkeypatch.setattr(model, "run", None)
    capsys.readouterr()
    main(results=tmp_path, scale=1.0, fit_only=True)
    assert "Rates fitted to 11 stock queries" in capsys.readouterr().out
    with pytest.raises(typer.BadParameter, match="no recorded query has features"):
        main(results=tmp_path, scale=2.0, fit_only=True)
    with pytest.raises(typer.BadParameter, match="there is no workload 'tpch'"):
        main(workload="tpch")


# One run by Spark.


def test_lots_are_the_same_in_each_measurement_and_differ_between_queries_and_runs():
    pytest.importorskip("pyspark")
    from benchmarks.model_run import lots  # noqa: PLC0415 - loads Spark

    found = [lots(Query(number, ""), run) for number in range(20) for run in range(2)]
    assert found == [lots(Query(number, ""), run) for number in range(20) for run in range(2)]
    assert all({*WAYS} == {*each} for each in found)
    assert 10 < [each[0] for each in found].count("stock") < 30


JOINED = Query(
    1,
    "SELECT count(*), sum(f.v) FROM sales f JOIN days d ON f.day = d.day WHERE d.name = 'd7'",
)
ALONE = Query(2, "SELECT v FROM sales ORDER BY v % 10 LIMIT 3")


@pytest.fixture
def measurer(spark, tmp_path):
    from benchmarks.contest.spark_engine import SparkEngine  # noqa: PLC0415 - loads Spark
    from benchmarks.model_run import Measurer  # noqa: PLC0415 - the same

    spark.range(2000).selectExpr("id AS v", "cast(id / 100 AS int) AS day").repartitionByRange(4, "day").write.format(
        "delta"
    ).save(f"{tmp_path}/sales")
    spark.range(20).selectExpr("cast(id AS int) AS day", "concat('d', id) AS name").write.format("delta").save(
        f"{tmp_path}/days"
    )
    for name in ("sales", "days"):
        spark.read.format("delta").load(f"{tmp_path}/{name}").createOrReplaceTempView(name)
    yield Measurer(SparkEngine({}, spark), 2, {"scale": 1.0})
    for name in ("sales", "days"):
        spark.catalog.dropTempView(name)


@pytest.mark.spark
def test_a_query_is_measured_with_its_builds_scans_and_features(measurer, conf):
    conf("spark.pruning.always", "true")
    found = measurer.row(JOINED)
    assert (1.0, "q1", 2, 1, True, "") == tuple(
        found[each] for each in ("scale", "query", "runs", "rows", "rows_equal", "differs")
    )
    assert 2 == len(found["first"])
    (only,) = found["builds"]
    assert None is only["planned"] is found["planned_saving"]
    assert only["seconds"] > 0
    (scan,) = found["scans"]
    assert (1, 1) == (scan["planned_files"], scan["files"])
    assert 0 < scan["planned_bytes"] <= scan["bytes"]
    assert found["planned_stock"] > 0
    rates = CostRates.parse(found["rates"])
    assert pytest.approx(found["planned_stock"], rel=1e-3) == expected(found["features"], rates)
    assert {"byte", "decoded_byte", "row"} <= found["features"].keys()
    assert errors([found]).queries[1] == 1


# Rates by which a filter of a small table pays.
CHEAP_BUILDS = "build_job=1e3,driver_build=1e3,kept_row=1,planned_scan=1,decoded_byte=1e6"


@pytest.mark.spark
def test_a_filter_that_was_weighed_has_planned_seconds_and_a_planned_saving(measurer, conf):
    conf("spark.pruning.limits.costs", CHEAP_BUILDS)
    conf("spark.pruning.cost_rates", "GIVEN")
    found = replace(measurer, runs=1).row(JOINED)
    assert found["rows_equal"]
    assert CostRates.parse(CHEAP_BUILDS) == CostRates.parse(found["rates"])
    (only,) = found["builds"]
    assert 0 < only["planned"] < found["planned_stock"]
    low, planned, high = (found[f"planned_saving{each}"] for each in ("_low", "", "_high"))
    assert low <= planned <= high
    assert 0 < planned < found["planned_stock"]
    assert (1, 1) == (errors([found]).builds[1], errors([found]).savings[1])
    (scan,) = found["scans"]
    assert (1, 1) == (scan["planned_files"], scan["files"])


@pytest.mark.spark
def test_a_query_without_a_filter_has_planned_seconds_and_ties_are_no_difference(measurer):
    found = measurer.row(ALONE)
    assert found["rows_equal"]
    assert [] == found["builds"] == found["scans"]
    assert 0.0 == found["planned_saving"]
    assert pytest.approx(found["planned_stock"], rel=1e-3) == expected(
        found["features"], CostRates.parse(found["rates"])
    )
    failed = measurer.row(Query(3, "SELECT no_column FROM sales"))
    assert {"scale", "query", "failed"} == failed.keys()
