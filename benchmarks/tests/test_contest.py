"""Tests of the contest: workers and their protocol, engines, judge, rows of results, page and charts."""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

from benchmarks.contest import contest, page, pool
from benchmarks.contest.__main__ import _chosen, asked_queries, main, merged
from benchmarks.contest.charts import bars, growth
from benchmarks.contest.contest import CONTENDERS, Contest, Settings
from benchmarks.contest.duckdb_engine import DuckdbEngine
from benchmarks.contest.judge import TIES, judge, lenient_rule
from benchmarks.contest.place import Place
from benchmarks.contest.pool import LIMIT, Sessions
from benchmarks.contest.ratios import with_ratios
from benchmarks.contest.site import S3A, Site, site
from benchmarks.contest.worker import Worker, WorkerFailed
from benchmarks.record import recorded
from benchmarks.resume import resumed
from benchmarks.tests.stand_in_engine import ROW
from benchmarks.tests.stand_ins import HERE, STAND_IN, RightIfAsked
from sample_data import process_tree
from sample_data.object_store import gateway
from sample_data.object_store.shape import Shape
from sample_data.process_tree import Usage
from sample_data.tpcds import TpcdsFiles
from sample_data.tpcds_queries import Answer, Query
from sample_data.workload import TPCDS

needs_account = pytest.mark.skipif(not process_tree.is_accounted(), reason="needs Linux's /proc/<process>/io")
ENGINED = tuple(name for name in CONTENDERS if name != LIMIT)
MIB = 1 << 20


# Workers and the protocol.


@pytest.fixture
def worker(tmp_path):
    found = Worker(STAND_IN, tmp_path / "log", 60.0)
    yield found
    found.end()


def test_rows_keep_their_values_and_types_in_the_protocol(worker):
    assert 0 <= worker.answer("stock", "anything") < 60
    answer = worker.rows()
    assert (ROW,) == answer.rows
    assert list(map(type, ROW)) == list(map(type, answer.rows[0]))
    assert "decimal(3,2)" == answer.types[1]


def test_seconds_are_the_time_of_the_query(worker):
    assert 0.3 <= worker.answer("stock", "sleep 0.3")


def test_output_of_an_engine_goes_to_the_log(worker, tmp_path):
    worker.answer("stock", "print")
    assert "a line that is no answer" in (tmp_path / "log").read_text()
    assert (ROW,) == worker.rows().rows


def test_an_engine_reports_why_a_query_failed_and_answers_the_next(worker):
    with pytest.raises(WorkerFailed, match=r"^failed: ValueError: no such column$"):
        worker.answer("stock", "fail")
    with pytest.raises(WorkerFailed, match=r"^unsupported: no such function$"):
        worker.answer("stock", "refuse")
    worker.answer("stock", "anything")


def test_contender_over_its_time_limit_is_ended(tmp_path):
    worker = Worker(STAND_IN, tmp_path / "log", 0.5)
    with pytest.raises(WorkerFailed, match=r"^no answer within 0\.5 s$"):
        worker.answer("stock", "sleep 100")
    assert not worker.is_alive()


def test_worker_that_cannot_start_reports_the_last_line_of_its_log(tmp_path):
    with pytest.raises(WorkerFailed, match=r"the process ended with 1: .*No module named benchmarks\.tests\.no_engine"):
        Worker("benchmarks.tests.no_engine", tmp_path / "log", 10.0)


def test_a_worker_that_ended_is_restarted_with_its_tables(stand_ins, lake):
    first = stand_ins.worker("stock", "layout", lake)
    with pytest.raises(WorkerFailed, match="the process ended with 3"):
        first.answer("stock", "end")
    again = stand_ins.worker("pruned", "layout", lake)
    assert first.process != again.process
    again.answer("pruned", "names")
    assert (("pruned", "t"), ("pruned", "p")) == again.rows().rows
    assert again is stand_ins.worker("stock", "layout", lake)


# Tables and engines.


def test_a_table_has_its_data_files_and_its_partition_column(lake):
    plain, partitioned = lake
    assert ("", ["a.parquet"]) == (plain.partition, [Path(each).name for each in plain.files])
    assert ("day", 2) == (partitioned.partition, len(partitioned.files))


