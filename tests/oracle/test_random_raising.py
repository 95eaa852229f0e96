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
from tests.oracle.raising_values import REFUSE_NULL
from tests.oracle.random_lakes import RandomLake, stored
from tests.oracle.random_raising import RaisingQuery, raising_query
from tests.oracle.reproductions import Failure, shown
from tests.oracle.test_random_queries import MADE_SMALLER, TROUBLE, numbers, seeds

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FILE = "tests/oracle/test_random_raising.py"
ERRORS = (PySparkException, Py4JJavaError)
Outcome = Rows | PySparkException | Py4JJavaError
ADAPTIVE = "spark.sql.adaptive.enabled"


@dataclass(frozen=True, slots=True)
class Raising:
    """The tables of one seed; `counts` are of plans, by what stock and pruned did."""

    spark: SparkSession
    lake: RandomLake
    adaptive: str
    counts: Counter[str] = field(default_factory=Counter)

    def problem(self, query: RaisingQuery) -> Exception | None:
        """The error of the pruned query that stock does not have, None if it is correct."""
        try:
            with conf(self.spark, {**query.confs, ADAPTIVE: self.adaptive}):
                self._check(query)
        except Exception as error:  # noqa: BLE001 - any failure is shown with its query
            return error
        return None

    def _check(self, query: RaisingQuery) -> None:
        stock = self._outcome(lambda: self.spark.sql(query.sql))
        assert not isinstance(stock, AnalysisException), f"no query: {stock}"
        result = prune(self.spark.sql(query.sql), options=query.options)
        pruned = self._outcome(lambda: result)
        again, _ = in_session(self.spark, query.options, lambda: self._outcome(lambda: self.spark.sql(query.sql)))
        plan = explain(result)
        self.counts.update(_kinds(stock, pruned, again, plan))
        if isinstance(stock, Rows):
            _check_answer(stock, pruned, "prune()")
            _check_answer(stock, again, "a session")
            assert not TROUBLE - {ReasonCode.BUILD_FAILED} & {each.code for each in plan.reasons}, plan.reasons

    def _outcome(self, frame: Callable[[], DataFrame]) -> Outcome:
        """The rows of a query, or the error that it raises."""
        try:
            return rows_of(frame())
        except ERRORS as error:
            return error


def _check_answer(stock: Rows, pruned: Outcome, way: str) -> None:
    """The rows are those of stock Spark, which raised no error."""
    if not isinstance(pruned, Rows):
        msg = f"{way} raises: {reason(pruned)}"
        raise AssertionError(msg) from pruned  # noqa: TRY004 - a failure of the comparison
    assert stock == pruned, f"{way} lost {stock - pruned!r}, invented {pruned - stock!r}"


def reason(error: Exception) -> str:
    """The line of an error that names its condition."""
    lines = [line for line in str(error).splitlines() if "[" in line]
    return next((line for line in lines if "SQLSTATE" in line), str(error)[:300])


def _kinds(stock: Outcome, pruned: Outcome, again: Outcome, plan: Explanation) -> Iterator[str]:
    """What happened to one plan, as names of counts."""
    yield "plans"
    raised = [not isinstance(each, Rows) for each in (stock, pruned, again)]
    yield from (name for name, each in zip(("stock raised", "pruned raised", "session raised"), raised, strict=True) if each)
    if raised[0] and (raised[1] or raised[2]):
        yield "both raised"
    if plan.tables:
        yield "pruned"
        if not any(raised):
            yield "pruned and answered"
    if any(ReasonCode.MAY_RAISE.value in stop for edge in plan.edges for stop in edge.stops):
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


def refuse_null(value: int | None) -> int:
    """The value; NULL raises an error."""
    if value is None:
        msg = "NULL"
        raise ValueError(msg)
    return value


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", seeds())
def test_pruned_query_raises_only_where_the_query_raises(spark, tmp_path, seed):
    failures, lake = [], raising_lake(seed)
    make = partial(raising_query, lake)
    with tables(spark, lake, tmp_path):
        both = Raising(spark, lake, "false")
        for number in numbers():
            draws = Draws(f"raising query {seed} {number}")
            query = make(draws)
            error = both.problem(query)
            if error is not None:
                again = f"SCANPRUNE_SEEDS={seed} SCANPRUNE_QUERY={number} pytest {FILE}"
                found = Failure(again, query, error, make, draws.taken)
                is_next = len(failures) >= MADE_SMALLER
                failures.append(str(found) if is_next else shown(found, lake, both.problem))
    print(f"seed {seed}: {dict(both.counts)}")
    assert not failures, "\n\n".join(failures)
