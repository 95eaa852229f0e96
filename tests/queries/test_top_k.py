"""`prune()` of ORDER BY ... LIMIT: scans read only files that may have the first rows, and the result is unchanged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connectors.pipeline.plan_metadata import PlanMetadata
from pruning import PruningOptions, explain, report
from sample_data.rows import Rows, ordered
from tests.queries import star
from tests.queries.star import files as read_files
from tests.unchanged import is_unchanged

pytestmark = pytest.mark.spark

TOO_FEW = "TOO_FEW_FIRST_ROWS"
# Metadata proves the first rows.
METADATA = "METADATA"

OPTIONS = star.OPTIONS

FILES, ROWS_PER_FILE = 16, 500
# Every column is clustered by `n`: file `f`, from 0, has n from 500 f. `gap` is NULL once in file 2 and in all of file
# 3; `real` is NaN only in file 0; `zero` begins with both zeros.
COLUMNS = (
    "id AS n",
    "cast(id div 10 AS int) AS day",
    "CASE WHEN id div 500 = 3 OR id = 1003 THEN NULL ELSE cast(id AS int) END AS gap",
    "CASE WHEN id = 7 THEN double('NaN') ELSE double(id) END AS real",
    "CASE WHEN id = 0 THEN 0.0D WHEN id = 3 THEN -0.0D ELSE double(id div 2) END AS zero",
    "concat(repeat('long', 10), lpad(id, 5, '0')) AS text",
    "CAST(timestamp_micros(1700000000000000 + id) AS timestamp_ntz) AS moment",
    "cast(id / 4 AS decimal(30, 2)) AS price",
    "cast(id % 50 AS int) AS item",
    "id % 3 = 0 AS flag",
)


@pytest.fixture(scope="module", params=["delta", "parquet"])
def facts(spark, ways, request, tmp_path_factory) -> str:
    """The prefix of the views of a table of sixteen files and the dimension `items`."""
    folder, format_ = tmp_path_factory.mktemp(request.param), request.param
    stored = spark.range(0, FILES * ROWS_PER_FILE, 1, FILES).selectExpr(*COLUMNS)
    items = spark.range(0, 50, 1, 1).selectExpr("cast(id AS int) AS item", "cast(id % 7 AS int) AS kind")
    ways.stored(f"top_{format_}_facts", stored, str(folder / "facts"), format_)
    ways.stored(f"top_{format_}_items", items, str(folder / "items"), format_)
    return f"top_{format_}_"


@pytest.fixture
def run_top_k(ways, facts):
    """The planned files of the facts and the outcome of each top-k, after the query gave equal rows in three ways."""

    def run(query: str, options=OPTIONS, *, by_duck: bool = True):
        text = query.format(facts=f"{facts}facts", items=f"{facts}items")
        df, result = ways.agreed(text, options, by_duck=by_duck and "zero" not in query)
        # `agreed` compares rows without their order.
        assert ordered(df.collect()) == ordered(result.collect())
        found = read_files(result).get(f"{facts}facts", read_files(result).get("facts"))
        read, planned, total = found or (None, None, None)
        assert read is None or (read <= planned and total == FILES)
        tops = [METADATA if each.reason is None else each.reason.code.name for each in explain(result).tops]
        return planned, tops

    return run


@pytest.mark.parametrize(
    ("order", "kept"),
    [
        pytest.param("n DESC LIMIT 5", 1, id="newest"),
        pytest.param("n LIMIT 500", 1, id="all-of-a-file"),
        pytest.param("n LIMIT 501", 2, id="one-more"),
        pytest.param("n LIMIT 5 OFFSET 496", 2, id="offset"),
        pytest.param("day DESC NULLS FIRST, n LIMIT 5", 1, id="ties"),
        pytest.param("gap DESC NULLS LAST, n LIMIT 5", 1, id="nulls-last"),
        pytest.param("gap NULLS LAST, n LIMIT 1499", 3, id="nulls-last-do-not-count"),
        pytest.param("gap NULLS LAST, n LIMIT 1500", 4, id="nulls-last-one-more"),
        pytest.param("gap NULLS FIRST, n LIMIT 5", 3, id="nulls-first"),
        pytest.param("gap DESC NULLS FIRST, n LIMIT 700", 4, id="nulls-first-and-others"),
        pytest.param("text DESC, n LIMIT 3", None, id="cut-text"),
        pytest.param("moment DESC, n LIMIT 3", None, id="cut-moment"),
        pytest.param("price DESC, n LIMIT 3", 1, id="long-decimal"),
    ],
)
# Failure catalogue 1, 118.
def test_metadata_proves_the_first_rows(run_top_k, order, kept):
    found, tops = run_top_k(f"SELECT * FROM {{facts}} ORDER BY {order}")
    if kept is not None:
        assert (kept, [METADATA]) == (found, tops)
    else:
        # Truncated bounds do not distinguish the files.
        assert tops in ([METADATA], ["UNCLUSTERED"], ["NO_READER_FILTER"])


@pytest.mark.parametrize(
    ("order", "kept"),
    [
        pytest.param("n + 7 DESC LIMIT 5", 1, id="sum"),
        pytest.param("n DIV 100, n LIMIT 5", 1, id="quotient"),
        pytest.param("n DIV 1000 DESC, n LIMIT 5", 2, id="quotient of two files"),
        pytest.param("gap + 1 NULLS LAST, n LIMIT 1500", 4, id="sum with NULL last"),
        pytest.param("gap + 1 DESC NULLS FIRST, n LIMIT 1", 3, id="sum with NULL first"),
        pytest.param("CAST(day AS bigint) + 1 DESC, n LIMIT 3", 1, id="above a cast"),
        # All lie in one second, and in days of two zones.
        pytest.param("unix_timestamp(CAST(moment AS timestamp)), n LIMIT 5", FILES, id="seconds"),
        pytest.param("to_date(moment) DESC, n LIMIT 5", FILES, id="days"),
    ],
)
def test_metadata_proves_the_first_rows_of_functions(run_top_k, order, kept):
    found, _ = run_top_k(f"SELECT * FROM {{facts}} ORDER BY {order}", by_duck=False)
    assert (kept if kept < FILES else None) == found


@pytest.mark.parametrize(
    ("query", "kept", "how"),
    [
        pytest.param("{facts} f WHERE item = 7 ORDER BY n DESC LIMIT 5", None, TOO_FEW, id="filter"),
        pytest.param("{facts} f WHERE n < 7700 ORDER BY n DESC LIMIT 5", None, TOO_FEW, id="filter-of-the-key"),
        pytest.param("{facts} f WHERE item = 7 ORDER BY n DESC LIMIT 21", None, TOO_FEW, id="not-enough"),
        pytest.param("{facts} f ORDER BY zero, n DESC LIMIT 3", None, TOO_FEW, id="both-zeros"),
        pytest.param("{facts} f ORDER BY real DESC, n LIMIT 3", None, "NAN_KEYS", id="nan-comes-first"),
        pytest.param("{facts} f ORDER BY flag, n LIMIT 3", None, "UNSELECTIVE", id="unclustered"),
        pytest.param("{facts} f ORDER BY abs(n), n LIMIT 3", None, "COMPUTED", id="computed"),
        pytest.param("{facts} f ORDER BY n LIMIT 9999", None, TOO_FEW, id="more-than-there-are"),
        pytest.param(
            "(SELECT day, count(*) c, sum(real) FROM {facts} GROUP BY day) g ORDER BY day DESC LIMIT 20",
            None,
            TOO_FEW,
        ),
        pytest.param("(SELECT max(n) m, item FROM {facts} GROUP BY item) g ORDER BY m LIMIT 5", *(None, "NOT_GROUPED")),
        pytest.param(
            "(SELECT *, rank() OVER (ORDER BY day DESC) r FROM {facts}) w WHERE r <= 4 ORDER BY n", *(1, METADATA)
        ),
        pytest.param(
            "(SELECT *, row_number() OVER (ORDER BY n) r FROM {facts}) w WHERE r <= 4 ORDER BY n", *(1, METADATA)
        ),
        pytest.param(
            "(SELECT CAST(day AS decimal(12, 1)) k, n FROM {facts}) c ORDER BY k DESC, n LIMIT 4",
            None,
            TOO_FEW,
        ),
        # The query joins the four rows of the build, which has read the facts.
        pytest.param(
            "{items} WHERE item IN (SELECT item FROM {facts} ORDER BY n DESC LIMIT 4) ORDER BY item", *(None, METADATA)
        ),
    ],
)
def test_top_k_without_proof_filters_no_scan(run_top_k, query, kept, how):
    found, tops = run_top_k(f"SELECT * FROM {query}", OPTIONS)
    assert (kept, how) == (found, next(iter(tops)))


def test_nan_sorts_after_all_numbers(run_top_k):
    found, _ = run_top_k("SELECT * FROM {facts} f ORDER BY real, n LIMIT 3")
    # Delta has no bounds for a file with NaN.
    assert found in (1, None)


@pytest.mark.parametrize(
    ("join", "kept", "how"),
    [
        pytest.param("{facts} f JOIN {items} i ON f.item = i.item WHERE kind = 2", None, TOO_FEW, id="inner"),
        pytest.param("{facts} f LEFT JOIN {items} i ON f.item = i.item AND kind = 2", 1, METADATA, id="left"),
        pytest.param("{facts} f LEFT ANTI JOIN {items} i ON f.item = i.item AND kind < 6", None, TOO_FEW, id="anti"),
        pytest.param("{facts} f FULL JOIN {items} i ON f.item = i.item", None, "OUTER_SIDE", id="full"),
        pytest.param(
            "(SELECT * FROM {facts} TABLESAMPLE (50 PERCENT) REPEATABLE (3)) f", *(None, "SAMPLED"), id="sample"
        ),
        pytest.param("(SELECT * FROM {facts} WHERE rand(3) < 0.9) f", None, "NONDETERMINISTIC", id="random"),
        pytest.param(
            "{facts} f JOIN (SELECT item FROM {items} ORDER BY kind, item LIMIT 40) i ON f.item = i.item",
            None,
            TOO_FEW,
            id="unrepeatable",
        ),
    ],
)
# Failure catalogue 46: rows of one run of an unrepeatable operator tell nothing of the next run.
def test_joins_between_a_sort_and_its_scan(run_top_k, join, kept, how):
    found, tops = run_top_k(f"SELECT f.* FROM {join} ORDER BY f.n DESC LIMIT 5", by_duck=False)
    assert (kept, how) == (found if how == METADATA else None, tops[0])


def test_deleted_rows_are_not_first_rows(spark, ways, tmp_path):
    """Failure catalogue 118: the row count of a file includes rows marked by its deletion vector."""
    folder = str(tmp_path / "t")
    properties = {"delta.enableDeletionVectors": "true"}
    spark.range(0, 4000, 1, 8).write.format("delta").options(**properties).save(folder)
    spark.sql(f"DELETE FROM delta.`{folder}` WHERE id BETWEEN 3510 AND 3998")
    ways.view("thinned", spark.read.format("delta").load(folder))
    for rows, kept in ((11, 1), (12, 2)):
        _, result = ways.agreed(f"SELECT * FROM thinned ORDER BY id DESC LIMIT {rows}", OPTIONS)
        assert [(kept, 8)] == [(each.files_kept, each.files_total) for each in explain(result).tables]


def test_explanation_and_report_name_the_top_k(spark, facts, pruned_frame):
    df = spark.sql(f"SELECT * FROM {facts}facts ORDER BY n DESC, day LIMIT 5")
    result = pruned_frame(df, options=OPTIONS)
    assert ordered(df.collect()) == ordered(result.collect())
    name = "top 5 by facts.n descending"
    assert f"n by {name}, by the statistics of its files" in str(explain(result))
    assert "top 5 by" in str(report(result))
    (line,) = explain(result).to_dict()["tops"]
    assert (name, "facts", "n", None) == (line["top"], line["scan"], line["column"], line["reason"])
    (filter_,) = explain(result).tables[0].filters
    assert (name, "first rows") == (filter_.source, filter_.kind)


def test_dry_run_explains_the_top_k(spark, facts):
    orders = {"n DESC": METADATA, "flag": METADATA, "abs(n)": "COMPUTED"}
    for order, how in orders.items():
        df = spark.sql(f"SELECT * FROM {facts}facts ORDER BY {order} LIMIT 5")
        (line,) = explain(df, options=OPTIONS).tops
        assert how == (METADATA if line.reason is None else line.reason.code.name)
        text = str(explain(df, options=OPTIONS))
        assert "top 5 by" in text
        assert (how == METADATA) == (line.benefit is not None)
        if line.benefit is not None:
            assert f"by the statistics of its files ({line.benefit})" in " ".join(text.split())
        assert (how == METADATA) == ("nothing was pruned" not in text)


def test_disabled_or_small_top_k_is_unchanged(spark, facts, pruned_frame):
    df = spark.sql(f"SELECT * FROM {facts}facts ORDER BY n LIMIT 5")
    for options in (replace(OPTIONS, top_k=False), PruningOptions()):
        result = pruned_frame(df, options=options)
        assert ordered(df.collect()) == ordered(result.collect())
        assert is_unchanged(df, result)
    assert () == explain(df, options=replace(OPTIONS, top_k=False)).tops
    assert ["NOT_WORTH"] == [each.reason.code.name for each in explain(df, options=PruningOptions()).tops]


def test_failed_statistics_give_no_top_k_filter(spark, facts, pruned_frame, monkeypatch, caplog):
    df = spark.sql(f"SELECT * FROM {facts}facts ORDER BY n LIMIT 5")

    def fails(*_) -> None:
        msg = "secret"
        raise ValueError(msg)

    monkeypatch.setattr(PlanMetadata, "_described", fails)
    result = pruned_frame(df, options=OPTIONS)
    assert ordered(df.collect()) == ordered(result.collect())
    assert is_unchanged(df, result)
    assert ["STATISTICS_FAILED"] == [each.reason.code.name for each in explain(result).tops]
    assert "(ValueError)" in caplog.text
    assert "secret" not in caplog.text


def test_ignored_missing_files_prove_no_first_rows(spark, facts, pruned_frame, conf):
    conf("spark.sql.files.ignoreMissingFiles", "true")
    df = spark.sql(f"SELECT * FROM {facts}facts ORDER BY n LIMIT 5")
    result = pruned_frame(df, options=OPTIONS)
    assert ordered(df.collect()) == ordered(result.collect())
    assert explain(result).tops
    assert all(each.reason and not each.benefit for each in explain(result).tops)


def test_limit_without_a_sort_stops_early(spark, facts, pruned_frame):
    """Spark runs one partition after another, and Delta lists only as many files as the limit needs."""
    df = spark.sql(f"SELECT * FROM {facts}facts LIMIT 5")
    result = pruned_frame(df, options=OPTIONS)
    assert 5 == len(result.collect())
    assert is_unchanged(df, result)
    text = (
        f"SELECT f.n FROM {facts}facts f JOIN {facts}items i ON f.item = i.item WHERE kind = 2 AND f.n < 8000 LIMIT 5"
    )
    joined = spark.sql(text)
    result = pruned_frame(joined, options=OPTIONS)
    assert 5 == len(result.collect())
    for each in (joined, result):
        assert "CollectLimit" in each._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize(
    ("stored_as", "is_known"),
    [pytest.param("INT96", False, id="int96"), pytest.param("TIMESTAMP_MICROS", True, id="micros")],
)
def test_timestamps_without_statistics_name_the_conf_that_brings_them(
    spark, tmp_path, pruned_frame, conf, stored_as, is_known
):
    conf("spark.sql.parquet.outputTimestampType", stored_as)
    made = "timestamp_seconds(1700000000 + id * 60) AS ts"
    spark.range(0, 4000, 1, 8).selectExpr("id", made).write.parquet(str(tmp_path / "facts"))
    spark.range(0, 40, 1, 1).selectExpr("id AS n", made).write.parquet(str(tmp_path / "few"))
    facts, few = (f"parquet.`{tmp_path / name}`" for name in ("facts", "few"))
    remedy = "set `spark.sql.parquet.outputTimestampType` to TIMESTAMP_MICROS, and write the files again"

    first = spark.sql(f"SELECT * FROM {facts} ORDER BY ts LIMIT 5")
    result = pruned_frame(first, options=OPTIONS)
    assert ordered(first.collect()) == ordered(result.collect())
    for found in (explain(first, options=OPTIONS), explain(result)):
        assert [None if is_known else "INT96"] == [each.reason and each.reason.code.name for each in found.tops]
        assert is_known == (f"try: {remedy}" not in found.verdict)

    joined = spark.sql(f"SELECT f.* FROM {facts} f JOIN (SELECT ts FROM {few} WHERE n < 9) USING (ts)")
    result = pruned_frame(joined, options=replace(OPTIONS, always=True))
    assert Rows(joined.collect()) == Rows(result.collect())
    (found,) = explain(result).tables
    assert (1 if is_known else 8, 8) == (found.files_kept, found.files_total)
    assert is_known == ("INT96" not in {each.code.name for each in found.reasons})
    assert is_known == (f"try: {remedy}" not in report(result).verdict)