def test_a_partition_column_of_dates_is_a_date(tmp_path):
    datafusion = pytest.importorskip("benchmarks.contest.datafusion_engine")
    file = tmp_path / "lake" / "p" / "day=2024-02-29" / "a.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(pa.table({"k": pa.array([7], pa.int32())}), file)
    table = Place(str(tmp_path)).table("lake", "p", "delta")
    assert ("day", "DATE") == (table.partition, table.partition_type)
    for engine in (DuckdbEngine(), datafusion.DatafusionEngine()):
        engine.tables([table])
        assert ((7, date(2024, 2, 29)),) == engine.answer("", "SELECT k, day FROM p WHERE day > DATE '2024-02-28'").rows


def test_a_folder_without_files_is_refused(tmp_path):
    (tmp_path / "lake" / "t").mkdir(parents=True)
    with pytest.raises(ValueError, match="no Parquet file below"):
        Place(str(tmp_path)).table("lake", "t", "delta")


@pytest.fixture
def remote(store, lake, tmp_path, monkeypatch):
    """The tables of `lake` on an object store, whose access is in environment variables."""
    for name, value in store.access.environment.items():
        monkeypatch.setenv(name, value)
    key = tmp_path.name
    store.upload(tmp_path / "lake", key)
    place = Place(store.bucket, S3A, store.filesystem())
    return [place.table(key, each.name, "parquet") for each in lake]


QUESTION = "SELECT (SELECT count(*) FROM t) AS t, day, count(*) AS n FROM p GROUP BY day ORDER BY day NULLS LAST"


def test_engines_read_plain_and_partitioned_tables_alike(lake):
    datafusion = pytest.importorskip("benchmarks.contest.datafusion_engine")
    for engine in (DuckdbEngine(), datafusion.DatafusionEngine()):
        for tables in (lake[:1], lake):
            engine.tables(tables)
        assert ((2, 1, 2), (2, None, 2)) == engine.answer("", QUESTION).rows


def test_engines_read_tables_on_an_object_store(store, remote):
    pytest.importorskip("duckdb_extension_httpfs")
    datafusion = pytest.importorskip("benchmarks.contest.datafusion_engine")
    assert all(file.startswith(f"{S3A}{store.bucket}/") for each in remote for file in each.files)
    for engine in (DuckdbEngine(), datafusion.DatafusionEngine()):
        for tables in (remote[:1], remote):
            engine.tables(tables)
        store.reset()
        assert ((2, 1, 2), (2, None, 2)) == engine.answer("", QUESTION).rows
        assert store.counts().requests > 0


def test_a_partition_column_that_files_contain_too_is_read_once(tmp_path):
    datafusion = pytest.importorskip("benchmarks.contest.datafusion_engine")
    file = tmp_path / "lake" / "p" / "day=1" / "a.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(pa.table({"k": pa.array([7], pa.int32()), "day": pa.array([1], pa.int32())}), file)
    for engine in (DuckdbEngine(), datafusion.DatafusionEngine()):
        engine.tables([Place(str(tmp_path)).table("lake", "p", "delta")])
        assert ((7, 1),) == engine.answer("", "SELECT k, day FROM p WHERE day = 1").rows


def test_a_query_that_datafusion_cannot_plan_is_unsupported(lake):
    datafusion = pytest.importorskip("benchmarks.contest.datafusion_engine")
    engine = datafusion.DatafusionEngine()
    engine.tables(lake)
    with pytest.raises(datafusion.Unsupported, match="no_such_column"):
        engine.answer("", "SELECT no_such_column FROM t")


@needs_account
def test_duckdb_does_not_cache_files_between_runs(tmp_path):
    (tmp_path / "lake" / "t").mkdir(parents=True)
    file = tmp_path / "lake" / "t" / "a.parquet"
    pq.write_table(pa.table({"k": pa.array([hash(str(at)) for at in range(200_000)])}), file)
    engine = DuckdbEngine()
    engine.tables([Place(str(tmp_path)).table("lake", "t", "parquet")])
    for _ in range(2):
        before = process_tree.usage(os.getpid()).bytes_read
        engine.answer("", "SELECT max(k) + min(k % 10) FROM t")
        assert process_tree.usage(os.getpid()).bytes_read - before > file.stat().st_size // 2 > MIB // 2


