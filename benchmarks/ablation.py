"""The command `python -m benchmarks ablation`: what each number of a decision is worth, by leaving its rule out.

Each query of a workload is planned by `prune()` with all rules, and then without each one (`Limits.without`). Equal
builds run once. Compared are the filters, and the bytes that the scans are planned to read: counts of metadata, which
other load does not change. A rule that changes no plan of any workload is on trial.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from math import exp, fsum, log
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchmarks.contest.__main__ import asked_queries
from benchmarks.markdown import markdown_table
from benchmarks.record import record, recorded
from benchmarks.resume import forget, resumed
from benchmarks.run import RESULTS
from benchmarks.workload_runs import (
    STOCK,
    QueryNames,
    ResultsFolder,
    Resume,
    Scale,
    TablesFolder,
    WorkloadName,
    engine_over,
    named_workload,
)
from connectors.cli.command import default_folder
from pruning.execution_limits import ExecutionLimits
from pruning.keys.cache import PruningCache
from pruning.limits import LIMITS, Limits
from pruning.options import GIVEN, PruningOptions
from sample_data.workload import TPCDS, WORKLOADS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PREFIX = "ablation-"
_NAMED = 3


def numbers() -> tuple[str, ...]:
    """The numbers of decisions that can be left out: those that say how the work is done are no decisions."""
    of_work = {each.name for each in fields(ExecutionLimits)}
    decisions = (each for each in fields(Limits) if each.name not in of_work and each.name != "costs")
    return tuple(each.name for each in decisions if each.metadata["off"] != getattr(LIMITS, each.name))


@dataclass(frozen=True, slots=True)
class Scan:
    """One filtered scan of a plan: the filters with their forms, and the bytes that it reads of those without them."""

    filters: Mapping[tuple[str, str], str]
    bytes_kept: int
    bytes_total: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The filtered scans of a query by the places of their leaves, and the places of nodes whose rows builds hold."""

    scans: Mapping[int, Scan]
    joined: frozenset[int]


@dataclass(frozen=True, slots=True)
class Change:
    """The plan without a rule beside the one with all.

    Counted are filters that are gone, new, or of another form, and nodes whose rows are joined in one of both alone.
    Bytes are those of scans that the query reads itself in both.
    """

    lost: int
    more: int
    formed: int
    joined: int
    bytes_with: int
    bytes_without: int

    @staticmethod
    def of(with_all: Plan, without: Plan) -> Change:
        """The change of scans that are filtered in one of two plans of a query."""
        lost = more = formed = 0
        sizes = [0, 0]
        for at in with_all.scans.keys() | without.scans.keys():
            found = [plan.scans.get(at) for plan in (with_all, without)]
            before, after = ({} if each is None else each.filters for each in found)
            lost += len(before.keys() - after.keys())
            more += len(after.keys() - before.keys())
            formed += sum(form != after.get(name, form) for name, form in before.items())
            if at in with_all.joined | without.joined:
                continue
            total = max(each.bytes_total for each in found if each is not None)
            for way, each in enumerate(found):
                sizes[way] += total if each is None else each.bytes_kept
        return Change(lost, more, formed, len(with_all.joined ^ without.joined), *sizes)

    @property
    def is_none(self) -> bool:
        """True if the rule changes nothing."""
        return not (self.lost or self.more or self.formed or self.joined) and self.bytes_with == self.bytes_without


def planned(df: DataFrame, options: PruningOptions, cache: PruningCache) -> Plan:
    """The plan of a query, made by `prune()` without running what it returns."""
    from connectors.pipeline.pruned_query import PrunedQuery, prune_query  # noqa: PLC0415 - loads Spark

    _, found = prune_query(df, options, cache)
    if not isinstance(found, PrunedQuery):
        return Plan({}, frozenset())
    tables = {at: table for at, scan in found.scans.items() for table in scan.explanation().tables}
    scans = {
        at: Scan(
            {
                (", ".join(one.columns), one.source): f"{one.row_test} {dict(one.ranges)} pushed: {decision.is_pushed}"
                for one, decision in zip(each.filters, found.scans[at].plan.decisions, strict=True)
            },
            each.bytes_kept or 0,
            each.bytes_total or 0,
        )
        for at, each in tables.items()
    }
    return Plan(scans, frozenset(found.pruned_sizes.materialized))


def changes(query: Callable[[], DataFrame], names: Iterable[str], options: PruningOptions) -> dict[str, Change]:
    """The changes of the plan of a query, made anew each time, by leaving out each of the rules."""
    cache = PruningCache()

    def plan(limits: Limits) -> Plan:
        return planned(query(), replace(options, limits=limits), cache)

    with_all = plan(options.limits)
    found = {name: Change.of(with_all, plan(options.limits.without(name))) for name in names}
    return {name: each for name, each in found.items() if not each.is_none}


