"""With given rates a session and `prune()` plan the same filters, in the first run of a query and in the tenth.

The queries are those of TPC-DS, SSB, the page views and the joins of analysts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from connectors.session.session_pruning import records
from pruning import disable, enable, prune, report
from pruning.results.prune_report import PruneReport
from sample_data import layout
from sample_data import tpcds as tpcds_files
from sample_data.decided import decided
from sample_data.layout import write_delta
from sample_data.tpcds import generate
from sample_data.tpcds_queries import Query, by_spark, spark_tables
from sample_data.workload import WORKLOADS
from tests.kept import kept_folder
from tests.oracle import test_tpcds
from tests.test_workloads import MADE_BY, SCALE

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RUNS = 10
QUERIES = {f"{name}-{each.name}": (name, each) for name, it in WORKLOADS.items() for each in it.queries()}
# At these scales only builds without fixed costs pay.
OPTIONS = test_tpcds.OPTIONS


@dataclass(frozen=True, slots=True)
class Doors:
    """A session that is not enabled, and one that is, each with the tables of a workload."""

    plain: Any
    enabled: Any

    def planned_by_prune(self, query: Query) -> tuple[object, ...]:
        result = prune(self.plain.sql(query.text), options=OPTIONS)
        return decided(report(result))

    def planned_by_session(self, query: Query) -> tuple[object, ...]:
        before = {id(each) for each in records(self.enabled)}
        by_spark(self.enabled.sql(query.text))
        latest = [each for each in records(self.enabled)[:1] if id(each) not in before]
        return decided(latest[0].report() if latest else PruneReport((), ""))


@pytest.fixture(scope="module")
def doors(spark) -> Iterator[Mapping[str, Doors]]:
    with ExitStack() as open_ones:
        found = {}
        for name, workload in WORKLOADS.items():
            if name == "tpcds":
                made_by = [Path(test_tpcds.__file__), *(Path(each.__file__) for each in (layout, tpcds_files))]
                folder = kept_folder("tpcds", made_by)
                sources = generate(test_tpcds.SCALE, folder)
            else:
                folder = kept_folder(name, MADE_BY)
                sources = workload.generate(SCALE, folder)
            folders = write_delta(spark, sources, folder / "delta")
            plain, enabled = spark.newSession(), spark.newSession()
            for each in (plain, enabled):
                open_ones.enter_context(spark_tables(each, folders))
            enable(enabled, options=OPTIONS)
            open_ones.callback(disable, enabled)
            found[name] = Doors(plain, enabled)
        yield found


@pytest.mark.parametrize("query", QUERIES)
def test_both_doors_plan_the_same_filters_in_the_first_run_and_in_the_tenth(doors, query):
    workload, asked = QUERIES[query]
    both = doors[workload]
    expected = both.planned_by_prune(asked)
    assert [expected] * RUNS == [both.planned_by_session(asked) for _ in range(RUNS)]
    assert expected == both.planned_by_prune(asked)