# The judge of rows.


@pytest.fixture
def judged(tmp_path):
    pq.write_table(pa.table({"k": pa.array([1, 2, 3], pa.int32())}), tmp_path / "t.parquet")
    source = TpcdsFiles(1.0, {"scale": 1.0}, {"t": tmp_path / "t.parquet"})

    def verdict(text, types, rows, **how):
        with judge(tmp_path / "judge", source, ["q1"]) as found:
            return found.verdict(Query(1, text), "stock", Answer(types, rows), **{"strict": True, **how})

    return verdict


def test_verdict_is_the_same_with_cached_right_answers(judged):
    for _ in range(2):
        assert "" == judged("SELECT k FROM t ORDER BY k", ("int",), ((3,), (1,), (2,)))
        assert "1 rows of stock alone: (4,); 1 of DuckDB alone: (3,)" == judged(
            "SELECT k FROM t ORDER BY k", ("int",), ((4,), (1,), (2,))
        )


def test_right_answers_are_those_of_the_text_of_duckdb_as_it_is_now(tmp_path):
    pq.write_table(pa.table({"k": pa.array([1], pa.int32())}), tmp_path / "t.parquet")
    source = TpcdsFiles(1.0, {"scale": 1.0}, {"t": tmp_path / "t.parquet"})
    for text, value in (("SELECT 7 FROM t", 7), ("SELECT 8 FROM t", 8)):
        with judge(tmp_path / "judge", source, ["e1"]) as found:
            query = Query(1, "no SQL of DuckDB", "e1", text)
            assert "" == found.verdict(query, "stock", Answer(("int",), ((value,),)), strict=True)


def test_other_rows_of_a_tie_are_not_wrong(judged):
    text = "SELECT k FROM t ORDER BY k > 0 LIMIT 1"
    assert {"", TIES} == {judged(text, ("int",), ((k,),)) for k in (1, 2, 3)}


def test_a_wrong_row_is_found_in_spite_of_ties_at_a_limit(judged):
    assert "that the whole answer has not" in judged("SELECT k FROM t LIMIT 1", ("int",), ((4,),))


@pytest.mark.parametrize(
    ("first", "second", "pairs"),
    [
        ("bigint", "DECIMAL(38,0)", {(1, 2): False}),
        ("decimal(38,2)", "DECIMAL(38,2)", {}),
        ("decimal(11,6)", "DOUBLE", {("0.333333", 1 / 3): True, ("0.333335", 1 / 3): False}),
        ("decimal(11,2)", "DECIMAL(11,6)", {("0.33", "0.333333"): True, ("0.35", "0.333333"): False}),
        ("double", "DOUBLE", {(0.1 + 0.2, 0.3): True, (0.3000001, 0.3): False, (None, 0.3): False, (None, None): True}),
        ("bigint", "DOUBLE", {(3, 3.0): True, (3, 3.1): False}),
        ("string", "VARCHAR", {}),
    ],
    ids=str,
)
def test_the_lenient_rule_tolerates_only_last_digits_of_averages(first, second, pairs):
    same = lenient_rule(first, second)
    if same is None:
        assert True not in pairs.values()
    else:
        assert pairs == {pair: same(*pair) for pair in pairs}


# A contest.


def test_each_contender_has_a_row_with_its_answer_or_the_reason_for_none(stand_ins, lake):
    settings = Settings(1.0, ("delta",), ("q1",), ENGINED, runs=2)
    known = Contest(settings, stand_ins, RightIfAsked(), {"delta": lake}, {}, HERE)
    rows = {row["contender"]: row for row in known.rows("delta", Query(1, "sleep 0.01"))}
    assert list(ENGINED) == list(rows)
    assert ["", "", "", TIES, "datafusion is wrong"] == [row["differs"] for row in rows.values()]
    assert [True, True, True, True, False] == [row["rows_equal"] for row in rows.values()]
    assert all(row["seconds_least"] <= row["seconds"] <= row["seconds_most"] for row in rows.values())
    assert all(row["peak_bytes"] > MIB for row in rows.values())
    failed = known.rows("delta", Query(2, "refuse"))
    assert {"unsupported: no such function"} == {row["failed"] for row in failed}


