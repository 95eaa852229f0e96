"""Tests of contests in which each query runs once, of slices of queries, and of workloads beside TPC-DS."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import typer

from benchmarks.contest import contest, pool
from benchmarks.contest.__main__ import asked_queries, merged
from benchmarks.contest.contest import CONTENDERS, Contest, Settings
from benchmarks.contest.pool import LIMIT, Sessions
from benchmarks.contest.worker import Worker
from benchmarks.resume import resumed
from benchmarks.tests.stand_ins import HERE, STAND_IN, RightIfAsked
from sample_data import process_tree
from sample_data.tpcds_queries import Query
from sample_data.workload import TPCDS, WORKLOADS

needs_account = pytest.mark.skipif(not process_tree.is_accounted(), reason="needs Linux's /proc/<process>/io")


class Recorder:
    """Wraps `Contest._answered`, and records the query, the contender and the process of each run."""

    def __init__(self, monkeypatch):
        self.runs: list[Any] = []
        run = Contest._answered

        def recorded(known, layout, query, contender):
            found = run(known, layout, query, contender)
            process = known.pool.worker(contender, layout, known.tables[layout]).process
            self.runs.append((query.name, contender, process))
            return found

        monkeypatch.setattr(Contest, "_answered", recorded)


def test_once_runs_each_query_once_in_a_session_of_each_contender_in_an_order_by_lot(monkeypatch, tmp_path, lake):
    monkeypatch.setattr(pool, "ENGINES", {"pruned": STAND_IN, "stock": STAND_IN})
    runs = Recorder(monkeypatch).runs
    names = [f"q{number}" for number in range(1, 21)]
    settings = Settings(1.0, ("delta",), tuple(names), ("pruned", "stock"), once=True)
    sessions = Sessions(apart=True, opening="print")
    with pool.pool(tmp_path, 20.0, sessions) as workers:
        known = Contest(settings, workers, RightIfAsked(), {"delta": lake}, {}, HERE)
        rows = [each for at, name in enumerate(names, 1) for each in known.rows("delta", Query(at, "names", name))]
        again = [each["turn"] for at, name in enumerate(names, 1) for each in known.rows("delta", Query(at, "x", name))]
    assert 2 * len(names) == len({each[:2] for each in runs[: len(rows)]}) == len(rows)
    assert 2 == len({each[1:] for each in runs}), "one process for each contender"
    assert ["pruned", "stock"] * len(names) == [each["contender"] for each in rows]
    assert {True} == {each["once"] for each in rows}
    turns = [each["turn"] for each in rows]
    assert turns == again, "lots have a fixed seed"
    assert all({1, 2} == {*turns[at : at + 2]} for at in range(0, len(turns), 2))
    firsts = turns[::2].count(1)
    assert 4 < firsts < 16
    assert all(each["seconds_least"] == each["seconds"] == each["seconds_most"] for each in rows)
    # The query that opens a session ran, and was not measured.
    for name in ("pruned", "stock"):
        assert 1 == (tmp_path / f"{name}.log").read_text().count("a line that is no answer")


class Listening:
    """A judge that notes when it is asked, beside the runs."""

    def __init__(self, runs):
        self.runs = runs

    def verdict(self, query, contender, answer, *, strict):  # noqa: ARG002 - the protocol of a judge
        self.runs.append("judged")
        return ""


def test_answers_are_judged_after_all_contenders_ran_where_each_query_runs_once(monkeypatch, stand_ins, lake):
    runs = Recorder(monkeypatch).runs
    settings = Settings(1.0, ("delta",), ("q1",), ("pruned", "stock"), once=True)
    Contest(settings, stand_ins, Listening(runs), {"delta": lake}, {}, HERE).rows("delta", Query(1, "x"))
    assert ["judged", "judged"] == runs[2:]


def test_a_layout_has_a_session_of_its_own_where_each_query_runs_once(stand_ins, monkeypatch, tmp_path, lake):
    monkeypatch.setattr(pool, "ENGINES", {"stock": STAND_IN})
    with pool.pool(tmp_path, 20.0, Sessions(opening="names")) as workers:
        first, same, other = (workers.worker("stock", layout, lake).process for layout in ("a", "a", "b"))
        assert first == same != other
    usual = [stand_ins.worker("stock", layout, lake).process for layout in ("a", "b")]
    assert usual[0] == usual[1]


def test_results_are_named_by_workload_and_by_how_often_queries_run():
    assert "contest-ssb-sf5" == Settings(5.0, workload="ssb").results
    assert "contest-events-once-s3-sf10" == Settings(10.0, workload="events", once=True, place="s3").results
    assert {"workload": "ssb", "scale": 5.0, "door": "session", "once": True} == Settings(
        5.0, workload="ssb", once=True
    ).head
    assert {"scale": 1.0, "door": "session"} == Settings(1.0).head
    assert {"scale": 1.0, "door": "prune"} == Settings(1.0, door="prune").head


def test_spark_gets_its_text_and_other_engines_the_text_of_duckdb(stand_ins, monkeypatch, lake):
    asked = []

    def answer(_worker, contender, text):
        asked.append((contender, text))
        return 1.0

    monkeypatch.setattr(Worker, "answer", answer)
    monkeypatch.setattr(contest, "ENGINES", {"stock": pool.SPARK, "duckdb": "duckdb"})
    settings = Settings(1.0, ("delta",), ("e1",), ("stock", "duckdb"), once=True)
    known = Contest(settings, stand_ins, RightIfAsked(), {"delta": lake}, {}, HERE)
    known.rows("delta", Query(1, "explode", "e1", "unnest"))
    assert [("duckdb", "unnest"), ("stock", "explode")] == sorted(asked)


def test_slices_of_queries_are_in_the_order_of_the_workload():
    ssb = WORKLOADS["ssb"]
    assert ("q2", "q3", "q4", "q96") == asked_queries(TPCDS, ["q2-q4,q96", "3"])
    assert ("q1.3", "q2.1") == asked_queries(ssb, ["q1.3-2.1"])
    assert 13 == len(asked_queries(ssb, [])), "all where none are known to be selective"
    for wrong in ("q4-q2", "q1-q100", "q1-q2-q3"):
        with pytest.raises(typer.BadParameter, match=f"there is no slice '{wrong}'; expected one such as q1-q99"):
            asked_queries(TPCDS, [wrong])


def measured(query):
    return {"layout": "delta", "query": query, "contender": "stock", "seconds": 1.0}


def test_slices_of_one_contest_are_resumed_apart_and_merged():
    slices = [Settings(1.0, queries=each) for each in (("q1",), ("q2",))]
    assert 2 == len({each.name for each in slices})
    assert {"contest-sf1"} == {each.results for each in slices}
    found = merged(TPCDS, [measured("q2")], [measured("q1")])
    assert ["q1", "q2"] == [each["query"] for each in found]


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.slow
@needs_account
def test_all_contenders_answer_two_queries_of_page_views_once_with_the_right_rows(spark, tmp_path, monkeypatch):
    from sample_data.layouts import LAYOUTS, write_layout  # noqa: PLC0415 - loads Spark

    pytest.importorskip("datafusion")
    events = WORKLOADS["events"]
    # Uses the session of the tests, so that no other session is started to write tables.
    write_layout(spark, LAYOUTS["delta"], events.generate(0.01, tmp_path), tmp_path)
    monkeypatch.setattr(contest, "resumed", partial(resumed, folder=tmp_path / "unfinished"))
    contenders = tuple(name for name in CONTENDERS if name != LIMIT)
    # The second has another text for DuckDB.
    settings = Settings(0.01, ("delta",), ("e1", "e12"), contenders, workload="events", once=True)
    rows = contest.run(settings, tmp_path)
    assert [(query, name) for query in ("e1", "e12") for name in contenders] == [
        (each["query"], each["contender"]) for each in rows
    ]
    assert [] == [each for each in rows if each.get("failed") or each.get("rows_equal") is False]
    turns = [each["turn"] for each in rows]
    count = len(contenders)
    assert [*range(1, count + 1)] * 2 == [*sorted(turns[:count]), *sorted(turns[count:])]
