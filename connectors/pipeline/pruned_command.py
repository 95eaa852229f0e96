"""Pruning of a command of a table format, such as a MERGE: files that it need not read are taken out of its plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from connectors.base import CommandScan
from connectors.pipeline.pruned_query import PrunedQuery, record_of_run
from connectors.pipeline.query_run import QueryRun
from connectors.pipeline.records import PrunedScan
from connectors.registry import command_scan
from connectors.scan.decision import plan_column
from connectors.spark.plan_reader import SparkPlan
from pruning.keys.cache import PruningCache
from pruning.options import BroadcastStrategy, PruningOptions
from pruning.query.plan import Expression, Relation, relations_of
from pruning.query.sure_rows import first_sure, passing_domains
from pruning.reasons import Reason, ReasonCode

_COMMAND = "a command"


def prune_command(
    spark: SparkSession, plan: Any, options: PruningOptions, cache: PruningCache | None = None
) -> tuple[Any, PrunedQuery]:
    """The optimised plan of a command over fewer files, None where it stays as it is, and its record.

    The command joins no rows of a build and takes no predicate, because it counts the rows that it sees.
    """
    if not options.enabled:
        return None, PrunedQuery.untouched(Reason(ReasonCode.SWITCHED_OFF, _COMMAND), options)
    found = command_scan(spark, plan)
    if found is None or isinstance(found, Reason):
        return None, PrunedQuery.untouched(found or Reason(ReasonCode.COMMAND, _COMMAND), options)
    options = replace(options, broadcast_strategy=BroadcastStrategy.NONE.name, top_k=False)
    read = SparkPlan.read(spark, None, found.plan, keeps_ids=True)
    target = next(each for each in relations_of(read.root) if found.is_scan(read.node(each)))
    query = QueryRun.of(read, options, cache, probed={target.id})
    query.run()
    scan = query.planner.scans.get(target.id)
    if not isinstance(scan, PrunedScan):
        return None, record_of_run(query)
    restricted = _restricted(found, query, target, scan)
    if isinstance(restricted, Reason):
        del query.planner.scans[target.id]
        query.planner.reasons[restricted] = None
        return None, record_of_run(query)
    return restricted, record_of_run(query)


def _restricted(found: CommandScan, query: QueryRun, target: Relation, scan: PrunedScan) -> Any | Reason:
    """The plan of the command over the files that a scan keeps; the record of the scan then tells of these."""
    kept = scan.plan.files.kept
    if kept.all():
        return Reason(ReasonCode.UNCLUSTERED, target.table)
    sure = _sure_file(query, target, scan) if found.needs_a_row else None
    if isinstance(sure, Reason):
        return sure
    decided = scan.decided
    if sure is not None and not kept[sure]:
        kept = kept.copy()
        kept[sure] = True
        # The row groups of a file that stays for its rows alone were not read.
        decided = replace(decided, row_groups=None, plan=replace(decided.plan, row_groups=None))
    scan.decided = replace(decided, plan=decided.plan.reading_whole(kept))
    if scan.identity is not None:
        scan.identity = replace(scan.identity, reads_nothing=not kept.any())
    return found.over(scan.table, kept)


def _sure_file(query: QueryRun, target: Relation, scan: PrunedScan) -> int | Reason:
    """A file of which a row surely passes the filters of the scan: a kept one if there is one, else a small one."""
    wanted = passing_domains(query.plan.root, target)
    if isinstance(wanted, Expression):
        return Reason(ReasonCode.COMMAND, target.table, f"no file surely has a row that passes {wanted}")
    columns = {at: plan_column(scan.table, target, at) for at in wanted}
    files = scan.table.files([*columns.values()])
    found = query.metadata.plan_table(target)
    left = None if isinstance(found, Reason) else found.files_left(query.plan.spark)
    kept = scan.plan.files.kept
    order = np.lexsort((files.sizes, ~kept))
    among = order if left is None else order[left[order]]
    sure = first_sure(files, {columns[at].name: each for at, each in wanted.items()}, among.tolist())
    return Reason(ReasonCode.COMMAND, target.table, "no file surely has a row that passes") if sure is None else sure