def test_the_limit_runs_once_and_has_only_bytes(stand_ins, lake):
    settings = Settings(1.0, ("delta",), ("q1",), ("stock", LIMIT), runs=2, conf=("a=b",))
    known = Contest(settings, stand_ins, RightIfAsked(), {"delta": lake}, {}, HERE)
    head = {"scale": 1.0, "door": "session", "layout": "delta", "query": "q1", "conf": "a=b", "contender": LIMIT}
    assert {**head, "bytes": 4096} == known.rows("delta", Query(1, "limited 4096"))[1]
    assert {**head, "failed": "unsupported: no such function"} == known.rows("delta", Query(1, "refuse"))[1]


@dataclass(frozen=True)
class AsksMeanwhile:
    """A judge that itself reads from the store."""

    site: Site
    path: str

    def verdict(self, query, contender, answer, *, strict):  # noqa: ARG002 - the protocol of a judge
        with self.site.place.filesystem.open_input_stream(self.path) as file:
            file.read()
        return ""


def test_bytes_and_requests_on_an_object_store_are_counted_for_each_contender(store, lake, monkeypatch, tmp_path):
    (tmp_path / "one" / "t").mkdir(parents=True)
    (tmp_path / "one" / "t" / "file").write_bytes(bytes(1000))
    store.upload(tmp_path / "one", tmp_path.name)
    path = f"{store.bucket}/{tmp_path.name}/t/file"
    there = Site(Place(store.bucket, S3A, store.filesystem()), store)
    monkeypatch.setattr(pool, "ENGINES", dict.fromkeys(CONTENDERS, STAND_IN))
    settings = Settings(1.0, ("delta",), ("q1",), contenders=("pruned", "stock"), runs=2, place="s3")
    with pool.pool(tmp_path, 20.0, Sessions(environment=there.environment)) as workers:
        known = Contest(settings, workers, AsksMeanwhile(there, path), {"delta": lake}, {}, there)
        rows = known.rows("delta", Query(1, f"fetch {path} {path}"))
    # One HEAD and one GET for each path.
    assert [(2000, 4)] * 2 == [(each["bytes"], each["requests"]) for each in rows]
    assert [("s3", 0.02, 1e8)] * 2 == [(each["place"], each["latency"], each["bytes_per_second"]) for each in rows]


def test_contests_at_other_places_or_latencies_have_other_names():
    near, far = (Settings(1.0, place="s3", shape=Shape(latency)) for latency in (0.0, 0.02))
    assert 3 == len({each.name for each in (Settings(1.0), near, far)})
    assert ["contest-sf1", "contest-s3-sf1"] == [each.results for each in (Settings(1.0), near)]


