"""Seeded random queries with expressions that raise errors: pruned raises only where stock Spark does.

Where stock answers, pruned gives the same rows. Where stock raises, pruned may raise or answer. Adaptive execution is
off, because it decides by sizes at run time what else an expression meets.

`SCANPRUNE_SEEDS=100-199 SCANPRUNE_QUERIES=200 pytest tests/oracle/test_random_raising.py` runs more and other queries;
`SCANPRUNE_SEEDS=7 SCANPRUNE_QUERY=12` runs one query of one lake.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from pruning import explain, prune
from pruning.reasons import ReasonCode
from pruning.results.explanation import Explanation
from sample_data.confs import conf
from sample_data.rows import Rows
from tests.in_session import in_session
from tests.oracle.answers import rows_of
from tests.oracle.draws import Draws
from tests.oracle.raising_lake import raising_lake
from tests.oracle.raising_shapes import Shape
from tests.oracle.raising_values import REFUSE_NULL, refuse_null
from tests.oracle.random_lakes import RandomLake, stored
from tests.oracle.random_raising import RaisingQuery, raising_query
from tests.oracle.reproductions import Failure, shown
from tests.oracle.test_random_queries import MADE_SMALLER, TROUBLE, numbers, seeds

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ERRORS = (PySparkException, Py4JJavaError)
Outcome = Rows | PySparkException | Py4JJavaError
# Half as many as of the other random queries, because each takes twice as long.
NUMBERS = numbers()[: max(1, len(numbers()) // 2)]
# A few queries already have every shape.
SHAPES = (*Shape, Shape.FREE)
ADAPTIVE = "spark.sql.adaptive.enabled"


@dataclass(frozen=True, slots=True)
class Raising:
    """The tables of one seed; `counts` are of plans, by what became of them with pruning and without it.

    If `adaptive`, pruned may also raise where stock does without adaptive execution.
    """

    spark: SparkSession
    lake: RandomLake
    adaptive: bool
    counts: Counter[str] = field(default_factory=Counter)

    def problem(self, query: RaisingQuery) -> Exception | None:
        """The error of a comparison with the pruned query, None if it is correct."""
        try:
            with conf(self.spark, {**query.confs, ADAPTIVE: str(self.adaptive).lower()}):
                self._check(query)
        except Exception as error:  # noqa: BLE001 - any failure is shown with its query
            return error
        return None

    def _check(self, query: RaisingQuery) -> None:
        stock = self._stock(query)
        assert not isinstance(stock, AnalysisException), f"no query: {stock}"
        pruned, plan = self._pruned(query)
        again, _ = in_session(self.spark, query.options, lambda: self._stock(query))
        self.counts.update(kinds(stock, pruned, again, plan))
        if isinstance(stock, Rows):
            for way, each in (("prune()", pruned), ("a session", again)):
                self._check_answer(query, stock, each, way)
            reasons = () if plan is None else plan.reasons
            assert not TROUBLE - {ReasonCode.BUILD_FAILED} & {each.code for each in reasons}, reasons

    def _stock(self, query: RaisingQuery) -> Outcome:
        return outcome(lambda: self.spark.sql(query.sql))

    def _pruned(self, query: RaisingQuery) -> tuple[Outcome, Explanation | None]:
        """The outcome of `prune()`, and its plan; None if it raised an error itself."""
        try:
            result = prune(self.spark.sql(query.sql), options=query.options)
        except ERRORS as error:
            return error, None
        found = outcome(lambda: result)
        try:
            # It optimises the plan once more.
            count = result.count()
        except ERRORS as error:
            return error if isinstance(found, Rows) else found, explain(result)
        # It may spare an error, since it needs no column.
        assert not isinstance(found, Rows) or count == len(found)
        return found, explain(result)

    def _check_answer(self, query: RaisingQuery, stock: Rows, pruned: Outcome, way: str) -> None:
        """The rows are those of stock Spark, which raised no error."""
        if isinstance(pruned, Rows):
            assert stock == pruned, f"{way} lost {stock - pruned!r}, invented {pruned - stock!r}"
            return
        if self.adaptive:
            with conf(self.spark, {ADAPTIVE: "false"}):
                if not isinstance(self._stock(query), Rows):
                    self.counts["adaptive execution decided"] += 1
                    return
        msg = f"{way} raises: {reason(pruned)}"
        raise AssertionError(msg) from pruned


def outcome(frame: Callable[[], DataFrame]) -> Outcome:
    """The rows of a query, or the error that it raises."""
    try:
        return rows_of(frame())
    except ERRORS as error:
        return error


def reason(error: Exception) -> str:
    """The line of an error that names its condition."""
    lines = [line for line in str(error).splitlines() if "[" in line]
    return next((line for line in lines if "SQLSTATE" in line), str(error)[:300])


def kinds(stock: Outcome, pruned: Outcome, again: Outcome, plan: Explanation | None) -> Iterator[str]:
    """The names of the counts to which one plan adds."""
    in_stock, in_pruned = not isinstance(stock, Rows), not (isinstance(pruned, Rows) and isinstance(again, Rows))
    yield "plans"
    if in_stock:
        yield "stock raised"
    if in_pruned:
        yield "pruned raised"
    if in_stock and in_pruned:
        yield "both raised"
    if plan is None:
        return
    if plan.tables:
        yield "pruned"
    if plan.tables and not in_stock:
        yield "pruned and answered"
    codes = (ReasonCode.MAY_RAISE, ReasonCode.MAY_MOVE)
    if any(code.value in stop for code in codes for edge in plan.edges for stop in edge.stops):
        yield "refused"


@contextmanager
def tables(spark: SparkSession, lake: RandomLake, folder: Path) -> Iterator[None]:
    """The tables of a lake and the Python function of its queries."""
    for table in lake.tables:
        stored(spark, folder, table).createOrReplaceTempView(table.name)
    spark.udf.register(REFUSE_NULL, refuse_null, "int")
    yield
    spark.sql(f"DROP TEMPORARY FUNCTION {REFUSE_NULL}")
    for table in lake.tables:
        spark.catalog.dropTempView(table.name)


@pytest.fixture(params=seeds())
def counted(spark, tmp_path, request):
    """A function that checks all queries of a seed, and gives the counts of their plans."""
    lake, seed = raising_lake(request.param), request.param

    def run(*, adaptive: bool) -> Counter[str]:
        both, failures = Raising(spark, lake, adaptive), list[str]()
        for number in NUMBERS:
            draws = Draws(f"raising query {seed} {number}")
            make = partial(raising_query, lake, SHAPES[number % len(SHAPES)])
            query = make(draws)
            error = both.problem(query)
            if error is not None:
                again = f"SCANPRUNE_SEEDS={seed} SCANPRUNE_QUERY={number} pytest tests/oracle/test_random_raising.py"
                found = Failure(again, query, error, make, draws.taken)
                is_next = len(failures) >= MADE_SMALLER
                failures.append(str(found) if is_next else shown(found, lake, both.problem))
        print(f"seed {seed}: {dict(both.counts)}")  # noqa: T201 - what `pytest -rP` shows
        assert not failures, "\n\n".join(failures)
        return both.counts

    with tables(spark, lake, tmp_path):
        yield run


@pytest.mark.timeout(3600)
def test_pruned_query_raises_only_where_the_query_raises(counted):
    counts = counted(adaptive=False)
    # Queries that always raise, or never, or are never pruned, would show nothing.
    least = len(NUMBERS) // 8
    for each in ("stock raised", "both raised", "pruned and answered", "refused"):
        assert counts[each] >= least, f"{each}: {counts}"


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_what_adaptive_execution_alone_decides_is_kept_apart(counted):
    counts = counted(adaptive=True)
    assert counts["pruned and answered"] >= len(NUMBERS) // 8, counts