@dataclass(frozen=True, slots=True)
class Settings:
    """One measurement: the queries of a workload at a scale, and the numbers that are left out."""

    workload: str
    scale: float
    queries: tuple[str, ...]
    numbers: tuple[str, ...]

    @property
    def results(self) -> str:
        """The name of the file of results."""
        return f"{PREFIX}{self.workload}-sf{self.scale:g}"

    @property
    def name(self) -> str:
        """The name that equal measurements share, so that an interrupted one can be resumed."""
        return f"{self.results}-{zlib.crc32(json.dumps([self.queries, self.numbers]).encode()):08x}"


def main(  # noqa: PLR0913, PLR0917 - options of a command
    workload: WorkloadName = TPCDS.name,
    scale: Scale = 10.0,
    query: QueryNames = None,
    number: Annotated[list[str] | None, typer.Option(help="A number of `pruning/limits.py`; all by default.")] = None,
    resume: Resume = False,  # noqa: FBT002
    tables: TablesFolder = None,
    results: ResultsFolder = RESULTS,
) -> None:
    """Plans queries without each rule; only a run over all queries and numbers is recorded."""
    chosen = named_workload(workload, scale)
    if unknown := [each for each in number or () if each not in numbers()]:
        raise typer.BadParameter(f"there is no rule of {unknown[0]!r}; expected one of {', '.join(numbers())}")
    names = asked_queries(chosen, query or ["all"])
    settings = Settings(workload, scale, names, tuple(number or numbers()))
    if not resume:
        forget(settings.name)
    measure = partial(run, settings, tables or default_folder())
    if names != chosen.names or number:
        typer.echo(page(measure()))
        return
    results.mkdir(parents=True, exist_ok=True)
    path = results / f"{settings.results}.json"
    record(path, path.stem, measure, quick=False)
    path.with_suffix(".md").write_text(page(recorded(path)), encoding="utf-8")
    typer.echo(f"Written to {str(path)!r}", err=True)


def run(settings: Settings, folder: Path) -> list[dict[str, Any]]:
    """A row for each number; resumes an interrupted call with the same workload and scale."""
    engine, known = engine_over(WORKLOADS[settings.workload], settings.scale, settings.queries, folder)
    options = PruningOptions(cost_rates=GIVEN)

    def measure(name: str) -> dict[str, Any]:
        found = changes(partial(engine.frame, STOCK, known[name].text), settings.numbers, options)
        return {number: asdict(each) for number, each in found.items()}

    by_query = dict(zip(settings.queries, resumed(settings.name, settings.queries, measure), strict=True))
    found = {
        number: {query: Change(**row[number]) for query, row in by_query.items() if number in row}
        for number in settings.numbers
    }
    return [row_of(number, each, settings) for number, each in found.items()]


def row_of(number: str, changed: Mapping[str, Change], settings: Settings) -> dict[str, Any]:
    """The fields of a row: how many queries change, filters lost and new, and bytes without the rule by those with."""
    ratios = {query: (each.bytes_without + 1) / (each.bytes_with + 1) for query, each in changed.items()}
    most = sorted(ratios, key=lambda query: -abs(log(ratios[query])))[:_NAMED]
    unchanged = len(settings.queries) - len(ratios)
    return {
        "number": number,
        "default": getattr(LIMITS, number),
        "queries": len(settings.queries),
        "changed": len(changed),
        "lost": sum(each.lost for each in changed.values()),
        "more": sum(each.more for each in changed.values()),
        "formed": sum(each.formed for each in changed.values()),
        "joined": sum(each.joined for each in changed.values()),
        "bytes": exp(fsum(map(log, ratios.values())) / max(len(ratios) + unchanged, 1)),
        "most": {query: ratios[query] for query in most},
    }


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: a line for each number, those that change most queries first."""
    header = (
        "number",
        "default",
        "queries changed",
        "filters lost",
        "new",
        "of another form",
        "joined nodes",
        "bytes without it",
        "most",
    )
    ordered = sorted(rows, key=lambda row: (-row["changed"], row["number"]))
    table = markdown_table(header, map(_cells, ordered))
    return f"""# Numbers of decisions, one at a time without its rule

Made by `python -m benchmarks ablation`: queries whose plan changes without the rule; filters that are gone, new or have
other ranges or row tests, or that storage sees in one of both; nodes whose rows are joined, or no more; planned bytes
without it by those with it, of scans that the query itself reads in both, as a geometric mean over all queries.

{table}"""


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    most = ", ".join(f"{query} {ratio:.2f}" for query, ratio in row["most"].items())
    changed = f"{row['changed']} of {row['queries']}"
    counts = (str(row[name]) for name in ("lost", "more", "formed", "joined"))
    return row["number"], f"{row['default']:g}", changed, *counts, f"{row['bytes']:.3f}", most


if __name__ == "__main__":
    typer.run(main)