def test_a_missing_store_is_reported_in_one_line_before_tables_are_made(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(gateway, "_USUAL_GO", "")
    with pytest.raises(typer.Exit):
        main(place="s3", tables=tmp_path / "tables", results=tmp_path / "results")
    told = capsys.readouterr().err.splitlines()
    assert 1 == len(told)
    assert told[0].startswith("An object store needs Go once")
    assert [tmp_path / "results"] == [*tmp_path.iterdir()]


def test_a_local_site_needs_no_upload_and_no_settings(tmp_path):
    with site("local", tmp_path) as here:
        here.bring(tmp_path / "nothing", "nothing")
        here.reshape(Shape(1.0))
        assert (None, (), {}, str(tmp_path)) == (here.reset(), here.conf, here.environment, here.place.root)


def test_contenders_take_turns(stand_ins, lake, monkeypatch):
    asked = []
    outcome: contest.Run | contest.Failed = contest.Failed("no")

    def run(*arguments):
        asked.append(arguments[-1])
        return outcome

    monkeypatch.setattr(Contest, "_run", run)
    settings = Settings(1.0, contenders=("pruned", "stock"), runs=3)
    Contest(settings, stand_ins, RightIfAsked(), {"delta": lake}, {}, HERE).rows("delta", Query(1, ""))
    assert ["pruned", "stock"] == asked, "who failed once is not asked again"
    outcome = contest.Run(1.0, Usage(1, 1.0, 1), None, 1, "")
    asked.clear()
    Contest(settings, stand_ins, RightIfAsked(), {"delta": lake}, {}, HERE).rows("delta", Query(1, ""))
    assert ["pruned", "stock"] * 4 == asked


def test_an_interrupted_contest_is_resumed(monkeypatch, tmp_path):
    asked = []

    class Interrupted:
        def __init__(self):
            self.queries = {f"q{number}": Query(number, "") for number in (1, 2)}

        def rows(self, layout, query):
            asked.append((layout, query.name))
            if len(asked) == 3:
                raise KeyboardInterrupt
            return [{"layout": layout, "query": query.name, "contender": "stock", "seconds": 1.0}]

    @contextmanager
    def stand_in(*_):
        yield Interrupted()

    monkeypatch.setattr(contest, "_contest", stand_in)
    monkeypatch.setattr(contest, "resumed", partial(resumed, folder=tmp_path))
    settings = Settings(1.0, ("delta", "parquet"), ("q1", "q2"))
    with pytest.raises(KeyboardInterrupt):
        contest.run(settings)
    assert 4 == len(contest.run(settings))
    pairs = [(layout, query) for layout in ("delta", "parquet") for query in ("q1", "q2")]
    assert [*pairs[:3], *pairs[2:]] == asked


def row(contender, query="q3", layout="delta", scale=1.0, **more):
    found = {"seconds": 1.0, "cpu_seconds": 1.0, "bytes": MIB, "peak_bytes": MIB, "rows": 4, "rows_equal": True}
    return {"scale": scale, "layout": layout, "query": query, "contender": contender, **found, "differs": "", **more}


def failed(contender, why, **more):
    return {"scale": 1.0, "layout": "delta", "query": "q3", "contender": contender, "failed": why, **more}


MEASURED = with_ratios(
    [
        row("pruned", seconds=0.5),
        row("stock", bytes=4 * MIB),
        row("duckdb", bytes=2 * MIB),
        failed("datafusion", "unsupported: a | b"),
        {"scale": 1.0, "layout": "delta", "query": "q3", "contender": LIMIT, "bytes": MIB // 4},
        row("pruned", "q5", seconds=2.0),
        row("stock", "q5", rows_equal=False),
        failed("duckdb", "ended", query="q5"),
    ]
)


def test_ratios_compare_the_same_query_and_are_absent_without_an_answer():
    names = ("seconds_to_stock", "read_to_stock", "read_to_duckdb", "read_to_datafusion", "read_to_limit")
    assert [0.5, 0.25, 0.5, None, 4.0] == [MEASURED[0][name] for name in names]
    assert [2.0, 1.0, None, None, None] == [MEASURED[5][name] for name in names]
    assert {None} == {MEASURED[3][name] for name in names}


def test_a_repeated_measurement_replaces_its_row_and_other_rows_stay_in_order():
    before = [row("stock", "q10"), row("stock", "q3"), row("stock", "q3", "parquet")]
    found = merged(TPCDS, before, [row("pruned", "q10", seconds=3.0), row("stock", "q10", seconds=2.0)])
    assert [("q3", "stock"), ("q10", "pruned"), ("q10", "stock"), ("q3", "stock")] == [
        (each["query"], each["contender"]) for each in found
    ]
    assert 1.5 == found[1]["seconds_to_stock"]


def test_rows_of_earlier_runs_keep_their_commit(tmp_path):
    path = tmp_path / "contest-sf1.json"
    head = {"code": "second", "machine": {"load_before": 0.5}}
    stays = {**row("duckdb"), "code": "first", "load_before": 0.1}
    path.write_text(json.dumps({**head, "rows": [stays, row("stock"), row("stock", "q5")]}))
    found = merged(TPCDS, recorded(path), [row("stock"), row("pruned", "q5")])
    assert [("stock", None, None), ("duckdb", "first", 0.1), ("pruned", None, None), ("stock", "second", 0.5)] == [
        (each["contender"], each.get("code"), each.get("load_before")) for each in found
    ]
    path.write_text(json.dumps({"code": "third", "rows": found}))
    text = page.page(page.recorded(tmp_path))
    assert "by version `first`: q3 (duckdb).\n\nMeasured in another run, by version `second`: q5 (stock).\n" in text
    assert "\n\nAll others were measured by version `third`.\n\n| query |" in text
    assert "version" not in page.page({"contest-sf1": MEASURED})


def test_queries_are_chosen_by_name_or_number_and_unknown_ones_are_refused():
    assert TPCDS.selective == asked_queries(TPCDS, [])
    assert ("q3", "q20") == asked_queries(TPCDS, ["q20", "3"])
    assert 99 == len(asked_queries(TPCDS, ["all"]))
    with pytest.raises(typer.BadParameter, match="there is no query 'q100'"):
        asked_queries(TPCDS, ["q100"])
    with pytest.raises(typer.BadParameter, match="there is no layout 'iceberg'; expected one of delta, parquet"):
        _chosen("layout", ["iceberg"], ("delta", "parquet"))


def test_a_query_knows_the_tables_that_it_reads():
    query = Query(1, "SELECT * FROM store_sales, Item")
    assert [True, True, False] == [query.names(table) for table in ("store_sales", "item", "store")]


def test_contenders_of_one_engine_share_a_process_unless_apart_is_set(monkeypatch, tmp_path, lake):
    monkeypatch.setattr(pool, "ENGINES", {"pruned": STAND_IN, "stock": STAND_IN})
    for apart, count in ((False, 1), (True, 2)):
        with pool.pool(tmp_path, 20.0, Sessions(apart=apart)) as workers:
            assert count == len({workers.worker(name, "delta", lake).process for name in pool.ENGINES})


def test_labelled_results_have_a_file_of_their_own_and_no_chart_of_growth():
    assert "contest-auto-s3-sf10" == Settings(10.0, place="s3", label="auto").results
    assert "contest-once-prune-sf10" == Settings(10.0, once=True, door="prune").results
    assert Settings(1.0).name != Settings(1.0, apart=True).name
    labelled = [{**each, "label": "auto", "apart": True} for each in MEASURED if "failed" not in each]
    text = page.page({"contest-sf1": MEASURED, "contest-auto-sf1": labelled})
    assert "## Scale 1, auto\n\nEach contender had a process of its own." in text
    assert "Growth" not in text


def test_rows_of_a_contest_have_its_label_and_the_flag_apart(stand_ins, lake):
    settings = Settings(1.0, ("delta",), ("q1",), ("stock",), runs=2, label="auto", apart=True)
    known = Contest(settings, stand_ins, RightIfAsked(), {"delta": lake}, {}, HERE)
    (found,) = known.rows("delta", Query(1, "names"))
    assert ("auto", True) == (found["label"], found["apart"])


# The page and its charts.


def test_the_page_shows_ratios_wrong_rows_and_missing_answers():
    text = page.page({"contest-sf1": MEASURED})
    # 2 of 5 MiB, 2.5 of 2 seconds.
    assert "| delta | 2 | 0.50 | 0.50 | - | - | 1.00 | 60.0% | -25.0% | q5: 2.00 | differ: stock q5 |" in text
    assert "| q3 | limit | 0.25 | - | - | - | - |\n" in text
    assert "| q3 | datafusion | - | - | - | - | unsupported: a \\| b |" in text
    assert "| q5 | stock | 1.00 | 1.000 | 1.00 | 1 | 4 DIFFER |" in text
    assert "Growth" not in text
    assert "Both Sparks" not in text
    assert "Both Sparks ran with `a=b`.\n" in page.page({"contest-sf1": [{**each, "conf": "a=b"} for each in MEASURED]})


def test_the_page_names_workload_and_mode_and_draws_growth_of_tpcds_alone():
    once = [{"workload": "ssb", "once": True, **each} for each in MEASURED if "failed" not in each]
    text = page.page({"contest-sf1": MEASURED, "contest-ssb-once-sf1": once})
    assert "## Ssb, scale 1, each query once\n\nEach query ran once in the session of each contender" in text
    assert "Growth" not in text


def test_the_page_summarises_selective_queries_separately():
    others = with_ratios([row("pruned", "q20", seconds=0.25), row("stock", "q20"), *MEASURED])
    text = page.page({"contest-sf1": others})
    assert "| delta | 1 selective | 1.00 | - | - | - | 4.00 | 0.0% | 75.0% | q20: 0.25 | equal |\n| delta | 3 |" in text
    assert "selective |" not in page.page({"contest-sf1": with_ratios(others[:2])})


def test_a_mean_over_some_queries_is_not_shown_for_all():
    some = [row("duckdb", "q20", bytes=2 * MIB), row(LIMIT, "q20", bytes=MIB // 4)]
    text = page.page({"contest-sf1": with_ratios([row("pruned", "q20"), *some, row("pruned", "q3")])})
    assert "| delta | 1 selective | - | 0.50 | - | 4.00 |" in text
    assert "| delta | 2 | - | - | - | - |" in text


def test_the_page_shows_latency_bandwidth_and_requests_of_a_store():
    far = {"place": "s3", "latency": 0.02, "bytes_per_second": 1e8}
    rows = [{**each, **far, "requests": 1234} for each in MEASURED if "failed" not in each]
    rows.append(failed("datafusion", "no", **far))
    text = page.page({"contest-sf1": MEASURED, "contest-s3-sf1": rows})
    assert "## Scale 1\n" in text
    here, there = text.split("## Scale 1, object store\n")
    assert "requests" not in here
    assert "The store adds 20 ms to each request and serves 100 MB/s in all." in there
    assert "| q3 | stock | 4.00 | 1.000 | 1.00 | 1 | 4 = | 1,234 |" in there
    assert "| q3 | datafusion | - | - | - | - | no | - |" in there
    assert "Growth" not in text
    uncapped = [{name: value for name, value in each.items() if name != "bytes_per_second"} for each in rows]
    assert "adds 20 ms to each request. Bytes" in page.page({"contest-s3-sf1": uncapped})


def test_the_page_of_the_contest_matches_the_recorded_results():
    path = page.RESULTS / "contest.md"
    written = path.read_text(encoding="utf-8") if path.exists() else None
    found = page.recorded()
    assert written == (page.page(found) if found else None), "run `make readme`"
    for name in re.findall(r"\((contest-[\w.]+\.svg)\)", written or ""):
        assert (page.RESULTS / name).exists()


def bars_of(svg, colour):
    """The filled shapes of one colour: its bars, and its patch in the legend."""
    root = ET.fromstring(svg)  # noqa: S314 - made here
    return [
        each for each in root.iter("{http://www.w3.org/2000/svg}path") if f"fill: {colour}" in each.get("style", "")
    ]


def test_a_chart_has_a_bar_for_each_answer_and_is_reproducible():
    pytest.importorskip("matplotlib")
    svg = bars(MEASURED)
    assert svg == bars(MEASURED)
    # Bars for bytes and for seconds, and one patch in the legend.
    # The limit has bytes only.
    counts = {"#1b7837": 2 * 2 + 1, "#d6604d": 2 * 2 + 1, "#e0b000": 2 * 1 + 1, "#4393c3": 1, "#bababa": 1 + 1}
    assert counts == {colour: len(bars_of(svg, colour)) for colour in counts}
    for text in ("pruned Spark", "DataFusion", "delta: MiB read", "q5"):
        assert f">{text}<" in svg


def test_charts_of_many_queries_show_only_selective_ones():
    pytest.importorskip("matplotlib")
    many = {"contest-sf1": [row("pruned", f"q{number}") for number in range(1, 31)]}
    few = {"contest-sf1": many["contest-sf1"][:20]}
    found, all_of_few = (page.pictures(each)["contest-sf1.svg"] for each in (many, few))
    assert [">q10<", ">q20<"] == [each for each in (">q9<", ">q10<", ">q11<", ">q20<", ">q21<") if each in found]
    assert ">q11<" in all_of_few
    assert "![Bytes and seconds of each selective query](contest-sf1.svg)" in page.page(many)
    assert "![Bytes and seconds of each query](contest-sf1.svg)" in page.page(few)
    unnamed = [each for each in many["contest-sf1"] if each["query"] not in TPCDS.selective]
    assert ">q11<" in page.pictures({"contest-sf1": unnamed})["contest-sf1.svg"]


def test_growth_covers_queries_that_all_contenders_answered_at_all_scales():
    pytest.importorskip("matplotlib")
    rows = [row(name, scale=scale) for scale in (0.1, 1.0) for name in ("pruned", "stock")]
    svg = growth([*rows, row("pruned", "q5"), failed("stock", "no", query="q5")])
    assert ">1 queries: MiB read<" in svg
    assert {"#1b7837", "#d6604d"} == {each for each in ("#1b7837", "#d6604d", "#e0b000") if each in svg}


def test_charts_are_written_beside_the_page(tmp_path):
    pytest.importorskip("matplotlib")
    far = {"scale": 0.1, "place": "s3", "latency": 0.0}
    for name, more in (("sf1", {}), ("sf0.1", {"scale": 0.1}), ("s3-sf0.1", far)):
        limit = {**row(LIMIT, **more), "seconds": None}
        rows = with_ratios([row("pruned", **more), row("stock", seconds=2.0, **more), limit])
        (tmp_path / f"contest-{name}.json").write_text(json.dumps({"rows": rows}))
    page.main(tmp_path)
    named = re.findall(r"\(([\w.-]+\.svg)\)", (tmp_path / "contest.md").read_text())
    assert ["contest-sf0.1.svg", "contest-sf1.svg", "contest-s3-sf0.1.svg", "contest-growth.svg"] == named
    assert {*named} == {each.name for each in tmp_path.glob("*.svg")}
    # The chart of growth ignores results on an object store.
    here = {name: rows for name, rows in page.recorded(tmp_path).items() if "s3" not in name}
    assert (tmp_path / "contest-growth.svg").read_text() == page.pictures(here)["contest-growth.svg"]


# A whole contest with the real engines.


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.slow
@needs_account
def test_all_contenders_answer_two_queries_of_tpcds_with_the_right_rows(spark, tmp_path, monkeypatch):
    from sample_data.layouts import LAYOUTS, write_layout  # noqa: PLC0415 - loads Spark
    from sample_data.tpcds import TABLES, generate  # noqa: PLC0415

    pytest.importorskip("datafusion")
    chosen = [each for each in TPCDS.queries() if each.name in {"q20", "q96"}]
    named = [table for table in TABLES if any(each.names(table) for each in chosen)]
    # Uses the session of the tests, so that no other session is started to write tables.
    write_layout(spark, LAYOUTS["delta"], generate(0.05, tmp_path, named), tmp_path)
    monkeypatch.setattr(contest, "resumed", partial(resumed, folder=tmp_path / "unfinished"))
    rows = contest.run(Settings(0.05, ("delta",), ("q20", "q96"), CONTENDERS, runs=1), tmp_path)
    assert [(query, name) for query in ("q20", "q96") for name in CONTENDERS] == [
        (each["query"], each["contender"]) for each in rows
    ]
    assert [] == [each for each in rows if each.get("failed") or each.get("rows_equal") is False]
    measured = [each for each in rows if each["contender"] != LIMIT]
    assert all(0 < each["bytes"] < 64 * MIB and each["peak_bytes"] > 16 * MIB for each in measured)
    # No reader of whole row groups reads less, and stock Spark reads all of them.
    limits = {each["query"]: each["bytes"] for each in rows if each["contender"] == LIMIT}
    assert 0 < limits["q20"]
    assert all(limits[each["query"]] < each["bytes"] for each in rows if each["contender"] in {"pruned", "stock"})
