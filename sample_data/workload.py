"""Workloads that benchmarks measure: `WORKLOADS`, each with its tables, its queries and their layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from sample_data import analyst, analyst_queries, events, events_queries, ssb, ssb_queries, tpcds, tpcds_queries
from sample_data.cache import Progress
from sample_data.source import Schema, SourceFiles
from sample_data.tpcds_queries import Query


class Generate(Protocol):
    """A function that generates the files of tables."""

    def __call__(
        self, scale: float, target: Path, tables: Sequence[str] | None = None, progress: Progress = ...
    ) -> SourceFiles:
        """The files of `tables` (None: all) below `target`; missing files are generated."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Tables of any scale from `least_scale` on, and the queries over them.

    - `title`: its name in prose
    - `selective`: the names of queries whose joins leave few rows, which a benchmark measures by default; empty if the
      benchmark measures all of them
    """

    title: str
    schema: Schema
    generate: Generate
    queries: Callable[[], tuple[Query, ...]]
    least_scale: float
    selective: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name by which a command line chooses it."""
        return self.schema.name

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all queries, in order."""
        return tuple(each.name for each in self.queries())


WORKLOADS: Mapping[str, Workload] = MappingProxyType(
    {
        each.name: each
        for each in (
            Workload(
                "TPC-DS",
                tpcds.SCHEMA,
                tpcds.generate,
                tpcds_queries.queries,
                tpcds.LEAST_SCALE,
                tuple(f"q{number}" for number in tpcds_queries.SELECTIVE),
            ),
            Workload("the Star Schema Benchmark", ssb.SCHEMA, ssb.generate, ssb_queries.queries, ssb.LEAST_SCALE),
            Workload("page views", events.SCHEMA, events.generate, events_queries.queries, events.LEAST_SCALE),
            Workload(
                "joins of analysts", analyst.SCHEMA, analyst.generate, analyst_queries.queries, analyst.LEAST_SCALE
            ),
        )
    }
)
TPCDS = WORKLOADS["tpcds"]
